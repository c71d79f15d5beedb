#include "problem/violations.hpp"

#include <algorithm>

#include "base/memory.hpp"

namespace multimargin {

namespace {

void run(const simd::Table& table, Bound bound, const simd::ScanGroup<float>& group) {
    (bound == Bound::box ? table.scan_box_f32 : table.scan_simplex_f32)(group);
}

void run(const simd::Table& table, Bound bound, const simd::ScanGroup<double>& group) {
    (bound == Bound::box ? table.scan_box_f64 : table.scan_simplex_f64)(group);
}

// How many components of a class mention each class: one alone is private, the other of the two is shared.
std::vector<int> mentions_of(const Machine& machine, Index y) {
    std::vector<int> mentions(unsigned_index(machine.n_classes), 0);
    for (const Component& c : machine.of(y)) {
        ++mentions[unsigned_index(c.class1)];
        if (c.class2 >= 0) ++mentions[unsigned_index(c.class2)];
    }
    return mentions;
}

}  // namespace

template <class T>
ViolationScan<T>::ViolationScan(const Machine& machine, Index ld) : machine_(machine) {
    for (Index y = 0; y < machine.n_classes; ++y) {
        auto& terms = terms_.emplace_back();
        const std::vector<int> mentions = mentions_of(machine, y);
        Index shared = machine.sum_to_zero ? machine.n_classes : -1;
        for (const Component& c : machine.of(y)) {
            Index column = c.class1;
            double share = machine.sum_to_zero ? -c.row_sum() : 0.0;
            if (c.class2 >= 0) {
                const bool first_shared = mentions[unsigned_index(c.class1)] > 1 ||
                                          (mentions[unsigned_index(c.class2)] == 1 && c.class1 == y);
                shared = first_shared ? c.class1 : c.class2;
                column = first_shared ? c.class2 : c.class1;
                share = c.entry(shared);
            }
            terms.push_back(
                {static_cast<T>(c.target), static_cast<T>(c.entry(column)), static_cast<T>(share), column * ld});
        }
        shared_.push_back(shared);
    }
}

template <class T>
simd::ScanGroup<T> ViolationScan<T>::group(const ScoreView<T>& view, Index y, Index first, Index last,
                                           T* violations) const {
    const auto& terms = terms_[unsigned_index(y)];
    const Index shared = shared_[unsigned_index(y)];
    const auto from_first = [&](const T* values) { return values != nullptr ? values + first : nullptr; };
    return {terms.data(),
            static_cast<Index>(terms.size()),
            view.scores + first,
            shared >= 0 ? view.scores + shared * view.ld + first : nullptr,
            view.variables + first,
            view.ld,
            view.cap + first,
            from_first(view.sum),
            from_first(view.ridge),
            violations,
            last - first};
}

// Examples from begin on in whole strips of vectors. The rest is a strip that ends with the class, or begins with the
// range: a panel's scan reads no value of the next panel, whose scores another thread may be writing.
template <class T>
void ViolationScan<T>::scan(const ScoreView<T>& view, Index first, Index last, T* violations) const {
    constexpr Index strip = simd::overrun;
    const simd::Table& table = simd::best_table();
    for (Index y = 0; y < machine_.n_classes; ++y) {
        const std::size_t g = unsigned_index(y);
        const Index begin = std::max(first, view.group_begin[g]), end = std::min(last, view.group_begin[g + 1]);
        if (begin >= end) continue;
        const Index whole = begin + (end - begin) / strip * strip;
        if (whole > begin) run(table, machine_.bound, group(view, y, begin, whole, violations + (begin - first)));
        if (whole == end) continue;
        alignas(alignment) T rest[strip];
        const Index start = std::max(first, end - strip);
        run(table, machine_.bound, group(view, y, start, start + strip, rest));
        std::copy(rest + (whole - start), rest + (end - start), violations + (whole - first));
    }
}

template class ViolationScan<float>;
template class ViolationScan<double>;

}  // namespace multimargin
