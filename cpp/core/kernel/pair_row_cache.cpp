#include "kernel/pair_row_cache.hpp"

#include <algorithm>

namespace multimargin {

template <class T>
SlotRows<T>::SlotRows(const KernelSource& source, std::span<const Index> rows, double budget_bytes,
                      CacheCounters& counters, RowMemory<T>& memory)
    : source_rows_(rows),
      columns_(source.columns<T>(rows)),
      counters_(counters),
      width_(columns_->n_panels() * simd::panel_width),
      keeps_(budget_bytes > 0.0),
      given_(!rows.empty() && columns_->kept_row(rows.front()) != nullptr),
      slot_of_(rows.size(), -1),
      chunks_(memory) {
    const double fitting = budget_bytes / static_cast<double>(width_ * static_cast<Index>(sizeof(T)));
    const double n = static_cast<double>(rows.size());
    capacity_ = std::max<Index>(2, static_cast<Index>(std::min(fitting, n)));
}

template <class T>
Index SlotRows<T>::slot_for(Index example) {
    if (used_ < capacity_) {
        if (used_ % chunk_rows == 0) {
            const std::size_t chunk = unsigned_index(used_ / chunk_rows);
            if (chunk == chunks_.size()) chunks_.emplace_back();
            chunks_[chunk].reserve(unsigned_index(std::min(chunk_rows, capacity_ - used_) * width_));
        }
        example_in_.push_back(example);
        last_use_.push_back(0);
        return used_++;
    }
    const Index slot = std::min_element(last_use_.begin(), last_use_.end()) - last_use_.begin();
    slot_of_[unsigned_index(example_in_[unsigned_index(slot)])] = -1;
    example_in_[unsigned_index(slot)] = example;
    return slot;
}

template <class T>
const T* SlotRows<T>::row(Index example) {
    if (given_) {
        ++counters_.hits;
        return columns_->kept_row(source_rows_[unsigned_index(example)]);
    }
    Index slot = slot_of_[unsigned_index(example)];
    if (slot < 0 || !keeps_) {
        slot = slot_for(example);
        slot_of_[unsigned_index(example)] = static_cast<int>(slot);
        columns_->fill(source_rows_.subspan(unsigned_index(example), 1), place(slot), width_);
        ++counters_.rows_computed;
    } else {
        ++counters_.hits;
    }
    last_use_[unsigned_index(slot)] = ++clock_;
    return place(slot);
}

template class SlotRows<float>;
template class SlotRows<double>;

}  // namespace multimargin
