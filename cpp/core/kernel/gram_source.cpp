#include "kernel/gram_source.hpp"

#include <algorithm>

namespace multimargin {

namespace {

using simd::panel_width;

struct GramRows final : KernelRows {
    explicit GramRows(std::span<const Index> rows)
        : KernelRows(static_cast<Index>(rows.size())), examples(rows.begin(), rows.end()) {}
    std::vector<Index> examples;
};

// The matrix holds (row, column) or, for points, (column, row).
enum class Layout { by_row, by_column };

double squared(double value, int times) {
    for (int t = 0; t < times; ++t) value *= value;
    return value;
}

template <class T, Layout layout>
class GramColumns final : public KernelColumns<T> {
  public:
    GramColumns(DenseView matrix, double offset, int squarings, std::span<const Index> columns)
        : KernelColumns<T>(static_cast<Index>(columns.size())),
          matrix_(matrix),
          offset_(offset),
          squarings_(squarings),
          columns_(columns.begin(), columns.end()) {
        for (std::size_t j = 0; j < columns_.size(); ++j) {
            const bool new_panel = j % unsigned_index(panel_width) == 0;
            if (new_panel) runs_of_panel_.push_back(runs_.size());
            if (new_panel || columns_[j] != columns_[j - 1] + 1) runs_.push_back({columns_[j], 0});
            ++runs_.back().count;
        }
        runs_of_panel_.push_back(runs_.size());
    }

    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override {
        return std::make_unique<GramRows>(rows);
    }

    void fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* out,
                    Index ld) const override {
        const std::vector<Index>& examples = static_cast<const GramRows&>(rows).examples;
        const Index first = panel * panel_width, count = std::min<Index>(panel_width, this->size() - first);
        for (Index r = 0; r < n_rows; ++r) {
            const Index row = examples[unsigned_index(first_row + r)];
            T* line = out + r * ld;
            if (layout == Layout::by_row && !matrix_.is_float32()) {
                read(matrix_.row_f64(row), panel, panel + 1, line);
            } else {
                const Index* columns = columns_.data() + first;
                for (Index j = 0; j < count; ++j) {
                    const bool by_row = layout == Layout::by_row;
                    line[j] =
                        static_cast<T>((by_row ? matrix_.at(row, columns[j]) : matrix_.at(columns[j], row)) + offset_);
                }
            }
            square(line, count);
            std::fill(line + count, line + panel_width, T(0));
        }
    }

    // Row by row, as the matrix lies, and neighbouring columns together.
    void fill(std::span<const Index> rows, T* out, Index ld) const override {
        if (layout == Layout::by_column || matrix_.is_float32()) return KernelColumns<T>::fill(rows, out, ld);
        for (const Index row : rows) {
            read(matrix_.row_f64(row), 0, this->n_panels(), out);
            square(out, this->size());
            std::fill(out + this->size(), out + this->n_panels() * panel_width, T(0));
            out += ld;
        }
    }

  private:
    struct Run {
        Index first, count;
    };

    // A row's values in some panels, without a branch for each.
    void read(const double* from, Index panel, Index end, T* to) const {
        for (std::size_t r = runs_of_panel_[unsigned_index(panel)]; r < runs_of_panel_[unsigned_index(end)]; ++r) {
            const Run& run = runs_[r];
            for (Index j = 0; j < run.count; ++j) to[j] = rounded(from[run.first + j]);
            to += run.count;
        }
    }

    // Squares are made in float64: before a value is rounded to float32, or of many values at a time.
    T rounded(double value) const {
        if constexpr (std::is_same_v<T, float>) value = squared(value, squarings_);
        return static_cast<T>(value + offset_);
    }
    void square(T* values, Index n) const {
        if constexpr (std::is_same_v<T, double>) {
            if (squarings_ > 0) simd::best_table().square_times(values, n, squarings_);
        }
    }

    DenseView matrix_;
    double offset_;
    int squarings_;
    std::vector<Index> columns_;
    std::vector<Run> runs_;                   // of neighbouring columns, within a panel
    std::vector<std::size_t> runs_of_panel_;  // the first of each panel, and the end
};

}  // namespace

GramSource::GramSource(DenseView matrix, double offset, int squarings)
    : matrix_(matrix), offset_(offset), squarings_(squarings) {
    if (matrix.rows() != matrix.columns()) throw std::invalid_argument("a kernel matrix is square");
    if (squarings < 0 || (squarings > 0 && (offset != 0.0 || matrix.is_float32()))) {
        throw std::invalid_argument("values are squared in float64 and without an offset");
    }
    fits_float32_ = KernelSource::fits_float32();  // used for each of many problems
}

double GramSource::diagonal(Index i) const { return squared(matrix_.at(i, i), squarings_) + offset_; }

std::unique_ptr<KernelColumns<float>> GramSource::columns_f32(std::span<const Index> columns) const {
    return std::make_unique<GramColumns<float, Layout::by_row>>(matrix_, offset_, squarings_, columns);
}

std::unique_ptr<KernelColumns<double>> GramSource::columns_f64(std::span<const Index> columns) const {
    return std::make_unique<GramColumns<double, Layout::by_row>>(matrix_, offset_, squarings_, columns);
}

const DenseView& GramSource::checked(const DataView& data) const {
    const DenseView* points = std::get_if<DenseView>(&data);
    if (squarings_ > 0) throw std::logic_error("squares of kernel values know no other points");
    if (points == nullptr) throw std::invalid_argument("a kernel matrix needs dense points");
    if (points->columns() != size()) throw std::invalid_argument("the widths of the two data sets differ");
    return *points;
}

std::unique_ptr<KernelColumns<double>> GramSource::foreign_columns(const DataView& data,
                                                                   std::span<const Index> columns) const {
    return std::make_unique<GramColumns<double, Layout::by_column>>(checked(data), offset_, 0, columns);
}

std::unique_ptr<KernelColumns<float>> GramSource::foreign_columns_f32(const DataView& data,
                                                                      std::span<const Index> columns) const {
    return std::make_unique<GramColumns<float, Layout::by_column>>(checked(data), offset_, 0, columns);
}

}  // namespace multimargin
