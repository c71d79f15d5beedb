#include "kernel/score_pass.hpp"
#include "base/memory.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace multimargin {

namespace {

using simd::panel_width;

// Rows of one tile: 126 x 64 values stay close to the processor, and 126 is a multiple of the rows done at once.
constexpr Index rows_per_tile = 126;

// Below this many kernel values a second thread costs more than it brings.
constexpr Index entries_worth_threads = 100'000;

void accumulate(const simd::Table& table, const float* const* rows, const int* positions, const float* values, Index n,
                double* out) {
    table.accumulate_f32(rows, positions, values, n, out);
}

void accumulate(const simd::Table& table, const double* const* rows, const int* positions, const double* values,
                Index n, double* out) {
    table.accumulate_f64(rows, positions, values, n, out);
}

// Where at least this share of a tile's coefficients is not zero, a product of matrices is faster than lists.
constexpr double dense_share = 0.4;
// Terms of one sum in float32; a tile's few sums are added in float32 too, those of tiles in float64.
constexpr Index terms_per_sum = 32;

// The coefficients in the order in which a panel needs them: tile by tile, score by score, in the tile's precision.
template <class T>
class TiledCoefficients {
  public:
    struct Run {
        Index score, first, count;
    };

    explicit TiledCoefficients(const Coefficients& coefficients) {
        const Index n_rows = static_cast<Index>(coefficients.rows().size());
        std::vector<std::size_t> next(unsigned_index(coefficients.n_scores()), 0);
        for (Index begin = 0; begin < n_rows; begin += rows_per_tile) {
            runs_.emplace_back();
            const Index first = static_cast<Index>(positions_.size());
            for (Index c = 0; c < coefficients.n_scores(); ++c) take(coefficients, c, begin, next[unsigned_index(c)]);
            const Index count = static_cast<Index>(positions_.size()) - first;
            const Index all = std::min(rows_per_tile, n_rows - begin) * coefficients.n_scores();
            matrices_.emplace_back();
            const bool dense = static_cast<double>(count) >= dense_share * static_cast<double>(all);
            if (std::is_same_v<T, float> && dense) fill_matrix(coefficients.n_scores());
        }
    }

    // All coefficients of a tile, one line of rows_per_tile for each score; empty where lists serve better.
    std::span<const T> matrix(Index tile) const { return matrices_[unsigned_index(tile)]; }
    std::span<const Run> runs(Index tile) const { return runs_[unsigned_index(tile)]; }
    const int* positions(const Run& run) const { return positions_.data() + run.first; }
    const T* values(const Run& run) const { return values_.data() + run.first; }

  private:
    void take(const Coefficients& coefficients, Index c, Index begin, std::size_t& next) {
        const std::vector<int>& positions = coefficients.positions(c);
        const Index first = static_cast<Index>(positions_.size());
        for (; next < positions.size() && positions[next] < begin + rows_per_tile; ++next) {
            positions_.push_back(positions[next] - static_cast<int>(begin));
            values_.push_back(static_cast<T>(coefficients.values(c)[next]));
        }
        const Index count = static_cast<Index>(positions_.size()) - first;
        if (count > 0) runs_.back().push_back({c, first, count});
    }

    // Of the tile whose runs were listed last.
    void fill_matrix(Index n_scores) {
        matrices_.back().assign(unsigned_index(n_scores * rows_per_tile), T(0));
        for (const Run& run : runs_.back()) {
            T* line = matrices_.back().data() + run.score * rows_per_tile;
            for (Index k = 0; k < run.count; ++k) line[positions(run)[k]] = values(run)[k];
        }
    }

    std::vector<std::vector<Run>> runs_;    // by tile
    std::vector<std::vector<T>> matrices_;  // by tile
    std::vector<int> positions_;            // relative to the tile
    std::vector<T> values_;
};

template <class T>
struct Pass {
    const KernelColumns<T>& columns;
    const KernelRows& rows;
    const TiledCoefficients<T>& coefficients;
    double* scores;
    Index ld;
    Monitor* monitor;

    // One panel of 64 columns, all rows in order: the result does not depend on the thread.
    // Returns the seconds that the kernel values took.
    double add_to_panel(Index panel, T* tile) const {
        const simd::Table& table = simd::best_table();
        double kernel_seconds = 0.0;
        for (Index begin = 0; begin < rows.size(); begin += rows_per_tile) {
            if (monitor != nullptr && monitor->poll()) break;
            const Index count = std::min(rows_per_tile, rows.size() - begin);
            Stopwatch watch;
            const T* values[rows_per_tile];
            columns.panel_rows(rows, begin, count, panel, tile, values);
            kernel_seconds += watch.lap();
            const auto matrix = coefficients.matrix(begin / rows_per_tile);
            if (!matrix.empty()) {
                add_product(matrix, values, count, panel);
                continue;
            }
            for (const auto& run : coefficients.runs(begin / rows_per_tile)) {
                accumulate(table, values, coefficients.positions(run), coefficients.values(run), run.count,
                           scores + run.score * ld + panel * panel_width);
            }
        }
        return kernel_seconds;
    }

    // Nearly all coefficients count. The bits do not depend on where the rows lie.
    void add_product(std::span<const T> matrix, const T* const* values, Index count, Index panel) const {
        if constexpr (std::is_same_v<T, float>) {
            const Index n_scores = static_cast<Index>(matrix.size()) / rows_per_tile;
            AlignedVector<float> sums(unsigned_index(n_scores * panel_width), 0.0F), gathered;
            const T* tile = values[0];
            bool in_one_piece = true;
            for (Index r = 1; r < count; ++r) in_one_piece = in_one_piece && values[r] == tile + r * panel_width;
            if (!in_one_piece) {
                gathered.resize(unsigned_index(count * panel_width));
                for (Index r = 0; r < count; ++r) {
                    std::copy_n(values[r], panel_width, gathered.data() + r * panel_width);
                }
                tile = gathered.data();
            }
            for (Index begin = 0; begin < count; begin += terms_per_sum) {
                const Index terms = std::min(terms_per_sum, count - begin);
                simd::best_table().multiply({matrix.data() + begin, rows_per_tile, 1, tile + begin * panel_width,
                                             panel_width, sums.data(), panel_width, n_scores, panel_width, terms});
            }
            for (Index c = 0; c < n_scores; ++c) {
                double* out = scores + c * ld + panel * panel_width;
                const float* sum = sums.data() + c * panel_width;
                for (Index j = 0; j < panel_width; ++j) out[j] += static_cast<double>(sum[j]);
            }
        }
    }
};

// The wall time of a pass, shared out by what its panels measured.
void share_out(Phases& phases, double wall, const std::vector<double>& kernel, const std::vector<double>& all) {
    const double kernel_part = std::accumulate(kernel.begin(), kernel.end(), 0.0);
    const double total = std::accumulate(all.begin(), all.end(), 0.0);
    const double share = total > 0.0 ? kernel_part / total : 0.0;
    phases.kernel += share * wall;
    phases.scores += (1.0 - share) * wall;
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

void Coefficients::add_row(Index row, std::span<const double> values) {
    const Index position = static_cast<Index>(rows_.size());
    rows_.push_back(row);
    for (std::size_t c = 0; c < values.size(); ++c) {
        if (values[c] != 0.0) add(static_cast<Index>(c), position, values[c]);
    }
}

template <class T>
bool add_scores(const KernelColumns<T>& columns, const Coefficients& coefficients, double* scores, Index ld,
                ThreadTeam& team, Monitor* monitor, const PassExtras& extras) {
    Stopwatch wall;
    const auto rows = columns.prepare(coefficients.rows());
    const TiledCoefficients<T> tiled(coefficients);
    const Pass<T> pass{columns, *rows, tiled, scores, ld, monitor};
    std::vector<double> kernel(unsigned_index(columns.n_panels())), all(kernel.size());
    const auto task = [&](Index panel) {
        // Not thread_local: a thread's first use of one allocates, and where that fails the C library aborts.
        const RawMemory tile(unsigned_index(std::min(rows_per_tile, rows->size()) * panel_width) * sizeof(T));
        Stopwatch watch;
        kernel[unsigned_index(panel)] = pass.add_to_panel(panel, static_cast<T*>(tile.get()));
        if (extras.finished) extras.finished(panel);
        all[unsigned_index(panel)] = watch.lap();
    };
    const Index entries = columns.size() * static_cast<Index>(coefficients.rows().size());
    if (entries < entries_worth_threads) {
        ThreadTeam(1).run(columns.n_panels(), task);
    } else {
        team.run(columns.n_panels(), task);
    }
    if (extras.cache != nullptr) {
        extras.cache->rows_computed += rows->n_computed();
        extras.cache->hits += rows->size() - rows->n_computed();
    }
    if (extras.phases != nullptr) share_out(*extras.phases, wall.lap(), kernel, all);
    return monitor == nullptr || !monitor->stopped();
}

template bool add_scores(const KernelColumns<float>&, const Coefficients&, double*, Index, ThreadTeam&, Monitor*,
                         const PassExtras&);
template bool add_scores(const KernelColumns<double>&, const Coefficients&, double*, Index, ThreadTeam&, Monitor*,
                         const PassExtras&);

}  // namespace multimargin
