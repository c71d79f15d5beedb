#include "solvers/multiclass/low_rank.hpp"

#include <cmath>

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Clouds;
using testing::Numbers;

constexpr Index n = 137, d = 3, n_features = 3;  // no multiple of a panel or a tile
constexpr double smooth = 0.05, rough = 1000.0;  // gamma

struct Case {
    explicit Case(double given_gamma) : gamma(given_gamma), source(clouds.view(), testing::rbf(gamma)) {}

    double value(Index i, Index j) const {
        const double* x = clouds.X.data() + problem.source_row(i) * n_features;
        const double* z = clouds.X.data() + problem.source_row(j) * n_features;
        double distance = 0.0;
        for (Index k = 0; k < n_features; ++k) distance += (x[k] - z[k]) * (x[k] - z[k]);
        return std::exp(-gamma * distance);
    }

    double gamma;
    Clouds clouds{n, n_features, d, 3};
    DenseSource source;
    Problem problem = clouds.problem(source, testing::ww(d));
    Monitor monitor{nullptr, infinity};
};

// K - G G', in float64 from G as it is.
std::vector<double> remainder_of(const Case& c, const LowRankKernel& kernel) {
    std::vector<double> remainder(unsigned_index(n * n));
    for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < n; ++j) {
            double value = c.value(i, j);
            for (Index k = 0; k < kernel.ld; ++k) {
                value -= static_cast<double>(kernel.row(i)[k]) * static_cast<double>(kernel.row(j)[k]);
            }
            remainder[unsigned_index(i * n + j)] = value;
        }
    }
    return remainder;
}

constexpr double rounding = 1e-6;  // of G in float32: a sum of squares that is at most 1

}  // namespace

TEST(low_rank_comes_as_close_as_asked) {
    Case c(smooth);
    Index before = 0;
    for (const double tolerance : {1e-1, 1e-3, 1e-5}) {
        const LowRankKernel kernel = approximate_kernel(c.problem, tolerance, n, c.monitor);
        CHECK(kernel.rank > before && kernel.rank <= kernel.ld && kernel.rank < n / 2);
        before = kernel.rank;
        const std::vector<double> remainder = remainder_of(c, kernel);
        double largest = 0.0;
        for (Index e = 0; e < n; ++e) {
            const double rest = remainder[unsigned_index(e * n + e)];
            largest = std::max(largest, rest);
            CHECK_CLOSE(kernel.rest[unsigned_index(e)], rest, rounding);
            CHECK(kernel.rest[unsigned_index(e)] >= 0.0F && rest <= tolerance + rounding);
            for (Index k = kernel.rank; k < kernel.ld; ++k) CHECK(kernel.row(e)[k] == 0.0F);
        }
        CHECK(largest > 1e-3 * tolerance);  // and does not go far beyond
    }
}

TEST(low_rank_leaves_a_positive_semidefinite_remainder) {
    Case c(smooth);
    const LowRankKernel kernel = approximate_kernel(c.problem, 1e-3, n, c.monitor);
    const std::vector<double> R = remainder_of(c, kernel);
    for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < i; ++j) {
            const double product = kernel.rest[unsigned_index(i)] * kernel.rest[unsigned_index(j)];
            CHECK(std::abs(R[unsigned_index(i * n + j)]) <= std::sqrt(product) + 2.0 * rounding);
        }
    }
    Numbers numbers(5);
    for (int turn = 0; turn < 20; ++turn) {
        const AlignedVector<double> v = numbers.many<double>(n, -1.0, 1.0);
        double form = 0.0, mass = 0.0;
        for (std::size_t i = 0; i < v.size(); ++i) {
            mass += std::abs(v[i]);
            for (std::size_t j = 0; j < v.size(); ++j) form += v[i] * R[i * v.size() + j] * v[j];
        }
        CHECK(form >= -1e-8 * mass * mass);
    }
}

// All columns together would do; the pace of the first ones says that it takes nearly that many.
TEST(low_rank_gives_up_early_where_there_is_none) {
    Case c(rough);
    CHECK(approximate_kernel(c.problem, 1e-3, n, c.monitor).rank == 0);
    CHECK(approximate_kernel(c.problem, 2.0, n, c.monitor).rank == 0);  // nothing to take at all
    CHECK(!c.monitor.stopped());
}

TEST(low_rank_keeps_to_its_limit) {
    Case c(smooth);
    const Index rank = approximate_kernel(c.problem, 1e-3, n, c.monitor).rank;
    CHECK(approximate_kernel(c.problem, 1e-3, rank, c.monitor).rank == rank);
    CHECK(approximate_kernel(c.problem, 1e-3, rank - 1, c.monitor).rank == 0);
    CHECK(approximate_kernel(c.problem, 1e-3, 0, c.monitor).rank == 0);
}

TEST(low_rank_is_stopped_by_the_monitor) {
    Case c(smooth);
    Monitor monitor(nullptr, 0.0);
    CHECK(approximate_kernel(c.problem, 1e-3, n, monitor).rank == 0);
    CHECK(monitor.stopped());
}

}  // namespace multimargin
