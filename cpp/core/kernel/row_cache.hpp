// Kernel rows over a fixed set of columns, kept while a budget lasts. One row serves all variables
// of an example (DGI11 6.1).
#pragma once

#include <list>
#include <span>
#include <unordered_map>

#include "base/memory.hpp"
#include "base/timers.hpp"
#include "base/types.hpp"
#include "kernel/kernel_source.hpp"

namespace multimargin {

template <class T>
class RowCache {
  public:
    // Holds `least` rows, whatever the budget: as many as a step needs at once.
    RowCache(std::unique_ptr<KernelColumns<T>> columns, std::size_t budget_bytes, CacheCounters& counters,
             Index least = 2);

    // k(example, column j) for all columns; valid until two other rows were asked for.
    const T* row(Index example);

    // Every row is recomputed at its next use.
    void forget();

    Index capacity() const { return capacity_; }
    Index size() const { return static_cast<Index>(rows_.size()); }

    // The same rows over fewer columns: position j of the new cache was keep[j] of the old one.
    void restrict_to(std::unique_ptr<KernelColumns<T>> columns, std::span<const Index> keep);

  private:
    struct Entry {
        AlignedVector<T> values;
        std::list<Index>::iterator age;
    };

    Index width() const { return columns_->n_panels() * simd::panel_width; }
    void set_capacity();

    std::unique_ptr<KernelColumns<T>> columns_;
    std::size_t budget_;
    CacheCounters& counters_;
    Index least_;
    Index capacity_ = 2;
    std::unordered_map<Index, Entry> rows_;
    std::list<Index> ages_;  // most recently used first
};

}  // namespace multimargin
