// The violations of many examples at once, from score columns and variables held class by class.
#pragma once

#include <span>
#include <vector>

#include "base/types.hpp"
#include "problem/machine.hpp"
#include "simd/table.hpp"

namespace multimargin {

// Examples in the order of their classes: score c of example j at scores[c * ld + j], variable p at variables[p * ld +
// j]; class y holds the positions from group_begin[y] to group_begin[y + 1]. Every array goes on for simd::overrun
// values.
template <class T>
struct ScoreView {
    std::span<const Index> group_begin;
    Index ld;
    const T* scores;
    const T* variables;
    const T* cap;
    const T* sum;    // of the variables of an example; for simplex machines
    const T* ridge;  // null for the hinge
};

// For structured machines: the components of a class share one score at most, the class's own or the mean.
template <class T>
class ViolationScan {
  public:
    ViolationScan(const Machine& machine, Index ld);

    // violations[j - first] for first <= j < last, and nothing else. Reads no further than last if last - first is a
    // multiple of simd::overrun.
    void scan(const ScoreView<T>& view, Index first, Index last, T* violations) const;

    std::span<const simd::ScanTerm<T>> terms(Index y) const { return terms_[unsigned_index(y)]; }

    // The group of class y, for positions first <= j < last of it.
    simd::ScanGroup<T> group(const ScoreView<T>& view, Index y, Index first, Index last, T* violations) const;

  private:
    const Machine& machine_;
    std::vector<std::vector<simd::ScanTerm<T>>> terms_;  // by class
    std::vector<Index> shared_;                          // the score column that a class's components share, or -1
};

}  // namespace multimargin
