#include <algorithm>
#include <cmath>

#include "base/unrolled.hpp"
#include "subproblem/breakpoints.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

namespace {

bool all_equal(std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
}

// The phi for which the entries above it are those it was computed from: Newton's method on a function that is
// piecewise linear and convex or concave, so that from the second point on the entries only join or only leave.
template <class Root>
double root_above(std::span<const double> entries, double least, Root root) {
    double total = sum_of(entries), phi = least;
    std::size_t count = entries.size(), before = count + 1;
    // An entry that equals phi may join and leave by rounding, for ever.
    for (std::size_t pass = 0; count != before && pass <= entries.size() + 1; ++pass) {
        phi = root(total, static_cast<double>(count));
        before = count;
        total = 0.0;
        count = 0;
        for (const double value : entries) {
            if (!(value > phi)) continue;
            total += value;
            ++count;
        }
    }
    return phi;
}

// Equal weights: a_p = max(0, z_p - phi) with one scalar phi (HL02 (18) for cs). With E = k D the
// stationarity conditions are  E (a_p - start_p) = g_p - (k sigma w^2 + ridge) (sum a - sum start) - theta.
// z_p = a_p + g_p/E is measured from its largest value: with a tiny curvature z is huge, and only its
// differences carry digits.
void project(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch) {
    const double curvature = problem.diagonal * problem.private_square[0];
    const double w = problem.weight[0];
    const double shared = (problem.diagonal * problem.sigma * w * w + problem.ridge) / curvature;
    const double start_sum = sum_of(a), per_gradient = 1.0 / curvature;
    const auto z_of = [&](std::size_t p) { return a[p] + problem.gradient[p] * per_gradient; };
    double tops[n_lanes] = {-infinity, -infinity, -infinity, -infinity};
    by_lanes(a.size(), [&](std::size_t k, std::size_t p) { tops[k] = std::max(tops[k], z_of(p)); });
    const double z_top = largest_of(tops);
    std::size_t top = 0;
    while (top + 1 < a.size() && z_of(top) != z_top) ++top;
    const double a_top = a[top], g_top = problem.gradient[top];
    double held[n_lanes] = {}, holders[n_lanes] = {};
    by_lanes(a.size(), [&](std::size_t k, std::size_t p) {
        const bool holds = a[p] > 0.0 || p == top;
        a[p] = (a[p] - a_top) + (problem.gradient[p] - g_top) * per_gradient;
        held[k] += holds ? a[p] : 0.0;
        holders[k] += holds ? 1.0 : 0.0;
    });
    // With m positive entries: phi + z_top = shared (their total - m phi - start_sum), or their sum is cap; phi is the
    // larger root. That of some entries, for instance those positive before, is not above it (the first if shared >=
    // 0).
    const auto open = [&](double total, double m) {
        return (shared * (total - start_sum) - z_top) / (1.0 + shared * m);
    };
    const auto full = [&](double total, double m) { return (total - problem.cap) / m; };
    const double total = sum_of(held), count = sum_of(holders);
    const double least = std::max(full(total, count), shared >= 0.0 ? open(total, count) : -infinity);
    auto& entries = scratch.entries;
    entries.clear();
    for (const double value : a) {
        if (value > least) entries.push_back(value);
    }
    double phi = root_above(entries, least, open);
    double sum = 0.0;
    for (const double value : entries) sum += std::max(0.0, value - phi);
    if (sum > problem.cap) phi = root_above(entries, least, full);
    for (double& value : a) value = std::max(0.0, value - phi);
}

// Of each component when tau is searched for: its breakpoint, the sort, divisions at some five points.
constexpr double work_of_root = 70.0;

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
        scratch_.work += work_of_root * static_cast<double>(scratch_.start.size());
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

// A nonincreasing function and a bracket of its zero: value_low >= 0 >= value_high.
struct Bracket {
    double low, high, value_low, value_high;

    template <class Function>
    void narrow(Function excess, double at) {
        if (!(at > low && at < high)) return;
        const double value = excess(at);
        (value > 0.0 ? low : high) = at;
        (value > 0.0 ? value_low : value_high) = value;
    }
};

// Brackets by doubling, then secant steps (exact within a piece of a piecewise linear function) and bisection.
// `jump` is where the function may be discontinuous; then the bracket closes around it.
template <class Function>
Bracket bracket_zero(Function excess, double scale, double rounding, double jump) {
    Bracket b{0.0, 0.0, excess(0.0), 0.0};
    b.value_high = b.value_low;
    for (int i = 0; i < 200 && b.value_high > 0.0; ++i, scale *= 2.0) b.value_high = excess(b.high += scale);
    for (int i = 0; i < 200 && b.value_low < 0.0; ++i, scale *= 2.0) b.value_low = excess(b.low -= scale);
    const double width = 1e-13 * (std::abs(jump) + scale * 1e-3);
    b.narrow(excess, jump - width);
    b.narrow(excess, jump + width);
    for (int i = 0; i < 200 && b.high - b.low > 2.5 * width; ++i) {
        if (b.value_low <= rounding || -b.value_high <= rounding) break;
        const double secant = b.low + (b.high - b.low) * (b.value_low / (b.value_low - b.value_high));
        b.narrow(excess, i % 3 == 2 ? 0.5 * (b.low + b.high) : secant);
    }
    return b;
}

// Where M is singular (atm) the sum of a jumps at one theta, the one for which the objective is constant along
// the null direction n_p = w_p / D_p. Both ends of the jump are optimal there, and so is what lies between.
double jump_of(const ExampleProblem& problem) {
    double length = 1.0 / problem.sigma, gradient = 0.0, sum = 0.0;
    for (std::size_t p = 0; p < problem.weight.size(); ++p) {
        const double n = problem.weight[p] / problem.private_square[p];
        length += problem.weight[p] * n;
        gradient += problem.gradient[p] * n;
        sum += n;
    }
    return std::abs(length) < 1e-9 && sum != 0.0 ? gradient / sum : 0.0;
}

void solve_two_scalars(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch) {
    TwoScalars family(problem, a, scratch);
    const double start_sum = sum_of(a);
    double scale = 1e-3;
    for (const double g : problem.gradient) scale = std::max(scale, std::abs(g));
    const bool squared = problem.ridge > 0.0;
    const double goal = squared ? start_sum : problem.cap;
    const auto excess = [&](double theta) {
        const double over = family.sum_at(theta) - goal;
        return squared ? problem.ridge * over - theta : over;
    };
    Bracket b{0.0, 0.0, 0.0, 0.0};
    if (squared || excess(0.0) > 0.0) {
        const double rounding = 1e-15 * (squared ? scale : problem.cap);
        b = bracket_zero(excess, scale, rounding, problem.sigma != 0.0 ? jump_of(problem) : 0.0);
    }
    const double range = b.value_low - b.value_high;
    const double share = range > 0.0 ? b.value_low / range : 0.0;
    const double tau_low = family.tau_at(b.low), tau_high = family.tau_at(b.high);
    for (std::size_t p = 0; p < a.size(); ++p) {
        const double low = family.moved(p, tau_low, b.low), high = family.moved(p, tau_high, b.high);
        a[p] = low + share * (high - low);
    }
}

// No curvature: everything on the component with the largest gradient, if that is positive.
void solve_linear(const ExampleProblem& problem, std::span<double> a) {
    const auto best = std::max_element(problem.gradient.begin(), problem.gradient.end());
    const std::size_t p = static_cast<std::size_t>(best - problem.gradient.begin());
    const double sum = problem.ridge > 0.0 ? std::max(0.0, sum_of(a) + *best / problem.ridge) : problem.cap;
    std::fill(a.begin(), a.end(), 0.0);
    if (*best > 0.0 || problem.ridge > 0.0) a[p] = sum;
}

// Curvature that the gradient drowns over the whole range counts as none.
bool is_flat(const ExampleProblem& problem) {
    double steepest = 0.0, bend = 0.0;
    for (std::size_t p = 0; p < problem.gradient.size(); ++p) {
        steepest = std::max(steepest, std::abs(problem.gradient[p]));
        bend = std::max(bend, problem.diagonal * problem.private_square[p]);
    }
    return problem.ridge == 0.0 && bend * problem.cap <= 1e-14 * steepest;
}

}  // namespace

void solve_simplex_example(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch) {
    const bool equal = problem.uniform || (all_equal(problem.private_square) && all_equal(problem.weight));
    if (!(problem.diagonal > curvature_floor) || (!equal && is_flat(problem))) {
        solve_linear(problem, a);
        return;
    }
    if (equal) {
        project(problem, a, scratch);
    } else {
        solve_two_scalars(problem, a, scratch);
    }
    // What rounding leaves above zero is zero, and it must not push the sum over its bound.
    const double scale = problem.ridge > 0.0 ? 0.5 / problem.ridge : problem.cap;
    const double negligible = scale < infinity ? bound_tolerance * scale : 0.0;
    for (double& value : a) value = value <= negligible ? 0.0 : value;
    const double sum = sum_of(a);
    if (sum > problem.cap) {
        for (double& value : a) value *= problem.cap / sum;
    }
}

}  // namespace multimargin
