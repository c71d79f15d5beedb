// Kernel rows over a fixed set of columns, computed when first asked for and kept while there is room.
#pragma once

#include <memory>
#include <vector>

#include "base/memory.hpp"
#include "kernel/kernel_source.hpp"

namespace multimargin {

// For the score passes of one round, which use a support vector's row in about ten blocks. Rows are filled by the
// pass that first needs them, so a pass that was broken off leaves them unusable: then the columns are not to be used
// any more. `memory` may serve several of them one after the other.
template <class T>
class CachedColumns final : public KernelColumns<T> {
  public:
    CachedColumns(std::unique_ptr<KernelColumns<T>> base, Index n_source_rows, double budget_bytes,
                  RawArray<T>& memory);

    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override;
    void fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* out,
                    Index ld) const override;
    void panel_rows(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* scratch,
                    const T** values) const override;

    Index n_kept() const { return used_; }

  private:
    struct Rows;

    // Panel by panel, so that what a pass reads for one panel lies together.
    T* place(Index panel, Index row) const { return memory_.data() + (panel * capacity_ + row) * simd::panel_width; }

    std::unique_ptr<KernelColumns<T>> base_;
    RawArray<T>& memory_;
    Index capacity_;
    mutable Index used_ = 0;
    mutable std::vector<Index> place_of_;  // by row of the source
};

}  // namespace multimargin
