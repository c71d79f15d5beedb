// The examples that an online machine keeps, and the kernel values among them.
#pragma once

#include <array>
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

// The last examples of one class in the order in which they came. What a kernel row lacks are these, and they lie side
// by side here, whereas their slots are spread over all panels of the class.
class Arrivals {
  public:
    // How many ever came, and the first that is still here.
    Index count() const { return first_ + static_cast<Index>(slots_.size()); }
    Index first() const { return first_; }
    // The panel with an arrival, and the slot that it went to.
    const double* panel(Index arrival) const {
        return panels_[unsigned_index((arrival - first_) / simd::panel_width)].data();
    }
    Index slot(Index arrival) const { return slots_[unsigned_index(arrival - first_)]; }
    // Keeps no more than so many panels.
    void add(Index slot, const double* x, Index n_features, Index most_panels);

  private:
    Index first_ = 0;  // a multiple of 64
    std::vector<AlignedVector<double>> panels_;
    std::vector<Index> slots_;
};

// Memory for kernel rows of one length, in large pieces: rows come and go by the thousand, their pages stay.
class RowPool {
  public:
    explicit RowPool(Index length = 0) : length_(length) {}
    RowPool(RowPool&&) = default;
    RowPool& operator=(RowPool&&) = default;
    Index length() const { return length_; }
    std::size_t row_bytes() const { return unsigned_index(length_) * sizeof(double); }
    // Finite numbers: zeros, or what a row had that was given back.
    double* take();
    void give(double* row) { free_.push_back(row); }

  private:
    Index length_;  // a multiple of 64
    std::vector<RawMemory> pieces_;
    std::vector<double*> free_;  // given back
    double* fresh_ = nullptr;    // never used, at the end of the last piece
    std::size_t n_fresh_ = 0;
};

// Rows are copied into slots, 64 of one class after the other, and the lowest free slot is used again, so that memory
// follows the number of examples kept. Kernel rows run over all slots in float64, are computed where they are asked for
// and kept while a budget lasts; what a kept row lacks of a class is computed from the class's last arrivals.
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
    // The class that a slot holds or waits for; all of a panel have the same.
    Index panel_label(Index slot) const { return label(slot) < 0 ? -1 - label(slot) : label(slot); }
    Index id(Index slot) const { return ids_[unsigned_index(slot)]; }
    double cap(Index slot) const { return caps_[unsigned_index(slot)]; }
    double diagonal(Index slot) const { return diagonals_[unsigned_index(slot)]; }
    // The features of an example, and of the 64 of a panel, feature by feature.
    const double* example(Index slot) const { return examples_.data() + slot * n_features_; }
    const double* panel_data(Index panel) const { return panels_[unsigned_index(panel)].data(); }
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

    // From now on rows go as others come.
    void keep_no_rows() { cache_bytes_ = 0; }

    const CacheCounters& counters() const { return counters_; }
    KeptState state() const;

  private:
    struct CachedRow {
        double* values = nullptr;  // not kept
        std::vector<Index> known;  // by class, how many arrivals the values have, and 1; 0: none at all
        bool asked_for = false;    // since the search for a row to drop came by
    };

    void add_panel(Index label);
    void place(Index slot, const double* x);
    void lengthen_rows();
    void make_room();
    CachedRow& cached(Index slot);
    void drop(Index slot);
    bool complete(CachedRow& row, Index slot, Index label);
    void add_arrivals(CachedRow& row, Index slot, Index label);
    Index state_of(Index label) const { return 1 + arrivals_[unsigned_index(label)].count(); }
    Index n_labels() const { return static_cast<Index>(arrivals_.size()); }
    void evaluate(const double* x, const double* panel, double* out) const;

    Kernel kernel_;
    simd::Evaluation evaluation_;
    Index n_features_;
    std::size_t cache_bytes_;
    Index n_kept_ = 0;
    std::vector<AlignedVector<double>> panels_;  // 64 slots each, feature by feature
    std::vector<std::vector<Index>> panels_of_;  // by class
    std::vector<Arrivals> arrivals_;             // by class
    std::vector<Index> labels_, ids_;
    std::vector<double> caps_, diagonals_;
    std::vector<std::set<Index>> free_;  // by class
    std::unordered_map<Index, Index> slot_of_;
    RowPool pool_;                  // of rows with whole panels, and room for more
    double* point_ = nullptr;       // the row of the last point
    std::vector<double> examples_;  // by slot, once more, so that a row's own features lie together
    std::vector<CachedRow> rows_;
    Index n_rows_ = 0, hand_ = 0;        // rows that are kept; where the search for one to drop goes on
    std::array<Index, 2> last_{-1, -1};  // slots whose rows were asked for last
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
