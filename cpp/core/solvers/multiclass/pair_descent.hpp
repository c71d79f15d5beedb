// Steps on the variables between two classes: a binary problem inside an all-in-one machine.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_team.hpp"
#include "kernel/gram_matrix.hpp"
#include "problem/options.hpp"
#include "problem/report.hpp"
#include "problem/solve_stats.hpp"

namespace multimargin {

// Solves   the dual of all examples, for boxes whose components compare the own class with one other,
// Given    a state whose score columns are current,
// By       binary problems: of the examples of class c the variable against e, of those of e the one against c. They
//          depend on the scores by f_c - f_e alone, so that their Hessian is that of a binary machine with the kernel
//          2 K and without bias, solved by pairs of variables (DGI11 S2DO): near examples of both classes that rise
//          together change no score, and go to their bounds in one step. The pair of classes that violates most is
//          next.
// Returns  satisfied, stopped or out_of_steps.
class PairDescent {
  public:
    static bool fits(const Problem& problem, const Options& options);

    PairDescent(const Problem& problem, FullState& state, const Options& options, Monitor& monitor, Tally& tally,
                ThreadTeam& team);

    Outcome run(double target);

  private:
    // The variables of class y against class p.
    struct Side {
        Index y, p, component, begin, length;
    };

    Side side(Index y, Index p) const;
    double pair_violation(Index c, Index e);
    void load(const Side& side, Index offset);
    void solve_pair(Index c, Index e, double target);
    bool step(double target);
    Index partner_of(Index i) const;
    void take(Index i, double value);
    void finish(Index c, Index e);
    const float* row(Index example) const { return kernel_->panel_row(0, example); }
    const Side& side_of(Index i) const { return i < sides_[0].length ? sides_[0] : sides_[1]; }
    Index example_of(Index i) const {
        return i < sides_[0].length ? sides_[0].begin + i : sides_[1].begin + i - sides_[0].length;
    }

    const Problem& problem_;
    const Machine& machine_;
    FullState& state_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    ThreadTeam& team_;
    std::unique_ptr<SquareKernel<float>> kernel_;
    std::vector<double> violations_;  // of pairs of classes
    Side sides_[2] = {};
    Index size_ = 0;                                                         // of the pair of classes at hand
    AlignedVector<double> gradient_, a_, before_, cap_, diagonal_, change_;  // by position in it
};

}  // namespace multimargin
