#include "stored_source.hpp"

#include <numeric>

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Clouds;

template <class T>
AlignedVector<T> block(const KernelSource& source, const std::vector<Index>& rows, const std::vector<Index>& columns) {
    const auto prepared = source.columns<T>(columns);
    const Index ld = prepared->n_panels() * simd::panel_width;
    AlignedVector<T> padded(rows.size() * unsigned_index(ld)), values;
    prepared->fill(rows, padded.data(), ld);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        values.insert(values.end(), padded.begin() + static_cast<Index>(r) * ld,
                      padded.begin() + static_cast<Index>(r) * ld + static_cast<Index>(columns.size()));
    }
    return values;
}

}  // namespace

// What is stored is what the base computes, to the bit, for all columns in order and for a part of them.
TEST(stored_source_agrees_with_its_base) {
    const Clouds clouds(150, 3, 3, 4);
    const DenseSource base(clouds.view(), testing::rbf(0.7));
    std::vector<Index> stored;
    for (Index i = 149; i >= 10; --i) stored.push_back(i);
    Monitor monitor(nullptr, infinity);
    for (const Index threads : {1, 3}) {
        ThreadTeam team(threads);
        const StoredSource<float> source(base, stored, team, monitor);
        CHECK(source.filled());
        CHECK(source.size() == base.size() && source.diagonal(7) == base.diagonal(7));
        const std::vector<Index> rows{149, 10, 80}, part{12, 99, 11};
        CHECK(block<float>(source, rows, stored) == block<float>(base, rows, stored));
        CHECK(block<float>(source, rows, part) == block<float>(base, rows, part));
        CHECK(block<double>(source, rows, part) == block<double>(base, rows, part));
    }
}

TEST(stored_source_refuses_what_it_does_not_hold) {
    const Clouds clouds(20, 3, 3, 4);
    const DenseSource base(clouds.view(), testing::rbf(0.7));
    ThreadTeam team(1);
    Monitor monitor(nullptr, infinity);
    const StoredSource<double> source(base, {3, 4, 5}, team, monitor);
    CHECK_THROWS(source.positions_of(std::vector<Index>{6}), std::logic_error);
}

TEST(stored_source_stops_with_the_monitor) {
    const Clouds clouds(200, 3, 3, 4);
    const DenseSource base(clouds.view(), testing::rbf(0.7));
    std::vector<Index> all(200);
    std::iota(all.begin(), all.end(), Index{0});
    ThreadTeam team(2);
    Monitor monitor(nullptr, 0.0);  // the time is up before it begins
    CHECK(!StoredSource<float>(base, all, team, monitor).filled());
}

}  // namespace multimargin
