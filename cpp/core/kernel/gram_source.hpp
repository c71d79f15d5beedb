// Kernel values from a kernel matrix that the caller computed.
#pragma once

#include "kernel/kernel_source.hpp"

namespace multimargin {

// Reads a symmetric matrix in place; `offset` is added to every value, as in Kernel. With `squarings` its values count
// as squared so many times, which for exp(-gamma d) doubles gamma as often; then there is no offset, and no other
// points.
class GramSource final : public KernelSource {
  public:
    GramSource(DenseView matrix, double offset, int squarings = 0);
    Index size() const override { return matrix_.rows(); }
    double diagonal(Index i) const override;
    // A value is one read, so that keeping a second copy of it brings nothing.
    double cost() const override { return 2.0; }
    std::unique_ptr<KernelColumns<float>> columns_f32(std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<double>> columns_f64(std::span<const Index> columns) const override;
    // Points are rows of kernel values with the examples of this source.
    std::unique_ptr<KernelColumns<double>> foreign_columns(const DataView& data,
                                                           std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<float>> foreign_columns_f32(const DataView& data,
                                                              std::span<const Index> columns) const override;
    bool fits_float32() const override { return fits_float32_; }
    bool accurate_in_float32() const override { return false; }  // nothing is known of the values' size

  private:
    const DenseView& checked(const DataView& data) const;

    DenseView matrix_;
    double offset_;
    int squarings_;
    bool fits_float32_;
};

}  // namespace multimargin
