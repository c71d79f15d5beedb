// The part of every table that works on blocks of examples, against the scalar one.
#include <limits>

#include "check.hpp"
#include "problems.hpp"
#include "simd/table.hpp"

namespace multimargin {

namespace {

using simd::ScanGroup;
using simd::ScanTerm;
using simd::Table;
using testing::Numbers;

constexpr Index lengths[] = {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 129};
constexpr Index guard = 16;

template <class T>
constexpr double unit = static_cast<double>(std::numeric_limits<T>::epsilon());

template <class Function>
void for_each_table(Function function) {
    for (int i = 1; simd::available_table(i) != nullptr; ++i) function(*simd::available_table(i));
}

template <class T, class F32, class F64>
auto of_type(F32 f32, F64 f64) {
    if constexpr (std::is_same_v<T, float>) {
        return f32;
    } else {
        return f64;
    }
}

// Columns of n numbers. What vectors read beyond them must not matter, so it is the worst that there is.
template <class T>
AlignedVector<T> padded_columns(Numbers& numbers, Index n, Index n_columns, double low, double high) {
    AlignedVector<T> values;
    for (Index c = 0; c < n_columns; ++c) {
        const AlignedVector<T> column = numbers.many<T>(n, low, high);
        values.insert(values.end(), column.begin(), column.end());
        values.insert(values.end(), unsigned_index(simd::overrun), std::numeric_limits<T>::quiet_NaN());
    }
    return values;
}

// Amounts at 0, at the cap and inside; sums below the cap, at it, and so close that it counts as reached.
template <class T>
struct ScanCase {
    ScanCase(Index n_examples, Index n_terms, std::uint64_t seed) : n(n_examples), ld(n + simd::overrun) {
        Numbers numbers(seed);
        scores = padded_columns<T>(numbers, n, n_terms + 1, -2.0, 2.0);
        variables = padded_columns<T>(numbers, n, n_terms, 0.1, 0.4);
        cap = padded_columns<T>(numbers, n, 1, 0.5, 1.5);
        sum = padded_columns<T>(numbers, n, 1, 0.1, 0.4);
        ridge = padded_columns<T>(numbers, n, 1, 0.1, 1.0);
        for (Index p = 0; p < n_terms; ++p) {
            const auto number = [&](double low, double high) { return static_cast<T>(numbers.uniform(low, high)); };
            terms.push_back({number(0.0, 1.5), number(-1.5, 1.5), number(-1.0, 1.0), (n_terms - p) * ld});
        }
        for (Index j = 0; j < n; ++j) place(j, numbers);
    }

    void place(Index j, Numbers& numbers) {
        T& c = cap[unsigned_index(j)];
        const T near_cap[] = {sum[unsigned_index(j)], c, static_cast<T>(c * (1.0 - 1e-13)),
                              static_cast<T>(c * (1.0 - 1e-5))};
        sum[unsigned_index(j)] = near_cap[numbers.below(4)];
        for (std::size_t p = 0; p < terms.size(); ++p) {
            T& a = variables[p * unsigned_index(ld) + unsigned_index(j)];
            const T places[] = {a, T(0), c};
            a = places[numbers.below(3)];
        }
        if (numbers.below(4) == 0) c = static_cast<T>(infinity);
    }

    // The first score column belongs to no component alone: it is the one that all share.
    ScanGroup<T> group(Bound bound, bool shared, bool squared, T* violations) const {
        const bool simplex = bound == Bound::simplex;
        return {terms.data(),
                static_cast<Index>(terms.size()),
                scores.data(),
                shared ? scores.data() : nullptr,
                variables.data(),
                ld,
                cap.data(),
                simplex ? sum.data() : nullptr,
                squared ? ridge.data() : nullptr,
                violations,
                n};
    }

    AlignedVector<T> violations(const Table& table, Bound bound, bool shared, bool squared) const {
        AlignedVector<T> out(unsigned_index(n + simd::overrun + guard), T(-1));
        const ScanGroup<T> g = group(bound, shared, squared, out.data());
        if (bound == Bound::box) {
            of_type<T>(table.scan_box_f32, table.scan_box_f64)(g);
        } else {
            of_type<T>(table.scan_simplex_f32, table.scan_simplex_f64)(g);
        }
        return out;
    }

    Index n, ld;
    AlignedVector<T> scores, variables, cap, sum, ridge;
    std::vector<ScanTerm<T>> terms;
};

template <class T>
void check_scan(const Table& table, Bound bound) {
    for (const Index n : lengths) {
        for (const Index n_terms : {1, 2, 5}) {
            for (int parts = 0; parts < 4; ++parts) {
                const ScanCase<T> c(n, n_terms, static_cast<std::uint64_t>(100 * n + n_terms));
                const bool shared = (parts & 1) != 0, squared = (parts & 2) != 0;
                const AlignedVector<T> expected = c.violations(simd::scalar_table(), bound, shared, squared);
                const AlignedVector<T> found = c.violations(table, bound, shared, squared);
                // A gradient is a sum of terms of at most 8 in all, a violation the difference of two.
                for (Index j = 0; j < n; ++j) {
                    CHECK_CLOSE(found[unsigned_index(j)], expected[unsigned_index(j)], 64.0 * unit<T>);
                }
                for (Index j = 0; j < guard; ++j) CHECK(found[unsigned_index(n + simd::overrun + j)] == T(-1));
            }
        }
    }
}

template <class T>
void check_collect(const Table& table) {
    for (const Index n : lengths) {
        const AlignedVector<T> values = Numbers(8).many<T>(n, -1.0, 1.0);
        std::vector<T> thresholds{T(-2), T(0), T(0.9), T(2)};
        if (n > 0) thresholds.push_back(values[unsigned_index(n / 2)]);  // one that is reached exactly
        for (const T threshold : thresholds) {
            const auto collected = [&](const Table& t) {
                std::vector<int> positions(unsigned_index(n + simd::overrun));
                const auto collect = of_type<T>(t.collect_f32, t.collect_f64);
                positions.resize(unsigned_index(collect(values.data(), n, threshold, positions.data())));
                return positions;
            };
            CHECK(collected(table) == collected(simd::scalar_table()));
        }
    }
}

template <class T>
void check_largest(const Table& table) {
    const auto largest = of_type<T>(table.largest_f32, table.largest_f64);
    const auto twin = of_type<T>(simd::scalar_table().largest_f32, simd::scalar_table().largest_f64);
    for (const Index n : lengths) {
        AlignedVector<T> values = Numbers(9).many<T>(n, -1.0, 1.0);
        CHECK(largest(values.data(), n) == twin(values.data(), n));
        for (T& v : values) v = std::min(v, T(-0.5));
        CHECK(largest(values.data(), n) == T(0) && twin(values.data(), n) == T(0));
        for (T& v : values) {  // every place once
            const T before = v;
            v = T(0.25);
            CHECK(largest(values.data(), n) == T(0.25) && twin(values.data(), n) == T(0.25));
            v = before;
        }
    }
}

// Some of the columns, out of order. The rest, and what lies between the columns, must stay as it is.
template <class T>
void check_add_row(const Table& table) {
    const std::vector<int> columns{3, 0, 4};
    for (const Index n : {0, 16, 32, 48, 112}) {
        for (const Index n_columns : {0, 1, 3}) {
            Numbers numbers(11);
            const Index ld = n + simd::overrun;
            const AlignedVector<T> row = numbers.many<T>(n, -1.0, 1.0), factors = numbers.many<T>(3, -2.0, 2.0);
            const AlignedVector<T> before = numbers.many<T>(5 * ld, -1.0, 1.0);
            const auto added = [&](const Table& t) {
                AlignedVector<T> scores = before;
                of_type<T>(t.add_row_f32, t.add_row_f64)(
                    {row.data(), scores.data(), ld, columns.data(), factors.data(), n_columns, n});
                return scores;
            };
            const AlignedVector<T> expected = added(simd::scalar_table()), found = added(table);
            Index n_changed = 0;
            for (std::size_t i = 0; i < found.size(); ++i) {
                n_changed += found[i] != before[i] ? 1 : 0;
                CHECK_CLOSE(found[i], expected[i], expected[i] == before[i] ? 0.0 : 4.0 * unit<T>);
            }
            CHECK(n_changed == n * n_columns);
        }
    }
}

}  // namespace

TEST(simd_scan_box) {
    for_each_table([](const Table& table) {
        check_scan<float>(table, Bound::box);
        check_scan<double>(table, Bound::box);
    });
}

TEST(simd_scan_simplex) {
    for_each_table([](const Table& table) {
        check_scan<float>(table, Bound::simplex);
        check_scan<double>(table, Bound::simplex);
    });
}

TEST(simd_scan_collect) {
    for_each_table(check_collect<float>);
    for_each_table(check_collect<double>);
}

TEST(simd_scan_largest) {
    for_each_table(check_largest<float>);
    for_each_table(check_largest<double>);
}

TEST(simd_scan_add_row) {
    for_each_table(check_add_row<float>);
    for_each_table(check_add_row<double>);
}

}  // namespace multimargin
