// Examples of a binary machine by their rows: products with weights, sums of rows, and the matrix of those sums.
#pragma once

#include <span>
#include <vector>

#include "base/monitor.hpp"
#include "base/thread_team.hpp"
#include "data/data_view.hpp"
#include "linalg/cholesky.hpp"

namespace multimargin {

// x_i is row rows[i] of the data with a constant feature behind it, where `constant` is not 0; y_i is its sign.
class LinearExamples {
  public:
    LinearExamples(const DataView& data, std::vector<Index> rows, std::vector<double> signs, double constant,
                   ThreadTeam& team);

    std::size_t size() const { return rows_.size(); }
    std::size_t n_weights() const { return n_weights_; }
    double largest_square() const { return largest_square_; }  // of |x_i|, without the constant
    // Those with these positions.
    LinearExamples part(const std::vector<std::size_t>& positions) const;

    // out[i] = y_i x_i'w
    void margins(std::span<const double> w, std::vector<double>& out) const;
    // out = sum_i y_i factors[i] x_i, in an order that does not depend on the threads
    void gather(std::span<const double> factors, std::vector<double>& out) const;
    // out = sum_i weights[i] x_i x_i' (n_weights x n_weights). False when the monitor stopped it.
    bool gram(std::span<const double> weights, std::vector<double>& out, Monitor& monitor) const;

  private:
    void run(Index n_tasks, const ThreadTeam::Task& task) const;

    const DataView& data_;
    std::vector<Index> rows_;
    std::vector<double> signs_;
    double constant_;
    ThreadTeam& team_;
    std::size_t n_features_, n_weights_;
    double cost_ = 0.0;  // multiply-adds of a product with all rows
    double largest_square_ = 0.0;
};

// Solves (R + G + damping) D = right for a diagonal R, scaled to a unit diagonal.
class WeightEquations {
  public:
    // `gram` is given up: it serves as memory. `metric` may be empty. False when the monitor stopped it.
    bool factorize(std::vector<double>& gram, std::span<const double> regularization, double damping,
                   std::span<const double> metric, Monitor& monitor);
    void solve(std::vector<double>& x) const;

  private:
    UpdatableCholesky factor_;
    std::vector<double> scale_;
};

}  // namespace multimargin
