// Steps on examples in the features of a kernel of low rank: for problems with so many free variables that no factor
// of them fits, and so smooth a kernel that steps on blocks crawl.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_team.hpp"
#include "problem/report.hpp"
#include "problem/solve_stats.hpp"
#include "solvers/multiclass/low_rank.hpp"
#include "solvers/multiclass/one_level.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

// Solves   the dual of all examples,
// Given    K = G G' + R with G of low rank: the change of beta since the last float64 check changes the scores by
//          G W, W = G' (beta - beta then), so that a step on an example costs the rank, not the number of examples.
//          Of R only the diagonal takes part; the next check adds the rest.
// By       sweeps of exact steps on whole examples, accelerated: a sweep starts from beyond the last one's end, in the
//          direction of the one before (Nesterov's momentum); a few plain sweeps before each check take out what the
//          momentum stirred up.
// Returns  feasible variables in the state, whatever the outcome, and their scores in float64 unless it was stopped;
//          the dual is no lower than at the start where it ends satisfied or stuck.
class FeatureDescent {
  public:
    FeatureDescent(const Problem& problem, FullState& state, Monitor& monitor, Tally& tally, ThreadTeam& team);

    // satisfied, out_of_steps, stopped, or stuck: the kernel is of no low rank, or the checks show no progress.
    Outcome run(double target, Index max_iterations);
    // The variables reached, into the state.
    void scatter();

  private:
    void gather();
    bool prepare();
    // The float64 check: exact scores, from which W starts anew.
    bool confirm();
    // Sweeps from one check to the next; false when the monitor stopped it.
    bool run_phase(double target);
    void sweep();
    bool out_of_steps() const { return tally_.iterations >= limit_; }
    // A few examples in turn; the largest violation met.
    double step_group(std::span<const Index> examples);
    double step_example(Index e, const float* scores, float* change);
    void extrapolate(double factor);
    void move_beyond(Index e, double factor, float* change);
    void keep_within_bounds(Index e, double slack);
    void coefficients_of(Index e, std::vector<double>& beta) const;
    void change_of(Index e, float* change);
    void add_to_weights(const float* rows, const float* changes, Index count);
    // What the dual of the model is, up to a constant.
    double potential();
    const double* variables_of(Index e) const { return variables_.data() + e * machine_.max_components(); }
    double* variables_of(Index e) { return variables_.data() + e * machine_.max_components(); }

    const Problem& problem_;
    const Machine& machine_;
    FullState& state_;
    Monitor& monitor_;
    Tally& tally_;
    ThreadTeam& team_;
    Index width_;  // classes, filled up
    LowRankKernel kernel_;
    AlignedVector<float> weights_;                  // W, one row per column of G
    AlignedVector<float> base_;                     // scores at the check without R's diagonal: one row per example
    std::vector<double> variables_, earlier_;       // a, and a one sweep before
    AlignedVector<float> rows_, scores_, changes_;  // of a group of examples
    std::vector<double> gradient_, own_scores_, before_, after_;  // of one example; beta before and after its step
    ExampleScratch scratch_;
    double largest_ = infinity;  // violation met in the last sweep
    double dual_base_ = 0.0;     // the dual less the potential
    Index limit_ = 0;            // of steps
    std::uint64_t n_sweeps_ = 0;
};

}  // namespace multimargin
