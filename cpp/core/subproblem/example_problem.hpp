// The dual restricted to the variables of one example, solved exactly: pure functions.
//
// Solves   max  g'delta - 1/2 delta' H delta,   a + delta feasible,
//          H = k (diag(D) + sigma w w') + ridge,
// Given    the gradient g, the variables a, k = k_ii, the bound C;
//          ridge = I/(2C) (box) or 11'/(2C) (simplex) for the squared hinge, then C bounds nothing,
// Returns  the new a in place.
// See      measured breakpoints of a piecewise linear function of one scalar, O(P log P);
//          for machines with equal weights (cs, adm) a projection, HL02 (18).
#pragma once

#include <span>
#include <vector>

#include "base/types.hpp"
#include "simd/table.hpp"

namespace multimargin {

struct ExampleProblem {
    std::span<const double> gradient;
    std::span<const double> private_square;  // D
    std::span<const double> weight;          // w
    double sigma = 0.0;
    double diagonal = 1.0;  // k_ii
    double cap = 1.0;       // C_i; infinite for the squared hinge
    double ridge = 0.0;     // 1/(2 C_i) for the squared hinge, else 0
    bool uniform = false;   // known: D and w are the same for all variables
};

// Memory that is reused from one example to the next. `work` adds up, in multiply-adds, what a solution costs beyond a
// usual one: two scalars are searched for, one within the other, and how long that takes depends on the numbers.
struct ExampleScratch {
    std::vector<double> start, breakpoints, pull, entries;
    double work = 0.0;
};

void solve_box_example(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch);
void solve_simplex_example(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch);

// sum a <= cap as an equality test: what is left within rounding counts as nothing left.
inline double slack_of(double sum, double cap) { return sum < cap * simd::full_share ? cap - sum : 0.0; }

}  // namespace multimargin
