// A kernel matrix that is given serves the values it holds.
#include "kernel/gram_source.hpp"

#include <numeric>

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

template <class T>
void check_block(const AlignedVector<T>& matrix, Index n) {
    const GramSource source(DenseView(matrix.data(), n, n), 0.25);
    std::vector<Index> columns(unsigned_index(n));
    std::iota(columns.rbegin(), columns.rend(), Index{0});
    const std::vector<Index> rows{n - 1, 0, n / 2};
    const auto prepared = source.columns<double>(columns);
    const Index ld = prepared->n_panels() * simd::panel_width;
    AlignedVector<double> out(rows.size() * unsigned_index(ld), -1.0);
    prepared->fill(rows, out.data(), ld);
    AlignedVector<float> single(out.size());
    source.columns<float>(columns)->fill(rows, single.data(), ld);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t j = 0; j < columns.size(); ++j) {
            const double expected = static_cast<double>(matrix[unsigned_index(rows[r] * n + columns[j])]) + 0.25;
            CHECK(out[r * unsigned_index(ld) + j] == expected);
            CHECK(single[r * unsigned_index(ld) + j] == static_cast<float>(expected));
        }
    }
    for (Index i = 0; i < n; ++i) {
        CHECK(source.diagonal(i) == static_cast<double>(matrix[unsigned_index(i * n + i)]) + 0.25);
    }
}

template <class T>
AlignedVector<T> symmetric(Index n) {
    AlignedVector<T> matrix = testing::Numbers(4).many<T>(n * n, -1.0, 1.0);
    for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < i; ++j) matrix[unsigned_index(i * n + j)] = matrix[unsigned_index(j * n + i)];
    }
    return matrix;
}

}  // namespace

TEST(gram_source_blocks_and_diagonal) {
    for (const Index n : {1, 63, 64, 130}) {
        check_block(symmetric<float>(n), n);
        check_block(symmetric<double>(n), n);
    }
    const AlignedVector<double> matrix = symmetric<double>(4);
    CHECK_THROWS(GramSource(DenseView(matrix.data(), 2, 4), 0.0), std::invalid_argument);
}

// The values of a matrix squared beforehand, to the bit.
TEST(gram_source_squared) {
    const Index n = 130;
    const AlignedVector<double> matrix = symmetric<double>(n);
    const DenseView view(matrix.data(), n, n);
    std::vector<Index> columns{3, 4, 5, 9, 129};
    for (Index j = 20; j < 100; ++j) columns.push_back(j);
    const std::vector<Index> rows{7, 0, 129};
    for (const int squarings : {1, 7}) {
        AlignedVector<double> squared = matrix;
        for (double& value : squared) {
            for (int t = 0; t < squarings; ++t) value = value * value;
        }
        const GramSource source(view, 0.0, squarings), before(DenseView(squared.data(), n, n), 0.0);
        const auto check = [&]<class T>(T) {
            const auto found = source.columns<T>(columns), wanted = before.columns<T>(columns);
            const Index ld = found->n_panels() * simd::panel_width;
            AlignedVector<T> a(rows.size() * unsigned_index(ld), T(-1)), b(a.size(), T(-2));
            found->fill(rows, a.data(), ld);
            wanted->fill(rows, b.data(), ld);
            CHECK(a == b);
            AlignedVector<T> panel(rows.size() * unsigned_index(simd::panel_width), T(-1)), other(panel.size(), T(-2));
            found->fill_panel(*found->prepare(rows), 0, 3, 1, panel.data(), simd::panel_width);
            wanted->fill_panel(*wanted->prepare(rows), 0, 3, 1, other.data(), simd::panel_width);
            CHECK(panel == other);
        };
        check(0.0);
        check(0.0F);
        for (Index i = 0; i < n; ++i) CHECK(source.diagonal(i) == before.diagonal(i));
        CHECK_THROWS(source.foreign_columns(view, columns), std::logic_error);
    }
    CHECK_THROWS(GramSource(view, 1.0, 1), std::invalid_argument);
    CHECK_THROWS(GramSource(view, 0.0, -1), std::invalid_argument);
}

TEST(gram_source_points_are_rows_of_kernel_values) {
    const Index n = 5;
    const AlignedVector<double> matrix = symmetric<double>(n);
    const AlignedVector<float> points = testing::Numbers(6).many<float>(7 * n, -1.0, 1.0);
    const GramSource source(DenseView(matrix.data(), n, n), 1.0);
    const std::vector<Index> columns{6, 2}, rows{4, 0};
    AlignedVector<double> out(2 * unsigned_index(simd::panel_width));
    source.foreign_columns(DenseView(points.data(), 7, n), columns)->fill(rows, out.data(), simd::panel_width);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t j = 0; j < columns.size(); ++j) {
            const double expected = static_cast<double>(points[unsigned_index(columns[j] * n + rows[r])]) + 1.0;
            CHECK(out[r * unsigned_index(simd::panel_width) + j] == expected);
        }
    }
    CHECK_THROWS(source.foreign_columns(DenseView(points.data(), 5, 7), columns), std::invalid_argument);
}

}  // namespace multimargin
