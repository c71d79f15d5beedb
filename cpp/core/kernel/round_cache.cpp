#include "kernel/round_cache.hpp"

#include <algorithm>

namespace multimargin {

namespace {

using simd::panel_width;

constexpr Index not_kept = -1;

}  // namespace

template <class T>
struct CachedColumns<T>::Rows final : KernelRows {
    explicit Rows(Index n) : KernelRows(n) {}
    Index n_computed() const override { return fresh->size(); }
    std::vector<Index> places;          // where each row is kept, or not_kept
    std::vector<Index> fresh_before;    // how many of the rows before each one are computed in this pass
    std::unique_ptr<KernelRows> fresh;  // those
    Index first_place = 0;              // of the fresh rows; they are kept next to each other ...
    Index n_kept = 0;                   // ... as far as there was room
};

template <class T>
CachedColumns<T>::CachedColumns(std::unique_ptr<KernelColumns<T>> base, Index n_source_rows, double budget_bytes,
                                RawArray<T>& memory)
    : KernelColumns<T>(base->size()),
      base_(std::move(base)),
      memory_(memory),
      place_of_(unsigned_index(n_source_rows), not_kept) {
    const Index width = this->n_panels() * panel_width;
    const double row_bytes = static_cast<double>(width) * sizeof(T);
    capacity_ = std::min<Index>(this->size(), static_cast<Index>(budget_bytes / std::max(row_bytes, 1.0)));
    memory_.reserve(checked_product(capacity_, width));
}

// New rows get places next to each other, as long as there are any; the pass fills them.
template <class T>
std::unique_ptr<KernelRows> CachedColumns<T>::prepare(std::span<const Index> rows) const {
    auto prepared = std::make_unique<Rows>(static_cast<Index>(rows.size()));
    prepared->first_place = used_;
    std::vector<Index> fresh;
    for (const Index row : rows) {
        Index& place = place_of_[unsigned_index(row)];
        prepared->fresh_before.push_back(static_cast<Index>(fresh.size()));
        if (place == not_kept) {
            fresh.push_back(row);
            if (used_ < capacity_) place = used_++;
        }
        prepared->places.push_back(place);
    }
    prepared->fresh_before.push_back(static_cast<Index>(fresh.size()));
    prepared->n_kept = used_ - prepared->first_place;
    prepared->fresh = base_->prepare(fresh);
    return prepared;
}

// Fresh rows go to their places, or to the scratch where there is none.
template <class T>
void CachedColumns<T>::panel_rows(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* scratch,
                                  const T** values) const {
    const Rows& asked = static_cast<const Rows&>(rows);
    const Index begin = asked.fresh_before[unsigned_index(first_row)];
    const Index end = asked.fresh_before[unsigned_index(first_row + n_rows)];
    const Index kept_end = std::clamp(asked.n_kept, begin, end);
    if (begin < kept_end) {
        T* out = place(panel, asked.first_place + begin);
        base_->fill_panel(*asked.fresh, begin, kept_end - begin, panel, out, panel_width);
    }
    if (kept_end < end) base_->fill_panel(*asked.fresh, kept_end, end - kept_end, panel, scratch, panel_width);
    for (Index r = 0; r < n_rows; ++r) {
        const std::size_t at = unsigned_index(first_row + r);
        const bool kept = asked.places[at] != not_kept;
        values[r] = kept ? place(panel, asked.places[at]) : scratch + (asked.fresh_before[at] - kept_end) * panel_width;
    }
}

template <class T>
void CachedColumns<T>::fill_panel(const KernelRows& rows, Index first_row, Index n_rows, Index panel, T* out,
                                  Index ld) const {
    AlignedVector<T> scratch(unsigned_index(n_rows * panel_width));
    std::vector<const T*> values(unsigned_index(n_rows));
    panel_rows(rows, first_row, n_rows, panel, scratch.data(), values.data());
    for (Index r = 0; r < n_rows; ++r) std::copy_n(values[unsigned_index(r)], panel_width, out + r * ld);
}

template class CachedColumns<float>;
template class CachedColumns<double>;

}  // namespace multimargin
