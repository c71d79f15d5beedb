// The root of a nondecreasing, continuous, piecewise linear function whose breakpoints are known.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace multimargin {

// `value` is evaluated O(log n) times; between two neighbouring breakpoints it is exactly linear,
// and beyond the outermost ones too, so that one interpolation gives the root.
// Where the function vanishes on a whole piece every point of it is a root, and one of them is returned.
template <class Function>
double monotone_root(std::vector<double>& breakpoints, Function value) {
    std::erase_if(breakpoints, [](double x) { return std::isnan(x); });  // a sort may leave its range over these
    std::sort(breakpoints.begin(), breakpoints.end());
    const auto above =
        std::partition_point(breakpoints.begin(), breakpoints.end(), [&](double x) { return value(x) < 0.0; });
    const bool has_left = above != breakpoints.begin();
    const bool has_right = above != breakpoints.end();
    double left = has_left ? *(above - 1) : (has_right ? *above : 0.0);
    double right = has_right ? *above : left;
    // Beyond the last breakpoint any second point gives the slope.
    if (!has_left) left = right - (1.0 + std::abs(right));
    if (!has_right) right = left + (1.0 + std::abs(left));
    const double f_left = value(left), f_right = value(right);
    if (f_right == f_left) return std::clamp(0.0, left, right);
    if (f_right == 0.0) return right;
    return left - f_left * ((right - left) / (f_right - f_left));
}

}  // namespace multimargin
