// What rows add to scores along C: against sums by hand, whatever stands beside them.
#include "path_sums.hpp"

#include <array>

#include "binary_cases.hpp"
#include "check.hpp"

namespace multimargin {

namespace {

using testing::TwoClouds;

struct Once final : Watcher {
    Verdict watch(const Progress&, const std::function<void()>&) override { return Verdict::interrupted; }
};

// Two problems over the same rows, three values of C; the second stays the same from the second C on.
struct Shares {
    static constexpr Index n_rows = 20, n_costs = 3, width = 25;

    Shares() : clouds(30, 70, 3, 5), source(clouds.source()) {
        testing::Numbers numbers(8);
        for (auto& each : amounts) {
            each = numbers.many<double>(n_costs * width, -0.5, 1.0);
            for (double& a : each) a = std::max(a, 0.0);
        }
        std::copy_n(amounts[1].begin() + width, width, amounts[1].begin() + 2 * width);
    }

    PathShare share(Index first_column) const {
        PathShare made;
        for (Index i = 0; i < n_rows; ++i) made.rows.push_back(clouds.rows[unsigned_index(i)]);
        for (Index j = 0; j < 70; ++j) made.columns.push_back(clouds.rows[unsigned_index((first_column + j) % 100)]);
        made.members = {{amounts[0].data(), width, 5, 1.0}, {amounts[1].data(), width, 0, -1.0}};
        made.n_costs = n_costs;
        return made;
    }

    TwoClouds clouds;
    DenseSource source;
    std::array<AlignedVector<double>, 2> amounts;
};

}  // namespace

TEST(path_sums_by_hand) {
    const Shares given;
    for (const Index n_threads : {1, 2, 3}) {
        ThreadTeam team(n_threads);
        Monitor monitor(nullptr, infinity);
        std::vector<PathShare> shares{given.share(0), given.share(40)};
        CHECK(sum_paths(given.source, shares, team, monitor));
        for (std::size_t s = 0; s < shares.size(); ++s) {
            const double* found = shares[s].sums.data();
            for (const PathMember& member : shares[s].members) {
                for (Index k = 0; k < Shares::n_costs; ++k) {
                    for (Index j = 0; j < 70; ++j, ++found) {
                        double sum = 0.0;
                        for (Index i = 0; i < Shares::n_rows; ++i) {
                            const double a = member.amounts[k * member.stride + member.first + i];
                            sum += member.sign * a * given.clouds.kernel(i, (static_cast<Index>(s) * 40 + j) % 100);
                        }
                        CHECK_CLOSE(*found, sum, 1e-12);
                    }
                }
            }
            for (Index k = 0; k < Shares::n_costs; ++k) {
                Index count = 0;
                for (Index i = 0; i < Shares::n_rows; ++i) {
                    count += given.amounts[0][unsigned_index(k * Shares::width + 5 + i)] > 0.0 ||
                             given.amounts[1][unsigned_index(k * Shares::width + i)] > 0.0;
                }
                CHECK(shares[s].n_support[unsigned_index(k)] == count && count > 0);
            }
        }
    }
}

TEST(path_sums_stop) {
    const Shares given;
    ThreadTeam team(2);
    Once watcher;
    Monitor monitor(&watcher, infinity);
    std::vector<PathShare> shares{given.share(0), given.share(1)};
    CHECK(!sum_paths(given.source, shares, team, monitor));
    CHECK(monitor.reason() == StopReason::interrupted);
}

}  // namespace multimargin
