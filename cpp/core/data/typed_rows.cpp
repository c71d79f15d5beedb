#include "data/typed_rows.hpp"

#include <limits>

namespace multimargin {

LineReader::LineReader(const DataView& data) : data_(data) {
    if (column_count(data) > std::numeric_limits<int>::max()) throw std::invalid_argument("too many features");
}

simd::Lines LineReader::row(Index i) {
    if (const auto* dense = std::get_if<DenseView>(&data_)) return dense_row(*dense, i);
    return sparse_row(std::get<CsrView>(data_), i);
}

simd::Lines LineReader::dense_row(const DenseView& view, Index i) {
    if (!view.is_float32()) return {view.row_f64(i), nullptr, view.columns()};
    const float* row = view.row_f32(i);
    values_.resize(unsigned_index(view.columns()));
    for (std::size_t k = 0; k < values_.size(); ++k) values_[k] = static_cast<double>(row[k]);
    return {values_.data(), nullptr, view.columns()};
}

simd::Lines LineReader::sparse_row(const CsrView& view, Index i) {
    const Index begin = view.begin(i), n = view.length(i);
    simd::Lines lines{nullptr, nullptr, n};
    if (view.is_float32()) {
        values_.resize(unsigned_index(n));
        const float* given = view.values<float>() + begin;
        for (std::size_t k = 0; k < values_.size(); ++k) values_[k] = static_cast<double>(given[k]);
        lines.values = values_.data();
    } else {
        lines.values = view.values<double>() + begin;
    }
    if (view.has_short_indices()) {
        lines.places = view.indices<std::int32_t>() + begin;
    } else {
        places_.resize(unsigned_index(n) + 1);  // an empty row has an address too: none would mean a dense one
        const std::int64_t* given = view.indices<std::int64_t>() + begin;
        for (std::size_t k = 0; k < unsigned_index(n); ++k) places_[k] = static_cast<int>(given[k]);
        lines.places = places_.data();
    }
    return lines;
}

std::vector<double> squared_norms(const DataView& data, const std::vector<Index>& rows) {
    std::vector<double> norms(unsigned_index(row_count(data)), 0.0);
    with_rows(data, [&](const auto& typed) {
        for (const Index i : rows) norms[unsigned_index(i)] = typed.squared_norm(typed.row(i));
    });
    return norms;
}

}  // namespace multimargin
