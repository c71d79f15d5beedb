// Decomposition on an active set: select, step, update scores, shrink. One level, rows from a cache.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "monitor.hpp"
#include "row_cache.hpp"
#include "selection.hpp"
#include "semi_greedy.hpp"
#include "tally.hpp"
#include "workspace.hpp"

namespace multimargin {

struct Options {
    SolverKind solver = SolverKind::s2do;
    Precision precision = Precision::automatic;
    double tol = 1e-3;
    Index max_iter = -1;
    double max_time = infinity;
    double max_work = infinity;    // multiply-adds, counted; then the solve ends as stalled
    bool shrink_variables = true;  // within examples that stay
    bool shrink_examples = true;   // whose variables all rest
    double cache_bytes = 2e8;      // 0: a row lives for one step
    Index n_threads = 1;
    double extra_tol = 0.0;       // after tol is reached go on to this violation (0: do not) ...
    Index extra_steps = 0;        // ... for at most this many steps
    bool trace = false;           // record the course of the solve ...
    bool trace_primal = false;    // ... with the primal objective
    Index working_set_size = 10;  // variables of a step of the solver working_set
};

enum class Outcome {
    satisfied,  // the active examples meet the tolerance
    near,       // close to it for the first time: worth bringing the shrunk ones back
    imprecise,  // rows in float32 no longer carry the tolerance
    stuck,      // a step changed nothing
    crawling,   // many variables are free, and steps on examples hardly get anywhere
    out_of_steps,
    stopped  // by the monitor
};

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
    const KernelColumns<double>* exact_columns() const { return nullptr; }

  private:
    double select();
    bool by_example() const;
    double cost_of_selection() const;  // multiply-adds, for the account
    bool step(double target, Index max_iterations);
    bool sweep(double target, Index max_iterations);
    bool take(const StepResult& result);
    const T* row(Index position) override;
    Steps<T>& steps() { return semi_greedy_.steps(); }
    void shrink();
    bool release_variables();
    bool may_shrink(const Block& block, Index t);
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
