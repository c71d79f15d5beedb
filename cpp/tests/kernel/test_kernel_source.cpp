#include "kernel/kernel_source.hpp"

#include <limits>
#include <numeric>

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Numbers;

const Kernel kernels[] = {testing::linear(), testing::rbf(0.7, 1.0), testing::poly(0.5, 1.0, 3),
                          testing::sigmoid(0.2, -0.1), testing::laplacian(0.4)};

double naive(const Kernel& kernel, const double* x, const double* z, Index n) {
    double dot = 0.0, squares = 0.0, sizes = 0.0;
    for (Index k = 0; k < n; ++k) {
        dot += x[k] * z[k];
        squares += (x[k] - z[k]) * (x[k] - z[k]);
        sizes += std::abs(x[k] - z[k]);
    }
    const double sums[] = {dot, squares, sizes};
    const double u = kernel.scale * sums[static_cast<int>(kernel.form)] + kernel.shift;
    switch (kernel.transform) {
        case simd::Transform::identity: return u + kernel.offset;
        case simd::Transform::exponential: return std::exp(u) + kernel.offset;
        case simd::Transform::power: return std::pow(u, kernel.degree) + kernel.offset;
        case simd::Transform::hyperbolic_tangent: return std::tanh(u) + kernel.offset;
    }
    return 0.0;
}

// The values stay below 30 here, so that one tolerance serves all kernels.
template <class T>
void check_block(const DenseSource& source, const AlignedVector<double>& X, Index n, Index width) {
    std::vector<Index> columns(unsigned_index(n)), rows{n - 1, 0, n / 2};
    std::iota(columns.rbegin(), columns.rend(), Index{0});  // not in the order of the data
    const auto prepared = source.columns<T>(columns);
    const Index ld = prepared->n_panels() * simd::panel_width;
    AlignedVector<T> out(rows.size() * unsigned_index(ld));
    prepared->fill(rows, out.data(), ld);
    const double tolerance = 30.0 * 16.0 * static_cast<double>(std::numeric_limits<T>::epsilon());
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (Index j = 0; j < n; ++j) {
            const double* x = X.data() + rows[r] * width;
            const double* z = X.data() + columns[unsigned_index(j)] * width;
            CHECK_CLOSE(out[r * unsigned_index(ld) + unsigned_index(j)], naive(source.kernel(), x, z, width),
                        tolerance);
        }
    }
}

}  // namespace

TEST(kernel_source_blocks_and_diagonal) {
    Numbers numbers(1);
    for (const Index n : {1, 63, 64, 65, 130}) {
        const Index width = 5;
        const AlignedVector<double> X = numbers.many<double>(n * width, -1.0, 1.0);
        for (const Kernel& kernel : kernels) {
            for (int i = 0; simd::available_table(i) != nullptr; ++i) {
                const DenseSource source(DenseView(X.data(), n, width), kernel, *simd::available_table(i));
                check_block<float>(source, X, n, width);
                check_block<double>(source, X, n, width);
            }
            const DenseSource source(DenseView(X.data(), n, width), kernel);
            for (Index i = 0; i < n; ++i) {
                const double* x = X.data() + i * width;
                CHECK_CLOSE(source.diagonal(i), naive(kernel, x, x, width), 1e-13);
            }
        }
    }
}

TEST(kernel_source_float32_data_far_from_zero) {
    // Centred before rounding, so that a large mean costs no digits.
    Numbers numbers(2);
    AlignedVector<double> X = numbers.many<double>(70 * 3, -1.0, 1.0);
    for (double& x : X) x += 1e5;
    check_block<float>(DenseSource(DenseView(X.data(), 70, 3), kernels[1]), X, 70, 3);
}

TEST(kernel_source_other_data) {
    Numbers numbers(3);
    const AlignedVector<double> X = numbers.many<double>(20 * 4, -1.0, 1.0);
    const AlignedVector<float> Z = numbers.many<float>(9 * 4, -1.0, 1.0);
    const DenseSource source(DenseView(X.data(), 20, 4), kernels[1]);
    const std::vector<Index> columns{8, 2}, rows{19};
    const auto prepared = source.foreign_columns(DenseView(Z.data(), 9, 4), columns);
    AlignedVector<double> out(unsigned_index(simd::panel_width));
    prepared->fill(rows, out.data(), simd::panel_width);
    for (std::size_t j = 0; j < columns.size(); ++j) {
        std::vector<double> z;
        for (Index k = 0; k < 4; ++k) z.push_back(static_cast<double>(Z[unsigned_index(columns[j] * 4 + k)]));
        CHECK_CLOSE(out[j], naive(kernels[1], X.data() + 19 * 4, z.data(), 4), 1e-14);
    }
    const DenseView narrower(Z.data(), 12, 3);
    CHECK_THROWS(source.foreign_columns(narrower, columns), std::invalid_argument);
}

// Float32 overflows at 3e38, and products of squared scores with kernel values before.
TEST(kernel_source_range_of_float32) {
    for (const Kernel& kernel : kernels) {
        for (const double size : {0.0, 1e-20, 1.0, 1e2}) {
            const std::vector<double> X{size, -size, 0.0, 2 * size};
            CHECK(DenseSource(DenseView(X.data(), 2, 2), kernel).fits_float32());
        }
        for (const double size : {1e20, 1e200, std::numeric_limits<double>::quiet_NaN()}) {
            const std::vector<double> X{size, -size, 0.0, 2 * size};
            CHECK(!DenseSource(DenseView(X.data(), 2, 2), kernel).fits_float32());
        }
    }
    const std::vector<double> X{1e3, 0.0, 0.0, 1.0};
    const DenseView data(X.data(), 2, 2);
    CHECK(!DenseSource(data, testing::poly(1.0, 1.0, 8)).fits_float32());
    CHECK(!DenseSource(data, testing::rbf(1e200)).fits_float32());
    CHECK(!DenseSource(data, testing::rbf(1e-200)).fits_float32());
}

TEST(kernel_source_sizes_are_checked) {
    CHECK(checked_product(3, 4) == 12);
    CHECK(checked_product(0, 4) == 0);
    CHECK_THROWS(checked_product(-1, 4), std::invalid_argument);
    CHECK_THROWS(checked_product(std::numeric_limits<Index>::max() / 2, 3), std::bad_alloc);
}

}  // namespace multimargin
