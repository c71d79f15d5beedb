#include "kernel/gram_matrix.hpp"

#include <algorithm>
#include <numeric>

namespace multimargin {

namespace {

using simd::panel_width;

constexpr Index not_here = -1;

struct SquareRows final : KernelRows {
    explicit SquareRows(std::vector<Index> chosen)
        : KernelRows(static_cast<Index>(chosen.size())), positions(std::move(chosen)) {}
    Index n_computed() const override { return 0; }
    std::vector<Index> positions;
};

template <class T>
class SquareColumns final : public KernelColumns<T> {
  public:
    explicit SquareColumns(const SquareKernel<T>& kernel) : KernelColumns<T>(kernel.size()), kernel_(kernel) {}

    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override {
        std::vector<Index> positions;
        positions.reserve(rows.size());
        for (const Index row : rows) {
            positions.push_back(kernel_.position_of(row));
            if (positions.back() == not_here) throw std::logic_error("a row that this kernel matrix does not hold");
        }
        return std::make_unique<SquareRows>(std::move(positions));
    }

    void panel_rows(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T*,
                    const T** values) const override {
        const std::vector<Index>& positions = static_cast<const SquareRows&>(rows).positions;
        for (Index r = 0; r < n_rows; ++r) {
            values[r] = kernel_.panel_row(panel, positions[unsigned_index(first_row + r)]);
        }
    }

    void fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* out,
                    Index ld) const override {
        const std::vector<Index>& positions = static_cast<const SquareRows&>(rows).positions;
        for (Index r = 0; r < n_rows; ++r) {
            const T* row = kernel_.panel_row(panel, positions[unsigned_index(first_row + r)]);
            std::copy_n(row, panel_width, out + r * ld);
        }
    }

  private:
    const SquareKernel<T>& kernel_;
};

}  // namespace

template <class T>
void SquareKernel<T>::allocate(Layout layout) {
    const Index width = n_panels() * panel_width;
    panel_stride_ = layout == Layout::rows ? panel_width : size() * panel_width;
    // Not a power of two: rows that far apart would map to the same lines of the cache.
    row_stride_ = layout == Layout::rows ? width + simd::overrun : panel_width;
    values_.reserve(checked_product(width + simd::overrun, size()));
    for (std::size_t i = 0; i < rows_.size(); ++i) position_of_[unsigned_index(rows_[i])] = static_cast<Index>(i);
}

template <class T>
SquareKernel<T>::SquareKernel(const KernelSource& source, std::vector<Index> rows, Layout layout, ThreadTeam& team,
                              Monitor& monitor)
    : rows_(std::move(rows)), position_of_(unsigned_index(source.size()), not_here) {
    allocate(layout);
    const auto columns = source.columns<T>(rows_);
    const auto prepared = columns->prepare(rows_);
    constexpr Index rows_between_polls = 252;
    team.run(n_panels(), [&](Index panel) {
        for (Index first = panel * panel_width; first < size(); first += rows_between_polls) {
            if (monitor.poll()) return;
            const Index count = std::min(rows_between_polls, size() - first);
            columns->fill_panel(*prepared, first, count, panel, place(panel, first), row_stride_);
        }
    });
    if (!monitor.stopped()) team.run(n_panels(), [&](Index panel) { mirror(panel); });
    filled_ = !monitor.stopped();
}

// The rows above the diagonal of a panel, from the panels before it.
template <class T>
void SquareKernel<T>::mirror(Index panel) {
    const Index first = panel * panel_width, count = std::min<Index>(panel_width, size() - first);
    for (Index from = 0; from < panel; ++from) {
        const T* source = place(from, first);
        T* target = place(panel, from * panel_width);
        for (Index j = 0; j < count; ++j) {
            for (Index i = 0; i < panel_width; ++i) target[i * row_stride_ + j] = source[j * row_stride_ + i];
        }
    }
}

template <class T>
SquareKernel<T>::SquareKernel(const SquareKernel& larger, std::span<const Index> positions, ThreadTeam& team)
    : position_of_(larger.position_of_.size(), not_here) {
    for (const Index position : positions) rows_.push_back(larger.rows_[unsigned_index(position)]);
    allocate(Layout::panels);
    team.run(n_panels(), [&](Index panel) {
        const Index first = panel * panel_width, count = std::min<Index>(panel_width, size() - first);
        const T* columns[panel_width];
        for (Index j = 0; j < count; ++j) {
            const Index position = positions[unsigned_index(first + j)];
            columns[j] = larger.panel_row(position / panel_width, 0) + position % panel_width;
        }
        for (Index i = 0; i < size(); ++i) {
            T* out = place(panel, i);
            const Index row = positions[unsigned_index(i)] * larger.row_stride_;
            for (Index j = 0; j < count; ++j) out[j] = columns[j][row];
        }
    });
}

template <class T>
void SquareKernel<T>::gather(std::span<const Index> positions, T* out, Index ld, ThreadTeam& team) const {
    const Index n = static_cast<Index>(positions.size()), rows_per_task = panel_width;
    std::vector<const T*> columns;
    for (const Index p : positions) columns.push_back(panel_row(p / panel_width, 0) + p % panel_width);
    team.run((n + rows_per_task - 1) / rows_per_task, [&](Index task) {
        for (Index i = task * rows_per_task; i < std::min((task + 1) * rows_per_task, n); ++i) {
            const Index row = positions[unsigned_index(i)] * row_stride_;
            for (Index j = 0; j < n; ++j) out[i * ld + j] = columns[unsigned_index(j)][row];
        }
    });
}

template <class T>
std::unique_ptr<KernelColumns<T>> SquareKernel<T>::columns() const {
    return std::make_unique<SquareColumns<T>>(*this);
}

bool fill_matrix(const KernelSource& source, double* out, ThreadTeam& team, Monitor& monitor) {
    const Index n = source.size();
    const std::vector<Index> all = first_indices(n);
    const auto columns = source.columns<double>(all);
    const auto prepared = columns->prepare(all);
    team.run(columns->n_panels(), [&](Index reversed) {  // long tasks first
        const Index tile = columns->n_panels() - 1 - reversed, first_row = tile * panel_width;
        const Index n_rows = std::min<Index>(panel_width, n - first_row);
        AlignedVector<double> block(unsigned_index(panel_width * panel_width));
        for (Index panel = 0; panel <= tile; ++panel) {
            if (monitor.poll()) return;
            columns->fill_panel(*prepared, first_row, n_rows, panel, block.data(), panel_width);
            const Index first = panel * panel_width, n_columns = std::min<Index>(panel_width, n - first);
            for (Index i = 0; i < n_rows; ++i)
                std::copy_n(block.data() + i * panel_width, n_columns, out + (first_row + i) * n + first);
            for (Index j = 0; panel < tile && j < n_columns; ++j) {
                double* mirrored = out + (first + j) * n + first_row;
                for (Index i = 0; i < n_rows; ++i) mirrored[i] = block[unsigned_index(i * panel_width + j)];
            }
        }
    });
    return !monitor.stopped();
}

template class SquareKernel<float>;
template class SquareKernel<double>;

}  // namespace multimargin
