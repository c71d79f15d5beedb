// Exact steps on whole examples, many for each scan of the violations.
#pragma once

#include "base/monitor.hpp"
#include "solvers/multiclass/steps.hpp"

namespace multimargin {

struct SweepResult {
    Index steps = 0;
    double gain = 0.0;
    bool moved = false;
};

template <class T>
class SemiGreedy {
  public:
    explicit SemiGreedy(const Problem& problem) : steps_(problem), selector_(problem.machine()) {}

    void attach(Workspace& workspace, RowProvider<T>& rows) {
        workspace_ = &workspace;
        steps_.attach(workspace, rows);
    }

    // The largest violation of an example; the sweep that follows uses what this scan found.
    double scan() { return (worst_ = selector_.most_violating(*workspace_)).violation; }

    // Visits every example whose violation was above half of the largest at the last scan, in order, and solves
    // those that still are. One scan serves many steps, at little loss against choosing the worst each time.
    SweepResult sweep(double target, Index max_steps, Monitor& monitor);

    const ExampleSelection& worst() const { return worst_; }
    const ExampleSelector& selector() const { return selector_; }
    Steps<T>& steps() { return steps_; }

  private:
    Steps<T> steps_;
    ExampleSelector selector_;
    ExampleSelection worst_;
    Workspace* workspace_ = nullptr;
};

}  // namespace multimargin
