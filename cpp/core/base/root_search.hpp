// The length of a step: where a nondecreasing slope vanishes.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/types.hpp"

namespace multimargin {

struct SlopeAndCurvature {
    double slope, curvature;
};

// A t > 0 at which a nondecreasing function, negative at 0, is within slope_share of what it is at 0; 0 if it is not
// negative there. Newton's method from t = 1, kept within what is known of the root.
template <class Function>
double find_root(const Function& function) {
    constexpr double slope_share = 1e-1;
    constexpr Index max_steps = 25;
    const double at_zero = function(0.0).slope;
    if (!(at_zero < 0.0)) return 0.0;
    double low = 0.0, high = infinity, t = 1.0;
    for (Index step = 0; step < max_steps; ++step) {
        const auto [value, curvature] = function(t);
        if (std::abs(value) <= -slope_share * at_zero) break;
        (value < 0.0 ? low : high) = t;
        const double newton = t - value / std::max(curvature, 1e-300), base = std::max(low, 1e-3);
        const double middle = 0.5 * (low + (high < infinity ? high : 4.0 * base));
        t = newton > low && newton < high ? newton : middle;
        if (high == infinity) t = std::min(t, 16.0 * base);
    }
    return t;
}

}  // namespace multimargin
