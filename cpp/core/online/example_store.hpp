// The examples that an online machine keeps, and the kernel values among them.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "base/memory.hpp"
#include "base/types.hpp"
#include "kernel/kernel_source.hpp"

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
    // Room for one more, in no more than so many panels.
    void make_room(Index n_features, Index most_panels);
    // Where room was made.
    void add(Index slot, const double* x, Index n_features);

  private:
    Index first_ = 0;  // a multiple of 64
    std::vector<AlignedVector<double>> panels_;
    std::vector<Index> slots_;
};

// Rows are copied into slots, 64 of one class after the other, and the lowest free slot is used again, so that memory
// follows the number of examples kept.
class KeptExamples {
  public:
    KeptExamples(const Kernel& kernel, Index n_features);
    // The same examples in the same slots.
    KeptExamples(const Kernel& kernel, const KeptState& state);

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
    // The slot of an example, or -1.
    Index find(Index id) const;

    // The kernel values of a point with all slots; those of free slots mean nothing. Valid until the next call.
    std::span<const double> point_row(const double* x);
    // The same for some panels only: several threads may share a point among them.
    void evaluate_point(const double* x, Index first_panel, Index last_panel);
    std::span<const double> point() const { return {point_.data(), unsigned_index(n_slots())}; }
    // Takes in the point of the last call of point_row. Without memory for it nothing changes.
    Index insert(const double* x, Index label, double cap, Index id);
    void release(Index slot);

    // What kernel rows are made of.
    Index n_labels() const { return static_cast<Index>(arrivals_.size()); }
    Index n_panels() const { return static_cast<Index>(panels_.size()); }
    const Arrivals& arrivals(Index label) const { return arrivals_[unsigned_index(label)]; }
    const std::vector<Index>& panels_of(Index label) const { return panels_of_[unsigned_index(label)]; }
    // The features of an example, and of the 64 of a panel, feature by feature.
    const double* example(Index slot) const { return examples_.data() + slot * n_features_; }
    const double* panel_data(Index panel) const { return panels_[unsigned_index(panel)].data(); }
    // The kernel values of a point with the examples of a panel, with some of them at least.
    void evaluate(const double* x, const double* panel, double* out, Index first = 0,
                  Index last = simd::panel_width) const;

    KeptState state() const;

  private:
    void add_panel(Index label);
    void place(Index slot, const double* x);

    Kernel kernel_;
    simd::Evaluation evaluation_;
    Index n_features_;
    Index n_kept_ = 0;
    std::vector<AlignedVector<double>> panels_;  // 64 slots each, feature by feature
    std::vector<std::vector<Index>> panels_of_;  // by class
    std::vector<Arrivals> arrivals_;             // by class
    std::vector<Index> labels_, ids_;
    std::vector<double> caps_, diagonals_;
    std::vector<std::vector<Index>> free_;  // by class, the lowest on top of the heap
    std::unordered_map<Index, Index> slot_of_;
    AlignedVector<double> point_;   // the row of the last point
    std::vector<double> examples_;  // by slot, once more, so that a row's own features lie together
};

// A line of numbers for each slot.
class SlotTable {
  public:
    explicit SlotTable(Index width) : width_(width), ld_(round_up(width, 4)) {}
    Index width() const { return width_; }
    Index ld() const { return ld_; }
    void resize(Index n_slots) { values_.resize(checked_product(n_slots, ld_), 0.0); }
    Index n_slots() const { return ld_ == 0 ? 0 : static_cast<Index>(values_.size()) / ld_; }
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
