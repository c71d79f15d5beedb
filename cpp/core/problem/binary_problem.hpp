// A box and one equality as a value: the binary machine with an unregularised bias, and others of its form. IGEL, HL02
// (22)
#pragma once

#include <span>
#include <vector>

#include "base/monitor.hpp"
#include "base/thread_team.hpp"
#include "base/trace.hpp"
#include "base/types.hpp"
#include "kernel/kernel_source.hpp"
#include "kernel/score_pass.hpp"

namespace multimargin {

// Solves   max  p'b - 1/2 b'Kb - penalty(b),   sum_i b_i = s,   0 <= b_i <= C_i where y_i = +1, -C_i <= b_i <= 0 where
//          y_i = -1, penalty 0 (hinge) or b_i^2/(4 C_i) (squared hinge, then without upper bound).
//          Classification: p = y, s = 0. One-class: all y = +1, p = 0, C = 1/(nu n), s = 1. Regression: each row twice,
//          p = y - epsilon in [0, C] and p = y + epsilon in [-C, 0], s = 0.
// Given    the variables a_i = y_i b_i >= 0. Those with y = +1 come first, so that loops need no branch on y.
// Primal   min  1/2 |w|^2 + s bias + sum_i C_i max(0, y_i (p_i - f_i - bias)), squared for the squared hinge.
class BinaryProblem {
  public:
    // rows and C in the order of the examples; the first n_positive have y = +1.
    BinaryProblem(const KernelSource& source, std::vector<Index> rows, Index n_positive, std::vector<double> C,
                  Loss loss);
    // The general form: targets p, and the sum s, which the bounds must allow. One sign may have no example.
    BinaryProblem(const KernelSource& source, std::vector<Index> rows, Index n_positive, std::vector<double> C,
                  Loss loss, std::vector<double> targets, double sum);

    // The same problem on some of the examples (ascending), of which one class may have none: a shard of it.
    BinaryProblem part(std::span<const Index> examples) const;

    const KernelSource& source() const { return *source_; }
    Index size() const { return static_cast<Index>(rows_.size()); }
    Index n_positive() const { return n_positive_; }
    double sign(Index e) const { return e < n_positive_ ? 1.0 : -1.0; }
    double target(Index e) const { return targets_.empty() ? sign(e) : targets_[unsigned_index(e)]; }
    // Null for classification, where targets are the signs.
    const double* targets() const { return targets_.empty() ? nullptr : targets_.data(); }
    double sum() const { return sum_; }
    std::span<const Index> rows() const { return rows_; }
    Index row(Index e) const { return rows_[unsigned_index(e)]; }
    double cap(Index e) const { return loss_ == Loss::hinge ? C_[unsigned_index(e)] : infinity; }
    // The squared hinge adds this to the kernel's diagonal.
    double ridge(Index e) const { return loss_ == Loss::hinge ? 0.0 : 0.5 / C_[unsigned_index(e)]; }
    double diagonal(Index e) const { return diagonal_[unsigned_index(e)]; }  // with the ridge
    double largest_diagonal() const { return largest_diagonal_; }
    double C(Index e) const { return C_[unsigned_index(e)]; }
    Loss loss() const { return loss_; }
    // b_i = y_i a_i may grow, or shrink.
    bool may_rise(Index e, double a) const { return e < n_positive_ ? a < cap(e) : a > 0.0; }
    bool may_fall(Index e, double a) const { return e < n_positive_ ? a > 0.0 : a < cap(e); }

  private:
    void check();

    const KernelSource* source_;
    std::vector<Index> rows_;
    Index n_positive_;
    std::vector<double> targets_;  // empty for classification
    double sum_ = 0.0;
    std::vector<double> C_, diagonal_;
    double largest_diagonal_ = 0.0;
    Loss loss_;
};

// The variables, and E_i = f(x_i) - p_i without the bias (with the squared hinge's ridge_i b_i).
struct BinaryState {
    explicit BinaryState(const BinaryProblem& problem)
        : variables(unsigned_index(problem.size()), 0.0), errors(unsigned_index(problem.size()), 0.0) {}

    std::vector<double> variables;
    std::vector<double> errors;
    bool errors_current = false;  // in float64, from the variables
    bool errors_given = false;    // set by a caller whose start has errors like that
};

// A point whose errors are known in float64, for sources that keep their rows: those of a point nearby follow from it.
class ExactPoint {
  public:
    void remember(const BinaryProblem& problem, const BinaryState& state);
    // The errors in float64 by the rows of the variables that are others now. False where no point is remembered, or
    // where all rows of support vectors take no longer.
    bool update(const BinaryProblem& problem, BinaryState& state) const;

  private:
    std::vector<double> variables_, errors_;
};

// The bias must lie between -largest_low and -lowest_up; the violation is how far these pass each other.
struct BinaryInterval {
    double lowest_up = infinity;     // min E over those that may rise
    double largest_low = -infinity;  // max E over those that may fall
    double violation() const { return largest_low > lowest_up ? largest_low - lowest_up : 0.0; }
};
BinaryInterval interval_of(const BinaryProblem& problem, const BinaryState& state);

struct BinarySummary {
    double violation = 0.0;
    double dual = 0.0;
    double primal = 0.0;
    double bias = 0.0;
    Index n_support = 0;
};
// The bias is the mean over the free support vectors, else the middle of its interval.
BinarySummary summarize(const BinaryProblem& problem, const BinaryState& state);

// All examples counted as active.
Census census_of(const BinaryProblem& problem, const BinaryState& state);

// Clips to the box, then makes the sum s: for s = 0 the heavier side is scaled down, else variables go towards their
// bounds in order. Returns whether that changed anything.
bool make_feasible(const BinaryProblem& problem, BinaryState& state);

double coefficient_mass(const BinaryState& state);

// As for the other machines: whether float32 kernel values can no longer carry the tolerance.
bool float32_too_coarse(const BinaryProblem& problem, const BinaryState& state, double tol);

// The errors of some examples anew in float64. False when the monitor stopped it.
bool refresh_errors(const BinaryProblem& problem, BinaryState& state, std::span<const Index> examples, ThreadTeam& team,
                    Monitor& monitor);

// The same from given coefficients beta, which may be those of other examples, too.
bool refresh_errors(const BinaryProblem& problem, BinaryState& state, std::span<const Index> examples,
                    const Coefficients& beta, ThreadTeam& team, Monitor& monitor);

}  // namespace multimargin
