// The members of an online binary machine in every table against the scalar one.
#include <algorithm>

#include "check.hpp"
#include "problems.hpp"
#include "simd/table.hpp"

namespace multimargin {

namespace {

using simd::panel_width;
using simd::Table;
using testing::Numbers;

template <class Function>
void for_each_table(Function function) {
    for (int i = 0; simd::available_table(i) != nullptr; ++i) function(*simd::available_table(i));
}

// Eighths: their sums and products are exact, so that all tables find the same bits, and many of them are equal.
AlignedVector<double> eighths(Numbers& numbers, Index n, int low, int high) {
    AlignedVector<double> values(unsigned_index(n));
    for (double& v : values) v = static_cast<double>(low + static_cast<int>(numbers.below(high - low + 1))) / 8.0;
    return values;
}

// Panels of a machine lie apart in the row of a point, with panels of other classes between them.
struct Case {
    Case(Index n_panels, std::uint64_t seed) {
        Numbers numbers(seed);
        const Index n = n_panels * panel_width, n_slots = 3 * n;
        errors = eighths(numbers, n, -16, 16);
        up = eighths(numbers, n, 0, 3);
        down = eighths(numbers, n, 0, 3);
        diagonals = eighths(numbers, n, 6, 12);
        beta = eighths(numbers, n, -3, 3);
        row = eighths(numbers, n_slots, -4, 8);
        other = eighths(numbers, n_slots, -4, 8);
        for (Index p = 0; p < n_panels; ++p) starts.push_back((3 * p + numbers.below(3)) * panel_width);
        for (Index j = 0; j < n; ++j) {  // non-members have the most extreme errors
            if (numbers.below(3) != 0) continue;
            up[unsigned_index(j)] = down[unsigned_index(j)] = 0.0;
            errors[unsigned_index(j)] = numbers.below(2) == 0 ? -8.0 : 8.0;
        }
    }
    simd::Members members() { return {errors.data(), up.data(), down.data(), static_cast<simd::Size>(errors.size())}; }
    Index size() const { return static_cast<Index>(errors.size()); }
    double value(const AlignedVector<double>& values, Index place) const {
        return values[unsigned_index(starts[unsigned_index(place / panel_width)] + place % panel_width)];
    }

    AlignedVector<double> errors, up, down, diagonals, beta, row, other;
    std::vector<simd::Size> starts;
};

template <class Check>
void for_each_case(Check check) {
    for (const Index n_panels : {0, 1, 2, 5}) {
        for (std::uint64_t seed = 1; seed < 40; ++seed) check(Case(n_panels, seed));
    }
}

void check_extremes(const Case& c, const simd::Extremes& found) {
    Index top = -1, bottom = -1, n_free = 0;
    double sum = 0.0;
    for (Index j = 0; j < c.size(); ++j) {
        const std::size_t i = unsigned_index(j);
        if (c.up[i] > 0.0 && (top < 0 || c.errors[i] > c.errors[unsigned_index(top)])) top = j;
        if (c.down[i] > 0.0 && (bottom < 0 || c.errors[i] < c.errors[unsigned_index(bottom)])) bottom = j;
        if (c.up[i] > 0.0 && c.down[i] > 0.0) sum += c.errors[i], ++n_free;
    }
    CHECK(found.top == top && found.bottom == bottom && found.n_free == n_free && found.free_errors == sum);
    CHECK(top < 0 || found.highest == c.errors[unsigned_index(top)]);
    CHECK(bottom < 0 || found.lowest == c.errors[unsigned_index(bottom)]);
}

// The rule itself: the exact gain of the best step on both, in long double, the first of equal ones.
Index plain_partner(const Case& c, const simd::FirstMember& first) {
    Index best = -1;
    long double largest = 0.0L;
    for (Index j = 0; j < c.size(); ++j) {
        const std::size_t i = unsigned_index(j);
        const long double slope = (first.rises ? 1.0L : -1.0L) * (first.error - c.errors[i]);
        const long double most = std::min(first.room, first.rises ? c.down[i] : c.up[i]);
        if (slope <= first.tol || most <= 0.0L) continue;
        const long double bend = first.diagonal + c.diagonals[i] - 2.0L * c.row[i];
        const long double curvature = std::max(bend, 1e-12L), length = std::min(slope / curvature, most);
        const long double gain = length * (slope - 0.5L * length * curvature);
        if (gain > largest * (1.0L + 1e-9L)) largest = gain, best = j;
    }
    return best;
}

void check_partners(const Table& table, Case c) {
    for (const double error : {-9.0, -1.0, 0.5, 9.0}) {
        for (const double room : {0.125, 0.25, 100.0}) {
            const simd::FirstMember rising{error, room, 1.25, 0.25, true, c.row.data()};
            simd::FirstMember falling = rising;
            falling.rises = false;
            simd::Partner both[2];
            table.best_partners(c.members(), c.diagonals.data(), rising, falling, both);
            for (const simd::FirstMember& first : {rising, falling}) {
                const simd::Partner expected =
                    simd::scalar_table().best_partner(c.members(), c.diagonals.data(), first);
                const simd::Partner found = table.best_partner(c.members(), c.diagonals.data(), first);
                const simd::Partner at_once = both[first.rises ? 0 : 1];
                CHECK(found.place == expected.place && found.merit == expected.merit);
                CHECK(at_once.place == expected.place && at_once.merit == expected.merit);
                CHECK(found.place == plain_partner(c, first));
            }
        }
    }
}

}  // namespace

TEST(simd_members_move_and_their_extremes_are_found) {
    for_each_table([](const Table& table) {
        for_each_case([&](Case c) {
            check_extremes(c, table.move_members(c.members(), 0.0, nullptr, nullptr));
            for (const double* fall :
                 {static_cast<const double*>(c.other.data()), static_cast<const double*>(nullptr)}) {
                const AlignedVector<double> before = c.errors;
                const simd::Extremes found = table.move_members(c.members(), 0.5, c.row.data(), fall);
                for (Index j = 0; j < c.size(); ++j) {
                    const double taken = c.row[unsigned_index(j)] - (fall != nullptr ? fall[j] : 0.0);
                    CHECK(c.errors[unsigned_index(j)] == before[unsigned_index(j)] - 0.5 * taken);
                }
                check_extremes(c, found);
            }
        });
    });
}

TEST(simd_members_find_the_partner_of_the_largest_gain) {
    for_each_table([](const Table& table) { for_each_case([&](const Case& c) { check_partners(table, c); }); });
}

TEST(simd_members_score) {
    for_each_table([](const Table& table) {
        for_each_case([&](const Case& c) {
            double expected = 0.0;
            for (Index j = 0; j < c.size(); ++j) expected += c.beta[unsigned_index(j)] * c.value(c.row, j);
            CHECK(table.members_score(c.starts.data(), static_cast<simd::Size>(c.starts.size()), c.beta.data(),
                                      c.row.data()) == expected);
        });
    });
}

TEST(simd_tile_of_a_row_alone_has_the_columns_that_are_wanted) {
    Numbers numbers(4);
    const Index n_features = 3;
    const AlignedVector<double> row = numbers.many<double>(n_features, -1.0, 1.0);
    const AlignedVector<double> panel = numbers.many<double>(n_features * panel_width, -1.0, 1.0);
    const simd::Evaluation e{simd::Form::squared_difference, simd::Transform::exponential, -0.7, 0.0, 0.0, 0};
    for_each_table([&](const Table& table) {
        AlignedVector<double> all(unsigned_index(panel_width));
        table.tile_f64({row.data(), 1, n_features, panel.data(), all.data(), panel_width}, e);
        for (Index first = 0; first < panel_width; ++first) {
            for (Index last = first + 1; last <= panel_width; ++last) {
                AlignedVector<double> some(unsigned_index(panel_width), -1.0);
                table.tile_f64({row.data(), 1, n_features, panel.data(), some.data(), panel_width, first, last}, e);
                CHECK(std::equal(all.begin() + first, all.begin() + last, some.begin() + first));
            }
        }
    });
}

}  // namespace multimargin
