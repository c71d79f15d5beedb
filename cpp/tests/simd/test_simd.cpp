// Every table this machine can run against the scalar one.
#include <algorithm>
#include <limits>

#include "base/rng.hpp"
#include "check.hpp"
#include "problems.hpp"
#include "simd/table.hpp"

namespace multimargin {

namespace {

using simd::Evaluation;
using simd::Form;
using simd::panel_width;
using simd::Table;
using simd::Tile;
using simd::Transform;
using testing::Numbers;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr Form forms[] = {Form::dot, Form::squared_difference, Form::absolute_difference};
constexpr Index odd_lengths[] = {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 63, 65, 129};

template <class Function>
void for_each_table(Function function) {
    for (int i = 1; simd::available_table(i) != nullptr; ++i) function(*simd::available_table(i));
}

template <class T>
void run(const Table& table, const Tile<T>& tile, const Evaluation& e) {
    if constexpr (std::is_same_v<T, float>) {
        table.tile_f32(tile, e);
    } else {
        table.tile_f64(tile, e);
    }
}

template <class T>
struct TileCase {
    TileCase(Index n, Index features, double size, std::uint64_t seed) : n_rows(n), n_features(features) {
        Numbers numbers(seed);
        rows = numbers.many<T>(n * features, -size, size);
        panel = numbers.many<T>(panel_width * features, -size, size);
    }
    AlignedVector<T> values(const Table& table, const Evaluation& e) const {
        AlignedVector<T> out(unsigned_index(n_rows * panel_width));
        run(table, Tile<T>{rows.data(), n_rows, n_features, panel.data(), out.data(), panel_width}, e);
        return out;
    }
    // The sum of the sizes of all terms: what rounding is relative to.
    double magnitude(Form form, Index r, Index j) const {
        double sum = 0.0;
        for (Index k = 0; k < n_features; ++k) {
            const double x = static_cast<double>(rows[unsigned_index(r * n_features + k)]);
            const double z = static_cast<double>(panel[unsigned_index(k * panel_width + j)]);
            const double apart = std::abs(x) + std::abs(z);
            sum += form == Form::dot ? std::abs(x * z) : (form == Form::squared_difference ? apart * apart : apart);
        }
        return sum;
    }
    Index n_rows, n_features;
    AlignedVector<T> rows, panel;
};

// What rounding in T may do to one value, given the size of its argument and of itself.
template <class T>
double allowed(const Evaluation& e, double magnitude, Index n_features, double value) {
    const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
    const double size = std::abs(e.scale) * magnitude + std::abs(e.shift);
    const double argument = unit * static_cast<double>(n_features + 4) * size;
    const double rounding = unit * (std::abs(value) + std::abs(e.offset));
    const double underflow = 2.0 * static_cast<double>(std::numeric_limits<T>::min());
    switch (e.transform) {
        case Transform::identity: return argument + rounding;
        case Transform::exponential:
            return (std::abs(value) + std::abs(e.offset)) * argument + 8 * rounding + underflow;
        case Transform::power: return e.degree * std::pow(size, e.degree - 1) * (argument + unit * size) + rounding;
        case Transform::hyperbolic_tangent: return argument + 8.0 * unit + rounding;
    }
    return 0.0;
}

template <class T>
void check_tile(const Table& table, const TileCase<T>& c, const Evaluation& e) {
    const AlignedVector<T> expected = c.values(simd::scalar_table(), e), found = c.values(table, e);
    for (Index r = 0; r < c.n_rows; ++r) {
        for (Index j = 0; j < panel_width; ++j) {
            const std::size_t i = unsigned_index(r * panel_width + j);
            const double value = static_cast<double>(expected[i]);
            CHECK_CLOSE(found[i], value, allowed<T>(e, c.magnitude(e.form, r, j), c.n_features, value));
        }
    }
}

template <class T>
void check_all_tiles(const Table& table) {
    for (const Index n_rows : {1, 3, 4, 5, 9}) {
        for (const Index n_features : {1, 2, 7, 64}) {
            const TileCase<T> c(n_rows, n_features, 1.5, 7);
            const double scale = 1.0 / static_cast<double>(n_features);
            for (const Form form : forms) {
                check_tile(table, c, {form, Transform::identity, 1.0, 0.0, 0.0, 0});
                check_tile(table, c, {form, Transform::exponential, -scale, 0.0, 0.0, 0});
                check_tile(table, c, {form, Transform::exponential, -0.7, 0.0, 1.0, 0});
                for (const int degree : {0, 1, 2, 3, 5}) {
                    check_tile(table, c, {form, Transform::power, scale, 0.5, 1.0, degree});
                }
                check_tile(table, c, {form, Transform::hyperbolic_tangent, scale, -0.3, 0.0, 0});
                check_tile(table, c, {form, Transform::hyperbolic_tangent, 50.0, 0.0, 0.0, 0});
            }
        }
    }
}

// One row of ones, so that the panel holds the arguments of exp.
template <class T>
void check_exponential(const Table& table, double low, double high) {
    const Index steps = 50;
    for (Index s = 0; s < steps; ++s) {
        TileCase<T> c(1, 1, 1.0, 1);
        c.rows[0] = T{1};
        for (Index j = 0; j < panel_width; ++j) {
            const double share =
                static_cast<double>(s * panel_width + j) / static_cast<double>(steps * panel_width - 1);
            c.panel[unsigned_index(j)] = static_cast<T>(low + (high - low) * share);
        }
        check_tile(table, c, {Form::dot, Transform::exponential, 1.0, 0.0, 0.0, 0});
    }
}

template <class T>
void check_accumulate(const Table& table) {
    Numbers numbers(3);
    const Index n_tile_rows = 101;
    const AlignedVector<T> tile = numbers.many<T>(n_tile_rows * panel_width, -1.0, 1.0);
    std::vector<const T*> rows;
    for (Index r = 0; r < n_tile_rows; ++r) rows.push_back(tile.data() + r * panel_width);
    for (const Index n : odd_lengths) {
        std::vector<int> positions;
        for (Index e = 0; e < n; ++e) positions.push_back(static_cast<int>(numbers.below(n_tile_rows)));
        const AlignedVector<T> values = numbers.many<T>(n, -2.0, 2.0);
        AlignedVector<double> expected = numbers.many<double>(panel_width, -1.0, 1.0), found = expected;
        const auto add = [&](const Table& t, double* out) {
            if constexpr (std::is_same_v<T, float>) {
                t.accumulate_f32(rows.data(), positions.data(), values.data(), n, out);
            } else {
                t.accumulate_f64(rows.data(), positions.data(), values.data(), n, out);
            }
        };
        add(simd::scalar_table(), expected.data());
        add(table, found.data());
        const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
        const double terms = static_cast<double>(std::min<Index>(n, std::is_same_v<T, float> ? 32 : n) + 2);
        for (std::size_t j = 0; j < expected.size(); ++j) {
            CHECK_CLOSE(found[j], expected[j], unit * terms * (2.0 * static_cast<double>(n) + 1.0));
        }
    }
}

struct BoxCase {
    BoxCase(Index n, std::uint64_t seed) {
        Numbers numbers(seed);
        gradient = numbers.many<double>(n, -2.0, 2.0);
        cap = numbers.many<double>(n, 0.5, 1.5);
        variable = numbers.many<double>(n, 0.1, 0.4);
        diagonal = numbers.many<double>(n, 0.5, 2.0);
        ridge = numbers.many<double>(n, 0.1, 1.0);
        f32 = numbers.many<float>(n, -0.5, 0.5);
        f64 = numbers.many<double>(n, -0.5, 0.5);
        for (std::size_t j = 0; j < variable.size(); ++j) {
            const Index place = numbers.below(4);
            if (place == 0) variable[j] = 0.0;
            if (place == 1) variable[j] = cap[j];
            if (place == 2) cap[j] = infinity;
        }
    }
    Index size() const { return static_cast<Index>(gradient.size()); }
    simd::BoxBlock block() const { return {gradient.data(), variable.data(), cap.data(), size()}; }
    AlignedVector<double> gradient, variable, cap, diagonal, ridge, f64;
    AlignedVector<float> f32;
};

struct MultiplyCase {
    Index n_rows, n_columns, depth;
    bool transposed;
};

void check_multiply(const MultiplyCase& c, Numbers& numbers) {
    constexpr Index gap = 3;
    const Index across = (c.transposed ? c.n_rows : c.depth) + gap, ld = c.n_columns + gap;
    const Index row = c.transposed ? 1 : across, column = c.transposed ? across : 1;
    const AlignedVector<float> left = numbers.many<float>((c.n_rows + c.depth) * across, -1.0, 1.0);
    const AlignedVector<float> right = numbers.many<float>(c.depth * ld, -1.0, 1.0);
    const AlignedVector<float> before = numbers.many<float>(c.n_rows * ld, -1.0, 1.0);
    const double unit = static_cast<double>(std::numeric_limits<float>::epsilon());
    for (int i = 0; simd::available_table(i) != nullptr; ++i) {  // the scalar one as well
        AlignedVector<float> found = before;
        simd::available_table(i)->multiply(
            {left.data(), row, column, right.data(), ld, found.data(), ld, c.n_rows, c.n_columns, c.depth});
        for (Index r = 0; r < c.n_rows; ++r) {
            for (Index j = 0; j < ld; ++j) {
                double sum = static_cast<double>(before[unsigned_index(r * ld + j)]), size = std::abs(sum);
                for (Index k = 0; k < c.depth && j < c.n_columns; ++k) {
                    const double term = static_cast<double>(left[unsigned_index(r * row + k * column)]) *
                                        static_cast<double>(right[unsigned_index(k * ld + j)]);
                    sum += term;
                    size += std::abs(term);
                }
                const double allowed = j < c.n_columns ? unit * static_cast<double>(c.depth + 1) * size : 0.0;
                CHECK_CLOSE(found[unsigned_index(r * ld + j)], sum, allowed);
            }
        }
    }
}

}  // namespace

TEST(simd_has_a_vector_table) {
    CHECK(simd::available_table(0) == &simd::scalar_table());
    CHECK(simd::available_table(-1) == nullptr && simd::available_table(100) == nullptr);
    int last = 0;
    while (simd::available_table(last + 1) != nullptr) ++last;
    CHECK(simd::available_table(last) == &simd::best_table());
}

TEST(simd_tiles_float) { for_each_table(check_all_tiles<float>); }
TEST(simd_tiles_double) { for_each_table(check_all_tiles<double>); }

TEST(simd_exponential_over_its_range) {
    for_each_table([](const Table& table) {
        check_exponential<float>(table, -110.0, 88.0);
        check_exponential<float>(table, -1.0, 1.0);
        check_exponential<float>(table, -1e30, -100.0);
        check_exponential<double>(table, -760.0, 709.0);
        check_exponential<double>(table, -1.0, 1.0);
        check_exponential<double>(table, -1e300, -740.0);
    });
}

TEST(simd_accumulate) {
    for_each_table(check_accumulate<float>);
    for_each_table(check_accumulate<double>);
}

TEST(simd_axpy) {
    for_each_table([](const Table& table) {
        for (const Index n : odd_lengths) {
            const BoxCase c(n, 5);
            AlignedVector<double> expected = c.gradient, found = c.gradient;
            simd::scalar_table().axpy_f32(1.7, c.f32.data(), expected.data(), n);
            table.axpy_f32(1.7, c.f32.data(), found.data(), n);
            simd::scalar_table().axpy_f64(-0.3, c.f64.data(), expected.data(), n);
            table.axpy_f64(-0.3, c.f64.data(), found.data(), n);
            for (std::size_t j = 0; j < found.size(); ++j) CHECK_CLOSE(found[j], expected[j], 12.0 * epsilon);
        }
    });
}

TEST(simd_gradient) {
    for_each_table([](const Table& table) {
        for (const Index n : odd_lengths) {
            const BoxCase c(n, 6);
            for (int parts = 0; parts < 8; ++parts) {
                const simd::GradientBlock block{1.5,
                                                1.0,
                                                -1.0,
                                                parts == 2 ? 0.0 : -0.8,
                                                c.gradient.data(),
                                                (parts & 1) != 0 ? c.f64.data() : nullptr,
                                                (parts & 2) != 0 ? c.diagonal.data() : nullptr,
                                                (parts & 4) != 0 ? c.variable.data() : nullptr,
                                                (parts & 4) != 0 ? c.ridge.data() : nullptr,
                                                n};
                AlignedVector<double> expected(unsigned_index(n)), found(unsigned_index(n));
                simd::scalar_table().gradient(block, expected.data());
                table.gradient(block, found.data());
                for (std::size_t j = 0; j < found.size(); ++j) CHECK_CLOSE(found[j], expected[j], 40.0 * epsilon);
            }
        }
    });
}

TEST(simd_box_violation_and_gain) {
    for_each_table([](const Table& table) {
        for (const Index n : odd_lengths) {
            for (std::uint64_t seed = 1; seed < 20; ++seed) {
                const BoxCase c(n, seed);
                CHECK(table.box_violation(c.block()) == simd::scalar_table().box_violation(c.block()));
                for (const double* ridge : {static_cast<const double*>(nullptr), c.ridge.data()}) {
                    const double expected = simd::scalar_table().box_gain(c.block(), c.diagonal.data(), ridge, 1.3);
                    const double found = table.box_gain(c.block(), c.diagonal.data(), ridge, 1.3);
                    CHECK_CLOSE(found, expected, 8.0 * epsilon * expected);
                }
            }
        }
    });
}

TEST(simd_pair_gain) {
    for_each_table([](const Table& table) {
        for (const Index n : odd_lengths) {
            for (std::uint64_t seed = 1; seed < 20; ++seed) {
                const BoxCase c(n, seed);
                const double* ridge = seed % 2 == 0 ? c.ridge.data() : nullptr;
                const simd::GainBlock block{c.block(), c.diagonal.data(), ridge, 0.5, 1.3, 1.1, 0.9};
                const double f32 = simd::scalar_table().pair_gain_f32(block, c.f32.data());
                const double f64 = simd::scalar_table().pair_gain_f64(block, c.f64.data());
                CHECK_CLOSE(table.pair_gain_f32(block, c.f32.data()), f32, 64.0 * epsilon * (1.0 + f32));
                CHECK_CLOSE(table.pair_gain_f64(block, c.f64.data()), f64, 64.0 * epsilon * (1.0 + f64));
            }
        }
    });
}

TEST(simd_pair_gain_without_violation) {
    for_each_table([](const Table& table) {
        BoxCase c(33, 1);
        for (std::size_t j = 0; j < c.gradient.size(); ++j) {
            c.gradient[j] = -1.0;
            c.variable[j] = 0.0;
        }
        const simd::GainBlock block{c.block(), c.diagonal.data(), nullptr, 0.5, 1.3, 1.1, 0.9};
        CHECK(table.pair_gain_f64(block, c.f64.data()) == 0.0);
        CHECK(table.box_violation(c.block()) == 0.0);
    });
}

TEST(simd_simplex_bounds) {
    for_each_table([](const Table& table) {
        for (const Index n : odd_lengths) {
            const BoxCase c(n, 9);
            AlignedVector<double> top(unsigned_index(n), 0.0), low(unsigned_index(n), infinity);
            AlignedVector<double> top2 = top, low2 = low;
            for (const auto* g : {&c.gradient, &c.f64}) {
                simd::scalar_table().simplex_bounds(g->data(), c.variable.data(), top.data(), low.data(), n);
                table.simplex_bounds(g->data(), c.variable.data(), top2.data(), low2.data(), n);
            }
            CHECK(top == top2 && low == low2);
        }
    });
}

// Against the scalar twin and the plain sum, for either order of the left matrix; nothing beside the product changes.
TEST(simd_subtract_columns) {
    for_each_table([](const Table& table) {
        for (const Index n : odd_lengths) {
            Rng rng(static_cast<std::uint64_t>(n));
            const auto draw = [&] { return static_cast<double>(rng.below(2000)) / 1000.0 - 1.0; };
            AlignedVector<double> columns(unsigned_index(4 * (n + 3))), out(unsigned_index(n)), expected;
            std::generate(columns.begin(), columns.end(), draw);
            std::generate(out.begin(), out.end(), draw);
            expected = out;
            const double factors[4] = {0.5, -1.5, 0.0, 2.0};
            table.subtract_columns(columns.data(), n + 3, factors, out.data(), n);
            for (Index j = 0; j < n; ++j) {
                for (Index k = 0; k < 4; ++k) {
                    expected[unsigned_index(j)] -= factors[k] * columns[unsigned_index(k * (n + 3) + j)];
                }
                CHECK_CLOSE(out[unsigned_index(j)], expected[unsigned_index(j)], 1e-14);
            }
        }
    });
}

TEST(simd_multiply) {
    Numbers numbers(11);
    for (const Index n_rows : {1, 2, 3, 5, 6, 7, 8, 13}) {
        for (const Index n_columns : {16, 48}) {
            for (const Index depth : {0, 1, 2, 17, 64}) {
                for (const bool transposed : {false, true}) {
                    check_multiply({n_rows, n_columns, depth, transposed}, numbers);
                }
            }
        }
    }
}

}  // namespace multimargin
