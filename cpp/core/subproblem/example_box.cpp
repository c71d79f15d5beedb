#include <algorithm>
#include <cmath>

#include "subproblem/breakpoints.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

namespace {

// Without curvature the objective is linear: every variable goes to the bound its gradient points at.
double at_linear_optimum(double a, double g, double cap) { return g > 0.0 ? cap : (g < 0.0 ? 0.0 : a); }

// Variable p as a function of tau = w'delta is clip(free_p - pull_p tau, 0, C), and tau is the root of
// h(tau) = tau - sum_p w_p (a_p(tau) - a_p), which is piecewise linear and nondecreasing.
class BoxFamily {
  public:
    BoxFamily(const ExampleProblem& problem, std::span<const double> a, double k, ExampleScratch& scratch)
        : weight_(problem.weight), cap_(problem.cap), free_(scratch.start), pull_(scratch.pull) {
        free_.resize(a.size());
        pull_.resize(a.size());
        double square = -1.0, inverse = 0.0;
        for (std::size_t p = 0; p < a.size(); ++p) {
            if (problem.private_square[p] != square) {  // nearly always equal for all: one division
                square = problem.private_square[p];
                inverse = 1.0 / std::max(k * square + problem.ridge, curvature_floor);
            }
            free_[p] = a[p] + problem.gradient[p] * inverse;
            pull_[p] = k * problem.sigma * weight_[p] * inverse;
            start_ += weight_[p] * a[p];
            scale_ = std::max(scale_, std::abs(free_[p]) + a[p]);
        }
    }

    double moved(std::size_t p, double tau) const { return std::clamp(free_[p] - pull_[p] * tau, 0.0, cap_); }

    double value(double tau) const {
        double h = tau + start_;
        for (std::size_t p = 0; p < free_.size(); ++p) h -= weight_[p] * moved(p, tau);
        return h;
    }

    // Newton's method, which ends after a few pieces; bisection where it would leave the bracket.
    // Without a slope (all variables inside and M singular), or without an end, the breakpoints decide.
    double root(std::vector<double>& breakpoints) const {
        constexpr int patience = 60;
        // h is a sum of so many rounded terms: its rounding is of that order.
        const double rounding = 4e-16 * static_cast<double>(free_.size() + 2);
        double tau = 0.0, low = -infinity, high = infinity;
        for (int i = 0; i < patience; ++i) {
            double h = tau + start_, slope = 1.0;
            for (std::size_t p = 0; p < free_.size(); ++p) {
                const double inside = free_[p] - pull_[p] * tau;
                h -= weight_[p] * std::clamp(inside, 0.0, cap_);
                if (inside > 0.0 && inside < cap_) slope += weight_[p] * pull_[p];
            }
            if (h == 0.0) return tau;
            (h > 0.0 ? high : low) = tau;
            if (!(slope > 1e-9)) break;
            double next = tau - h / slope;
            if (std::abs(next - tau) <= rounding * (std::abs(tau) + scale_)) return next;
            if (!(next > low && next < high)) next = 0.5 * (low + high);
            if (!std::isfinite(next)) break;
            tau = next;
        }
        return root_from_breakpoints(breakpoints);
    }

  private:
    double root_from_breakpoints(std::vector<double>& breakpoints) const {
        breakpoints.clear();
        for (std::size_t p = 0; p < free_.size(); ++p) {
            if (pull_[p] == 0.0) continue;
            breakpoints.push_back(free_[p] / pull_[p]);
            if (cap_ < infinity) breakpoints.push_back((free_[p] - cap_) / pull_[p]);
        }
        return monotone_root(breakpoints, [&](double t) { return value(t); });
    }

    std::span<const double> weight_;
    double cap_;
    std::vector<double>& free_;
    std::vector<double>& pull_;
    double start_ = 0.0;  // w'a
    double scale_ = 0.0;
};

}  // namespace

void solve_box_example(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch) {
    const double k = problem.diagonal > curvature_floor ? problem.diagonal : 0.0;
    if (!(k > 0.0 || problem.ridge > 0.0)) {
        for (std::size_t p = 0; p < a.size(); ++p) a[p] = at_linear_optimum(a[p], problem.gradient[p], problem.cap);
        return;
    }
    const BoxFamily family(problem, a, k, scratch);
    const double tau = k * problem.sigma != 0.0 ? family.root(scratch.breakpoints) : 0.0;
    for (std::size_t p = 0; p < a.size(); ++p) a[p] = family.moved(p, tau);
}

}  // namespace multimargin
