#include "kernel/row_cache.hpp"

#include <algorithm>

namespace multimargin {

template <class T>
RowCache<T>::RowCache(std::unique_ptr<KernelColumns<T>> columns, std::size_t budget_bytes, CacheCounters& counters,
                      Index least)
    : columns_(std::move(columns)), budget_(budget_bytes), counters_(counters), least_(least) {
    set_capacity();
}

template <class T>
void RowCache<T>::set_capacity() {
    const std::size_t bytes = std::max<std::size_t>(unsigned_index(width()) * sizeof(T), 1);
    capacity_ = std::max(least_, static_cast<Index>(budget_ / bytes));
}

template <class T>
void RowCache<T>::forget() {
    rows_.clear();
    ages_.clear();
}

template <class T>
const T* RowCache<T>::row(Index example) {
    if (const auto found = rows_.find(example); found != rows_.end()) {
        ++counters_.hits;
        ages_.splice(ages_.begin(), ages_, found->second.age);
        return found->second.values.data();
    }
    AlignedVector<T> values;
    if (size() >= capacity_) {  // the oldest row's memory serves the new one
        const auto oldest = rows_.find(ages_.back());
        values = std::move(oldest->second.values);
        rows_.erase(oldest);
        ages_.pop_back();
    } else {
        values.resize(unsigned_index(width()));
    }
    columns_->fill(std::span<const Index>(&example, 1), values.data(), width());
    ++counters_.rows_computed;
    ages_.push_front(example);
    const auto placed = rows_.emplace(example, Entry{std::move(values), ages_.begin()}).first;
    return placed->second.values.data();
}

template <class T>
void RowCache<T>::restrict_to(std::unique_ptr<KernelColumns<T>> columns, std::span<const Index> keep) {
    columns_ = std::move(columns);
    set_capacity();
    for (auto& [example, entry] : rows_) {
        AlignedVector<T> shorter(unsigned_index(width()));
        for (std::size_t j = 0; j < keep.size(); ++j) shorter[j] = entry.values[unsigned_index(keep[j])];
        entry.values = std::move(shorter);
    }
}

template class RowCache<float>;
template class RowCache<double>;

}  // namespace multimargin
