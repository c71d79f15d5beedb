#include <algorithm>
#include <cmath>
#include <numeric>

#include "breakpoints.hpp"
#include "example_problem.hpp"

namespace multimargin {

namespace {

double sum_of(std::span<const double> a) { return std::accumulate(a.begin(), a.end(), 0.0); }

bool all_equal(std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
}

// Equal weights: a_p = max(0, z_p - phi) with one scalar phi (HL02 (18) for cs). With E = k D the
// stationarity conditions are  E (a_p - start_p) = g_p - (k sigma w^2 + ridge) (sum a - sum start) - theta.
void project(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch) {
    const double curvature = problem.diagonal * problem.private_square[0];
    const double w = problem.weight[0];
    const double shared = (problem.diagonal * problem.sigma * w * w + problem.ridge) / curvature;
    const double start_sum = sum_of(a);
    for (std::size_t p = 0; p < a.size(); ++p) a[p] += problem.gradient[p] / curvature;
    scratch.sorted.assign(a.begin(), a.end());
    std::sort(scratch.sorted.begin(), scratch.sorted.end(), std::greater<>());
    // With the largest m entries positive: phi = shared (total - m phi - start_sum), or sum = cap.
    double free_phi = -shared * start_sum, capped_phi = 0.0, total = 0.0;
    bool capped_found = false;
    for (std::size_t m = 0; m < a.size(); ++m) {
        const double z = scratch.sorted[m];
        const double count = static_cast<double>(m + 1);
        if (z > free_phi) free_phi = shared * (total + z - start_sum) / (1.0 + shared * count);
        const double phi = (total + z - problem.cap) / count;
        if (problem.cap < infinity && z > phi) {
            capped_phi = phi;
            capped_found = true;
        }
        total += z;
    }
    double free_sum = 0.0;
    for (const double z : scratch.sorted) free_sum += std::max(0.0, z - free_phi);
    const double phi = capped_found && free_sum > problem.cap ? capped_phi : free_phi;
    for (double& value : a) value = std::max(0.0, value - phi);
}

// Any weights: two scalars, tau = w'delta inside, theta (the multiplier of the sum) outside.
class TwoScalars {
  public:
    TwoScalars(const ExampleProblem& problem, std::span<const double> start, ExampleScratch& scratch)
        : problem_(problem), scratch_(scratch), shared_(problem.diagonal * problem.sigma) {
        scratch_.start.assign(start.begin(), start.end());
    }

    double moved(std::size_t p, double tau, double theta) const {
        const double g = problem_.gradient[p] - shared_ * problem_.weight[p] * tau - theta;
        return std::max(0.0, scratch_.start[p] + g / (problem_.diagonal * problem_.private_square[p]));
    }

    double tau_at(double theta) {
        if (shared_ == 0.0) return 0.0;
        scratch_.breakpoints.clear();
        for (std::size_t p = 0; p < scratch_.start.size(); ++p) {
            const double pull = shared_ * problem_.weight[p];
            const double curvature = problem_.diagonal * problem_.private_square[p];
            if (pull == 0.0) continue;
            scratch_.breakpoints.push_back((problem_.gradient[p] + curvature * scratch_.start[p] - theta) / pull);
        }
        return monotone_root(scratch_.breakpoints, [&](double t) {
            double h = t;
            for (std::size_t p = 0; p < scratch_.start.size(); ++p) {
                h -= problem_.weight[p] * (moved(p, t, theta) - scratch_.start[p]);
            }
            return h;
        });
    }

    double sum_at(double theta) {
        const double tau = tau_at(theta);
        double sum = 0.0;
        for (std::size_t p = 0; p < scratch_.start.size(); ++p) sum += moved(p, tau, theta);
        return sum;
    }

  private:
    const ExampleProblem& problem_;
    ExampleScratch& scratch_;
    double shared_;
};

// The zero of a nonincreasing excess(theta): bracket by doubling, then bisection with secant steps.
// The function is piecewise linear, so a secant inside the right piece is exact.
template <class Function>
double decreasing_root(Function excess, double low, double scale) {
    double f_low = excess(low);
    if (f_low == 0.0) return low;
    const double direction = f_low > 0.0 ? 1.0 : -1.0;
    double high = low + direction * scale;
    double f_high = excess(high);
    for (int i = 0; i < 200 && f_high * f_low > 0.0; ++i) {
        low = high;
        f_low = f_high;
        scale *= 2.0;
        high = low + direction * scale;
        f_high = excess(high);
    }
    for (int i = 0; i < 200 && f_high != 0.0; ++i) {
        double middle = low - f_low * ((high - low) / (f_high - f_low));
        if (i % 3 == 2 || middle == low || middle == high) middle = 0.5 * (low + high);
        if (middle == low || middle == high) break;
        const double f = excess(middle);
        if (f == 0.0) return middle;
        if ((f > 0.0) == (f_low > 0.0)) {
            low = middle;
            f_low = f;
        } else {
            high = middle;
            f_high = f;
        }
    }
    return std::abs(f_low) < std::abs(f_high) ? low : high;
}

void solve_two_scalars(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch) {
    TwoScalars family(problem, a, scratch);
    const double start_sum = sum_of(a);
    double scale = 1e-3;
    for (const double g : problem.gradient) scale = std::max(scale, std::abs(g));
    double theta = 0.0;
    if (problem.ridge > 0.0) {
        theta = decreasing_root([&](double t) { return problem.ridge * (family.sum_at(t) - start_sum) - t; }, 0.0, scale);
    } else if (family.sum_at(0.0) > problem.cap) {
        theta = decreasing_root([&](double t) { return family.sum_at(t) - problem.cap; }, 0.0, scale);
    }
    const double tau = family.tau_at(theta);
    for (std::size_t p = 0; p < a.size(); ++p) a[p] = family.moved(p, tau, theta);
}

// No curvature: everything on the component with the largest gradient, if that is positive.
void solve_linear(const ExampleProblem& problem, std::span<double> a) {
    const auto best = std::max_element(problem.gradient.begin(), problem.gradient.end());
    const std::size_t p = static_cast<std::size_t>(best - problem.gradient.begin());
    const double sum = problem.ridge > 0.0 ? std::max(0.0, sum_of(a) + *best / problem.ridge) : problem.cap;
    std::fill(a.begin(), a.end(), 0.0);
    if (*best > 0.0 || problem.ridge > 0.0) a[p] = sum;
}

}  // namespace

void solve_simplex_example(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch) {
    if (!(problem.diagonal > curvature_floor)) {
        solve_linear(problem, a);
        return;
    }
    if (all_equal(problem.private_square) && all_equal(problem.weight)) {
        project(problem, a, scratch);
    } else {
        solve_two_scalars(problem, a, scratch);
    }
    // Rounding must not push the sum over its bound.
    const double sum = sum_of(a);
    if (sum > problem.cap) {
        for (double& value : a) value *= problem.cap / sum;
    }
}

}  // namespace multimargin
