#include "kernel/row_cache.hpp"

#include "check.hpp"

namespace multimargin {

namespace {

// k(row r, column j) = 1000 r + (what column j is called).
template <class T>
class CountedColumns final : public KernelColumns<T> {
  public:
    explicit CountedColumns(std::vector<Index> names)
        : KernelColumns<T>(static_cast<Index>(names.size())), names_(std::move(names)) {}

    struct NumberedRows final : KernelRows {
        explicit NumberedRows(std::span<const Index> rows)
            : KernelRows(static_cast<Index>(rows.size())), numbers(rows.begin(), rows.end()) {}
        std::vector<Index> numbers;
    };

    std::unique_ptr<KernelRows> prepare(std::span<const Index> rows) const override {
        return std::make_unique<NumberedRows>(rows);
    }

    void fill_panel(const KernelRows& rows, Index first, Index n_rows, Index panel, T* out, Index ld) const override {
        const std::vector<Index>& numbers = static_cast<const NumberedRows&>(rows).numbers;
        for (Index r = 0; r < n_rows; ++r) {
            for (Index j = 0; j < simd::panel_width; ++j) {
                const Index column = panel * simd::panel_width + j;
                const Index name = column < this->size() ? names_[unsigned_index(column)] : 0;
                out[r * ld + j] = static_cast<T>(1000 * numbers[unsigned_index(first + r)] + name);
            }
        }
    }

  private:
    std::vector<Index> names_;
};

template <class T>
std::unique_ptr<KernelColumns<T>> columns_named(Index first, Index step, Index n) {
    std::vector<Index> names;
    for (Index j = 0; j < n; ++j) names.push_back(first + j * step);
    return std::make_unique<CountedColumns<T>>(std::move(names));
}

}  // namespace

TEST(row_cache_drops_the_least_recently_used) {
    CacheCounters counters;
    RowCache<float> cache(columns_named<float>(0, 1, 64), 3 * 64 * sizeof(float), counters);
    CHECK(cache.capacity() == 3);
    for (const Index row : {1, 2, 3}) cache.row(row);
    cache.row(1);  // now 2 is the oldest
    CHECK(counters.rows_computed == 3 && counters.hits == 1);
    cache.row(4);
    CHECK(cache.size() == 3);
    for (const Index row : {1, 3, 4}) cache.row(row);
    CHECK(counters.rows_computed == 4 && counters.hits == 4);
    cache.row(2);
    CHECK(counters.rows_computed == 5 && counters.hits == 4);
    cache.row(1);  // was the oldest, so it made room for 2
    CHECK(counters.rows_computed == 6 && counters.hits == 4);
}

TEST(row_cache_keeps_the_budget) {
    CacheCounters counters;
    const std::size_t row_bytes = 128 * sizeof(double);  // 100 columns fill two panels
    for (const std::size_t rows : {2, 3, 10}) {
        RowCache<double> cache(columns_named<double>(0, 1, 100), rows * row_bytes + row_bytes / 2, counters);
        CHECK(cache.capacity() == static_cast<Index>(rows));
        for (Index i = 0; i < 20; ++i) cache.row(i);
        CHECK(cache.size() == static_cast<Index>(rows));
    }
}

TEST(row_cache_holds_two_rows_without_any_budget) {
    CacheCounters counters;
    RowCache<float> cache(columns_named<float>(0, 1, 5), 0, counters);
    CHECK(cache.capacity() == 2);
    const float* first = cache.row(7);
    const float* second = cache.row(8);
    for (Index j = 0; j < 5; ++j) {
        CHECK(first[j] == static_cast<float>(7000 + j));
        CHECK(second[j] == static_cast<float>(8000 + j));
    }
    cache.row(9);
    CHECK(cache.size() == 2);
}

TEST(row_cache_holds_as_many_rows_as_a_step_needs) {
    CacheCounters counters;
    RowCache<float> cache(columns_named<float>(0, 1, 5), 0, counters, 4);
    CHECK(cache.capacity() == 4);
    for (int pass = 0; pass < 2; ++pass) {
        for (Index row = 0; row < 4; ++row) cache.row(row);
    }
    CHECK(counters.rows_computed == 4 && counters.hits == 4);
}

TEST(row_cache_forgets) {
    CacheCounters counters;
    RowCache<float> cache(columns_named<float>(0, 1, 5), 0, counters);
    cache.row(7);
    cache.row(7);
    cache.forget();
    CHECK(cache.size() == 0 && counters.rows_computed == 1 && counters.hits == 1);
    CHECK(cache.row(7)[3] == static_cast<float>(7003) && cache.row(8)[4] == static_cast<float>(8004));
    CHECK(counters.rows_computed == 3 && counters.hits == 1);
}

TEST(row_cache_restricts_rows_to_fewer_columns) {
    CacheCounters counters;
    RowCache<double> cache(columns_named<double>(0, 1, 200), 3 * 256 * sizeof(double), counters);
    for (const Index row : {1, 2, 3}) cache.row(row);
    std::vector<Index> keep;
    for (Index j = 0; j < 67; ++j) keep.push_back(1 + 2 * j);
    cache.restrict_to(columns_named<double>(1, 2, 67), keep);
    CHECK(cache.capacity() == 6);  // half as wide
    CHECK(counters.rows_computed == 3);
    for (const Index row : {1, 2, 3, 4}) {
        const double* values = cache.row(row);
        for (Index j = 0; j < 67; ++j) CHECK(values[j] == static_cast<double>(1000 * row + 1 + 2 * j));
    }
    CHECK(counters.rows_computed == 4 && counters.hits == 3);
}

}  // namespace multimargin
