// Rows of data against weights by feature: dense or sparse, typed, so that inner loops have no branch.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "base/memory.hpp"
#include "data/data_view.hpp"
#include "simd/table.hpp"

namespace multimargin {

inline void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    static_cast<void>(address);
#endif
}

template <class Value>
class DenseRows {
  public:
    using Row = const Value*;
    static constexpr bool is_dense = true;

    DenseRows(const Value* data, Index width) : data_(data), width_(width), table_(&simd::best_table()) {}
    Row row(Index i) const { return data_ + i * width_; }
    Index length(Row) const { return width_; }
    double dot(Row row, const double* w) const {
        if constexpr (std::is_same_v<Value, float>) return table_->dot_mixed(row, w, width_);
        if constexpr (std::is_same_v<Value, double>) return table_->dot(row, w, width_);
    }
    void add(double factor, Row row, double* w) const {
        if constexpr (std::is_same_v<Value, float>) table_->axpy_f32(factor, row, w, width_);
        if constexpr (std::is_same_v<Value, double>) table_->axpy_f64(factor, row, w, width_);
    }
    double squared_norm(Row row) const {
        double sum = 0.0;
        for (Index k = 0; k < width_; ++k) sum += static_cast<double>(row[k]) * static_cast<double>(row[k]);
        return sum;
    }
    void fetch(Row row) const {
        for (Index k = 0; k < width_ && k < 512; k += static_cast<Index>(64 / sizeof(Value))) prefetch(row + k);
    }

  private:
    const Value* data_;
    Index width_;
    const simd::Table* table_;
};

template <class Value, class Integer>
class SparseRows {
  public:
    static constexpr bool is_dense = false;
    struct Row {
        const Value* values;
        const Integer* places;
        Index n;
    };

    explicit SparseRows(const CsrView& view)
        : values_(view.values<Value>()), places_(view.indices<Integer>()), starts_(view.starts<Integer>()) {}
    Row row(Index i) const {
        const Index begin = static_cast<Index>(starts_[i]);
        return {values_ + begin, places_ + begin, static_cast<Index>(starts_[i + 1]) - begin};
    }
    Index length(const Row& row) const { return row.n; }
    // Four sums in turn, so that an addition need not wait for the last one.
    double dot(const Row& row, const double* w) const {
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        Index k = 0;
        for (; k + 4 <= row.n; k += 4) {
            s0 += term(row, k, w);
            s1 += term(row, k + 1, w);
            s2 += term(row, k + 2, w);
            s3 += term(row, k + 3, w);
        }
        for (; k < row.n; ++k) s0 += term(row, k, w);
        return (s0 + s1) + (s2 + s3);
    }
    void add(double factor, const Row& row, double* w) const {
        for (Index k = 0; k < row.n; ++k) w[row.places[k]] += factor * static_cast<double>(row.values[k]);
    }
    double squared_norm(const Row& row) const {
        double sum = 0.0;
        for (Index k = 0; k < row.n; ++k)
            sum += static_cast<double>(row.values[k]) * static_cast<double>(row.values[k]);
        return sum;
    }
    // The first entries; the processor's prefetcher loads the following ones.
    void fetch(const Row& row) const {
        prefetch(row.values);
        prefetch(row.values + 64 / sizeof(Value));
        prefetch(row.places);
    }

  private:
    static double term(const Row& row, Index k, const double* w) {
        return static_cast<double>(row.values[k]) * w[row.places[k]];
    }

    const Value* values_;
    const Integer* places_;
    const Integer* starts_;
};

// Calls `work` with the rows of the data in their own type.
template <class Work>
decltype(auto) with_rows(const DataView& data, Work&& work) {
    if (const auto* dense = std::get_if<DenseView>(&data)) {
        if (dense->is_float32()) return work(DenseRows<float>(dense->row_f32(0), dense->columns()));
        return work(DenseRows<double>(dense->row_f64(0), dense->columns()));
    }
    const CsrView& sparse = std::get<CsrView>(data);
    if (sparse.is_float32()) {
        if (sparse.has_short_indices()) return work(SparseRows<float, std::int32_t>(sparse));
        return work(SparseRows<float, std::int64_t>(sparse));
    }
    if (sparse.has_short_indices()) return work(SparseRows<double, std::int32_t>(sparse));
    return work(SparseRows<double, std::int64_t>(sparse));
}

inline Index row_count(const DataView& data) {
    return std::visit([](const auto& view) { return view.rows(); }, data);
}
inline Index column_count(const DataView& data) {
    return std::visit([](const auto& view) { return view.columns(); }, data);
}

// Rows one at a time as simd::Lines: in place where the types are double and int, else converted.
class LineReader {
  public:
    explicit LineReader(const DataView& data);
    // Valid until the next call.
    simd::Lines row(Index i);

  private:
    simd::Lines dense_row(const DenseView& view, Index i);
    simd::Lines sparse_row(const CsrView& view, Index i);

    DataView data_;
    AlignedVector<double> values_;
    AlignedVector<int> places_;
};

// Squared lengths of the rows named; 0 for all others.
std::vector<double> squared_norms(const DataView& data, const std::vector<Index>& rows);

}  // namespace multimargin
