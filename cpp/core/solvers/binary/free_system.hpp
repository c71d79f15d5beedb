// The exact solution on the face of a nearly solved binary problem: one linear system for the free variables.
#pragma once

#include "problem/binary_problem.hpp"

namespace multimargin {

// More free variables than this are left as they are.
inline constexpr Index polish_most_free = 512;

// Moves the free variables to the optimum of their face, as far as the box allows; variables that reach a bound leave
// the face, and the rest is solved again. Keeps the equality and never lowers the dual. The errors must be current for
// the free variables; afterwards they are not. False when there was nothing to move.
bool polish(const BinaryProblem& problem, BinaryState& state, Monitor& monitor);

// What polishing so many free variables costs, in steps on a pair of variables of a problem with n examples.
double polish_cost(double n_free, double n, double kernel_cost);

}  // namespace multimargin
