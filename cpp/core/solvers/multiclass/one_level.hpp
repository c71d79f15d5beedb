// Decomposition on an active set: select, step, update scores, shrink. One level, rows from a cache.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/monitor.hpp"
#include "kernel/row_cache.hpp"
#include "problem/options.hpp"
#include "problem/report.hpp"
#include "problem/solve_stats.hpp"
#include "problem/workspace.hpp"
#include "solvers/multiclass/semi_greedy.hpp"
#include "solvers/multiclass/working_set.hpp"

namespace multimargin {

template <class T>
class Descent final : private RowProvider<T> {
  public:
    Descent(const Problem& problem, FullState& state, const Options& options, Monitor& monitor, Tally& tally);

    // Iterates until the active examples violate by at most target, or something else ends it.
    Outcome run(double target, Index max_iterations);

    // Writes the active examples' variables and scores back; those of the others stay as they were.
    void scatter() { workspace_->scatter(state_); }

    // All examples again, with the scores that the full state has now.
    void reload();

    bool all_active() const { return workspace_->size() == problem_.size(); }
    std::span<const Index> members() const { return workspace_->members(); }

  private:
    double select();
    bool by_example() const;
    double cost_of_selection() const;  // multiply-adds, for the tally
    bool step(double target, Index max_iterations);
    bool sweep(double target, Index max_iterations);
    bool take(const StepResult& result);
    const T* row(Index position) override;
    Steps<T>& steps() { return semi_greedy_.steps(); }
    void shrink();
    bool release_variables();
    bool may_shrink(const ComponentSlice& slice, Index t);
    void release_resting_examples();
    bool rows_too_coarse();
    Census census();

    const Problem& problem_;
    const Machine& machine_;
    FullState& state_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    std::unique_ptr<Workspace> workspace_;
    std::unique_ptr<RowCache<T>> cache_;
    BoxSelector box_selector_;
    SemiGreedy<T> semi_greedy_;
    BoxSelection box_choice_;
    std::vector<Variable> working_set_;
    Index since_shrinking_ = 0;
    Census resting_;  // variables of the examples that are not active; for the trace
};

}  // namespace multimargin
