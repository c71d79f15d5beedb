#include "gram_source.hpp"

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

template <class T, Layout layout>
class GramColumns final : public KernelColumns<T> {
  public:
    GramColumns(DenseView matrix, double offset, std::span<const Index> columns)
        : KernelColumns<T>(static_cast<Index>(columns.size())),
          matrix_(matrix),
          offset_(offset),
          columns_(columns.begin(), columns.end()) {
        for (const Index column : columns_) {
            if (runs_.empty() || column != runs_.back().first + runs_.back().count) runs_.push_back({column, 0});
            ++runs_.back().count;
        }
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
            const Index* columns = columns_.data() + first;
            if (layout == Layout::by_row && !matrix_.is_float32()) {  // without a branch for each value
                const double* values = matrix_.row_f64(row);
                for (Index j = 0; j < count; ++j) line[j] = static_cast<T>(values[columns[j]] + offset_);
            } else {
                for (Index j = 0; j < count; ++j) {
                    const bool by_row = layout == Layout::by_row;
                    line[j] =
                        static_cast<T>((by_row ? matrix_.at(row, columns[j]) : matrix_.at(columns[j], row)) + offset_);
                }
            }
            std::fill(line + count, line + panel_width, T(0));
        }
    }

    // Row by row, as the matrix lies, and neighbouring columns together.
    void fill(std::span<const Index> rows, T* out, Index ld) const override {
        if (layout == Layout::by_column || matrix_.is_float32()) return KernelColumns<T>::fill(rows, out, ld);
        for (const Index row : rows) {
            const double* from = matrix_.row_f64(row);
            T* to = out;
            for (const Run& run : runs_) {
                for (Index j = 0; j < run.count; ++j) to[j] = static_cast<T>(from[run.first + j] + offset_);
                to += run.count;
            }
            std::fill(to, out + this->n_panels() * panel_width, T(0));
            out += ld;
        }
    }

  private:
    struct Run {
        Index first, count;
    };

    DenseView matrix_;
    double offset_;
    std::vector<Index> columns_;
    std::vector<Run> runs_;  // of neighbouring columns
};

}  // namespace

GramSource::GramSource(DenseView matrix, double offset) : matrix_(matrix), offset_(offset) {
    if (matrix.rows() != matrix.columns()) throw std::invalid_argument("a kernel matrix is square");
}

std::unique_ptr<KernelColumns<float>> GramSource::columns_f32(std::span<const Index> columns) const {
    return std::make_unique<GramColumns<float, Layout::by_row>>(matrix_, offset_, columns);
}

std::unique_ptr<KernelColumns<double>> GramSource::columns_f64(std::span<const Index> columns) const {
    return std::make_unique<GramColumns<double, Layout::by_row>>(matrix_, offset_, columns);
}

const DenseView& GramSource::checked(const DataView& data) const {
    const DenseView* points = std::get_if<DenseView>(&data);
    if (points == nullptr) throw std::invalid_argument("a kernel matrix needs dense points");
    if (points->columns() != size()) throw std::invalid_argument("the widths of the two data sets differ");
    return *points;
}

std::unique_ptr<KernelColumns<double>> GramSource::foreign_columns(const DataView& data,
                                                                   std::span<const Index> columns) const {
    return std::make_unique<GramColumns<double, Layout::by_column>>(checked(data), offset_, columns);
}

std::unique_ptr<KernelColumns<float>> GramSource::foreign_columns_f32(const DataView& data,
                                                                      std::span<const Index> columns) const {
    return std::make_unique<GramColumns<float, Layout::by_column>>(checked(data), offset_, columns);
}

}  // namespace multimargin
