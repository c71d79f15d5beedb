#include "online_examples.hpp"

#include <algorithm>

namespace multimargin {

using simd::panel_width;

void Arrivals::add(Index slot, const double* x, Index n_features, Index most_panels) {
    const Index place = static_cast<Index>(slots_.size()) % panel_width;
    if (place == 0) {
        AlignedVector<double> panel;
        if (static_cast<Index>(panels_.size()) >= most_panels) {
            panel.swap(panels_.front());
            panels_.erase(panels_.begin());
            slots_.erase(slots_.begin(), slots_.begin() + panel_width);
            first_ += panel_width;
        }
        panel.resize(checked_product(panel_width, n_features));
        panels_.push_back(std::move(panel));
    }
    for (Index k = 0; k < n_features; ++k) panels_.back()[unsigned_index(k * panel_width + place)] = x[k];
    slots_.push_back(slot);
}

KeptExamples::KeptExamples(const Kernel& kernel, Index n_features)
    : kernel_(kernel), evaluation_(kernel.evaluation()), n_features_(n_features) {
    if (n_features < 1) throw std::invalid_argument("an example needs at least one feature");
}

KeptExamples::KeptExamples(const Kernel& kernel, const KeptState& state) : KeptExamples(kernel, state.n_features) {
    const Index n = state.n_slots();
    if (static_cast<Index>(state.ids.size()) != n || static_cast<Index>(state.caps.size()) != n ||
        state.X.size() != checked_product(n, n_features_) || n % panel_width != 0) {
        throw std::invalid_argument("a state needs one row, label, number and bound for each slot");
    }
    for (Index slot = 0; slot < n; ++slot) {
        const Index label = state.labels[unsigned_index(slot)], panel_label = label < 0 ? -1 - label : label;
        if (slot % panel_width == 0) add_panel(panel_label);
        if (labels_[unsigned_index(slot)] != -1 - panel_label) {
            throw std::invalid_argument("slots of two classes lie in one panel");
        }
        if (label < 0) continue;
        free_[unsigned_index(label)].erase(slot);
        labels_[unsigned_index(slot)] = label;
        ids_[unsigned_index(slot)] = state.ids[unsigned_index(slot)];
        caps_[unsigned_index(slot)] = state.caps[unsigned_index(slot)];
        place(slot, state.X.data() + slot * n_features_);
    }
}

Index KeptExamples::find(Index id) const {
    const auto found = slot_of_.find(id);
    return found == slot_of_.end() ? -1 : found->second;
}

void KeptExamples::evaluate(const double* x, const double* panel, double* out, Index first, Index last) const {
    simd::best_table().tile_f64({x, 1, n_features_, panel, out, panel_width, first, last}, evaluation_);
}

void KeptExamples::evaluate_point(const double* x, Index first_panel, Index last_panel) {
    const auto tile = simd::best_table().tile_f64;
    for (Index panel = first_panel; panel < last_panel; ++panel) {
        tile({x, 1, n_features_, panel_data(panel), point_.data() + panel * panel_width, panel_width}, evaluation_);
    }
}

std::span<const double> KeptExamples::point_row(const double* x) {
    evaluate_point(x, 0, n_panels());
    return point();
}

void KeptExamples::add_panel(Index label) {
    const Index first = n_slots(), panel = static_cast<Index>(panels_.size());
    const std::size_t n = unsigned_index(first + panel_width), n_labels = unsigned_index(label + 1);
    if (free_.size() < n_labels) free_.resize(n_labels);
    if (panels_of_.size() < n_labels) panels_of_.resize(n_labels);
    panels_.emplace_back(checked_product(panel_width, n_features_), 0.0);
    if (arrivals_.size() < n_labels) arrivals_.resize(n_labels);
    panels_of_[unsigned_index(label)].push_back(panel);
    labels_.resize(n, -1 - label);
    ids_.resize(n, -1);
    caps_.resize(n, 0.0);
    examples_.resize(checked_product(n_slots(), n_features_));
    diagonals_.resize(n, 0.0);
    point_.resize(n, 0.0);
    for (Index slot = first; slot < n_slots(); ++slot) free_[unsigned_index(label)].insert(slot);
}

void KeptExamples::place(Index slot, const double* x) {
    double* panel = panels_[unsigned_index(slot / panel_width)].data() + slot % panel_width;
    double square = 0.0;
    for (Index k = 0; k < n_features_; ++k) {
        panel[k * panel_width] = x[k];
        square += x[k] * x[k];
    }
    diagonals_[unsigned_index(slot)] = kernel_.diagonal(kernel_.shift_invariant() ? 0.0 : square);
    std::copy_n(x, n_features_, examples_.begin() + slot * n_features_);
    slot_of_[id(slot)] = slot;
    ++n_kept_;
}

Index KeptExamples::insert(const double* x, Index label, double cap, Index id) {
    if (label < 0 || find(id) >= 0) throw std::invalid_argument("an example needs a class and a number of its own");
    if (static_cast<Index>(free_.size()) <= label || free_[unsigned_index(label)].empty()) add_panel(label);
    std::set<Index>& free = free_[unsigned_index(label)];
    const Index slot = *free.begin();
    free.erase(free.begin());
    const std::size_t s = unsigned_index(slot);
    labels_[s] = label;
    ids_[s] = id;
    caps_[s] = cap;
    place(slot, x);
    point_[s] = diagonal(slot);
    // Beyond as many panels as the class has it is no dearer to compute these.
    arrivals_[unsigned_index(label)].add(slot, x, n_features_,
                                         static_cast<Index>(panels_of_[unsigned_index(label)].size()) + 1);
    return slot;
}

void KeptExamples::release(Index slot) {
    const std::size_t s = unsigned_index(slot);
    if (!is_used(slot)) throw std::invalid_argument("a free slot cannot be released");
    slot_of_.erase(ids_[s]);
    free_[unsigned_index(labels_[s])].insert(slot);
    labels_[s] = -1 - labels_[s];
    ids_[s] = -1;
    --n_kept_;
}

KeptState KeptExamples::state() const {
    KeptState state{n_features_, std::vector<double>(checked_product(n_slots(), n_features_), 0.0), labels_, ids_,
                    caps_};
    for (Index slot = 0; slot < n_slots(); ++slot) {
        if (is_used(slot)) std::copy_n(example(slot), n_features_, state.X.begin() + slot * n_features_);
    }
    return state;
}

}  // namespace multimargin
