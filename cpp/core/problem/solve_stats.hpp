// Counters of a running solve.
#pragma once

#include "base/timers.hpp"
#include "base/trace.hpp"
#include "base/types.hpp"
#include "problem/problem.hpp"

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
    Trace trace;

    // Takes over what a float64 check found.
    void note(const Summary& summary) {
        violation = summary.violation;
        dual = summary.dual;
        primal = summary.primal;
        n_support = summary.n_support;
    }

    // Offers this point to the trace; take_census() is called only if it is kept.
    template <class TakeCensus>
    void record(TakeCensus take_census) {
        if (trace.wants_next()) trace.keep(moment(take_census()));
    }
    TracePoint moment(const Census& census) const {
        TracePoint point;
        point.iterations = iterations;
        point.kernel_rows = cache.rows_computed;
        point.violation = violation;
        point.dual = dual;
        point.census = census;
        return point;
    }
};

}  // namespace multimargin
