#include "solvers/binary/smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace multimargin {

namespace {

auto choose_second(const simd::Table& table, const simd::PairScan<float>& scan) {
    return table.choose_second_f32(scan);
}
auto choose_second(const simd::Table& table, const simd::PairScan<double>& scan) {
    return table.choose_second_f64(scan);
}
auto update_pair(const simd::Table& table, const simd::PairUpdate<float>& update) {
    return table.update_pair_f32(update);
}
auto update_pair(const simd::Table& table, const simd::PairUpdate<double>& update) {
    return table.update_pair_f64(update);
}

}  // namespace

template <class T>
void BinaryDescent<T>::load(const BinaryProblem& problem, std::span<const Index> examples,
                            std::span<const double> variables, std::span<const double> errors) {
    n_ = static_cast<Index>(examples.size());
    padded_ = round_up(n_, simd::panel_width);
    const std::size_t n = unsigned_index(n_), padded = unsigned_index(padded_);
    variables_.resize(n);
    caps_.resize(n);
    ridges_.resize(n);
    diagonals_.resize(n);
    errors_.assign(padded, T(0));
    bends_.assign(padded, T(1));
    outside_up_.assign(padded, static_cast<T>(simd::pair_outside));
    outside_low_.assign(padded, static_cast<T>(-simd::pair_outside));
    n_positive_ = 0;
    for (std::size_t k = 0; k < n; ++k) {
        const Index e = examples[k];
        n_positive_ += e < problem.n_positive() ? 1 : 0;
        variables_[k] = variables[k];
        errors_[k] = static_cast<T>(errors[k]);
        caps_[k] = problem.cap(e);
        ridges_[k] = problem.ridge(e);
        diagonals_[k] = problem.diagonal(e);
        bends_[k] = static_cast<T>(diagonals_[k]);
    }
    mark(0, n_);
    violation_ = infinity;
    gain_ = 0.0;
    travel_ = 0.0;
    steps_ = 0;
}

// Selects instead of branches, which would be mispredicted.
template <class T>
void BinaryDescent<T>::mark(Index begin, Index end) {
    constexpr T outside = static_cast<T>(simd::pair_outside), in_set = T(0);
    const auto mark_class = [&](Index first, Index last, AlignedVector<T>& of_above, AlignedVector<T>& of_below,
                                T sign_above, T sign_below) {
        for (std::size_t k = unsigned_index(first); k < unsigned_index(last); ++k) {
            of_above[k] = variables_[k] > 0.0 ? in_set : sign_above * outside;
            of_below[k] = variables_[k] < caps_[k] ? in_set : sign_below * outside;
        }
    };
    mark_class(begin, std::min(end, n_positive_), outside_low_, outside_up_, T(-1), T(1));
    mark_class(std::max(begin, n_positive_), end, outside_up_, outside_low_, T(1), T(-1));
}

// beta of the first grows and that of the second falls by the same amount, as far as the dual gains and the box allows.
template <class T>
bool BinaryDescent<T>::step(Index first, Index second, double kernel_value) {
    const std::size_t i = unsigned_index(first), j = unsigned_index(second);
    const double difference = static_cast<double>(errors_[j]) - static_cast<double>(errors_[i]);
    const double sum = diagonals_[i] + diagonals_[j];
    // Of three large values the difference is known to their rounding. Less than that would make steps without end
    // where no bound holds them.
    const double rounding = caps_[i] == infinity ? std::numeric_limits<double>::epsilon() * sum : 0.0;
    const double bend = std::max({simd::pair_curvature_floor, rounding, sum - 2.0 * kernel_value});
    const bool rises = first < n_positive_, falls = second < n_positive_;  // the variable, not beta
    const double room_first = rises ? caps_[i] - variables_[i] : variables_[i];
    const double room_second = falls ? variables_[j] : caps_[j] - variables_[j];
    const double wanted = difference / bend;
    const double moved = std::min({wanted, room_first, room_second});
    if (!(moved > 0.0)) return false;  // nor where it is not a number
    const double before_first = variables_[i], before_second = variables_[j];
    variables_[i] = moved == room_first ? (rises ? caps_[i] : 0.0) : before_first + (rises ? moved : -moved);
    variables_[j] = moved == room_second ? (falls ? 0.0 : caps_[j]) : before_second + (falls ? -moved : moved);
    if (variables_[i] == before_first && variables_[j] == before_second) return false;
    gain_ += moved * (difference - 0.5 * bend * moved);
    moved_ = moved;
    travel_ += moved;
    errors_[i] += static_cast<T>(ridges_[i] * moved);
    errors_[j] -= static_cast<T>(ridges_[j] * moved);
    mark(first, first + 1);
    mark(second, second + 1);
    return true;
}

template <class T>
bool BinaryDescent<T>::anybody_rises() const {
    return std::any_of(outside_up_.begin(), outside_up_.begin() + n_, [](T outside) { return outside == T(0); });
}

// Gains are compared by products. Where these overflow or vanish, the most violating one still gains.
template <class T>
Index BinaryDescent<T>::second_of(const simd::PairChoice<T>& choice, Index first) const {
    if (!most_violating_ && choice.second < n_ && outside_low_[unsigned_index(choice.second)] == T(0) &&
        errors_[unsigned_index(choice.second)] > errors_[unsigned_index(first)]) {
        return choice.second;
    }
    for (Index j = 0; j < n_; ++j) {
        if (errors_[unsigned_index(j)] + outside_low_[unsigned_index(j)] == choice.largest) return j;
    }
    return -1;
}

template <class T>
template <class Rows>
Outcome BinaryDescent<T>::run(Rows& rows, double target, Index max_steps, Monitor& monitor) {
    const simd::Table& table = simd::best_table();
    const T* any = errors_.data();
    simd::PairExtreme<T> first =
        update_pair(table, simd::PairUpdate<T>{errors_.data(), any, any, T(0), outside_up_.data(), padded_});
    while (true) {
        if (!std::isfinite(first.value)) {
            const bool overflown = anybody_rises();
            violation_ = overflown ? infinity : 0.0;
            return overflown ? Outcome::stuck : Outcome::satisfied;
        }
        const Index i = first.place;
        const T* row_first = rows.row(i);
        const simd::PairChoice<T> choice =
            choose_second(table, simd::PairScan<T>{errors_.data(), outside_low_.data(), row_first, bends_.data(),
                                                   errors_[unsigned_index(i)], bends_[unsigned_index(i)], padded_});
        violation_ = std::max(0.0, static_cast<double>(choice.largest) - static_cast<double>(first.value));
        if (violation_ <= target) return Outcome::satisfied;
        if (violation_ == infinity) return Outcome::stuck;
        if (steps_ >= max_steps) return Outcome::out_of_steps;
        if (observer_) observer_();
        if (steps_ % steps_between_polls == 0 && monitor.poll()) return Outcome::stopped;
        const Index j = second_of(choice, i);
        if (j < 0) return Outcome::stuck;
        const T* row_second = rows.row(j);
        if (!step(i, j, static_cast<double>(row_first[j]))) return Outcome::stuck;
        ++steps_;
        first = update_pair(table, simd::PairUpdate<T>{errors_.data(), row_first, row_second, static_cast<T>(moved_),
                                                       outside_up_.data(), padded_});
    }
}

template class BinaryDescent<float>;
template class BinaryDescent<double>;
template Outcome BinaryDescent<float>::run(SlotRows<float>&, double, Index, Monitor&);
template Outcome BinaryDescent<double>::run(SlotRows<double>&, double, Index, Monitor&);
template Outcome BinaryDescent<float>::run(MatrixRows<float>&, double, Index, Monitor&);
template Outcome BinaryDescent<double>::run(MatrixRows<double>&, double, Index, Monitor&);

}  // namespace multimargin
