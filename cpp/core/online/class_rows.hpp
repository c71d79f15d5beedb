// Kernel rows of kept examples, over those of some classes: what a binary machine's steps ask for.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/timers.hpp"
#include "base/types.hpp"
#include "online/example_store.hpp"

namespace multimargin {

// Numbered rows of one length in one piece of memory. It grows twofold up to a limit, and rows become longer where they
// are: rows come and go by the thousand, and asking the system for their pages costs as much as computing them.
class RowBlock {
  public:
    explicit RowBlock(std::size_t most_bytes) : most_values_(most_bytes / sizeof(double)) {}
    Index size() const { return n_rows_; }
    double* row(Index i) const { return base() + i * length_; }
    // Rows for so many values and some more; those beyond the limit are gone. New values are 0. Rows may move.
    void lengthen(Index n_values);
    // Memory for a few more, up to the limit. Rows may move.
    void reserve();
    // One more, where it has been reserved; false at the limit. Its first values are the caller's business, others 0.
    bool add(Index n_values);

  private:
    double* base() const { return static_cast<double*>(memory_.get()); }
    Index most_rows(Index length) const;
    void reallocate(Index n_rows, Index length);

    std::size_t most_values_;
    RawMemory memory_;
    Index length_ = 0, n_rows_ = 0,
          n_allocated_ = 0;  // values of a row; rows; values of all rows that there is room for
};

// The panels of its classes have places one after the other, in the order in which they came. A row has one float64
// value for each place, is computed where it is asked for and kept while a budget lasts; what a kept row lacks of a
// class is computed from the class's last arrivals. Whoever shares this object must not use it at the same time.
class MemberRows {
  public:
    // Of these classes.
    MemberRows(std::vector<Index> labels, std::size_t cache_bytes) : labels_(std::move(labels)), block_(cache_bytes) {}

    // Places for the panels that have come since the last call, and memory for the rows of a step. Rows may move.
    void make_ready(const KeptExamples& kept);
    Index n_panels() const { return static_cast<Index>(starts_.size()); }
    Index n_places() const { return n_panels() * simd::panel_width; }
    // By panel, its first slot.
    const std::vector<simd::Size>& starts() const { return starts_; }
    Index slot(Index place) const {
        return starts_[unsigned_index(place / simd::panel_width)] + place % simd::panel_width;
    }
    // -1 where it has none.
    Index place(Index slot) const {
        const std::size_t panel = unsigned_index(slot / simd::panel_width);
        if (panel >= panel_at_.size() || panel_at_[panel] < 0) return -1;
        return panel_at_[panel] * simd::panel_width + slot % simd::panel_width;
    }

    // Valid until two others were asked for. Call make_ready before each step.
    const double* row(const KeptExamples& kept, Index place);
    // The same for the example that was inserted last, without evaluating the kernel again.
    const double* newest_row(const KeptExamples& kept, Index place);
    // Call when the slot is released: its next example has other values.
    void forget(Index slot);
    const CacheCounters& counters() const { return counters_; }

  private:
    Index n_labels() const { return static_cast<Index>(labels_.size()); }
    // How many arrivals of a class a row's values have, and 1; 0: none at all.
    Index& known(Index place, Index k) { return known_[unsigned_index(place * n_labels() + k)]; }
    void cover(const KeptExamples& kept);
    Index free_row();
    double* cached(Index place);
    bool complete(const KeptExamples& kept, double* values, Index place, Index k);
    void add_arrivals(const KeptExamples& kept, double* values, Index place, Index k);

    std::vector<Index> labels_;
    std::vector<simd::Size> starts_;
    std::vector<Index> panel_at_;        // by panel of the kept examples, which it is here; -1: none
    RowBlock block_;                     // the rows that are kept
    std::vector<Index> owner_;           // by row of the block, its place; -1: none
    std::vector<char> asked_for_;        // by row of the block, since the search for one to drop came by
    std::vector<Index> row_at_;          // by place, its row in the block; -1: none
    std::vector<Index> known_;           // by place and class
    std::vector<Index> free_;            // rows of the block without an owner
    Index hand_ = 0;                     // where the search for a row to drop goes on
    std::array<Index, 2> last_{-1, -1};  // places whose rows were asked for last
    CacheCounters counters_;
};

}  // namespace multimargin
