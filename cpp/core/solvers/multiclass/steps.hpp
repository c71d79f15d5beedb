// Exact steps on one or two variables, on two variables of one example, or on a whole example, with the
// scores brought up to date. Shared by all solvers that descend on a workspace.
#pragma once

#include <vector>

#include "kernel/row_cache.hpp"
#include "problem/workspace.hpp"
#include "solvers/multiclass/working_set.hpp"
#include "subproblem/bounded_newton.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

// Kernel rows over the positions of a workspace.
template <class T>
class RowProvider {
  public:
    virtual ~RowProvider() = default;
    // k(position, j) for all positions j; valid until two other rows were asked for.
    virtual const T* row(Index position) = 0;
};

struct StepResult {
    bool moved = false;
    double gain = 0.0;  // of the dual
};

template <class T>
class Steps {
  public:
    explicit Steps(const Problem& problem);

    // The workspace and the rows that belong to its positions, until they are set again.
    void attach(Workspace& workspace, RowProvider<T>& rows);

    // One variable, or two when `selector` may choose a partner: DGI11 4.2, 4.3 with appendix A.2.
    StepResult box_variables(const Variable& first, BoxSelector* selector);
    // Any variables, which are sorted by example: HL02 (12).
    StepResult working_set(std::vector<Variable>& variables);
    // Two variables of one example, the slack being one of them: DGI11 4.4.
    StepResult pair_in_example(Index position);
    // All variables of the example at once: HL02 (18)-(20).
    StepResult whole_example(Index position);

    double violation_at(Index position);

  private:
    // Sets one example's variables from `target_` and brings all scores up to date; true if anything changed.
    bool move_example(Index position);
    bool move_variable(const Variable& variable, double change);
    const Component& component_of(const Variable& v) const {
        return machine_.of(workspace_->class_of(v.position))[unsigned_index(v.p)];
    }

    const Problem& problem_;
    const Machine& machine_;
    Workspace* workspace_ = nullptr;
    RowProvider<T>* rows_ = nullptr;
    ExampleScratch scratch_;
    BoundedProblem few_;
    BoundedNewton newton_;
    std::vector<double> gradient_, target_, column_deltas_;
};

}  // namespace multimargin
