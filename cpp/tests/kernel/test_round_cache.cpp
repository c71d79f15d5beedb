#include "kernel/round_cache.hpp"

#include <numeric>

#include "check.hpp"
#include "kernel/score_pass.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using simd::panel_width;
using testing::Clouds;
using testing::Numbers;

constexpr double plenty = 1e9;

// Columns are some rows of the data, in no order; more than one panel of them.
template <class T>
struct CacheCase {
    CacheCase() : clouds(180, 3, 3, 7), source(clouds.view(), testing::rbf(0.6)) {
        for (Index j = 0; j < 100; ++j) chosen.push_back((j * 13 + 2) % 180);
    }
    std::unique_ptr<KernelColumns<T>> base() const { return source.columns<T>(chosen); }
    CachedColumns<T> cached(double budget, RawArray<T>& memory) const {
        return {base(), source.size(), budget, memory};
    }
    // What some rows take, in bytes.
    static double room_for(double rows) { return rows * 2.0 * panel_width * sizeof(T); }

    Clouds clouds;
    DenseSource source;
    std::vector<Index> chosen;
};

std::vector<Index> range(Index first, Index last) {
    std::vector<Index> rows(unsigned_index(last - first));
    std::iota(rows.begin(), rows.end(), first);
    return rows;
}

// Asks for rows in portions, as a score pass does, panel by panel; true if all values are the base's, to the bit.
template <class T>
bool gives_the_same(const KernelColumns<T>& columns, const KernelColumns<T>& base, const std::vector<Index>& rows) {
    constexpr Index portion = 7;
    const auto prepared = columns.prepare(rows);
    const Index n = static_cast<Index>(rows.size()), ld = base.n_panels() * panel_width;
    AlignedVector<T> expected(unsigned_index(n * ld));
    base.fill(rows, expected.data(), ld);
    AlignedVector<T> scratch(unsigned_index(portion * panel_width));
    bool same = prepared->size() == n;
    for (Index panel = 0; panel < columns.n_panels(); ++panel) {
        const Index width = std::min<Index>(panel_width, columns.size() - panel * panel_width);
        for (Index first = 0; first < n; first += portion) {
            const Index count = std::min(portion, n - first);
            const T* values[portion];
            columns.panel_rows(*prepared, first, count, panel, scratch.data(), values);
            for (Index r = 0; r < count; ++r) {
                const T* row = expected.data() + (first + r) * ld + panel * panel_width;
                same = same && std::equal(row, row + width, values[r]);
            }
        }
    }
    return same;
}

template <class T>
bool fills_the_same(const KernelColumns<T>& columns, const KernelColumns<T>& base, const std::vector<Index>& rows) {
    const Index ld = base.n_panels() * panel_width;
    AlignedVector<T> expected(rows.size() * unsigned_index(ld)), found(expected.size());
    base.fill(rows, expected.data(), ld);
    columns.fill(rows, found.data(), ld);
    bool same = true;
    for (Index first = 0; first < static_cast<Index>(found.size()); first += ld) {
        same = same && std::equal(&found[unsigned_index(first)], &found[unsigned_index(first)] + base.size(),
                                  &expected[unsigned_index(first)]);
    }
    return same;
}

// First new rows, then the same, then in another order, then mixed with new ones, at last all.
std::vector<std::vector<Index>> requests() {
    std::vector<Index> mixed;
    for (Index i = 0; i < 30; ++i) mixed.push_back((i * 17 + 9) % 60);
    std::vector<Index> backwards = range(0, 40);
    std::reverse(backwards.begin(), backwards.end());
    return {range(0, 40), range(0, 40), backwards, {}, mixed, range(25, 90), mixed, range(0, 180)};
}

template <class T>
void check_requests(double kept_rows) {
    const CacheCase<T> c;
    const auto base = c.base();
    for (const bool in_portions : {true, false}) {
        RawArray<T> memory;
        const CachedColumns<T> cached = c.cached(CacheCase<T>::room_for(kept_rows), memory);
        std::vector<char> seen(unsigned_index(c.source.size()), 0);
        for (const std::vector<Index>& rows : requests()) {
            CHECK(in_portions ? gives_the_same<T>(cached, *base, rows) : fills_the_same<T>(cached, *base, rows));
            for (const Index row : rows) seen[unsigned_index(row)] = 1;
            const Index n_seen = std::accumulate(seen.begin(), seen.end(), Index{0});
            // Rows are kept while there is room, but no more than there are columns: support vectors are among them.
            const Index room = std::min(static_cast<Index>(kept_rows), static_cast<Index>(c.chosen.size()));
            CHECK(cached.n_kept() == std::min(n_seen, room));
        }
    }
}

// Passes as a round makes them: every one adds the changes of some rows.
template <class T>
AlignedVector<double> scores_of_passes(const KernelColumns<T>& columns, Index n, Index n_threads) {
    const Index ld = columns.n_panels() * panel_width;
    AlignedVector<double> scores(unsigned_index(2 * ld), 0.0);
    ThreadTeam team(n_threads);
    Numbers numbers(12);
    for (int pass = 0; pass < 4; ++pass) {
        Coefficients changes(2);
        for (Index row = 0; row < n; ++row) {
            const double values[] = {numbers.uniform(-1.0, 1.0), numbers.below(2) == 0 ? 0.0 : 0.5};
            if (numbers.below(3) != 0) changes.add_row(n - 1 - row, values);
        }
        CHECK(add_scores(columns, changes, scores.data(), ld, team, nullptr));
    }
    return scores;
}

// Enough values that a pass takes several threads and several tiles.
template <class T>
void check_scores() {
    const Clouds clouds(500, 3, 3, 8);
    const DenseSource source(clouds.view(), testing::rbf(0.6));
    const std::vector<Index> chosen = range(20, 480);
    const double row_bytes = 512.0 * sizeof(T);
    const AlignedVector<double> expected = scores_of_passes<T>(*source.columns<T>(chosen), source.size(), 1);
    for (const double kept_rows : {0.0, 1.0, 130.0, 300.0, 1000.0}) {
        for (const Index n_threads : {1, 3}) {
            RawArray<T> memory;
            const CachedColumns<T> cached(source.columns<T>(chosen), source.size(), kept_rows * row_bytes, memory);
            CHECK(scores_of_passes<T>(cached, source.size(), n_threads) == expected);
            CHECK(cached.n_kept() == std::min<Index>(static_cast<Index>(kept_rows), 460));
        }
    }
}

}  // namespace

TEST(cached_columns_give_what_the_base_gives) {
    for (const double kept_rows : {0.0, 0.9, 1.0, 10.5, 45.0, 100.0, 1000.0}) {
        check_requests<float>(kept_rows);
        check_requests<double>(kept_rows);
    }
}

TEST(cached_columns_in_score_passes) {
    check_scores<float>();
    check_scores<double>();
}

// A row twice in one request: kept the first time, or computed twice where there is no room.
TEST(cached_columns_asked_twice_at_once) {
    const CacheCase<float> c;
    const std::vector<Index> rows{5, 6, 5, 7, 8, 9, 10, 11, 6, 5, 12};
    for (const double kept_rows : {0.0, 1.0, 3.0, 50.0}) {
        RawArray<float> memory;
        const CachedColumns<float> cached = c.cached(CacheCase<float>::room_for(kept_rows), memory);
        CHECK(gives_the_same<float>(cached, *c.base(), rows));
        CHECK(gives_the_same<float>(cached, *c.base(), rows));
    }
}

// A kept row is read, not computed: that is what it is kept for.
TEST(cached_columns_read_what_they_keep) {
    const CacheCase<double> c;
    RawArray<double> memory;
    const CachedColumns<double> cached = c.cached(CacheCase<double>::room_for(3.0), memory);
    const auto values_of = [&](std::vector<Index> rows, double* scratch) {
        std::vector<const double*> values(rows.size());
        const auto prepared = cached.prepare(rows);
        cached.panel_rows(*prepared, 0, prepared->size(), 0, scratch, values.data());
        return values;
    };
    AlignedVector<double> scratch(unsigned_index(5 * panel_width), -1.0);
    const std::vector<const double*> first = values_of({30, 31, 32, 33, 34}, scratch.data());
    CHECK(first[3] == scratch.data() && first[4] == scratch.data() + panel_width);  // no room for these
    const std::vector<const double*> again = values_of({32, 30, 31}, nullptr);
    CHECK(again[0] == first[2] && again[1] == first[0] && again[2] == first[1]);
}

// One after the other they share their memory, and nothing of what was in it.
TEST(cached_columns_one_after_the_other) {
    const CacheCase<float> c;
    RawArray<float> memory;
    for (const Index offset : {0, 3, 50}) {
        std::vector<Index> chosen = range(offset, offset + 65 + offset);
        const auto base = c.source.columns<float>(chosen);
        const CachedColumns<float> cached(c.source.columns<float>(chosen), c.source.size(), plenty, memory);
        CHECK(cached.n_kept() == 0);
        CHECK(gives_the_same<float>(cached, *base, range(10, 70)) &&
              gives_the_same<float>(cached, *base, range(0, 80)));
    }
}

}  // namespace multimargin
