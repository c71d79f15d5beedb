#include "subproblem/bounded_newton.hpp"

#include <algorithm>
#include <cmath>

#include "simd/table.hpp"

namespace multimargin {

namespace {

// A pivot below this share of the largest diagonal entry is rounding: the variable depends on those before it.
constexpr double rank_tolerance = 1e-12;
// Of the sums that make up a gradient, relative to their magnitudes.
constexpr double rounding = 1e-14;

}  // namespace

void BoundedProblem::resize(Index n) {
    gradient.assign(unsigned_index(n), 0.0);
    a.assign(unsigned_index(n), 0.0);
    cap.assign(unsigned_index(n), 0.0);
    Q.assign(checked_product(n, n), 0.0);
}

double BoundedNewton::solve(BoundedProblem& problem) {
    start(problem);
    // Each face is left for a better one; the limit is for rounding that undoes what was gained.
    const Index limit = 50 + 20 * problem.size();
    double before = infinity;  // the free gradient that the last full step was to make zero
    for (Index i = 0; i < limit; ++i) {
        const double noise = update_gradient(problem), left = largest_free_gradient();
        if (left <= noise || left > 0.5 * before) {  // stationary, or as far as rounding lets it be
            const Index next = most_violating(problem, std::max(noise, left));
            if (next < 0) break;
            free_variable(problem, next);
        }
        const Step step = newton_step(problem);
        if (step == Step::none) break;
        before = step == Step::full ? left : infinity;
    }
    const double gained = gain(problem);
    if (gained >= 0.0) return gained;
    problem.a = start_;
    return 0.0;
}

void BoundedNewton::start(const BoundedProblem& problem) {
    const Index n = problem.size();
    start_ = problem.a;
    gradient_.resize(unsigned_index(n));
    free_.clear();
    is_free_.assign(unsigned_index(n), 0);
    factor_.clear();
    double largest = 0.0;
    for (Index i = 0; i < n; ++i) largest = std::max(largest, problem.q(i, i));
    pivot_floor_ = largest > 0.0 ? rank_tolerance * largest : curvature_floor;
    for (Index i = 0; i < n; ++i) {
        const double a = problem.a[unsigned_index(i)];
        if (a > 0.0 && a < problem.cap[unsigned_index(i)]) free_variable(problem, i);
    }
}

void BoundedNewton::free_variable(const BoundedProblem& problem, Index i) {
    row_.resize(free_.size());
    for (std::size_t k = 0; k < free_.size(); ++k) row_[k] = problem.q(i, free_[k]);
    factor_.append(row_, problem.q(i, i), pivot_floor_);
    free_.push_back(i);
    is_free_[unsigned_index(i)] = 1;
}

void BoundedNewton::fix_those_at_bounds(const BoundedProblem& problem) {
    for (Index k = static_cast<Index>(free_.size()) - 1; k >= 0; --k) {
        const std::size_t i = unsigned_index(free_[unsigned_index(k)]);
        if (problem.a[i] > 0.0 && problem.a[i] < problem.cap[i]) continue;
        factor_.remove(k);
        free_.erase(free_.begin() + k);
        is_free_[i] = 0;
    }
}

double BoundedNewton::update_gradient(const BoundedProblem& problem) {
    double largest = 0.0;
    for (Index i = 0; i < problem.size(); ++i) {
        double sum = problem.gradient[unsigned_index(i)], magnitude = std::abs(sum);
        for (Index j = 0; j < problem.size(); ++j) {
            const double term = problem.q(i, j) * (problem.a[unsigned_index(j)] - start_[unsigned_index(j)]);
            sum -= term;
            magnitude += std::abs(term);
        }
        gradient_[unsigned_index(i)] = sum;
        largest = std::max(largest, magnitude);
    }
    return rounding * largest;
}

double BoundedNewton::largest_free_gradient() const {
    double largest = 0.0;
    for (const Index i : free_) largest = std::max(largest, std::abs(gradient_[unsigned_index(i)]));
    return largest;
}

Index BoundedNewton::most_violating(const BoundedProblem& problem, double least) const {
    Index worst = -1;
    for (std::size_t i = 0; i < gradient_.size(); ++i) {
        if (is_free_[i] != 0) continue;
        const double violation = simd::box_violation_of(gradient_[i], problem.a[i], problem.cap[i]);
        if (!(violation > least)) continue;
        least = violation;
        worst = static_cast<Index>(i);
    }
    return worst;
}

BoundedNewton::Step BoundedNewton::newton_step(BoundedProblem& problem) {
    const std::size_t n = free_.size();
    direction_.resize(n);
    for (std::size_t k = 0; k < n; ++k) direction_[k] = gradient_[unsigned_index(free_[k])];
    factor_.solve(direction_);
    double slope = 0.0, bend = 0.0, reach = infinity;
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t i = unsigned_index(free_[k]);
        slope += direction_[k] * gradient_[i];
        for (std::size_t m = 0; m < n; ++m) bend += direction_[k] * problem.q(free_[k], free_[m]) * direction_[m];
        if (direction_[k] < 0.0) reach = std::min(reach, problem.a[i] / -direction_[k]);
        if (direction_[k] > 0.0) reach = std::min(reach, (problem.cap[i] - problem.a[i]) / direction_[k]);
    }
    // Longer than 1 where a pivot was raised to its floor: along that direction there is less curvature, or none.
    const double best = bend > 0.0 ? slope / bend : infinity;
    const double length = std::min(best, reach);
    if (!(slope > 0.0) || !std::isfinite(length)) return Step::none;
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t i = unsigned_index(free_[k]);
        const double room =
            direction_[k] < 0.0 ? problem.a[i] / -direction_[k] : (problem.cap[i] - problem.a[i]) / direction_[k];
        if (direction_[k] != 0.0 && room <= length) {
            problem.a[i] = direction_[k] < 0.0 ? 0.0 : problem.cap[i];
        } else {
            problem.a[i] = std::clamp(problem.a[i] + length * direction_[k], 0.0, problem.cap[i]);
        }
    }
    fix_those_at_bounds(problem);
    return length < reach ? Step::full : Step::cut_off;
}

double BoundedNewton::gain(const BoundedProblem& problem) const {
    double sum = 0.0;
    for (Index i = 0; i < problem.size(); ++i) {
        const double moved = problem.a[unsigned_index(i)] - start_[unsigned_index(i)];
        double slope = problem.gradient[unsigned_index(i)];
        for (Index j = 0; j < problem.size(); ++j) {
            slope -= 0.5 * problem.q(i, j) * (problem.a[unsigned_index(j)] - start_[unsigned_index(j)]);
        }
        sum += moved * slope;
    }
    return sum;
}

}  // namespace multimargin
