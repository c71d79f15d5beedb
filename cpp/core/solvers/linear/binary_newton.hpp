// The multiplier method with Newton's method inside, for one binary machine on a linear kernel. The mathematics, for
// every machine, is described in src/multimargin/solvers/linear/newton.py; this is what two groups of examples need of
// it.
#pragma once

#include <span>
#include <vector>

#include "base/monitor.hpp"
#include "solvers/linear/linear_examples.hpp"

namespace multimargin {

// Solves   max  sum a - 1/2 |w|^2 - penalty(a),   w = sum_i y_i a_i x_i,   0 <= a_i <= C_i,
//          penalty 0 (hinge) or a_i^2/(4 C_i) (squared hinge, then without upper bound);
//          with an exact bias the weight of the constant feature is free, and sum_i y_i a_i = 0.
struct NewtonProblem {
    LinearExamples examples;
    std::vector<double> C;
    Loss loss = Loss::hinge;
    bool exact_bias = false;

    NewtonProblem part(const std::vector<std::size_t>& positions) const;
};

// Where it starts, and where it is.
struct NewtonPoint {
    std::vector<double> variables;
    double bias = 0.0;            // the weight of the constant, where that is free
    std::vector<double> weights;  // near ones, with which rounds on few examples begin; empty: those of `variables`
};

class BinaryNewton {
  public:
    // `given` is what examples that rest add to the weights; empty: nothing. The problem must outlive this.
    BinaryNewton(const NewtonProblem& problem, NewtonPoint start, Monitor& monitor, std::vector<double> given = {});

    // To a violation of at most tol in at most so many steps (-1: no limit). `width` widens the first problem, which a
    // start that is better than zero deserves.
    StopReason run(double tol, Index max_steps, double width = 1.0);

    const std::vector<double>& variables() const { return variables_; }
    const std::vector<double>& weights() const { return weights_; }
    double violation() const { return violation_; }
    Index n_steps() const { return n_steps_; }
    double width() const;  // of the last problem, in units of the first
    double dual() const;

  private:
    enum class Inner { solved, unsolved, ended };

    std::size_t size() const { return variables_.size(); }
    void set_width();

    double negligible_shift(double tol) const;
    void widen(double tol, double last_violation, double last_shift, Index steps);
    StopReason approach(double tol, Index max_steps);
    Inner minimize();
    void project();
    bool good_enough() const;
    bool find_direction();
    double find_length();
    void adapt_damping(double length);
    void take_multipliers();
    double violation_of(std::span<const double> margins) const;
    double push(std::size_t i, double margin) const { return 1.0 - margin - ridge_[i] * variables_[i]; }
    bool must_stop();
    std::vector<std::size_t> near_margins() const;
    StopReason solve_part(const std::vector<std::size_t>& active, double tol, Index max_steps);

    const NewtonProblem& problem_;
    Monitor& monitor_;
    std::vector<double> scale_, ridge_, cap_;  // sigma_i / width; 1 / (2 C_i) of a squared hinge; the upper bound
    // A proximal step is v = a + sigma (1 - m), put within 0 and the bound, times damp; sigma times damp its slope.
    std::vector<double> sigma_, damp_;
    std::vector<double> given_, variables_, weights_, regularization_;
    bool near_;
    double center_, width_, rho_, damping_ = 0.0, most_width_ = 1e12;
    // Of the weights: margins y f, the proximal point, the sum of rows with its coefficients, phi's gradient.
    std::vector<double> margins_, point_, gathered_, gradient_;
    double moved_ = 0.0;                       // how far the point is from the multipliers, in margins
    std::vector<double> direction_, change_;   // of the weights, of the margins
    std::vector<double> from_, rate_, steep_;  // of a search: v, how fast it falls, the curvature where it is free
    std::vector<double> metric_;               // sum_i C_i x_i x_i', made when it is first needed
    WeightEquations equations_;
    double violation_ = infinity, shift_ = infinity;  // the latter of the bias in the last problem
    Index n_steps_ = 0, max_steps_ = -1;
    StopReason reason_ = StopReason::stalled;
};

}  // namespace multimargin
