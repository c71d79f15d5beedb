// Pairs of variables in every table against the scalar one, and rows that a tile gets alone.
#include <limits>

#include "check.hpp"
#include "problems.hpp"
#include "simd/table.hpp"

namespace multimargin {

namespace {

using simd::PairChoice;
using simd::PairExtreme;
using simd::Table;
using testing::Numbers;

constexpr Index lengths[] = {32, 64, 96, 160, 512};

template <class Function>
void for_each_table(int first, Function function) {
    for (int i = first; simd::available_table(i) != nullptr; ++i) function(*simd::available_table(i));
}

// Eighths: their sums and products are exact, so that all tables find the same bits, and many of them are equal.
template <class T>
AlignedVector<T> eighths(Numbers& numbers, Index n, int low, int high) {
    AlignedVector<T> values(unsigned_index(n));
    for (T& v : values) v = static_cast<T>(low + static_cast<int>(numbers.below(high - low + 1))) / T(8);
    return values;
}

template <class T>
struct PairCase {
    // All alike and in both sets.
    explicit PairCase(Index n)
        : scores(unsigned_index(n), T(1)),
          outside_low(unsigned_index(n), T(0)),
          outside_up(unsigned_index(n), T(0)),
          row(unsigned_index(n), T(0.5)),
          other(unsigned_index(n), T(0.25)),
          diagonal(unsigned_index(n), T(1)) {}

    // Many equal values; some are in no set, and these have the most tempting scores.
    PairCase(Index n, std::uint64_t seed) : PairCase(n) {
        Numbers numbers(seed);
        scores = eighths<T>(numbers, n, -16, 16);
        row = eighths<T>(numbers, n, -4, 8);
        other = eighths<T>(numbers, n, -4, 8);
        diagonal = eighths<T>(numbers, n, 6, 12);
        for (Index j = 0; j < n; ++j) {
            if (numbers.below(3) == 0) leave_low(j), scores[unsigned_index(j)] = T(8);
            if (numbers.below(3) == 0) leave_up(j), scores[unsigned_index(j)] = T(-8);
        }
    }

    Index size() const { return static_cast<Index>(scores.size()); }
    void leave_low(Index j) { outside_low[unsigned_index(j)] = static_cast<T>(-simd::pair_outside); }
    void leave_up(Index j) { outside_up[unsigned_index(j)] = static_cast<T>(simd::pair_outside); }

    PairChoice<T> second(const Table& table, T first_score, T first_curvature) const {
        const simd::PairScan<T> scan{scores.data(), outside_low.data(), row.data(), diagonal.data(),
                                     first_score,   first_curvature,    size()};
        if constexpr (std::is_same_v<T, float>) {
            return table.choose_second_f32(scan);
        } else {
            return table.choose_second_f64(scan);
        }
    }
    PairExtreme<T> update(const Table& table, T factor) {
        const simd::PairUpdate<T> change{scores.data(), row.data(), other.data(), factor, outside_up.data(), size()};
        if constexpr (std::is_same_v<T, float>) {
            return table.update_pair_f32(change);
        } else {
            return table.update_pair_f64(change);
        }
    }

    AlignedVector<T> scores, outside_low, outside_up, row, other, diagonal;
};

// The rule itself, in long double. Quotients of the exact numbers above are apart by more than their rounding or equal.
template <class T>
Index plain_second(const PairCase<T>& c, T first_score, T first_curvature) {
    Index best = 0;
    long double largest = 0.0L;
    for (Index j = 0; j < c.size(); ++j) {
        const std::size_t i = unsigned_index(j);
        const long double difference = static_cast<long double>(c.scores[i]) - first_score;
        if (c.outside_low[i] != T(0) || difference <= 0.0L) continue;
        const long double bend = static_cast<long double>(first_curvature) + c.diagonal[i] - 2.0L * c.row[i];
        const long double gain = difference * difference / std::max(bend, 1e-12L);
        if (gain > largest * (1.0L + 1e-9L)) largest = gain, best = j;
    }
    return best;
}

template <class T>
void check_second(const Table& table) {
    for (const Index n : lengths) {
        for (std::uint64_t seed = 1; seed < 40; ++seed) {
            const PairCase<T> c(n, seed);
            for (const T first : {T(-8), T(-1), T(1.5), T(9)}) {
                const PairChoice<T> expected = c.second(simd::scalar_table(), first, T(1.25));
                const PairChoice<T> found = c.second(table, first, T(1.25));
                CHECK(found.largest == expected.largest && found.second == expected.second);
                CHECK(found.second == plain_second(c, first, T(1.25)));
            }
        }
    }
}

template <class T>
void check_update(const Table& table) {
    for (const Index n : lengths) {
        for (std::uint64_t seed = 1; seed < 40; ++seed) {
            for (const T factor : {T(0), T(0.5), T(-2)}) {
                PairCase<T> expected(n, seed), found(n, seed);
                const PairExtreme<T> a = expected.update(simd::scalar_table(), factor), b = found.update(table, factor);
                CHECK(a.value == b.value && a.place == b.place && expected.scores == found.scores);
            }
        }
    }
    // Numbers of any kind: a product and a sum may fuse in one table and not in another.
    PairCase<T> expected(512), found(512);
    Numbers numbers(3);
    expected.scores = found.scores = numbers.many<T>(512, -1.0, 1.0);
    expected.row = found.row = numbers.many<T>(512, 0.0, 1.0);
    const PairExtreme<T> a = expected.update(simd::scalar_table(), T(0.37)), b = found.update(table, T(0.37));
    const double rounding = 4.0 * static_cast<double>(std::numeric_limits<T>::epsilon());
    for (std::size_t j = 0; j < 512; ++j) CHECK_CLOSE(found.scores[j], expected.scores[j], rounding);
    CHECK_CLOSE(b.value, a.value, rounding);
    CHECK(found.scores[unsigned_index(b.place)] == b.value);
}

// An extreme at every place once; then a second one like it behind: the first is taken.
template <class T>
void check_every_place(const Table& table) {
    const Index n = 160;
    for (Index j = 0; j < n; ++j) {
        for (const Index later : {j, j + 1, j + 8, j + 16, j + 17, j + 32, n - 1}) {
            if (later < j || later >= n) continue;
            PairCase<T> c(n);
            c.scores[unsigned_index(j)] = c.scores[unsigned_index(later)] = T(2);
            const PairChoice<T> choice = c.second(table, T(0), T(1));
            CHECK(choice.largest == T(2) && choice.second == j);
            c.scores[unsigned_index(j)] = c.scores[unsigned_index(later)] = T(-2);
            const PairExtreme<T> least = c.update(table, T(2));  // adds half to all
            CHECK(least.value == T(-1.5) && least.place == j);
            // not the largest score, but the largest gain
            PairCase<T> near(n);
            near.row[unsigned_index(j)] = near.row[unsigned_index(later)] = T(0.875);
            CHECK(near.second(table, T(0), T(1)).second == j);
            PairCase<T> same(n);  // no curvature at all
            same.row[unsigned_index(j)] = same.row[unsigned_index(later)] = T(1);
            CHECK(same.second(table, T(0), T(1)).second == j);
        }
    }
}

template <class T>
void check_sets(const Table& table) {
    const Index n = 96, inside = 70;
    for (Index j = 0; j < inside; j += 3) {
        PairCase<T> c(n);
        for (Index k = 0; k < n; ++k) {
            if (k != j) c.leave_low(k), c.leave_up(k);
            // what a padded entry may hold: any finite number
            if (k >= inside) c.scores[unsigned_index(k)] = T(k % 2 == 0 ? 1000 : -1000);
            if (k >= inside) c.row[unsigned_index(k)] = T(k % 3 == 0 ? 1000 : -1000);
        }
        const PairChoice<T> choice = c.second(table, T(0), T(1));
        CHECK(choice.largest == T(1) && choice.second == j);
        const PairExtreme<T> least = c.update(table, T(2));
        CHECK(least.value == T(1.5) && least.place == j);
        c.leave_low(j);
        c.leave_up(j);
        CHECK(c.second(table, T(0), T(1)).largest <= static_cast<T>(-simd::pair_outside / 2));
        CHECK(c.update(table, T(0)).value >= static_cast<T>(simd::pair_outside / 2));
    }
    // none gains: none lies above the first
    const PairCase<T> c(n);
    const PairChoice<T> none = c.second(table, T(1), T(1));
    CHECK(none.largest == T(1) && none.second == 0);
}

// Scores beyond any number that could stand for "outside", and what padding holds where kernel values overflow.
template <class T>
void check_extremes(const Table& table) {
    const Index n = 96, inside = 70;
    const T largest = std::numeric_limits<T>::max(), infinite = std::numeric_limits<T>::infinity();
    for (const T size : {T(1e15), T(1e31), T(1e37), largest / 4}) {
        for (const T padding : {size * 3, -size * 3, infinite, -infinite, std::numeric_limits<T>::quiet_NaN()}) {
            for (Index j = 0; j < inside; j += 7) {
                PairCase<T> c(n);
                for (Index k = inside; k < n; ++k) {
                    c.leave_low(k), c.leave_up(k);
                    c.scores[unsigned_index(k)] = padding;
                }
                for (Index k = 0; k < inside; ++k) c.scores[unsigned_index(k)] = T(k % 3) * size / 8;
                c.scores[unsigned_index(j)] = size;
                CHECK(c.second(table, size / 2, T(1)).largest == size);
                CHECK(c.second(simd::scalar_table(), size / 2, T(1)).largest == size);
                c.scores[unsigned_index(j)] = -size;
                PairCase<T> same = c;
                const PairExtreme<T> least = c.update(table, T(0)), twin = same.update(simd::scalar_table(), T(0));
                CHECK(least.value == -size && least.place == j);
                CHECK(twin.value == -size && twin.place == j);
            }
        }
    }
}

// A score that is not a number is never chosen; where there is no other, none is chosen.
template <class T>
void check_no_numbers(const Table& table) {
    const Index n = 96;
    const T nan = std::numeric_limits<T>::quiet_NaN(), infinite = std::numeric_limits<T>::infinity();
    for (const Table* each : {&table, &simd::scalar_table()}) {
        PairCase<T> c(n);
        for (Index k = 0; k < n; ++k) c.scores[unsigned_index(k)] = nan;
        CHECK(c.second(*each, T(0), T(1)).largest == -infinite);
        CHECK(c.second(*each, T(0), T(1)).second < n);
        CHECK(c.update(*each, T(0)).value == infinite);
        for (const Index j : {Index{0}, Index{17}, Index{33}, n - 1}) {
            c.scores[unsigned_index(j)] = T(2);
            CHECK(c.second(*each, T(0), T(1)).largest == T(2) && c.second(*each, T(0), T(1)).second == j);
            const PairExtreme<T> least = c.update(*each, T(0));
            CHECK(least.value == T(2) && least.place == j);
            c.scores[unsigned_index(j)] = nan;
        }
        c.row.assign(unsigned_index(n), nan);
        c.scores.assign(unsigned_index(n), T(1));
        CHECK(c.second(*each, T(0), T(1)).second < n);
        CHECK(c.update(*each, T(1)).value == infinite);
    }
}

template <class T>
AlignedVector<T> tile_values(const Table& table, const AlignedVector<T>& rows, Index n_rows,
                             const AlignedVector<T>& panel, const simd::Evaluation& e) {
    AlignedVector<T> out(unsigned_index(n_rows * simd::panel_width));
    const Index n_features = static_cast<Index>(panel.size()) / simd::panel_width;
    const simd::Tile<T> tile{rows.data(), n_rows, n_features, panel.data(), out.data(), simd::panel_width};
    if constexpr (std::is_same_v<T, float>) {
        table.tile_f32(tile, e);
    } else {
        table.tile_f64(tile, e);
    }
    return out;
}

// A row that is computed again, alone or with others, must be the row that it was.
template <class T>
void check_single_rows(const Table& table) {
    using simd::Form;
    using simd::Transform;
    Numbers numbers(5);
    for (const Index n_features : {1, 2, 7, 33}) {
        const AlignedVector<T> panel = numbers.many<T>(simd::panel_width * n_features, -1.5, 1.5);
        for (Index n = 1; n < 14; ++n) {
            const AlignedVector<T> rows = numbers.many<T>(n * n_features, -1.5, 1.5);
            for (const Form form : {Form::dot, Form::squared_difference, Form::absolute_difference}) {
                for (const simd::Evaluation& e :
                     {simd::Evaluation{form, Transform::identity, 0.7, 0.1, 0.3, 0},
                      simd::Evaluation{form, Transform::exponential, -0.7, 0.0, 1.0, 0},
                      simd::Evaluation{form, Transform::power, 0.3, 0.5, 0.0, 3},
                      simd::Evaluation{form, Transform::hyperbolic_tangent, 0.3, 0, 0, 0}}) {
                    const AlignedVector<T> together = tile_values(table, rows, n, panel, e);
                    for (Index r = 0; r < n; ++r) {
                        const AlignedVector<T> row(rows.begin() + r * n_features, rows.begin() + (r + 1) * n_features);
                        const AlignedVector<T> alone = tile_values(table, row, 1, panel, e);
                        CHECK(std::equal(alone.begin(), alone.end(), together.begin() + r * simd::panel_width));
                    }
                }
            }
        }
    }
}

}  // namespace

TEST(simd_pairs_second) {
    for_each_table(0, check_second<float>);
    for_each_table(0, check_second<double>);
}

TEST(simd_pairs_update) {
    for_each_table(1, check_update<float>);
    for_each_table(1, check_update<double>);
}

TEST(simd_pairs_every_place_and_ties) {
    for_each_table(0, check_every_place<float>);
    for_each_table(0, check_every_place<double>);
}

TEST(simd_pairs_leave_out_who_is_in_no_set) {
    for_each_table(0, check_sets<float>);
    for_each_table(0, check_sets<double>);
}

TEST(simd_pairs_with_scores_of_any_size) {
    for_each_table(0, check_extremes<float>);
    for_each_table(0, check_extremes<double>);
}

TEST(simd_pairs_choose_nobody_whose_score_is_no_number) {
    for_each_table(0, check_no_numbers<float>);
    for_each_table(0, check_no_numbers<double>);
}

TEST(simd_rows_alone_are_the_rows_of_a_group) {
    for_each_table(0, check_single_rows<float>);
    for_each_table(0, check_single_rows<double>);
}

}  // namespace multimargin
