// The dual restricted to a few variables with bounds, solved to rounding.
//
// Solves   max  g'd - 1/2 d'Qd,   0 <= a + d <= cap                                          HL02 (12)
// Given    the gradient g, the variables a, Q positive semi-definite, bounds that may be infinite where Q keeps
//          the maximum finite;
// Returns  the new a in place, and what it gains.
// See      a primal active set: Newton's method on the free variables, cut off at the first bound; where they are
//          stationary the most violating of the others is freed. Every step gains, so that it ends.
#pragma once

#include <vector>

#include "base/types.hpp"
#include "linalg/cholesky.hpp"

namespace multimargin {

struct BoundedProblem {
    // Sets the number of variables; the numbers themselves are the caller's to fill in.
    void resize(Index n);
    Index size() const { return static_cast<Index>(a.size()); }
    double& q(Index i, Index j) { return Q[unsigned_index(i * size() + j)]; }
    double q(Index i, Index j) const { return Q[unsigned_index(i * size() + j)]; }

    std::vector<double> gradient, Q, a, cap;
};

// Keeps its memory from one problem to the next.
class BoundedNewton {
  public:
    double solve(BoundedProblem& problem);

  private:
    enum class Step { cut_off, full, none };

    void start(const BoundedProblem& problem);
    void free_variable(const BoundedProblem& problem, Index i);
    void fix_those_at_bounds(const BoundedProblem& problem);
    // The gradient here; returns the size of its rounding.
    double update_gradient(const BoundedProblem& problem);
    double largest_free_gradient() const;
    // The variable at a bound that violates most, above `least`; -1 when there is none.
    Index most_violating(const BoundedProblem& problem, double least) const;
    Step newton_step(BoundedProblem& problem);
    double gain(const BoundedProblem& problem) const;

    std::vector<double> start_, gradient_, direction_, row_;
    std::vector<Index> free_;  // in the order of the factor's rows
    std::vector<char> is_free_;
    UpdatableCholesky factor_;
    double pivot_floor_ = 0.0;
};

}  // namespace multimargin
