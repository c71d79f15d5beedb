// The two-level solver: rounds on the active examples, blocks within a round, an exact solver within a block.
#pragma once

#include <span>
#include <vector>

#include "problem/options.hpp"
#include "problem/report.hpp"
#include "solvers/multiclass/block_solver.hpp"
#include "solvers/multiclass/local_engine.hpp"

namespace multimargin {

// What a driver of rounds and blocks goes by.
struct TwoLevelRules {
    static constexpr Index default_block = 512;
    static constexpr Index large_block = 1024;     // for machines in which all components are free together
    static constexpr Index whole_block = 2560;     // of the active set
    static constexpr double carried_share = 0.35;  // of a block, at most: free examples of the one before
    static constexpr double round_share = 0.1;     // a round leaves this share of the violation it began with
    static constexpr double block_share = 0.3;     // so does a block of steps on examples ...
    static constexpr double exact_share = 0.1;     // ... and of the active set, which is exact anyway
    static constexpr double near_violation = 0.3;  // gradients above minus this stay active, relative to the targets

    // The active set takes a small problem as a whole: a factor that is kept beats blocks that begin anew.
    static bool fits_active_set(const Problem& problem) { return problem.size() <= whole_block; }
    template <class T>
    static bool takes_whole(const Problem& problem) {
        return std::is_same_v<T, double> && fits_active_set(problem);
    }
    template <class T>
    static Index block_size(const Problem& problem) {
        if (takes_whole<T>(problem)) return whole_block;
        return problem.machine().sum_to_zero ? large_block : default_block;
    }
    // Examples whose gradients are all below minus this never stay active.
    static double most_margin(const Machine& machine);
};

// Solves   the whole dual, with kernel values of type T,
// Given    a state whose scores are current,
// Returns  when no example violates by more than the target, as far as the precision of T shows.
//
// A round works on the support vectors and near violators until a tenth of the violation is left, and then brings the
// scores of the rest up to date in one pass. Within a round a block holds the worst violators and half of the last
// block's free examples; it is solved on its own kernel matrix, by semi-greedy steps on whole examples or, where
// those crawl, by an active set. Which one is decided by the steps that a block took, never by a clock.
// All that concerns the scores of the other examples is the engine's.
template <class T>
class TwoLevel final {
  public:
    // What solved the blocks before, in another precision, is tried first.
    TwoLevel(const Problem& problem, FullState& state, const Options& options, bool prefers_active_set,
             bool may_give_up, Monitor& monitor, Tally& tally, ThreadTeam& team);

    Outcome run(double target, Index max_iterations);
    // Ends as crawling when the monitor has counted so much.
    void limit_work(double work) { most_work_ = work; }
    // Writes the variables of the round under way into the full state.
    void scatter() { engine_.synchronize(current_block_); }
    void reload() {}
    bool confirm() { return engine_.confirm(); }
    bool prefers_active_set() const { return block_solver_.prefers_active_set(); }
    std::vector<Index> members() const { return first_indices(problem_.size()); }

  private:
    // Works on the active examples until their violation is at most target.
    Outcome run_blocks(double target, Index max_iterations);
    Outcome solve_block(double violation, double target, Index max_iterations);
    std::vector<Index> choose_block();
    void keep_free(const Workspace& block, std::span<const Index> positions);

    using Rules = TwoLevelRules;

    const Problem& problem_;
    const Machine& machine_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    Index block_size_;
    bool one_block_;  // that holds all examples
    bool may_give_up_;
    double most_work_ = infinity;
    LocalEngine<T> local_;
    ScoreEngine<T>& engine_;
    BlockSolver<T> block_solver_;
    Index n_active_ = 0;
    std::vector<Index> previous_;         // positions of the free examples of the round's last block
    Workspace* current_block_ = nullptr;  // while it is being solved
};

}  // namespace multimargin
