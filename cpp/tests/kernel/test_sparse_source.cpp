// Sparse data give the kernel values of the same data written out, in every grouping of rows, and the vector code
// agrees with its scalar twin.
#include "kernel/sparse_source.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "check.hpp"
#include "kernel/sparse_differences.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using simd::Evaluation;
using simd::Form;
using simd::panel_width;
using simd::SparseTile;
using simd::Table;
using simd::Transform;
using testing::Numbers;

// Rows with about `share` of their entries, some of them empty; the same data dense for the oracle.
template <class Value, class Integer>
struct SparseCase {
    SparseCase(Index n_rows, Index features, double share, std::uint64_t seed) : n(n_rows), width(features) {
        Numbers numbers(seed);
        starts.push_back(0);
        for (Index i = 0; i < n; ++i) {
            for (Index k = 0; k < width; ++k) {
                const bool present = i % 7 != 3 && numbers.uniform(0.0, 1.0) < share;
                dense.push_back(present ? static_cast<double>(static_cast<Value>(numbers.uniform(-1.0, 1.0))) : 0.0);
                if (!present) continue;
                values.push_back(static_cast<Value>(dense.back()));
                indices.push_back(static_cast<Integer>(k));
            }
            starts.push_back(static_cast<Integer>(values.size()));
        }
    }
    CsrView view() const { return {values.data(), indices.data(), starts.data(), n, width}; }

    Index n, width;
    std::vector<Value> values;
    std::vector<Integer> indices, starts;
    std::vector<double> dense;
};

const Kernel kernels[] = {testing::linear(), testing::rbf(0.2, 1.0), testing::poly(0.3, 1.0, 3),
                          testing::sigmoid(0.2, -0.1), testing::laplacian(0.2)};

template <class T>
AlignedVector<T> block(const KernelSource& source, std::span<const Index> rows, std::span<const Index> columns) {
    const auto prepared = source.columns<T>(columns);
    const Index ld = prepared->n_panels() * panel_width;
    AlignedVector<T> out(rows.size() * unsigned_index(ld));
    prepared->fill(rows, out.data(), ld);
    AlignedVector<T> packed;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const T* row = out.data() + r * unsigned_index(ld);
        packed.insert(packed.end(), row, row + columns.size());
    }
    return packed;
}

std::vector<Index> range(Index n) {
    std::vector<Index> all(unsigned_index(n));
    std::iota(all.begin(), all.end(), Index{0});
    return all;
}

template <class Value, class Integer>
void check_against_dense(Index n, Index width, double share) {
    const SparseCase<Value, Integer> c(n, width, share, 11);
    const std::vector<Index> columns = range(n), rows{n - 1, 0, n / 2, 3 % n};
    for (const Kernel& kernel : kernels) {
        for (int i = 0; simd::available_table(i) != nullptr; ++i) {
            const SparseSource source(c.view(), kernel, *simd::available_table(i));
            const DenseSource oracle(DenseView(c.dense.data(), n, width), kernel);
            const auto expected = block<double>(oracle, rows, columns);
            const auto exact = block<double>(source, rows, columns);
            const auto single = block<float>(source, rows, columns);
            for (std::size_t k = 0; k < expected.size(); ++k) {
                CHECK_CLOSE(exact[k], expected[k], 1e-13 * (1.0 + std::abs(expected[k])));
                CHECK_CLOSE(single[k], expected[k], 4e-6 * (1.0 + std::abs(expected[k])));
            }
            for (Index r = 0; r < n; ++r) CHECK_CLOSE(source.diagonal(r), oracle.diagonal(r), 1e-13);
        }
    }
}

// Whatever rows share a tile, and whether panels are kept or made, the bits are the same.
template <class T>
void check_grouping(const SparseSource& source) {
    const std::vector<Index> all = range(source.size());
    const auto together = block<T>(source, all, all);
    for (const Index row : all) {
        const auto alone = block<T>(source, std::span<const Index>(&row, 1), all);
        for (std::size_t j = 0; j < alone.size(); ++j) {
            CHECK(alone[j] == together[unsigned_index(row) * all.size() + j]);
            CHECK(alone[j] == together[j * all.size() + unsigned_index(row)]);
        }
        const auto self = block<T>(source, std::span<const Index>(&row, 1), std::span<const Index>(&row, 1));
        if (source.kernel().shift_invariant()) CHECK(self[0] == static_cast<T>(1.0 + source.kernel().offset));
    }
}

template <class T>
struct TileCase {
    TileCase(Index n_lines, std::uint64_t seed) : panel(Numbers(seed).many<T>(n_lines * panel_width, -1.0, 1.0)) {
        Numbers numbers(seed + 1);
        for (const Index length : {0, 1, 2, 5, 17}) {
            for (Index k = 0; k < length; ++k) {
                lines.push_back(k * n_lines / length);
                values.push_back(static_cast<T>(numbers.uniform(-1.0, 1.0)));
            }
            starts.push_back(static_cast<simd::Size>(values.size()));
            row_norms.push_back(static_cast<T>(numbers.uniform(20.0, 30.0)));
        }
        column_norms = numbers.many<T>(panel_width, 20.0, 30.0);
    }
    SparseTile<T> tile(AlignedVector<T>& out) const {
        out.assign(unsigned_index(n_rows() * panel_width), T(0));
        return {starts.data(), lines.data(),        values.data(), row_norms.data(), n_rows(),
                panel.data(),  column_norms.data(), out.data(),    panel_width};
    }
    Index n_rows() const { return static_cast<Index>(row_norms.size()); }

    AlignedVector<T> panel, column_norms;
    std::vector<simd::Size> starts{0}, lines;
    std::vector<T> values, row_norms;
};

template <class T>
void check_tile(const Table& table, const Evaluation& e) {
    const TileCase<T> c(40, 5);
    AlignedVector<T> expected, found;
    if constexpr (std::is_same_v<T, float>) {
        simd::scalar_table().sparse_tile_f32(c.tile(expected), e);
        table.sparse_tile_f32(c.tile(found), e);
    } else {
        simd::scalar_table().sparse_tile_f64(c.tile(expected), e);
        table.sparse_tile_f64(c.tile(found), e);
    }
    // Norms up to 60 and scales below 0.1: arguments up to 6, values up to 6^3.
    const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double value = static_cast<double>(expected[i]);
        CHECK_CLOSE(found[i], value, unit * (64.0 + 64.0 * std::abs(value)));
    }
}

template <class T>
void check_norms(const Table& table) {
    Numbers numbers(9);
    for (const Index n : {0, 1, 31, 32, 33, 100}) {
        const AlignedVector<T> x = numbers.many<T>(n, -1.0, 1.0);
        double squares = 0.0, sizes = 0.0;
        for (const T v : x) {
            squares += static_cast<double>(v) * static_cast<double>(v);
            sizes += std::abs(static_cast<double>(v));
        }
        const double unit = 100.0 * static_cast<double>(std::numeric_limits<T>::epsilon());
        const auto norm = [&](Form form) {
            if constexpr (std::is_same_v<T, float>) {
                return table.sparse_norm_f32(form, x.data(), n);
            } else {
                return table.sparse_norm_f64(form, x.data(), n);
            }
        };
        CHECK(norm(Form::dot) == T(0));
        CHECK_CLOSE(norm(Form::squared_difference), squares, unit * (1.0 + squares));
        CHECK_CLOSE(norm(Form::absolute_difference), sizes, unit * (1.0 + sizes));
    }
}

}  // namespace

TEST(sparse_source_agrees_with_dense_data) {
    for (const Index n : {1, 64, 65, 130}) check_against_dense<double, std::int32_t>(n, 12, 0.3);
    check_against_dense<double, std::int64_t>(70, 40, 0.1);
    check_against_dense<float, std::int32_t>(70, 40, 0.1);
    check_against_dense<float, std::int64_t>(70, 12, 1.0);
}

TEST(sparse_source_bits_do_not_depend_on_the_grouping) {
    const SparseCase<double, std::int32_t> c(150, 90, 0.15, 3);
    // The same entries spread over more features than panels are kept for: by direct numbers, then by hashed ones.
    SparseCase<double, std::int64_t> spread(150, 90, 0.15, 3);
    for (int i = 0; simd::available_table(i) != nullptr; ++i) {
        for (const Kernel& kernel : kernels) {
            const SparseSource kept(c.view(), kernel, *simd::available_table(i));
            check_grouping<float>(kept);
            check_grouping<double>(kept);
            for (const Index step : {Index{11'000}, FeatureNumbers::direct_width * 1000}) {
                for (std::size_t e = 0; e < c.indices.size(); ++e) spread.indices[e] = c.indices[e] * step;
                spread.width = c.width * step;
                const SparseSource wide(spread.view(), kernel, *simd::available_table(i));
                check_grouping<float>(wide);
                const std::vector<Index> all = range(c.n);
                CHECK(block<double>(wide, all, all) == block<double>(kept, all, all));
            }
        }
    }
}

TEST(sparse_source_keeps_small_distances_beside_large_norms) {
    // Rows with the same features: only their differences say how near they are.
    SparseCase<double, std::int32_t> c(90, 8, 1.0, 8);
    Numbers numbers(4);
    for (double& value : c.values) value = 1e6 + numbers.uniform(-1.0, 1.0);
    for (int i = 0; simd::available_table(i) != nullptr; ++i) {
        for (const Kernel& kernel : {kernels[1], kernels[4]}) {
            const SparseSource source(c.view(), kernel, *simd::available_table(i));
            check_grouping<float>(source);
            check_grouping<double>(source);
            const std::vector<Index> all = range(c.n);
            const auto exact = block<double>(source, all, all);
            const auto single = block<float>(source, all, all);
            for (Index r = 0; r < c.n; ++r) {
                for (Index j = 0; j < c.n; ++j) {
                    const simd::Evaluation& e = kernel;
                    const double distance = distance_by_differences(e.form, c.view(), r, c.view(), j);
                    const double expected = std::exp(e.scale * distance) + e.offset;
                    CHECK_CLOSE(exact[unsigned_index(r * c.n + j)], expected, 1e-12);
                    CHECK_CLOSE(single[unsigned_index(r * c.n + j)], expected, 1e-6);
                }
            }
        }
    }
}

TEST(sparse_pairs_distances) {
    const SparseCase<double, std::int32_t> x(20, 9, 0.4, 1);
    const SparseCase<float, std::int64_t> z(7, 9, 0.4, 2);
    for (Index i = 0; i < x.n; ++i) {
        for (Index j = 0; j < z.n; ++j) {
            double squares = 0.0, sizes = 0.0;
            for (Index k = 0; k < 9; ++k) {
                const double d = x.dense[unsigned_index(i * 9 + k)] - z.dense[unsigned_index(j * 9 + k)];
                squares += d * d;
                sizes += std::abs(d);
            }
            CHECK_CLOSE(distance_by_differences(Form::squared_difference, x.view(), i, z.view(), j), squares, 1e-14);
            CHECK_CLOSE(distance_by_differences(Form::absolute_difference, z.view(), j, x.view(), i), sizes, 1e-14);
        }
    }
}

TEST(sparse_source_other_data) {
    const SparseCase<double, std::int32_t> x(20, 9, 0.4, 1);
    const SparseCase<float, std::int64_t> z(7, 9, 0.4, 2);
    const SparseSource source(x.view(), kernels[1]);
    const std::vector<Index> columns{6, 2}, rows{19};
    const auto prepared = source.foreign_columns(z.view(), columns);
    AlignedVector<double> out(unsigned_index(panel_width));
    prepared->fill(rows, out.data(), panel_width);
    for (std::size_t j = 0; j < columns.size(); ++j) {
        double squares = 0.0;
        for (Index k = 0; k < 9; ++k) {
            const double d = x.dense[unsigned_index(19 * 9 + k)] - z.dense[unsigned_index(columns[j] * 9 + k)];
            squares += d * d;
        }
        CHECK_CLOSE(out[j], std::exp(-0.2 * squares) + 1.0, 1e-14);
    }
    const SparseCase<double, std::int32_t> narrower(7, 8, 0.4, 2);
    CHECK_THROWS(source.foreign_columns(narrower.view(), columns), std::invalid_argument);
    CHECK_THROWS(source.foreign_columns(DenseView(z.dense.data(), 7, 9), columns), std::invalid_argument);
}

TEST(sparse_source_feature_numbers) {
    FeatureNumbers numbers;
    for (const Index width : {Index{5000}, FeatureNumbers::direct_width * 4096, Index{5000}}) {
        for (const Index n : {0, 1, 700, 30}) {  // so many that some share a place of the hash table
            const Index step = width / 5000;
            numbers.reset(n, width);
            for (Index k = 0; k < 2 * n; ++k) numbers.add((k % std::max<Index>(n, 1)) * 7 * step);
            CHECK(numbers.count() == n);
            for (Index k = 0; k < n; ++k) {
                CHECK(numbers.find(k * 7 * step) == k);
                CHECK(numbers.find((k * 7 + 1) * step) == FeatureNumbers::none);
            }
        }
    }
}

TEST(sparse_source_refuses_bad_indices) {
    const std::vector<double> values{1.0, 2.0, 3.0};
    const std::vector<std::int32_t> starts{0, 2, 3};
    const auto view = [&](const std::vector<std::int32_t>& indices, const std::vector<std::int32_t>& where) {
        return CsrView(values.data(), indices.data(), where.data(), 2, 4);
    };
    view({0, 3, 3}, starts).check(3);
    for (const std::vector<std::int32_t>& bad :
         {std::vector<std::int32_t>{3, 0, 1}, {1, 1, 2}, {0, 4, 2}, {-1, 2, 3}}) {
        CHECK_THROWS(view(bad, starts).check(3), std::invalid_argument);
    }
    CHECK_THROWS(view({0, 3, 3}, {0, 3, 2}).check(3), std::invalid_argument);
    CHECK_THROWS(view({0, 3, 3}, {1, 2, 3}).check(3), std::invalid_argument);
    CHECK_THROWS(view({0, 3, 3}, starts).check(2), std::invalid_argument);
}

TEST(simd_sparse_tiles) {
    for (int i = 1; simd::available_table(i) != nullptr; ++i) {
        for (const Form form : {Form::dot, Form::squared_difference, Form::absolute_difference}) {
            const Evaluation evaluations[] = {{form, Transform::identity, 0.1, 0.0, 0.5, 0},
                                              {form, Transform::exponential, -0.1, 0.0, 1.0, 0},
                                              {form, Transform::power, 0.1, 0.5, 0.0, 3},
                                              {form, Transform::hyperbolic_tangent, 0.1, -0.2, 0.0, 0}};
            for (const Evaluation& e : evaluations) {
                check_tile<float>(*simd::available_table(i), e);
                check_tile<double>(*simd::available_table(i), e);
            }
        }
    }
}

TEST(simd_sparse_norms) {
    for (int i = 0; simd::available_table(i) != nullptr; ++i) {
        check_norms<float>(*simd::available_table(i));
        check_norms<double>(*simd::available_table(i));
    }
}

}  // namespace multimargin
