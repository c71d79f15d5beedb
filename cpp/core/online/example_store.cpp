#include "online/example_store.hpp"

#include <algorithm>
#include <functional>

namespace multimargin {

using simd::panel_width;

void Arrivals::make_room(Index n_features, Index most_panels) {
    if (slots_.size() < panels_.size() * unsigned_index(panel_width)) return;
    AlignedVector<double> panel;
    if (static_cast<Index>(panels_.size()) >= most_panels) {
        panel.swap(panels_.front());
        panels_.erase(panels_.begin());
        slots_.erase(slots_.begin(), slots_.begin() + panel_width);
        first_ += panel_width;
    }
    panel.resize(checked_product(panel_width, n_features));
    reserve_ahead(slots_, (panels_.size() + 1) * unsigned_index(panel_width));
    panels_.push_back(std::move(panel));
}

void Arrivals::add(Index slot, const double* x, Index n_features) {
    const Index place = static_cast<Index>(slots_.size()) % panel_width;
    for (Index k = 0; k < n_features; ++k) panels_.back()[unsigned_index(k * panel_width + place)] = x[k];
    slots_.push_back(slot);
}

KeptExamples::KeptExamples(const Kernel& kernel, Index n_features)
    : kernel_(kernel), evaluation_(kernel), n_features_(n_features) {
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
        std::erase(free_[unsigned_index(label)], slot);
        labels_[unsigned_index(slot)] = label;
        ids_[unsigned_index(slot)] = state.ids[unsigned_index(slot)];
        caps_[unsigned_index(slot)] = state.caps[unsigned_index(slot)];
        slot_of_[id(slot)] = slot;
        place(slot, state.X.data() + slot * n_features_);
    }
    for (std::vector<Index>& free : free_) std::make_heap(free.begin(), free.end(), std::greater<>());
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

// All memory first: if an allocation fails, the examples are unchanged.
void KeptExamples::add_panel(Index label) {
    const Index first = n_slots(), panel = static_cast<Index>(panels_.size());
    const std::size_t n = unsigned_index(first + panel_width), n_labels = unsigned_index(label + 1);
    if (free_.size() < n_labels) free_.resize(n_labels);
    if (panels_of_.size() < n_labels) panels_of_.resize(n_labels);
    if (arrivals_.size() < n_labels) arrivals_.resize(n_labels);
    std::vector<Index>& own = panels_of_[unsigned_index(label)];
    std::vector<Index>& free = free_[unsigned_index(label)];
    AlignedVector<double> features(checked_product(panel_width, n_features_), 0.0);
    const std::size_t n_values = checked_product(static_cast<Index>(n), n_features_);
    reserve_ahead(panels_, panels_.size() + 1);
    reserve_ahead(own, own.size() + 1);
    reserve_ahead(free, (own.size() + 1) * unsigned_index(panel_width));  // all its slots may become free
    for (std::vector<Index>* values : {&labels_, &ids_}) reserve_ahead(*values, n);
    for (std::vector<double>* values : {&caps_, &diagonals_}) reserve_ahead(*values, n);
    reserve_ahead(examples_, n_values);
    reserve_ahead(point_, n);
    panels_.push_back(std::move(features));
    own.push_back(panel);
    labels_.resize(n, -1 - label);
    ids_.resize(n, -1);
    caps_.resize(n, 0.0);
    examples_.resize(n_values);
    diagonals_.resize(n, 0.0);
    point_.resize(n, 0.0);
    for (Index slot = first; slot < n_slots(); ++slot) {
        free.push_back(slot);
        std::push_heap(free.begin(), free.end(), std::greater<>());
    }
}

void KeptExamples::place(Index slot, const double* x) {
    double* panel = panels_[unsigned_index(slot / panel_width)].data() + slot % panel_width;
    double square = 0.0;
    for (Index k = 0; k < n_features_; ++k) {
        panel[k * panel_width] = x[k];
        square += x[k] * x[k];
    }
    diagonals_[unsigned_index(slot)] = kernel_.diagonal(square);
    std::copy_n(x, n_features_, examples_.begin() + slot * n_features_);
    ++n_kept_;
}

Index KeptExamples::insert(const double* x, Index label, double cap, Index id) {
    if (label < 0 || find(id) >= 0) throw std::invalid_argument("an example needs a class and a number of its own");
    if (static_cast<Index>(free_.size()) <= label || free_[unsigned_index(label)].empty()) add_panel(label);
    std::vector<Index>& free = free_[unsigned_index(label)];
    Arrivals& arrivals = arrivals_[unsigned_index(label)];
    // Beyond as many panels as the class has it is no dearer to compute these.
    arrivals.make_room(n_features_, static_cast<Index>(panels_of_[unsigned_index(label)].size()) + 1);
    const Index slot = free.front();
    slot_of_.emplace(id, slot);
    std::pop_heap(free.begin(), free.end(), std::greater<>());
    free.pop_back();
    const std::size_t s = unsigned_index(slot);
    labels_[s] = label;
    ids_[s] = id;
    caps_[s] = cap;
    place(slot, x);
    point_[s] = diagonal(slot);
    arrivals.add(slot, x, n_features_);
    return slot;
}

void KeptExamples::release(Index slot) {
    const std::size_t s = unsigned_index(slot);
    if (!is_used(slot)) throw std::invalid_argument("a free slot cannot be released");
    slot_of_.erase(ids_[s]);
    std::vector<Index>& free = free_[unsigned_index(labels_[s])];
    free.push_back(slot);  // there is room for all
    std::push_heap(free.begin(), free.end(), std::greater<>());
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
