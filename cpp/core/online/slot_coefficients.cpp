#include "online/slot_coefficients.hpp"

#include <algorithm>
#include <array>

namespace multimargin {

namespace {

// Numbers of a line that the vector code adds while a list yields one.
constexpr Index numbers_for_one = 5;

// In chains that do not wait for each other.
double sum_of_list(const int* slots, const double* values, std::size_t n, const double* weights) {
    std::array<double, 4> sums{};
    std::size_t e = 0;
    for (; e + 4 <= n; e += 4) {
        for (std::size_t u = 0; u < 4; ++u) sums[u] += values[e + u] * weights[slots[e + u]];
    }
    for (; e < n; ++e) sums[0] += values[e] * weights[slots[e]];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

void SlotCoefficients::set(Index slot, Index column, double value) {
    const double before = table_.at(slot, column);
    table_.at(slot, column) = value;
    if (few_columns() || (value == 0.0 && before == 0.0)) return;
    List& list = lists_[unsigned_index(column)];
    const auto found = std::lower_bound(list.slots.begin(), list.slots.end(), static_cast<int>(slot));
    const auto place = list.values.begin() + (found - list.slots.begin());
    if (before == 0.0) {
        list.values.insert(place, value);
        list.slots.insert(found, static_cast<int>(slot));
        ++n_nonzero_;
    } else if (value == 0.0) {
        list.values.erase(place);
        list.slots.erase(found);
        --n_nonzero_;
    } else {
        *place = value;
    }
}

void SlotCoefficients::combine(std::span<const double> weights, double* out) const {
    if (few_columns() || n_nonzero_ * numbers_for_one > static_cast<Index>(weights.size()) * ld()) {
        table_.combine(weights, out);
        return;
    }
    for (const List& list : lists_) {
        *out++ = sum_of_list(list.slots.data(), list.values.data(), list.slots.size(), weights.data());
    }
}

}  // namespace multimargin
