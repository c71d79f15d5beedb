// Weights by feature and class in every table against the scalar one.
#include <limits>

#include "check.hpp"
#include "problems.hpp"
#include "simd/table.hpp"

namespace multimargin {

namespace {

using simd::Lines;
using simd::Table;
using testing::Numbers;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr Index n_lines = 40;

struct LinesCase {
    LinesCase(Index n, Index columns, std::uint64_t seed) : ld(columns) {
        Numbers numbers(seed);
        values = numbers.many<double>(n, -1.0, 1.0);
        matrix = numbers.many<double>(n_lines * ld, -1.0, 1.0);
        change = numbers.many<double>(ld, -1.0, 1.0);
        for (Index e = 0; e < n; ++e) places.push_back(static_cast<int>((7 * e + 3) % n_lines));
    }
    Lines lines(bool in_turn) const {
        return {values.data(), in_turn ? nullptr : places.data(), static_cast<Index>(values.size())};
    }

    Index ld;
    AlignedVector<double> values, matrix, change;
    std::vector<int> places;
};

void check_lines(const Table& table, const LinesCase& c, bool in_turn) {
    const double rounding = 4.0 * epsilon * static_cast<double>(c.values.size() + 1);
    AlignedVector<double> expected(unsigned_index(c.ld), 7.0), found(unsigned_index(c.ld), -7.0);
    simd::scalar_table().combine_lines(c.lines(in_turn), c.matrix.data(), c.ld, expected.data());
    table.combine_lines(c.lines(in_turn), c.matrix.data(), c.ld, found.data());
    for (std::size_t j = 0; j < found.size(); ++j) CHECK_CLOSE(found[j], expected[j], rounding);
    AlignedVector<double> left = c.matrix, right = c.matrix;
    simd::scalar_table().spread_lines(c.lines(in_turn), c.change.data(), left.data(), c.ld);
    table.spread_lines(c.lines(in_turn), c.change.data(), right.data(), c.ld);
    for (std::size_t j = 0; j < left.size(); ++j) CHECK_CLOSE(right[j], left[j], rounding);
}

template <class Function>
void for_each_table(Function function) {
    for (int i = 0; simd::available_table(i) != nullptr; ++i) function(*simd::available_table(i));
}

}  // namespace

TEST(simd_lines) {
    for_each_table([](const Table& table) {
        for (const Index n : {0, 1, 2, 3, 14, 39, 40}) {
            for (const Index ld : {4, 8, 12, 16, 20, 24, 32, 44}) {
                const LinesCase c(n, ld, 3);
                check_lines(table, c, true);
                check_lines(table, c, false);
            }
        }
    });
}

// The scalar twin from the definition: one line named twice counts twice.
TEST(simd_lines_scalar) {
    const double values[] = {2.0, 3.0, 0.5}, change[] = {1.0, 0.0, 0.0, 4.0};
    const int places[] = {1, 0, 1};
    double matrix[] = {1.0, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0}, out[4];
    const Lines lines{values, places, 3};
    simd::scalar_table().combine_lines(lines, matrix, 4, out);
    CHECK(out[0] == 28.0 && out[1] == 56.0 && out[2] == 84.0 && out[3] == 112.0);
    simd::scalar_table().spread_lines(lines, change, matrix, 4);
    CHECK(matrix[0] == 4.0 && matrix[3] == 16.0 && matrix[4] == 12.5 && matrix[7] == 50.0 && matrix[5] == 20.0);
}

// Products alone: the same bits everywhere.
TEST(simd_square_times) {
    for_each_table([](const Table& table) {
        for (const Index n : {0, 1, 7, 8, 31, 32, 33, 100}) {
            Numbers numbers(static_cast<std::uint64_t>(n));
            const auto given = numbers.many<double>(n, 0.0, 1.0);
            for (const int times : {0, 1, 7}) {
                auto found = given, expected = given;
                table.square_times(found.data(), n, times);
                for (double& value : expected) {
                    for (int t = 0; t < times; ++t) value = value * value;
                }
                CHECK(found == expected);
            }
        }
    });
}

TEST(simd_dot_products) {
    for_each_table([](const Table& table) {
        for (const Index n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 123, 500}) {
            Numbers numbers(static_cast<std::uint64_t>(n));
            const auto x = numbers.many<float>(n, -1.0, 1.0);
            const auto y = numbers.many<double>(n, -1.0, 1.0), z = numbers.many<double>(n, -1.0, 1.0);
            double mixed = 0.0, plain = 0.0;
            for (std::size_t j = 0; j < x.size(); ++j) {
                mixed += static_cast<double>(x[j]) * y[j];
                plain += z[j] * y[j];
            }
            const double rounding = epsilon * static_cast<double>(n + 1);
            CHECK_CLOSE(table.dot_mixed(x.data(), y.data(), n), mixed, rounding);
            CHECK_CLOSE(table.dot(z.data(), y.data(), n), plain, rounding);
        }
    });
}

}  // namespace multimargin
