#include "online_examples.hpp"

#include <algorithm>
#include <array>

namespace multimargin {

using simd::panel_width;

namespace {

// Rows of up to so many slots double when they grow: all of them together are small.
constexpr Index short_row = 2048;

// Memory is asked for in pieces of this many rows at first, then of twice as many, up to this size.
constexpr std::size_t first_piece = 16, largest_piece = std::size_t{1} << 23;

}  // namespace

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

double* RowPool::take() {
    if (!free_.empty()) {
        double* row = free_.back();
        free_.pop_back();
        return row;
    }
    if (n_fresh_ == 0) {
        const std::size_t most = std::max<std::size_t>(1, largest_piece / row_bytes());
        n_fresh_ = std::min(most, first_piece << std::min<std::size_t>(pieces_.size(), 20));
        pieces_.emplace_back(n_fresh_ * row_bytes());
        fresh_ = static_cast<double*>(pieces_.back().get());
    }
    double* row = fresh_;
    std::fill_n(row, length_, 0.0);
    fresh_ += length_;
    --n_fresh_;
    return row;
}

KeptExamples::KeptExamples(const Kernel& kernel, Index n_features, std::size_t cache_bytes)
    : kernel_(kernel), evaluation_(kernel.evaluation()), n_features_(n_features), cache_bytes_(cache_bytes) {
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

void KeptExamples::evaluate(const double* x, const double* panel, double* out) const {
    simd::best_table().tile_f64({x, 1, n_features_, panel, out, panel_width}, evaluation_);
}

std::span<const double> KeptExamples::point_row(const double* x) {
    for (std::size_t p = 0; p < panels_.size(); ++p) {
        evaluate(x, panels_[p].data(), point_ + p * unsigned_index(panel_width));
    }
    ++counters_.rows_computed;
    return {point_, unsigned_index(n_slots())};
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
    rows_.resize(n);
    for (Index slot = first; slot < n_slots(); ++slot) free_[unsigned_index(label)].insert(slot);
    if (n_slots() > pool_.length()) lengthen_rows();
}

// By a quarter at least, short rows by more, so that they seldom move. Rows that would not fit in the cache together
// with their copies are dropped.
void KeptExamples::lengthen_rows() {
    const Index before = pool_.length(), more = before < short_row ? before : before / 4;
    RowPool longer(round_up(std::max(n_slots(), before + more), panel_width));
    const std::size_t bytes = pool_.row_bytes() + longer.row_bytes();
    const bool fit = unsigned_index(n_rows_) * bytes <= cache_bytes_;
    const auto move_row = [&](double*& row) {
        double* moved = longer.take();
        std::copy_n(row, before, moved);
        row = moved;
    };
    for (CachedRow& row : rows_) {
        if (row.values == nullptr) continue;
        if (fit) {
            move_row(row.values);
        } else {
            row.values = nullptr;
            --n_rows_;
        }
    }
    point_ != nullptr ? move_row(point_) : void(point_ = longer.take());
    pool_ = std::move(longer);
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
    CachedRow& own = cached(slot);
    std::swap(own.values, point_);
    for (Index c = 0; c < n_labels(); ++c) own.known[unsigned_index(c)] = state_of(c);
    return slot;
}

void KeptExamples::release(Index slot) {
    const std::size_t s = unsigned_index(slot);
    if (!is_used(slot)) throw std::invalid_argument("a free slot cannot be released");
    if (rows_[s].values != nullptr) drop(slot);
    slot_of_.erase(ids_[s]);
    free_[unsigned_index(labels_[s])].insert(slot);
    labels_[s] = -1 - labels_[s];
    ids_[s] = -1;
    --n_kept_;
}

void KeptExamples::drop(Index slot) {
    CachedRow& row = rows_[unsigned_index(slot)];
    pool_.give(row.values);
    row.values = nullptr;
    --n_rows_;
}

// Drops a row that was not asked for since the last time around (second chance). A step needs the last two.
void KeptExamples::make_room() {
    const Index most = std::max<Index>(4, static_cast<Index>(cache_bytes_ / pool_.row_bytes()));
    while (n_rows_ >= most) {
        hand_ = hand_ + 1 < n_slots() ? hand_ + 1 : 0;
        CachedRow& row = rows_[unsigned_index(hand_)];
        const bool needed = hand_ == last_[0] || hand_ == last_[1] || row.values == nullptr;
        if (!needed && !row.asked_for) drop(hand_);
        row.asked_for = false;
    }
}

// The row's place in the cache.
KeptExamples::CachedRow& KeptExamples::cached(Index slot) {
    CachedRow& row = rows_[unsigned_index(slot)];
    if (row.values == nullptr) {
        make_room();
        row.values = pool_.take();
        row.known.assign(arrivals_.size(), 0);
        ++n_rows_;
    }
    row.known.resize(arrivals_.size(), 0);
    row.asked_for = true;
    if (slot != last_[0]) last_ = {slot, last_[0]};
    return row;
}

// The values with the arrivals that the row does not know yet.
void KeptExamples::add_arrivals(CachedRow& row, Index slot, Index label) {
    const Arrivals& arrivals = arrivals_[unsigned_index(label)];
    alignas(alignment) std::array<double, panel_width> values;
    Index arrival = row.known[unsigned_index(label)] - 1;
    while (arrival < arrivals.count()) {
        evaluate(example(slot), arrivals.panel(arrival), values.data());
        const Index end = std::min<Index>(arrival / panel_width * panel_width + panel_width, arrivals.count());
        for (; arrival < end; ++arrival) {  // in their order: the last one in a slot counts
            row.values[arrivals.slot(arrival)] = values[unsigned_index(arrival % panel_width)];
        }
    }
}

// Computes what a row lacks of a class; false when that is nothing.
bool KeptExamples::complete(CachedRow& row, Index slot, Index label) {
    Index& known = row.known[unsigned_index(label)];
    const Index now = state_of(label);
    if (known == now) return false;
    const std::vector<Index>& panels = panels_of_[unsigned_index(label)];
    const Index lacking = round_up(now - 1, panel_width) - (known - 1) / panel_width * panel_width;
    const bool in_log = known > 0 && known - 1 >= arrivals_[unsigned_index(label)].first();
    if (in_log && lacking < static_cast<Index>(panels.size()) * panel_width) {
        add_arrivals(row, slot, label);
    } else {
        for (const Index panel : panels) {
            evaluate(example(slot), panel_data(panel), row.values + panel * panel_width);
        }
    }
    row.values[slot] = diagonal(slot);
    known = now;
    return true;
}

const double* KeptExamples::row(Index slot) {
    CachedRow& found = cached(slot);
    bool computed = false;
    for (Index label = 0; label < n_labels(); ++label) computed = complete(found, slot, label) || computed;
    ++(computed ? counters_.rows_computed : counters_.hits);
    return found.values;
}

const double* KeptExamples::row(Index slot, Index label1, Index label2) {
    CachedRow& found = cached(slot);
    bool computed = false;
    for (const Index label : {label1, label2}) {
        if (label < n_labels()) computed = complete(found, slot, label) || computed;
    }
    ++(computed ? counters_.rows_computed : counters_.hits);
    return found.values;
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
