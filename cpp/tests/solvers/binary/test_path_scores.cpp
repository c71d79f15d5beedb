// What rows add to scores along C: against sums by hand, whatever stands beside them.
#include "solvers/binary/path_scores.hpp"

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
        for (auto& each : variables) {
            each = numbers.many<double>(n_costs * width, -0.5, 1.0);
            for (double& a : each) a = std::max(a, 0.0);
        }
        std::copy_n(variables[1].begin() + width, width, variables[1].begin() + 2 * width);
    }

    PathShare share(Index first_column) const {
        PathShare made;
        for (Index i = 0; i < n_rows; ++i) made.rows.push_back(clouds.rows[unsigned_index(i)]);
        for (Index j = 0; j < 70; ++j) made.columns.push_back(clouds.rows[unsigned_index((first_column + j) % 100)]);
        made.members = {{variables[0].data(), width, 5, 1.0}, {variables[1].data(), width, 0, -1.0}};
        made.n_costs = n_costs;
        return made;
    }

    TwoClouds clouds;
    DenseSource source;
    std::array<AlignedVector<double>, 2> variables;
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
                            const double a = member.variables[k * member.stride + member.first + i];
                            sum += member.sign * a * given.clouds.kernel(i, (static_cast<Index>(s) * 40 + j) % 100);
                        }
                        CHECK_CLOSE(*found, sum, 1e-12);
                    }
                }
            }
            for (Index k = 0; k < Shares::n_costs; ++k) {
                Index count = 0;
                for (Index i = 0; i < Shares::n_rows; ++i) {
                    count += given.variables[0][unsigned_index(k * Shares::width + 5 + i)] > 0.0 ||
                             given.variables[1][unsigned_index(k * Shares::width + i)] > 0.0;
                }
                CHECK(shares[s].n_support[unsigned_index(k)] == count && count > 0);
            }
        }
    }
}

TEST(path_sums_become_votes) {
    constexpr Index n_classes = 4, n_costs = 3, n_points = 300, n_pairs = 6;
    testing::Numbers numbers(9);
    std::vector<AlignedVector<double>> sums;
    PathVotes votes{{}, nullptr, n_costs, n_points};
    for (Index c = 0; c < n_classes; ++c) {
        sums.push_back(numbers.many<double>((n_classes - 1) * n_costs * n_points, -1.0, 1.0));
        for (double& each : sums.back()) each = std::round(2.0 * each);  // so that scores of 0 and ties are frequent
        votes.sums.push_back(sums.back().data());
    }
    AlignedVector<double> biases = numbers.many<double>(n_pairs * n_costs, -1.0, 1.0);
    for (double& each : biases) each = std::round(each);
    votes.biases = biases.data();
    for (const Index n_threads : {1, 3}) {
        ThreadTeam team(n_threads);
        const std::vector<std::int64_t> found = vote_paths(votes, team);
        for (Index k = 0; k < n_costs; ++k) {
            for (Index p = 0; p < n_points; ++p) {
                std::array<int, n_classes> count{};
                Index pair = 0;
                for (Index i = 0; i < n_classes; ++i) {
                    for (Index j = i + 1; j < n_classes; ++j, ++pair) {
                        const auto at = [&](Index c, Index other) {
                            return sums[unsigned_index(c)][unsigned_index((other * n_costs + k) * n_points + p)];
                        };
                        const double score = at(i, j - 1) + at(j, i) + biases[unsigned_index(pair * n_costs + k)];
                        ++count[unsigned_index(score > 0.0 ? i : j)];
                    }
                }
                const auto best = std::max_element(count.begin(), count.end()) - count.begin();
                CHECK(found[unsigned_index(k * n_points + p)] == best);
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
