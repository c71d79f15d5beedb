// The running account of a solve.
#pragma once

#include "phases.hpp"
#include "types.hpp"

namespace multimargin {

// What survives a change of precision and is seen by the monitor.
struct Tally {
    Index iterations = 0;
    double violation = infinity;
    double dual = 0.0;
    double primal = infinity;
    Index n_active = 0;
    Index n_support = 0;
    bool shrunk_before = false;
    CacheCounters cache;
    Phases phases;
};

}  // namespace multimargin
