// The dual restricted to the variables of one example, for machines whose example Hessian has no simple form: improved
// by steps on single variables (box) or pairs of them (simplex), not solved.
#pragma once

#include <span>

#include "base/types.hpp"
#include "problem/machine.hpp"

namespace multimargin {

struct GeneralExample {
    std::span<double> gradient;  // kept up to date
    double diagonal;             // k_ii
    double cap;                  // C_i; infinite for the squared hinge
    double ridge;                // 1/(2 C_i) for the squared hinge, else 0
};

// The new a in place; where it had a violation the dual is higher.
void improve_example(const Machine& machine, Index y, const GeneralExample& example, std::span<double> a);

}  // namespace multimargin
