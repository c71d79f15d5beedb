// The kernel matrix among some rows of another source, held row by row: for a problem that is solved many times. A row
// is computed when it is first asked for.
#pragma once

#include "base/memory.hpp"
#include "kernel/kernel_source.hpp"

namespace multimargin {

// Memory that goes from one matrix to the next.
struct KeptMemory {
    RawArray<double> f64;
    RawArray<float> f32;
};

// Its rows are numbered 0, 1, ... in the order in which they are given. For one thread at a time.
class KeptSource final : public KernelSource {
  public:
    // Source and memory must outlive it.
    KeptSource(const KernelSource& of, std::span<const Index> rows, KeptMemory& memory);

    // What it holds for so many rows.
    static double bytes(Index n_rows);

    Index size() const override { return size_; }
    double diagonal(Index i) const override { return diagonal_[unsigned_index(i)]; }
    // Every value is in memory already.
    double cost() const override { return 0.0; }
    std::unique_ptr<KernelColumns<float>> columns_f32(std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<double>> columns_f64(std::span<const Index> columns) const override;
    // It trains and does not predict.
    std::unique_ptr<KernelColumns<double>> foreign_columns(const DataView& data,
                                                           std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<float>> foreign_columns_f32(const DataView& data,
                                                              std::span<const Index> columns) const override;
    const double* kept_row(Index i) const override { return row<double>(i); }
    bool accurate_in_float32() const override { return false; }

    template <class T>
    const T* row(Index i) const {
        if (!present_[unsigned_index(i)]) compute(i);
        if constexpr (std::is_same_v<T, float>) {
            return memory_.f32.data() + i * ld_;
        } else {
            return memory_.f64.data() + i * ld_;
        }
    }

  private:
    void compute(Index i) const;

    std::vector<Index> rows_;
    std::vector<double> diagonal_;
    Index size_, ld_;
    KeptMemory& memory_;
    std::unique_ptr<KernelColumns<double>> columns_;
    mutable std::vector<char> present_;  // by row
};

}  // namespace multimargin
