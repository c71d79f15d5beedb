// How a run of steps ended, and a whole solve.
#pragma once

#include <vector>

#include "base/timers.hpp"
#include "base/trace.hpp"
#include "base/types.hpp"

namespace multimargin {

enum class Outcome {
    satisfied,  // the active examples meet the tolerance
    near,       // close to it for the first time: worth bringing the shrunk ones back
    imprecise,  // rows in float32 no longer carry the tolerance
    stuck,      // a step changed nothing
    crawling,   // many variables are free, and steps on examples hardly get anywhere
    out_of_steps,
    stopped  // by the monitor
};

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

}  // namespace multimargin
