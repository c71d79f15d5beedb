// The whole solve: descent on the active set, a float64 check of all examples, more where that finds a violation.
#pragma once

#include "problem/options.hpp"
#include "problem/report.hpp"
#include "solvers/multiclass/one_level.hpp"

namespace multimargin {

// Starts from the state (made feasible first), leaves the solution in it.
// On any stop the state is feasible and usable; its columns are current when report.verified.
Report solve(const Problem& problem, FullState& state, const Options& options, Watcher* watcher);

}  // namespace multimargin
