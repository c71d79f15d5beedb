#include "kernel/pair_row_cache.hpp"

#include "binary_cases.hpp"
#include "check.hpp"

namespace multimargin {

namespace {

using testing::TwoClouds;

constexpr Index n = 90, padded = 128;

template <class T>
constexpr double row_bytes = static_cast<double>(padded * static_cast<Index>(sizeof(T)));

template <class T>
void check_row(const TwoClouds& clouds, const T* values, Index example) {
    const double rounding = sizeof(T) == 4 ? 2e-6 : 1e-14;
    for (Index j = 0; j < n; ++j) CHECK_CLOSE(values[j], clouds.kernel(example, j), rounding);
}

struct RowsCase {
    RowsCase() : clouds(40, 50, 4, 3), source(clouds.source()) {}
    TwoClouds clouds;
    DenseSource source;
    CacheCounters counters;
};

}  // namespace

TEST(binary_rows_of_a_matrix) {
    const AlignedVector<double> values = testing::Numbers(1).many<double>(3 * 8, 0.0, 1.0);
    const MatrixRows<double> rows(values.data(), 8);
    CHECK(rows.row(0) == values.data() && rows.row(2) == values.data() + 16);
}

TEST(binary_rows_values_for_any_budget) {
    const auto check = []<class T>(T) {
        for (const double budget : {-1.0, 0.0, 3.5 * row_bytes<T>, 33.0 * row_bytes<T>, 1e9}) {
            RowsCase c;
            RowMemory<T> memory;
            SlotRows<T> rows(c.source, c.clouds.rows, budget, c.counters, memory);
            testing::Numbers numbers(7);
            Index before = 0;
            const T* values_before = rows.row(before);
            for (int i = 0; i < 400; ++i) {
                const Index example = numbers.below(n);
                const T* values = rows.row(example);
                check_row(c.clouds, values, example);
                check_row(c.clouds, values_before, before);  // the other row of a pair is still there
                values_before = values;
                before = example;
            }
            CHECK(c.counters.rows_computed + c.counters.hits == 401);
            if (budget == 1e9) CHECK(c.counters.rows_computed <= n);
            if (budget <= 0.0) CHECK(c.counters.rows_computed == 401);
        }
    };
    check(float{});
    check(double{});
}

TEST(binary_rows_computes_each_once_where_all_fit) {
    RowsCase c;
    RowMemory<float> memory;
    SlotRows<float> rows(c.source, c.clouds.rows, static_cast<double>(n) * row_bytes<float>, c.counters, memory);
    for (int pass = 0; pass < 3; ++pass) {
        for (Index e = 0; e < n; ++e) check_row(c.clouds, rows.row(e), e);
    }
    CHECK(c.counters.rows_computed == n && c.counters.hits == 2 * n);
}

TEST(binary_rows_least_recently_used_goes_first) {
    for (const Index capacity : {2, 3, 40}) {
        RowsCase c;
        RowMemory<double> memory;
        SlotRows<double> rows(c.source, c.clouds.rows, (static_cast<double>(capacity) + 0.5) * row_bytes<double>,
                              c.counters, memory);
        std::vector<Index> order;  // the least recently used first
        testing::Numbers numbers(2);
        for (int i = 0; i < 600; ++i) {
            const Index example = numbers.below(std::min<Index>(n, capacity + 3));
            const CacheCounters before = c.counters;
            check_row(c.clouds, rows.row(example), example);
            const auto place = std::find(order.begin(), order.end(), example);
            const bool kept = place != order.end();
            CHECK(c.counters.hits - before.hits == (kept ? 1 : 0));
            CHECK(c.counters.rows_computed - before.rows_computed == (kept ? 0 : 1));
            if (kept) order.erase(place);
            order.push_back(example);
            if (static_cast<Index>(order.size()) > capacity) order.erase(order.begin());
        }
    }
}

TEST(binary_rows_of_two_examples) {
    RowsCase c;
    const std::vector<Index> chosen{c.clouds.rows[7], c.clouds.rows[60]};
    RowMemory<double> memory;
    SlotRows<double> rows(c.source, chosen, 1.0, c.counters, memory);  // a budget for less than a row: two are kept
    const double* first = rows.row(0);
    const double* second = rows.row(1);
    CHECK_CLOSE(first[1], c.clouds.kernel(7, 60), 1e-14);
    CHECK_CLOSE(second[0], c.clouds.kernel(7, 60), 1e-14);
    CHECK_CLOSE(first[0], 1.0, 1e-14);
    CHECK(rows.row(0) == first && c.counters.hits == 1 && c.counters.rows_computed == 2);
}

}  // namespace multimargin
