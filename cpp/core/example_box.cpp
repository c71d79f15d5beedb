#include <algorithm>

#include "breakpoints.hpp"
#include "example_problem.hpp"

namespace multimargin {

namespace {

// Without curvature the objective is linear: every variable goes to the bound its gradient points at.
double at_linear_optimum(double a, double g, double cap) { return g > 0.0 ? cap : (g < 0.0 ? 0.0 : a); }

}  // namespace

void solve_box_example(const ExampleProblem& problem, std::span<double> a, ExampleScratch& scratch) {
    const std::size_t n = a.size();
    const double k = problem.diagonal > curvature_floor ? problem.diagonal : 0.0;
    const double shared = k * problem.sigma;
    scratch.start.assign(a.begin(), a.end());
    // a_p as a function of tau = w'delta, each on its own
    const auto moved = [&](std::size_t p, double tau) {
        const double start = scratch.start[p], g = problem.gradient[p] - shared * problem.weight[p] * tau;
        const double curvature = k * problem.private_square[p] + problem.ridge;
        if (!(curvature > 0.0)) return at_linear_optimum(start, g, problem.cap);
        return std::clamp(start + g / curvature, 0.0, problem.cap);
    };
    double tau = 0.0;
    if (shared != 0.0) {
        scratch.breakpoints.clear();
        for (std::size_t p = 0; p < n; ++p) {
            const double pull = shared * problem.weight[p];
            if (pull == 0.0) continue;
            const double curvature = k * problem.private_square[p] + problem.ridge;
            scratch.breakpoints.push_back((problem.gradient[p] + curvature * scratch.start[p]) / pull);
            if (problem.cap < infinity) {
                const double below_cap = scratch.start[p] - problem.cap;
                scratch.breakpoints.push_back((problem.gradient[p] + curvature * below_cap) / pull);
            }
        }
        tau = monotone_root(scratch.breakpoints, [&](double t) {
            double h = t;
            for (std::size_t p = 0; p < n; ++p) h -= problem.weight[p] * (moved(p, t) - scratch.start[p]);
            return h;
        });
    }
    for (std::size_t p = 0; p < n; ++p) a[p] = moved(p, tau);
}

}  // namespace multimargin
