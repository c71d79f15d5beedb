// The data as they lie in memory: dense or sparse rows of numbers, owned by someone else.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <variant>

#include "base/types.hpp"

namespace multimargin {

// Rows of numbers in float32 or float64, row-major; does not own them.
class DenseView {
  public:
    DenseView(const float* data, Index rows, Index columns) : f32_(data), rows_(rows), columns_(columns) {}
    DenseView(const double* data, Index rows, Index columns) : f64_(data), rows_(rows), columns_(columns) {}
    Index rows() const { return rows_; }
    Index columns() const { return columns_; }
    double at(Index i, Index k) const {
        return f32_ != nullptr ? static_cast<double>(f32_[i * columns_ + k]) : f64_[i * columns_ + k];
    }
    bool is_float32() const { return f32_ != nullptr; }
    const float* row_f32(Index i) const { return f32_ + i * columns_; }
    const double* row_f64(Index i) const { return f64_ + i * columns_; }

  private:
    const float* f32_ = nullptr;
    const double* f64_ = nullptr;
    Index rows_;
    Index columns_;
};

// Compressed sparse rows: the entries of row i are those from begin(i) to begin(i + 1), in ascending order of their
// columns. Does not own them.
class CsrView {
  public:
    template <class Value, class Integer>
    CsrView(const Value* values, const Integer* indices, const Integer* starts, Index rows, Index columns)
        : single_(std::is_same_v<Value, float>),
          short_(std::is_same_v<Integer, std::int32_t>),
          values_(values),
          indices_(indices),
          starts_(starts),
          rows_(rows),
          columns_(columns) {
        static_assert(single_or_double<Value> && (sizeof(Integer) == 4 || sizeof(Integer) == 8));
    }
    Index rows() const { return rows_; }
    Index columns() const { return columns_; }
    Index begin(Index i) const { return integer(starts_, i); }
    Index length(Index i) const { return begin(i + 1) - begin(i); }
    Index column(Index entry) const { return integer(indices_, entry); }
    // The arrays themselves, for loops that cannot afford a branch for each entry; the types must be the true ones.
    bool is_float32() const { return single_; }
    bool has_short_indices() const { return short_; }
    template <class Value>
    const Value* values() const {
        return static_cast<const Value*>(values_);
    }
    template <class Integer>
    const Integer* indices() const {
        return static_cast<const Integer*>(indices_);
    }
    template <class Integer>
    const Integer* starts() const {
        return static_cast<const Integer*>(starts_);
    }
    double value(Index entry) const {
        return single_ ? static_cast<double>(static_cast<const float*>(values_)[entry])
                       : static_cast<const double*>(values_)[entry];
    }

    // All later code trusts the indices; they are checked once, where data enter.
    void check(Index n_entries) const {
        bool good = begin(0) == 0 && begin(rows_) <= n_entries;
        for (Index i = 0; good && i < rows_; ++i) {
            good = begin(i) <= begin(i + 1) && begin(i + 1) <= n_entries;
            Index before = -1;
            for (Index e = begin(i); good && e < begin(i + 1); ++e) {
                good = column(e) > before && column(e) < columns_;
                before = column(e);
            }
        }
        if (!good) throw std::invalid_argument("sparse rows need ascending column indices within the width");
    }

  private:
    template <class Value>
    static constexpr bool single_or_double = std::is_same_v<Value, float> || std::is_same_v<Value, double>;

    Index integer(const void* values, Index i) const {
        return short_ ? Index{static_cast<const std::int32_t*>(values)[i]}
                      : static_cast<Index>(static_cast<const std::int64_t*>(values)[i]);
    }

    bool single_, short_;
    const void* values_;
    const void* indices_;
    const void* starts_;
    Index rows_;
    Index columns_;
};

using DataView = std::variant<DenseView, CsrView>;

}  // namespace multimargin
