#include "check.hpp"
#include "problem/solve_stats.hpp"

namespace multimargin {

namespace {

std::vector<TracePoint> recorded(Index n_moments, Index& n_censuses) {
    Tally tally;
    tally.trace.begin([&] { return 0.5 * static_cast<double>(tally.iterations); }, {});
    for (Index i = 0; i < n_moments; ++i) {
        tally.iterations = i;
        tally.record([&] {
            ++n_censuses;
            return Census{1, 2, 3, 4};
        });
    }
    tally.iterations = n_moments;
    return tally.trace.end(tally.moment({}));
}

}  // namespace

TEST(trace_off_records_nothing) {
    Tally tally;
    bool counted = false;
    tally.record([&] {
        counted = true;
        return Census{};
    });
    CHECK(!counted);
    CHECK(tally.trace.end(tally.moment({})).empty());
}

TEST(trace_keeps_every_moment_while_they_are_few) {
    Index n_censuses = 0;
    const auto points = recorded(1999, n_censuses);
    CHECK(points.size() == 2000);
    CHECK(n_censuses == 1999);
    for (std::size_t k = 0; k < points.size(); ++k) CHECK(points[k].iterations == static_cast<Index>(k));
    CHECK(points[7].seconds == 3.5);
    CHECK(points[7].census.bounded == 4);
    CHECK(points[7].primal != points[7].primal);
}

TEST(trace_is_thinned_evenly_when_it_is_full) {
    for (const Index n : {2000, 2001, 3999, 4000, 1'000'000}) {
        Index n_censuses = 0;
        const auto points = recorded(n, n_censuses);
        CHECK(points.size() > 1000);
        CHECK(points.size() <= 2001);
        CHECK(n_censuses <= 12'000);
        CHECK(points.front().iterations == 0);
        CHECK(points.back().iterations == n);
        for (std::size_t k = 1; k + 1 < points.size(); ++k) {
            CHECK(points[k].iterations == static_cast<Index>(k) * points[1].iterations);
        }
    }
}

TEST(trace_records_the_primal_where_it_is_asked_for) {
    Tally tally;
    tally.trace.begin([] { return 0.0; }, [] { return 7.0; });
    tally.record([] { return Census{}; });
    TracePoint last;
    last.iterations = 1;
    last.primal = infinity;
    const auto points = tally.trace.end(last);
    CHECK(points.size() == 2);
    CHECK(points[0].primal == 7.0);
    CHECK(points[1].primal != points[1].primal);  // not known
}

}  // namespace multimargin
