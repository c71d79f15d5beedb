// Kernel rows for pairs of variables: a whole matrix, or rows computed when first asked for.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/timers.hpp"
#include "base/types.hpp"
#include "kernel/kernel_source.hpp"

namespace multimargin {

// Row i of a matrix that lies row by row.
template <class T>
class MatrixRows {
  public:
    MatrixRows(const T* values, Index ld) : values_(values), ld_(ld) {}
    const T* row(Index i) const { return values_ + i * ld_; }

  private:
    const T* values_;
    Index ld_;
};

// Memory for rows that goes from one problem to the next: the first touch of new memory costs as much as a row.
template <class T>
using RowMemory = std::vector<RawArray<T>>;

struct BinaryMemory {
    RowMemory<float> f32;
    RowMemory<double> f64;

    template <class T>
    RowMemory<T>& of() {
        if constexpr (std::is_same_v<T, float>) {
            return f32;
        } else {
            return f64;
        }
    }
};

// Rows over the columns of one problem. Looked up by position, without a hash: a step takes less time than that would.
template <class T>
class SlotRows {
  public:
    // Holds at least two rows, whatever the budget; with none every row is computed anew.
    SlotRows(const KernelSource& source, std::span<const Index> rows, double budget_bytes, CacheCounters& counters,
             RowMemory<T>& memory);

    // k(example, all examples); valid until two other rows were asked for.
    const T* row(Index example);

  private:
    Index slot_for(Index example);
    T* place(Index slot) { return chunks_[unsigned_index(slot / chunk_rows)].data() + slot % chunk_rows * width_; }

    static constexpr Index chunk_rows = 32;

    std::span<const Index> source_rows_;
    std::unique_ptr<KernelColumns<T>> columns_;
    CacheCounters& counters_;
    Index width_;
    Index capacity_;
    bool keeps_;
    bool given_;  // by the columns themselves
    Index used_ = 0;
    std::size_t clock_ = 0;
    std::vector<int> slot_of_;           // by example; -1 when it is not here
    std::vector<Index> example_in_;      // by slot
    std::vector<std::size_t> last_use_;  // by slot
    RowMemory<T>& chunks_;
};

}  // namespace multimargin
