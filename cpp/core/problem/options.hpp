// How to solve: the choices and limits of one call.
#pragma once

#include "base/types.hpp"

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

}  // namespace multimargin
