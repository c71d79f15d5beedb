// The whole solve: descent on the active set, a float64 look at all examples, more where that finds a violation.
#pragma once

#include "descent.hpp"

namespace multimargin {

struct Report {
    StopReason stop_reason = StopReason::converged;
    Index iterations = 0;
    double seconds = 0.0;
    double violation = infinity;
    double dual = 0.0;
    double primal = infinity;
    Index n_support = 0;
    Index kernel_rows = 0;
    Index cache_hits = 0;
    bool verified = false;      // the numbers above come from scores computed anew in float64
    bool float64_rows = false;  // the rows of the last descent
    Phases phases;
    std::vector<TracePoint> trace;  // empty unless asked for
};

// Starts from the state (made feasible first), leaves the solution in it.
// On any stop the state is feasible and usable; its columns are current when report.verified.
Report solve(const Problem& problem, FullState& state, const Options& options, Watcher* watcher);

}  // namespace multimargin
