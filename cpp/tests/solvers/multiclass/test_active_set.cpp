#include "solvers/multiclass/active_set.hpp"

#include <cmath>
#include <numeric>

#include "base/rng.hpp"
#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Clouds;
using testing::Numbers;

// A positive definite matrix, n x n.
std::vector<double> gram(Index n, std::uint64_t seed) {
    Numbers numbers(seed);
    const AlignedVector<double> X = numbers.many<double>(n * (n + 3), -1.0, 1.0);
    std::vector<double> H(unsigned_index(n * n));
    for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < n; ++j) {
            double s = 0.0;
            for (Index k = 0; k < n + 3; ++k)
                s += X[unsigned_index(i * (n + 3) + k)] * X[unsigned_index(j * (n + 3) + k)];
            H[unsigned_index(i * n + j)] = s;
        }
    }
    return H;
}

void append(UpdatableCholesky& factor, const std::vector<double>& H, Index n, std::vector<Index>& present, Index row) {
    std::vector<double> h(present.size() + 1);
    for (std::size_t k = 0; k < present.size(); ++k) h[k] = H[unsigned_index(row * n + present[k])];
    factor.append(h, H[unsigned_index(row * n + row)], 1e-14);
    present.push_back(row);
}

// H x = b for the rows present.
void check_solves(const UpdatableCholesky& factor, const std::vector<double>& H, Index n,
                  const std::vector<Index>& present) {
    std::vector<double> x(present.size());
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<double>(k % 7) - 3.0;
    const std::vector<double> b = x;
    factor.solve(x);
    for (std::size_t k = 0; k < x.size(); ++k) {
        double s = 0.0;
        for (std::size_t m = 0; m < x.size(); ++m) s += H[unsigned_index(present[k] * n + present[m])] * x[m];
        CHECK_CLOSE(s, b[k], 1e-8);
    }
}

struct DenseBlock {
    DenseBlock(const Clouds& clouds, const Machine& machine, Loss loss, double gamma)
        : source(clouds.view(), testing::rbf(gamma)),
          problem(source, machine, loss, clouds.rows, clouds.y, clouds.C),
          state(problem),
          all(unsigned_index(problem.size())) {
        std::iota(all.begin(), all.end(), Index{0});
        const std::vector<Index> rows = problem.source_rows(all);
        const auto columns = source.columns<double>(rows);
        ld = columns->n_panels() * simd::panel_width;
        kernel.resize(rows.size() * unsigned_index(ld));
        columns->fill(rows, kernel.data(), ld);
    }
    DenseSource source;
    Problem problem;
    FullState state;
    std::vector<Index> all;
    AlignedVector<double> kernel;
    Index ld = 0;
};

}  // namespace

TEST(cholesky_append_and_remove) {
    constexpr Index n = 90;
    const std::vector<double> H = gram(n, 1);
    UpdatableCholesky factor;
    std::vector<Index> present;
    for (Index row = 0; row < n; ++row) append(factor, H, n, present, row);
    check_solves(factor, H, n, present);
    Rng rng(3);
    for (int round = 0; round < 60; ++round) {
        const Index m = rng.below(factor.size());
        const Index row = present[unsigned_index(m)];
        factor.remove(m);
        present.erase(present.begin() + m);
        CHECK(factor.size() == static_cast<Index>(present.size()));
        if (round % 3 == 0) append(factor, H, n, present, row);
        check_solves(factor, H, n, present);
    }
}

TEST(cholesky_append_several) {
    constexpr Index n = 90;
    const std::vector<double> H = gram(n, 2);
    UpdatableCholesky factor;
    std::vector<Index> present;
    for (const Index count : {1, 5, 16, 40, 28}) {  // from nothing, too
        std::vector<std::vector<double>> rows;
        for (Index j = 0; j < count; ++j) {
            const Index row = static_cast<Index>(present.size());
            present.push_back(row);
            rows.emplace_back();
            for (const Index other : present) rows.back().push_back(H[unsigned_index(row * n + other)]);
        }
        factor.append(rows, 1e-14);
        CHECK(factor.size() == static_cast<Index>(present.size()));
        check_solves(factor, H, n, present);
    }
    factor.remove(50);
    present.erase(present.begin() + 50);
    check_solves(factor, H, n, present);
    UpdatableCholesky twice;
    std::vector<std::vector<double>> equal{{4.0}, {4.0, 4.0}};
    twice.append(equal, 1e-6);
    std::vector<double> x{0.0, 1.0};
    twice.solve(x);
    CHECK_CLOSE(x[1], 1e6, 1.0);  // the dependent row gets the floor
}

TEST(cholesky_dependent_row_gets_the_floor) {
    UpdatableCholesky factor;
    std::vector<double> h(2);
    factor.append(h, 4.0, 1e-6);
    h[0] = 4.0;
    factor.append(h, 4.0, 1e-6);  // the same row again
    std::vector<double> x{0.0, 1.0};
    factor.solve(x);
    CHECK_CLOSE(x[1], 1e6, 1.0);
    CHECK_CLOSE(x[0], -1e6, 1.0);
}

TEST(rng_is_pinned) {
    Rng rng(0);
    CHECK(rng.next() == 0xe220a8397b1dcdafULL);
    CHECK(rng.next() == 0x6e789e6aa1b965f4ULL);
    std::vector<Index> order = random_permutation(100, 0);
    CHECK(order[0] != 0 || order[1] != 1);
    std::sort(order.begin(), order.end());
    for (Index i = 0; i < 100; ++i) CHECK(order[unsigned_index(i)] == i);
}

// From zero and from a half-way point, every machine and both losses end at a KKT point of the block.
TEST(active_set_reaches_the_optimum) {
    Machine (*const machines[])(Index) = {testing::ww, testing::cs, testing::llw, testing::atm};
    for (const double C : {0.5, 1e4}) {
        for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
            for (const auto& machine : machines) {
                Clouds clouds(60, 3, 3, 4);
                clouds.C.assign(clouds.C.size(), C);
                DenseBlock block(clouds, machine(3), loss, 0.4);
                ActiveSet active_set(block.problem);
                Monitor monitor(nullptr, infinity);
                Tally tally;
                for (const double tol : {1e-1, 1e-9}) {
                    Workspace workspace(block.problem, block.state, block.all);
                    const double before = summarize(block.problem, block.state).dual;
                    const ActiveSetResult result =
                        active_set.solve(workspace, block.kernel.data(), block.ld, {tol, 500, 100000}, monitor, tally);
                    CHECK(result.success);
                    workspace.scatter(block.state);
                    ThreadTeam team(1);
                    CHECK(refresh_scores(block.problem, block.state, team, nullptr));
                    const Summary summary = summarize(block.problem, block.state);
                    CHECK(summary.violation <= 2.0 * tol + 1e-9 * C);
                    CHECK_CLOSE(summary.dual - before, result.gain, 1e-6 * (1.0 + summary.dual));
                }
            }
        }
    }
}

TEST(active_set_refuses_too_many_free_variables) {
    const Clouds clouds(60, 3, 3, 4);
    DenseBlock block(clouds, testing::ww(3), Loss::hinge, 5.0);
    ActiveSet active_set(block.problem);
    Monitor monitor(nullptr, infinity);
    Tally tally;
    Workspace workspace(block.problem, block.state, block.all);
    const ActiveSetResult result =
        active_set.solve(workspace, block.kernel.data(), block.ld, {1e-6, 5, 1000}, monitor, tally);
    CHECK(!result.success);
    workspace.scatter(block.state);
    CHECK(summarize(block.problem, block.state).dual > 0.0);  // what it did so far is kept, and feasible
}

}  // namespace multimargin
