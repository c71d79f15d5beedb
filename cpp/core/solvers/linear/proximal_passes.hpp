// Passes over the examples of a linear machine whose columns of scores depend on each other, for the multiplier method
// of solvers/linear/newton.py: proximal steps, the length of a Newton step, and the matrix of its equations.
#pragma once

#include <span>
#include <vector>

#include "base/monitor.hpp"
#include "base/root_search.hpp"
#include "base/thread_team.hpp"
#include "data/data_view.hpp"
#include "problem/machine.hpp"

namespace multimargin {

// Arrays are row-major with one line for each example: scores and coefficients (n_columns), dual variables (width()).
// No sum depends on the number of threads.
class ProximalPasses {
  public:
    // `components` by label, y the labels; `sum_to_zero` as of a machine.
    ProximalPasses(std::vector<std::vector<Component>> components, Index n_columns, Bound bound, bool sum_to_zero,
                   Loss loss, std::vector<Index> y, std::vector<double> C);

    std::size_t size() const { return y_.size(); }
    std::size_t n_columns() const { return n_columns_; }
    std::size_t width() const { return width_; }

    // The point a that maximises (t - m(f))'a - charge(a) - |a - from|^2 / (2 sigma) within the bounds, its
    // coefficients Pi nu'a; returns sum |a - from|^2 / sigma. sigma_i = sigma C_i, or sigma where C_i is infinite.
    double step(const double* scores, const double* from, double sigma, double* point, double* coefficients,
                ThreadTeam& team) const;

    // The t at which linear + t square - sum_i m(change)'a(scores + t change) has nearly vanished.
    double length(const double* scores, const double* change, const double* from, double sigma, double linear,
                  double square, ThreadTeam& team);

    // out = sum_i S_i (x) x_i x_i', of (n_columns n_weights)^2 numbers, a block of n_weights^2 for each pair of
    // columns: S = nu' (derivative of the step at this point) nu, before Pi. x_i is row i of the data with the constant
    // feature behind it, where that is not 0. False when the monitor stopped it.
    bool matrix(const DataView& data, double constant, const double* point, double sigma, double* out, ThreadTeam& team,
                Monitor& monitor) const;

  private:
    // The derivative of a step with respect to (t - m) is own * I - shared * (ones ones') on the free variables.
    struct Slope {
        double own = 0.0, shared = 0.0;
    };
    struct Weighted {
        std::vector<Index> rows;
        std::vector<double> weights;
    };

    const std::vector<Component>& components(std::size_t i) const { return components_[unsigned_index(y_[i])]; }
    double scale(std::size_t i, double sigma) const { return C_[i] < infinity ? sigma * C_[i] : sigma; }
    // `entries` is memory that is used again from one example to the next.
    void project(std::size_t i, double sigma, double* v, std::vector<double>& entries) const;
    void project_on_simplex(std::size_t i, double sigma, double* v, std::vector<double>& entries) const;
    Slope slope(std::size_t i, double sigma, const double* point, std::vector<std::size_t>& free) const;
    void run(const ThreadTeam::Task& task, ThreadTeam& team) const;
    SlopeAndCurvature along(std::size_t begin, std::size_t end, double t, double sigma) const;
    void add_derivatives(const double* point, double sigma, std::vector<Weighted>& pairs) const;

    std::vector<std::vector<Component>> components_;
    std::size_t n_columns_, width_ = 0;
    Bound bound_;
    bool sum_to_zero_;
    Loss loss_;
    std::vector<Index> y_;
    std::vector<double> C_;
    std::vector<double> from_, change_;  // of a search: v at its start, and what a length of one takes off it
};

}  // namespace multimargin
