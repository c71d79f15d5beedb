// Steps on one and two variables, exactly: DGI11 4.2 and appendix A.2.
#pragma once

#include <algorithm>
#include <utility>

#include "base/types.hpp"

namespace multimargin {

// max g mu - q mu^2/2 with a + mu in [0, cap]; no curvature means: to the bound that g points at.
inline double one_variable_step(double g, double q, double a, double cap) {
    if (q > 0.0) return std::clamp(g / q, -a, cap - a);
    return g > 0.0 ? cap - a : (g < 0.0 ? -a : 0.0);
}

struct PairProblem {
    double g1, g2;         // gradient
    double q11, q22, q12;  // Hessian
    double a1, a2;         // variables
    double cap1, cap2;     // upper bounds, infinite for the squared hinge
};

// max g'mu - 1/2 mu'Q mu with a + mu in [0, cap1] x [0, cap2].
// An infinite answer means that the objective is unbounded (only possible with an infinite cap).
std::pair<double, double> two_variable_step(const PairProblem& problem);

}  // namespace multimargin
