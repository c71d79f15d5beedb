// Where kernel values come from: data and a kernel function, behind blocks of values.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "data/data_view.hpp"
#include "simd/table.hpp"

namespace multimargin {

// What a kernel is here: a form and a transform with their numbers. Names and parameters exist in Python only.
// The offset is 1 for the regularised bias, HL02 (10).
struct Kernel : simd::Evaluation {
    // Whether k(x + s, z + s) = k(x, z), so that data may be centred before rounding to float32.
    bool shift_invariant() const { return form != simd::Form::dot; }
    // k(x, x), given |x|^2.
    double diagonal(double squared_norm) const;
    // Whether float32 carries rows of such a length, these parameters, and the values with squares to compare.
    bool fits_float32(double squared_norm) const;
};

// A set of rows, prepared once; what is inside is known to the columns that made it.
class KernelRows {
  public:
    virtual ~KernelRows() = default;
    Index size() const { return size_; }
    // How many of them must be computed; the others are kept somewhere.
    virtual Index n_computed() const { return size_; }

  protected:
    explicit KernelRows(Index size) : size_(size) {}

  private:
    Index size_;
};

// A fixed set of columns, prepared once, against which blocks of rows are evaluated.
template <class T>
class KernelColumns {
  public:
    virtual ~KernelColumns() = default;
    Index size() const { return size_; }
    Index n_panels() const { return (size_ + simd::panel_width - 1) / simd::panel_width; }
    virtual std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const = 0;
    // out[r * ld + j] = k(row first_row + r, column 64 * panel + j) for one panel.
    // Values beyond the last column are meaningless.
    virtual void fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* out,
                            Index ld) const = 0;
    // The same values by reference: values[r] is where row first_row + r of the panel lies, in `scratch` (n_rows x 64)
    // unless they are kept somewhere already.
    virtual void panel_rows(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* scratch,
                            const T** values) const;
    // The values of a row with all columns where they lie in memory, rounded up to whole panels; else null.
    virtual const T* kept_row(Index) const { return nullptr; }
    // Rows that are points of other data of the source's kind; null where that is not supported.
    virtual std::unique_ptr<KernelRows> prepare_points(const DataView&) const { return nullptr; }
    // All panels, next to each other.
    virtual void fill(std::span<const Index> rows, T* out, Index ld) const;

  protected:
    explicit KernelColumns(Index size) : size_(size) {}

  private:
    Index size_;
};

// Data and kernel. Each kind of data (dense, sparse) is a source of its own.
class KernelSource {
  public:
    virtual ~KernelSource() = default;
    virtual Index size() const = 0;
    virtual double diagonal(Index i) const = 0;
    // What one kernel value costs, in multiply-adds.
    virtual double cost() const = 0;
    virtual std::unique_ptr<KernelColumns<float>> columns_f32(std::span<const Index> columns) const = 0;
    virtual std::unique_ptr<KernelColumns<double>> columns_f64(std::span<const Index> columns) const = 0;
    // Columns from other data of the same kind and width: prediction.
    virtual std::unique_ptr<KernelColumns<double>> foreign_columns(const DataView& data,
                                                                   std::span<const Index> columns) const = 0;
    virtual std::unique_ptr<KernelColumns<float>> foreign_columns_f32(const DataView& data,
                                                                      std::span<const Index> columns) const = 0;
    // The values of a row with all rows, in order, where they are kept in memory; else null.
    virtual const double* kept_row(Index) const { return nullptr; }
    // Whether float32 kernel values of these rows err by less than about 4e-7, whatever the other point is.
    virtual bool accurate_in_float32() const = 0;
    // Whether nothing overflows or vanishes in float32. By default decided by the diagonal.
    virtual bool fits_float32() const;

    template <class T>
    std::unique_ptr<KernelColumns<T>> columns(std::span<const Index> chosen) const {
        if constexpr (std::is_same_v<T, float>) {
            return columns_f32(chosen);
        } else {
            return columns_f64(chosen);
        }
    }
};

class DenseSource final : public KernelSource {
  public:
    DenseSource(DenseView data, Kernel kernel, const simd::Table& table = simd::best_table());
    Index size() const override { return data_.rows(); }
    double diagonal(Index i) const override;
    double cost() const override { return static_cast<double>(data_.columns()); }
    std::unique_ptr<KernelColumns<float>> columns_f32(std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<double>> columns_f64(std::span<const Index> columns) const override;

    std::unique_ptr<KernelColumns<double>> foreign_columns(const DataView& data,
                                                           std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<float>> foreign_columns_f32(const DataView& data,
                                                              std::span<const Index> columns) const override;
    bool accurate_in_float32() const override;
    bool fits_float32() const override { return kernel_.fits_float32(longest_); }

    const DenseView& data() const { return data_; }
    const Kernel& kernel() const { return kernel_; }
    const simd::Table& table() const { return table_; }
    const std::vector<double>& centre() const { return centre_; }

  private:
    const DenseView& checked(const DataView& data) const;

    DenseView data_;
    Kernel kernel_;
    const simd::Table& table_;
    std::vector<double> centre_;
    double longest_ = 0.0;  // the largest |x|^2 as rows are computed with: from the centre
};

// out += factor * row, summed in float64 whatever the row's type.
inline void add_row(double factor, const float* row, double* out, Index n) {
    simd::best_table().axpy_f32(factor, row, out, n);
}
inline void add_row(double factor, const double* row, double* out, Index n) {
    simd::best_table().axpy_f64(factor, row, out, n);
}

}  // namespace multimargin
