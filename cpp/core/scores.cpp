#include "scores.hpp"

#include <algorithm>
#include <limits>

namespace multimargin {

namespace {

using simd::panel_width;

// Rows of one tile: 128 x 64 values stay in the second-level cache.
constexpr Index rows_per_tile = 128;

// Below this many kernel values a second thread costs more than it brings.
constexpr Index entries_worth_threads = 100'000;

void accumulate(const simd::Table& table, const float* tile, const int* positions, const double* values, Index n,
                double* out) {
    table.accumulate_f32(tile, panel_width, positions, values, n, out);
}

void accumulate(const simd::Table& table, const double* tile, const int* positions, const double* values, Index n,
                double* out) {
    table.accumulate_f64(tile, panel_width, positions, values, n, out);
}

// One panel of 64 columns, all rows in order: the result does not depend on who computes it.
template <class T>
void add_to_panel(const KernelColumns<T>& columns, const KernelRows& rows, const Coefficients& coefficients,
                  Index panel, double* scores, Index ld, Monitor* monitor) {
    const simd::Table& table = simd::best_table();
    AlignedVector<T> tile(unsigned_index(rows_per_tile * panel_width));
    std::vector<int> shifted;
    std::vector<std::size_t> next(unsigned_index(coefficients.n_scores()), 0);
    for (Index begin = 0; begin < rows.size(); begin += rows_per_tile) {
        if (monitor != nullptr && monitor->poll()) return;
        const Index count = std::min(rows_per_tile, rows.size() - begin);
        columns.fill_panel(rows, begin, count, panel, tile.data(), panel_width);
        for (Index c = 0; c < coefficients.n_scores(); ++c) {
            const std::vector<int>& positions = coefficients.positions(c);
            const std::size_t first = next[unsigned_index(c)];
            std::size_t last = first;
            shifted.clear();
            while (last < positions.size() && positions[last] < begin + count) {
                shifted.push_back(positions[last++] - static_cast<int>(begin));
            }
            next[unsigned_index(c)] = last;
            if (last > first) {
                accumulate(table, tile.data(), shifted.data(), coefficients.values(c).data() + first,
                           static_cast<Index>(last - first), scores + c * ld + panel * panel_width);
            }
        }
    }
}

}  // namespace

Coefficients::Coefficients(std::vector<Index> rows, Index n_scores)
    : rows_(std::move(rows)), positions_(unsigned_index(n_scores)), values_(unsigned_index(n_scores)) {
    if (rows_.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw std::invalid_argument("more support vectors than an int can count");
    }
}

void Coefficients::add(Index score, Index position, double value) {
    positions_[unsigned_index(score)].push_back(static_cast<int>(position));
    values_[unsigned_index(score)].push_back(value);
}

template <class T>
bool add_scores(const KernelColumns<T>& columns, const Coefficients& coefficients, double* scores, Index ld,
                ThreadTeam& team, Monitor* monitor) {
    if (coefficients.rows().empty()) return true;
    const auto rows = columns.prepare(coefficients.rows());
    const auto task = [&](Index panel) { add_to_panel(columns, *rows, coefficients, panel, scores, ld, monitor); };
    const Index entries = columns.size() * static_cast<Index>(coefficients.rows().size());
    if (entries < entries_worth_threads) {
        ThreadTeam(1).run(columns.n_panels(), task);
    } else {
        team.run(columns.n_panels(), task);
    }
    return monitor == nullptr || !monitor->stopped();
}

template bool add_scores(const KernelColumns<float>&, const Coefficients&, double*, Index, ThreadTeam&, Monitor*);
template bool add_scores(const KernelColumns<double>&, const Coefficients&, double*, Index, ThreadTeam&, Monitor*);

}  // namespace multimargin
