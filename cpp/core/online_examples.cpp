#include "online_examples.hpp"

#include <algorithm>

namespace multimargin {

using simd::panel_width;

KeptExamples::KeptExamples(const Kernel& kernel, Index n_features, std::size_t cache_bytes)
    : kernel_(kernel),
      evaluation_(kernel.evaluation()),
      n_features_(n_features),
      cache_bytes_(cache_bytes),
      features_(unsigned_index(std::max<Index>(n_features, 0))) {
    if (n_features < 1) throw std::invalid_argument("an example needs at least one feature");
}

KeptExamples::KeptExamples(const Kernel& kernel, const KeptState& state, std::size_t cache_bytes)
    : KeptExamples(kernel, state.n_features, cache_bytes) {
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

void KeptExamples::evaluate(const double* x, Index panel, double* out) const {
    simd::best_table().tile_f64(
        {x, 1, n_features_, panels_[unsigned_index(panel)].data(), out + panel * panel_width, panel_width},
        evaluation_);
}

std::span<const double> KeptExamples::point_row(const double* x) {
    point_.resize(unsigned_index(row_length_));
    for (const Index panel : all_panels_) evaluate(x, panel, point_.data());
    ++counters_.rows_computed;
    return {point_.data(), unsigned_index(n_slots())};
}

void KeptExamples::add_panel(Index label) {
    const Index first = n_slots(), panel = static_cast<Index>(panels_.size());
    const std::size_t n = unsigned_index(first + panel_width), n_labels = unsigned_index(label + 1);
    if (free_.size() < n_labels) free_.resize(n_labels);
    if (panels_of_.size() < n_labels) panels_of_.resize(n_labels);
    panels_.emplace_back(checked_product(panel_width, n_features_), 0.0);
    panels_of_[unsigned_index(label)].push_back(panel);
    all_panels_.push_back(panel);
    version_.push_back(1);
    labels_.resize(n, -1 - label);
    ids_.resize(n, -1);
    caps_.resize(n, 0.0);
    diagonals_.resize(n, 0.0);
    rows_.resize(n);
    for (Index slot = first; slot < n_slots(); ++slot) free_[unsigned_index(label)].insert(slot);
    lengthen_rows();
}

// By a quarter at least, so that rows seldom move.
void KeptExamples::lengthen_rows() {
    if (n_slots() > row_length_) {
        row_length_ = round_up(std::max(n_slots(), row_length_ + row_length_ / 4), panel_width);
        spare_.clear();
        for (const Index slot : ages_) {
            AlignedVector<double>& values = rows_[unsigned_index(slot)].values;
            AlignedVector<double> longer(unsigned_index(row_length_));
            std::copy(values.begin(), values.end(), longer.begin());
            values.swap(longer);
        }
        point_.resize(unsigned_index(row_length_));
    }
    for (const Index slot : ages_) rows_[unsigned_index(slot)].version.resize(panels_.size(), 0);
}

void KeptExamples::place(Index slot, const double* x) {
    double* panel = panels_[unsigned_index(slot / panel_width)].data() + slot % panel_width;
    double square = 0.0;
    for (Index k = 0; k < n_features_; ++k) {
        panel[k * panel_width] = x[k];
        square += x[k] * x[k];
    }
    diagonals_[unsigned_index(slot)] = kernel_.diagonal(kernel_.shift_invariant() ? 0.0 : square);
    slot_of_[id(slot)] = slot;
    ++n_kept_;
}

void KeptExamples::gather(Index slot, double* x) const {
    const double* panel = panels_[unsigned_index(slot / panel_width)].data() + slot % panel_width;
    for (Index k = 0; k < n_features_; ++k) x[k] = panel[k * panel_width];
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
    ++version_[unsigned_index(slot / panel_width)];
    CachedRow& own = cached(slot);
    own.values.swap(point_);
    own.version = version_;
    return slot;
}

void KeptExamples::release(Index slot) {
    const std::size_t s = unsigned_index(slot);
    if (!is_used(slot)) throw std::invalid_argument("a free slot cannot be released");
    if (!rows_[s].values.empty()) drop(slot);
    slot_of_.erase(ids_[s]);
    free_[unsigned_index(labels_[s])].insert(slot);
    labels_[s] = -1 - labels_[s];
    ids_[s] = -1;
    --n_kept_;
}

void KeptExamples::drop(Index slot) {
    CachedRow& row = rows_[unsigned_index(slot)];
    ages_.erase(row.age);
    spare_.push_back(std::move(row.values));
    row.values = {};
}

// The row's place in the cache, for which the one that was not asked for the longest may have to go. A step needs two.
KeptExamples::CachedRow& KeptExamples::cached(Index slot) {
    CachedRow& row = rows_[unsigned_index(slot)];
    if (!row.values.empty()) {
        ages_.splice(ages_.begin(), ages_, row.age);
        return row;
    }
    const std::size_t most = std::max<std::size_t>(4, cache_bytes_ / (unsigned_index(row_length_) * sizeof(double)));
    while (ages_.size() >= most) drop(ages_.back());
    if (spare_.empty()) {
        row.values.resize(unsigned_index(row_length_));
    } else {
        row.values = std::move(spare_.back());
        spare_.pop_back();
    }
    row.version.assign(panels_.size(), 0);
    ages_.push_front(slot);
    row.age = ages_.begin();
    return row;
}

bool KeptExamples::complete(CachedRow& row, Index slot, const std::vector<Index>& panels) {
    bool any = false;
    for (const Index panel : panels) {
        if (row.version[unsigned_index(panel)] == version_[unsigned_index(panel)]) continue;
        if (!any) gather(slot, features_.data());
        any = true;
        evaluate(features_.data(), panel, row.values.data());
        row.version[unsigned_index(panel)] = version_[unsigned_index(panel)];
        if (slot / panel_width == panel) row.values[unsigned_index(slot)] = diagonal(slot);
    }
    return any;
}

const double* KeptExamples::row(Index slot) {
    CachedRow& found = cached(slot);
    ++(complete(found, slot, all_panels_) ? counters_.rows_computed : counters_.hits);
    return found.values.data();
}

const double* KeptExamples::row(Index slot, Index label1, Index label2) {
    CachedRow& found = cached(slot);
    bool computed = false;
    for (const Index label : {label1, label2}) {
        if (label >= static_cast<Index>(panels_of_.size())) continue;
        computed = complete(found, slot, panels_of_[unsigned_index(label)]) || computed;
    }
    ++(computed ? counters_.rows_computed : counters_.hits);
    return found.values.data();
}

KeptState KeptExamples::state() const {
    KeptState state{n_features_, std::vector<double>(checked_product(n_slots(), n_features_), 0.0), labels_, ids_,
                    caps_};
    for (Index slot = 0; slot < n_slots(); ++slot) {
        if (is_used(slot)) gather(slot, state.X.data() + slot * n_features_);
    }
    return state;
}

}  // namespace multimargin
