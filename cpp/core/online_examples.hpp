// The examples that an online machine keeps, and the kernel values among them.
#pragma once

#include <list>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernel_source.hpp"
#include "phases.hpp"
#include "types.hpp"

namespace multimargin {

// What the examples are, by slot. The label of a free slot is -1 - c: it waits for an example of class c.
struct KeptState {
    Index n_features = 0;
    std::vector<double> X;  // row-major
    std::vector<Index> labels, ids;
    std::vector<double> caps;

    Index n_slots() const { return static_cast<Index>(labels.size()); }
};

// Rows are copied into slots, 64 of one class after the other, and the lowest free slot is used again, so that memory
// follows the number of examples kept. Kernel rows run over all slots in float64, are computed where they are asked for
// and kept while a budget lasts; a panel in which a slot got another example is computed again when it is needed.
class KeptExamples {
  public:
    KeptExamples(const Kernel& kernel, Index n_features, std::size_t cache_bytes);
    // The same examples in the same slots.
    KeptExamples(const Kernel& kernel, const KeptState& state, std::size_t cache_bytes);

    Index n_features() const { return n_features_; }
    Index n_slots() const { return static_cast<Index>(labels_.size()); }
    Index size() const { return n_kept_; }

    bool is_used(Index slot) const { return label(slot) >= 0; }
    Index label(Index slot) const { return labels_[unsigned_index(slot)]; }
    Index id(Index slot) const { return ids_[unsigned_index(slot)]; }
    double cap(Index slot) const { return caps_[unsigned_index(slot)]; }
    double diagonal(Index slot) const { return diagonals_[unsigned_index(slot)]; }
    // The slot of an example, or -1.
    Index find(Index id) const;

    // The kernel values of a point with all slots; those of free slots mean nothing. Valid until the next call.
    std::span<const double> point_row(const double* x);
    // Takes in the point of the last call of point_row.
    Index insert(const double* x, Index label, double cap, Index id);
    void release(Index slot);

    // The kernel values of a kept example with all slots, or with those of two classes; valid until two other rows
    // were asked for.
    const double* row(Index slot);
    const double* row(Index slot, Index label1, Index label2);

    const CacheCounters& counters() const { return counters_; }
    KeptState state() const;

  private:
    struct CachedRow {
        AlignedVector<double> values;  // empty: not kept
        std::vector<Index> version;    // by panel, that of which the values are; 0: none
        std::list<Index>::iterator age;
    };

    void add_panel(Index label);
    void place(Index slot, const double* x);
    void lengthen_rows();
    CachedRow& cached(Index slot);
    void drop(Index slot);
    bool complete(CachedRow& row, Index slot, const std::vector<Index>& panels);
    void gather(Index slot, double* x) const;
    void evaluate(const double* x, Index panel, double* out) const;

    Kernel kernel_;
    simd::Evaluation evaluation_;
    Index n_features_;
    std::size_t cache_bytes_;
    Index n_kept_ = 0;
    Index row_length_ = 0;                       // whole panels, with room for more
    std::vector<AlignedVector<double>> panels_;  // 64 slots each, feature by feature
    std::vector<std::vector<Index>> panels_of_;  // by class
    std::vector<Index> version_;                 // by panel, 1 and the examples that came into it
    std::vector<Index> labels_, ids_, all_panels_;
    std::vector<double> caps_, diagonals_;
    std::vector<std::set<Index>> free_;  // by class
    std::unordered_map<Index, Index> slot_of_;
    AlignedVector<double> point_;
    std::vector<double> features_;
    std::vector<CachedRow> rows_;
    std::list<Index> ages_;                     // slots whose rows are kept, the last used first
    std::vector<AlignedVector<double>> spare_;  // memory of rows that were dropped
    CacheCounters counters_;
};

// A line of numbers for each slot.
class SlotTable {
  public:
    explicit SlotTable(Index width) : width_(width), ld_(round_up(width, 4)) {}
    Index width() const { return width_; }
    Index ld() const { return ld_; }
    void resize(Index n_slots) { values_.resize(checked_product(n_slots, ld_), 0.0); }
    double* line(Index slot) { return values_.data() + slot * ld_; }
    const double* line(Index slot) const { return values_.data() + slot * ld_; }
    double& at(Index slot, Index column) { return values_[unsigned_index(slot * ld_ + column)]; }
    double at(Index slot, Index column) const { return values_[unsigned_index(slot * ld_ + column)]; }
    // out[c] = sum over the slots of weights[slot] times entry c; out has ld() entries.
    void combine(std::span<const double> weights, double* out) const {
        simd::best_table().combine_lines({weights.data(), nullptr, static_cast<simd::Size>(weights.size())},
                                         values_.data(), ld_, out);
    }

  private:
    Index width_, ld_;
    AlignedVector<double> values_;
};

}  // namespace multimargin
