#include "scalar_streams.hpp"

#include <algorithm>
#include <limits>

namespace multimargin::simd {

Extremes scalar_move_members(const Members& m, double step, const double* rise, const double* fall) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    Extremes found{-infinite, infinite, -1, -1, 0.0, 0};
    for (Size j = 0; j < m.n; ++j) {
        if (rise != nullptr) {
            const double second = fall != nullptr ? fall[j] : 0.0;
            m.errors[j] -= step * (rise[j] - second);
        }
        const double error = m.errors[j];
        if (m.up[j] > 0.0 && error > found.highest) found.highest = error, found.top = j;
        if (m.down[j] > 0.0 && error < found.lowest) found.lowest = error, found.bottom = j;
        if (m.up[j] > 0.0 && m.down[j] > 0.0) found.free_errors += error, ++found.n_free;
    }
    return found;
}

Partner scalar_best_partner(const Members& m, const double* diagonals, const FirstMember& first) {
    double best = 0.0, best_curvature = 1.0;
    Size place = -1;
    for (Size j = 0; j < m.n; ++j) {
        const double slope = first.rises ? first.error - m.errors[j] : m.errors[j] - first.error;
        const double room = first.rises ? m.down[j] : m.up[j];
        if (slope <= first.tol || room <= 0.0) continue;
        const double bend = first.diagonal + diagonals[j] - 2.0 * first.row[j];
        const double curvature = std::max(bend, pair_curvature_floor);
        const double reached = std::min(slope, curvature * std::min(first.room, room));
        const double merit = reached * (2.0 * slope - reached);
        if (merit * best_curvature > best * curvature) best = merit, best_curvature = curvature, place = j;
    }
    return {best / best_curvature, place};
}

void scalar_best_partners(const Members& m, const double* diagonals, const FirstMember& rising,
                          const FirstMember& falling, Partner* partners) {
    partners[0] = scalar_best_partner(m, diagonals, rising);
    partners[1] = scalar_best_partner(m, diagonals, falling);
}

double scalar_members_score(const Size* starts, Size n_panels, const double* beta, const double* row) {
    double sum = 0.0;
    for (Size j = 0; j < n_panels * panel_width; ++j) sum += beta[j] * row[starts[j / panel_width] + j % panel_width];
    return sum;
}

}  // namespace multimargin::simd
