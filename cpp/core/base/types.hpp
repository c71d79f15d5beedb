// The words that every part of the core shares: index type, choices, sizes.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace multimargin {

using Index = std::ptrdiff_t;

enum class Bound { box, simplex };
enum class Loss { hinge, squared_hinge };
enum class SolverKind {
    smo,
    s2do,
    whole_example,
    semi_greedy,
    two_level,
    working_set,
    most_violating_pair,
    maximum_gain
};
enum class Precision { automatic, float32, float64 };
// unfinished: a budget of work is used up, and the caller goes on by other means.
enum class StopReason { converged, max_iter, max_time, stalled, interrupted, callback, unfinished };

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// LIBSVM's floor for a curvature that is not positive (indefinite kernels, duplicates).
inline constexpr double curvature_floor = 1e-12;

// A dual variable (or a slack) within this share of C of a bound counts as at it.
inline constexpr double bound_tolerance = 1e-12;

// The product of two sizes, refused when it does not fit.
inline std::size_t checked_product(Index a, Index b) {
    if (a < 0 || b < 0) throw std::invalid_argument("a size is negative");
    if (a != 0 && b > std::numeric_limits<Index>::max() / a) throw std::bad_alloc();
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

inline std::size_t unsigned_index(Index i) { return static_cast<std::size_t>(i); }

// 0, 1, ..., n - 1.
inline std::vector<Index> first_indices(Index n) {
    std::vector<Index> all(unsigned_index(n));
    std::iota(all.begin(), all.end(), Index{0});
    return all;
}

inline Index round_up(Index n, Index multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace multimargin
