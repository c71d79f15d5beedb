// The kernel matrix among some rows of another source, held row by row: for a problem that is solved many times.
#pragma once

#include "kernel_source.hpp"

namespace multimargin {

// Memory that goes from one matrix to the next.
struct KeptMemory {
    RawArray<double> f64;
    RawArray<float> f32;
};

// Its rows are numbered 0, 1, ... in the order in which they are given.
class KeptSource final : public KernelSource {
  public:
    // The memory must outlive it.
    KeptSource(const KernelSource& of, std::span<const Index> rows, KeptMemory& memory);

    // What it holds for so many rows.
    static double bytes(Index n_rows);

    Index size() const override { return size_; }
    double diagonal(Index i) const override { return f64_[i * ld_ + i]; }
    // Every value is in memory already.
    double cost() const override { return 0.0; }
    std::unique_ptr<KernelColumns<float>> columns_f32(std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<double>> columns_f64(std::span<const Index> columns) const override;
    // It trains and does not predict.
    std::unique_ptr<KernelColumns<double>> foreign_columns(const DataView& data,
                                                           std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<float>> foreign_columns_f32(const DataView& data,
                                                              std::span<const Index> columns) const override;
    bool accurate_in_float32() const override { return false; }

  private:
    Index size_, ld_;
    const double* f64_ = nullptr;
    const float* f32_ = nullptr;
};

}  // namespace multimargin
