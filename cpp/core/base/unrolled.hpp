// Sums and extremes of short arrays in four chains: one alone would wait for each addition.
#pragma once

#include <algorithm>
#include <span>

#include "base/types.hpp"

namespace multimargin {

inline constexpr std::size_t n_lanes = 4;

// Calls body(lane, position) for every position of [0, n).
template <class Body>
inline void by_lanes(std::size_t n, Body body) {
    std::size_t p = 0;
    for (; p + n_lanes <= n; p += n_lanes) {
        for (std::size_t k = 0; k < n_lanes; ++k) body(k, p + k);
    }
    for (; p < n; ++p) body(std::size_t{0}, p);
}

inline double total_of(const double (&v)[n_lanes]) { return (v[0] + v[1]) + (v[2] + v[3]); }

inline double sum_of(std::span<const double> values) {
    double s[n_lanes] = {};
    by_lanes(values.size(), [&](std::size_t k, std::size_t p) { s[k] += values[p]; });
    return total_of(s);
}

inline double largest_of(const double (&v)[n_lanes]) { return std::max(std::max(v[0], v[1]), std::max(v[2], v[3])); }
inline double smallest_of(const double (&v)[n_lanes]) { return std::min(std::min(v[0], v[1]), std::min(v[2], v[3])); }

}  // namespace multimargin
