#include "kernel/kernel_source.hpp"

#include <algorithm>
#include <cmath>

#include "base/memory.hpp"
#include "base/unrolled.hpp"

namespace multimargin {

namespace {

using simd::panel_width;

// A row less the centre. Without a branch in the loop, so that it is vectorised.
template <class T>
void gather_row(const DenseView& data, const std::vector<double>& centre, Index i, T* out) {
    const Index n = data.columns();
    const double* middle = centre.data();
    const auto convert = [&](const auto* row) {
        for (Index k = 0; k < n; ++k) out[k] = static_cast<T>(static_cast<double>(row[k]) - middle[k]);
    };
    data.is_float32() ? convert(data.row_f32(i)) : convert(data.row_f64(i));
}

template <class T>
void run_tile(const simd::Table& table, const simd::Tile<T>& tile, const simd::Evaluation& evaluation) {
    if constexpr (std::is_same_v<T, float>) {
        table.tile_f32(tile, evaluation);
    } else {
        table.tile_f64(tile, evaluation);
    }
}

template <class T>
struct DenseRows final : KernelRows {
    DenseRows(Index n_rows, Index n_features) : KernelRows(n_rows), values(checked_product(n_rows, n_features)) {}
    AlignedVector<T> values;  // row-major
};

template <class T>
class DenseColumns final : public KernelColumns<T> {
  public:
    DenseColumns(const DenseSource& source, const DenseView& data, std::span<const Index> columns)
        : KernelColumns<T>(static_cast<Index>(columns.size())),
          source_(source),
          evaluation_(source.kernel()),
          n_features_(data.columns()),
          panels_(checked_product(this->n_panels() * panel_width, std::max<Index>(n_features_, 1))) {
        // Some rows at a time, so that neighbours in a panel are written together.
        constexpr Index together = 8;
        AlignedVector<T> rows(unsigned_index(together * n_features_));
        for (Index j = 0; j < this->size(); j += together) {
            const Index count = std::min(together, this->size() - j);
            for (Index r = 0; r < count; ++r) {
                gather_row(data, source.centre(), columns[unsigned_index(j + r)], rows.data() + r * n_features_);
            }
            T* first = panel(j / panel_width) + j % panel_width;
            for (Index k = 0; k < n_features_; ++k) {
                for (Index r = 0; r < count; ++r)
                    first[k * panel_width + r] = rows[unsigned_index(r * n_features_ + k)];
            }
        }
    }

    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override {
        auto prepared = std::make_unique<DenseRows<T>>(static_cast<Index>(rows.size()), n_features_);
        for (Index r = 0; r < prepared->size(); ++r) {
            gather_row(source_.data(), source_.centre(), rows[unsigned_index(r)],
                       prepared->values.data() + r * n_features_);
        }
        return prepared;
    }

    std::unique_ptr<KernelRows> prepare_points(const DataView& points) const override {
        const DenseView& dense = std::get<DenseView>(points);
        if (dense.columns() != n_features_) throw std::invalid_argument("the widths of the two data sets differ");
        auto prepared = std::make_unique<DenseRows<T>>(dense.rows(), n_features_);
        for (Index r = 0; r < dense.rows(); ++r) {
            gather_row(dense, source_.centre(), r, prepared->values.data() + r * n_features_);
        }
        return prepared;
    }

    void fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index p, T* out, Index ld) const override {
        const T* values = static_cast<const DenseRows<T>&>(rows).values.data() + first_row * n_features_;
        run_tile(source_.table(), simd::Tile<T>{values, n_rows, n_features_, panel(p), out, ld}, evaluation_);
    }

  private:
    T* panel(Index p) { return panels_.data() + p * panel_width * n_features_; }
    const T* panel(Index p) const { return panels_.data() + p * panel_width * n_features_; }

    const DenseSource& source_;
    simd::Evaluation evaluation_;
    Index n_features_;
    AlignedVector<T> panels_;
};

std::vector<double> column_means(const DenseView& data) {
    std::vector<double> mean(unsigned_index(data.columns()), 0.0);
    for (Index i = 0; i < data.rows(); ++i) {
        for (Index k = 0; k < data.columns(); ++k) mean[unsigned_index(k)] += data.at(i, k);
    }
    for (double& m : mean) m /= static_cast<double>(std::max<Index>(data.rows(), 1));
    return mean;
}

double largest_square(const DenseView& data, const std::vector<double>& centre) {
    double largest = 0.0;
    const auto see = [&](const auto* row) {
        double sums[n_lanes] = {};
        by_lanes(centre.size(), [&](std::size_t lane, std::size_t k) {
            const double x = static_cast<double>(row[k]) - centre[k];
            sums[lane] += x * x;
        });
        const double square = total_of(sums);
        largest = square <= largest ? largest : square;  // one that is not a number stays
    };
    for (Index i = 0; i < data.rows(); ++i) data.is_float32() ? see(data.row_f32(i)) : see(data.row_f64(i));
    return largest;
}

// Far enough from the largest float32 (2^128) for sums of such numbers, ...
constexpr double largest_in_float32 = 0x1p100;
// ... and for products of squared scores with a curvature, by which pairs of variables are compared.
constexpr double largest_value_in_float32 = 0x1p50;

}  // namespace

bool KernelSource::fits_float32() const {
    for (Index i = 0; i < size(); ++i) {
        if (!(std::abs(diagonal(i)) <= largest_value_in_float32)) return false;
    }
    return true;
}

template <class T>
void KernelColumns<T>::fill(std::span<const Index> rows, T* out, Index ld) const {
    const auto prepared = prepare(rows);
    for (Index p = 0; p < n_panels(); ++p) fill_panel(*prepared, 0, prepared->size(), p, out + p * panel_width, ld);
}

template <class T>
void KernelColumns<T>::panel_rows(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* scratch,
                                  const T** values) const {
    fill_panel(rows, first_row, n_rows, panel, scratch, panel_width);
    for (Index r = 0; r < n_rows; ++r) values[r] = scratch + r * panel_width;
}

template class KernelColumns<float>;
template class KernelColumns<double>;

double Kernel::diagonal(double squared_norm) const {
    return simd::value_of(*this, shift_invariant() ? 0.0 : squared_norm);
}

bool Kernel::fits_float32(double squared_norm) const {
    if (!(squared_norm <= largest_in_float32)) return false;
    const double factor = std::abs(scale);
    if (factor != 0.0 && !(factor >= 1.0 / largest_in_float32 && factor <= largest_in_float32)) return false;
    if (!(std::abs(shift) <= largest_in_float32)) return false;
    if (shift_invariant()) return std::abs(diagonal(0.0)) <= largest_value_in_float32;
    Kernel largest = *this;  // |x'z| is at most the largest |x|^2, and transforms of products grow with their size
    largest.scale = factor;
    largest.shift = std::abs(shift);
    return std::abs(largest.diagonal(squared_norm)) <= largest_value_in_float32;
}

DenseSource::DenseSource(DenseView data, Kernel kernel, const simd::Table& table)
    : data_(data),
      kernel_(kernel),
      table_(table),
      centre_(kernel.shift_invariant() ? column_means(data) : std::vector<double>(unsigned_index(data.columns()))),
      longest_(largest_square(data, centre_)) {}

double DenseSource::diagonal(Index i) const {
    if (kernel_.shift_invariant()) return kernel_.diagonal(0.0);
    double s = 0.0;
    for (Index k = 0; k < data_.columns(); ++k) s += data_.at(i, k) * data_.at(i, k);
    return kernel_.diagonal(s);
}

const DenseView& DenseSource::checked(const DataView& data) const {
    const DenseView* dense = std::get_if<DenseView>(&data);
    if (dense == nullptr) throw std::invalid_argument("dense data need dense points");
    if (dense->columns() != data_.columns()) throw std::invalid_argument("the widths of the two data sets differ");
    return *dense;
}

std::unique_ptr<KernelColumns<double>> DenseSource::foreign_columns(const DataView& data,
                                                                    std::span<const Index> columns) const {
    return std::make_unique<DenseColumns<double>>(*this, checked(data), columns);
}

std::unique_ptr<KernelColumns<float>> DenseSource::foreign_columns_f32(const DataView& data,
                                                                       std::span<const Index> columns) const {
    return std::make_unique<DenseColumns<float>>(*this, checked(data), columns);
}

// Rounding x to float32 moves it by 6e-8 |x|, and exp(-gamma d^2) changes by at most 0.86 sqrt(gamma) for a unit of d:
// 5e-8 sqrt(gamma) |x|. A transform of the 1-norm changes by at most gamma for a unit of it.
bool DenseSource::accurate_in_float32() const {
    if (!kernel_.shift_invariant()) return false;
    constexpr double largest_exponent = 60.0;
    const bool squared = kernel_.form == simd::Form::squared_difference;
    for (Index i = 0; i < data_.rows(); ++i) {
        double size = 0.0;
        for (Index k = 0; k < data_.columns(); ++k) {
            const double x = data_.at(i, k) - centre_[unsigned_index(k)];
            size += squared ? x * x : std::abs(x);
        }
        if (std::abs(kernel_.scale) * size > (squared ? largest_exponent : std::sqrt(largest_exponent))) return false;
    }
    return true;
}

std::unique_ptr<KernelColumns<float>> DenseSource::columns_f32(std::span<const Index> columns) const {
    return std::make_unique<DenseColumns<float>>(*this, data_, columns);
}

std::unique_ptr<KernelColumns<double>> DenseSource::columns_f64(std::span<const Index> columns) const {
    return std::make_unique<DenseColumns<double>>(*this, data_, columns);
}

}  // namespace multimargin
