#include "online/class_rows.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace multimargin {

using simd::panel_width;

namespace {

// A step needs two rows at once, and the search for the next one two others.
constexpr Index rows_of_step = 4;
constexpr Index first_rows = 16;
// Memory is allocated in a large piece where there is much of it, so that rows seldom move to another; what is not used
// is not there. But not by each of many machines.
constexpr std::size_t least_piece = std::size_t{1} << 17, largest_piece = std::size_t{1} << 22, share_of_all = 8;

}  // namespace

Index RowBlock::most_rows(Index length) const {
    return std::max(rows_of_step, static_cast<Index>(most_values_ / unsigned_index(length)));
}

// Memory for so many rows of this length; those that are there keep what they have.
void RowBlock::reallocate(Index n_rows, Index length) {
    RawMemory memory(checked_product(n_rows, length) * sizeof(double));
    for (Index i = 0; i < n_rows_; ++i) {
        std::copy_n(row(i), length_, static_cast<double*>(memory.get()) + i * length);
    }
    memory_ = std::move(memory);
    n_allocated_ = n_rows * length;
}

// By a quarter at least, so that rows seldom move; twofold as long as memory is plenty.
void RowBlock::lengthen(Index n_values) {
    if (n_values <= length_) return;
    const Index before = length_;
    const bool plenty = checked_product(32 * before, n_values) <= most_values_;
    const Index length = round_up(std::max(n_values, before + (plenty ? before : before / 4)), panel_width);
    n_rows_ = std::min(n_rows_, most_rows(length));
    // Near the limit there is no room for two blocks: rows go that do not fit in this one.
    const bool near_limit = unsigned_index(n_allocated_) > most_values_ / 2;
    if (near_limit && n_allocated_ / length >= rows_of_step) n_rows_ = std::min(n_rows_, n_allocated_ / length);
    if (n_rows_ * length > n_allocated_) {
        reallocate(n_rows_, length);
    } else {  // the last one first: each moves away from those before it
        for (Index i = n_rows_; i-- > 0;) std::copy_backward(row(i), row(i) + before, base() + i * length + before);
    }
    length_ = length;
    for (Index i = 0; i < n_rows_; ++i) std::fill_n(row(i) + before, length - before, 0.0);
}

void RowBlock::reserve() {
    if (length_ == 0) return;
    const Index most = most_rows(length_);
    if (n_allocated_ >= length_ * std::min(most, n_rows_ + rows_of_step)) return;
    const std::size_t piece = std::clamp(most_values_ / share_of_all, least_piece, largest_piece);
    const Index rows = static_cast<Index>(piece / unsigned_index(length_));
    reallocate(std::min(most, std::max({first_rows, rows, 2 * n_rows_})), length_);
}

bool RowBlock::add(Index n_values) {
    if (n_rows_ >= most_rows(length_)) return false;
    std::fill(row(n_rows_) + n_values, row(n_rows_) + length_, 0.0);
    ++n_rows_;
    return true;
}

void MemberRows::make_ready(const KeptExamples& kept) {
    cover(kept);
    block_.reserve();
}

void MemberRows::cover(const KeptExamples& kept) {
    const Index before = n_panels();
    for (Index panel = static_cast<Index>(panel_at_.size()); panel < kept.n_panels(); ++panel) {
        const Index label = kept.panel_label(panel * panel_width);
        const bool known = std::find(labels_.begin(), labels_.end(), label) != labels_.end();
        panel_at_.push_back(known ? n_panels() : -1);
        if (known) starts_.push_back(panel * panel_width);
    }
    if (n_panels() == before) return;
    row_at_.resize(unsigned_index(n_places()), -1);
    known_.resize(checked_product(n_places(), n_labels()), 0);
    block_.lengthen(n_places());
    for (Index i = block_.size(); i < static_cast<Index>(owner_.size()); ++i) {
        if (owner_[unsigned_index(i)] >= 0) row_at_[unsigned_index(owner_[unsigned_index(i)])] = -1;
    }
    owner_.resize(unsigned_index(block_.size()));
    asked_for_.resize(unsigned_index(block_.size()));
    std::erase_if(free_, [&](Index i) { return i >= block_.size(); });
}

void MemberRows::forget(Index slot) {
    const Index own = place(slot);
    if (own < 0 || row_at_[unsigned_index(own)] < 0) return;
    const Index i = std::exchange(row_at_[unsigned_index(own)], -1);
    owner_[unsigned_index(i)] = -1;
    free_.push_back(i);
}

// A row of the block without an owner. Beyond the limit one is dropped that was not asked for since the last time
// around (second chance). A step needs the last two.
Index MemberRows::free_row() {
    if (!free_.empty()) {
        const Index i = free_.back();
        free_.pop_back();
        return i;
    }
    if (block_.add(n_places())) {  // all places get their values at once
        owner_.push_back(-1);
        asked_for_.push_back(false);
        return block_.size() - 1;
    }
    while (true) {
        hand_ = hand_ + 1 < block_.size() ? hand_ + 1 : 0;
        const std::size_t i = unsigned_index(hand_);
        const bool asked_for = std::exchange(asked_for_[i], false);
        if (asked_for || owner_[i] == last_[0] || owner_[i] == last_[1]) continue;
        row_at_[unsigned_index(owner_[i])] = -1;
        return hand_;
    }
}

// Values for all places.
double* MemberRows::cached(Index place) {
    Index& i = row_at_[unsigned_index(place)];
    if (i < 0) {
        i = free_row();
        owner_[unsigned_index(i)] = place;
        std::fill_n(known_.begin() + place * n_labels(), n_labels(), 0);
    }
    asked_for_[unsigned_index(i)] = true;
    if (place != last_[0]) last_ = {place, last_[0]};
    return block_.row(i);
}

// The values with the arrivals that the row does not know yet.
void MemberRows::add_arrivals(const KeptExamples& kept, double* values, Index own, Index k) {
    const Arrivals& arrivals = kept.arrivals(labels_[unsigned_index(k)]);
    alignas(alignment) std::array<double, panel_width> computed;
    Index arrival = known(own, k) - 1;
    while (arrival < arrivals.count()) {
        const Index before = arrival / panel_width * panel_width;  // those of the panels before
        const Index end = std::min<Index>(before + panel_width, arrivals.count());
        kept.evaluate(kept.example(slot(own)), arrivals.panel(arrival), computed.data(), arrival - before,
                      end - before);
        for (; arrival < end; ++arrival) {  // in their order: the last one in a slot counts
            values[place(arrivals.slot(arrival))] = computed[unsigned_index(arrival - before)];
        }
    }
}

// Computes what a row lacks of a class; false when that is nothing.
bool MemberRows::complete(const KeptExamples& kept, double* values, Index own, Index k) {
    const Index label = labels_[unsigned_index(k)];
    if (label >= kept.n_labels()) return false;
    const Arrivals& arrivals = kept.arrivals(label);
    const Index now = 1 + arrivals.count(), before = known(own, k);
    if (before == now) return false;
    const std::vector<Index>& panels = kept.panels_of(label);
    const Index lacking = round_up(now - 1, panel_width) - (before - 1) / panel_width * panel_width;
    const bool in_log = before > 0 && before - 1 >= arrivals.first();
    if (in_log && lacking < static_cast<Index>(panels.size()) * panel_width) {
        add_arrivals(kept, values, own, k);
    } else {
        for (const Index panel : panels) {
            kept.evaluate(kept.example(slot(own)), kept.panel_data(panel),
                          values + panel_at_[unsigned_index(panel)] * panel_width);
        }
    }
    values[own] = kept.diagonal(slot(own));
    known(own, k) = now;
    return true;
}

const double* MemberRows::row(const KeptExamples& kept, Index own) {
    double* values = cached(own);
    bool computed = false;
    for (Index k = 0; k < n_labels(); ++k) computed = complete(kept, values, own, k) || computed;
    ++(computed ? counters_.rows_computed : counters_.hits);
    return values;
}

const double* MemberRows::newest_row(const KeptExamples& kept, Index own) {
    double* values = cached(own);
    for (Index panel = 0; panel < n_panels(); ++panel) {
        std::copy_n(kept.point().data() + starts_[unsigned_index(panel)], panel_width, values + panel * panel_width);
    }
    for (Index k = 0; k < n_labels(); ++k) {
        const Index label = labels_[unsigned_index(k)];
        if (label < kept.n_labels()) known(own, k) = 1 + kept.arrivals(label).count();
    }
    ++counters_.hits;
    return values;
}

}  // namespace multimargin
