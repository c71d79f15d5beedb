// A first point for a binary problem whose C is small.
#pragma once

#include "problem/binary_problem.hpp"

namespace multimargin {

// Where C is small, nearly all variables end at their bounds, and pairs would take them there two at a time. This puts
// there at once all but those whose errors speak against it; the errors are given in float64.
// False, with the state as it was, where that is no good start: bounds that differ, much of one class, errors that
// speak against it for more than a quarter, no bounds at all (squared hinge), or kernel rows that are not in memory.
bool start_at_bounds(const BinaryProblem& problem, BinaryState& state);

}  // namespace multimargin
