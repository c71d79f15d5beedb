// A kernel matrix held in memory, where it fits: rows that are asked for many times are computed once.
#pragma once

#include <vector>

#include "kernel_source.hpp"
#include "monitor.hpp"
#include "parallel.hpp"

namespace multimargin {

// All kernel values among some rows of another source, in one precision; anything else is passed on to that source.
template <class T>
class StoredSource final : public KernelSource {
  public:
    // `filled` is false when the monitor stopped the computation; then the source is not to be used.
    StoredSource(const KernelSource& base, std::vector<Index> rows, ThreadTeam& team, Monitor& monitor);

    bool filled() const { return filled_; }
    Index size() const override { return base_.size(); }
    double diagonal(Index i) const override { return base_.diagonal(i); }
    std::unique_ptr<KernelColumns<float>> columns_f32(std::span<const Index> columns) const override;
    std::unique_ptr<KernelColumns<double>> columns_f64(std::span<const Index> columns) const override;

    // Row and column numbers are positions in the list given.
    const T* row(Index position) const { return values_.data() + position * ld_; }
    std::vector<Index> positions_of(std::span<const Index> rows) const;

  private:
    template <class U>
    std::unique_ptr<KernelColumns<U>> make_columns(std::span<const Index> columns) const;

    const KernelSource& base_;
    std::vector<Index> position_;  // by row of the base
    Index ld_;
    AlignedVector<T> values_;
    bool filled_ = true;
};

}  // namespace multimargin
