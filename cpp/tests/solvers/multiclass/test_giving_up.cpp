// Blocks that are given up: very many free variables and steps that crawl, where the caller knows something better.
#include <numeric>

#include "check.hpp"
#include "problems.hpp"
#include "solvers/multiclass/block_solver.hpp"
#include "solvers/multiclass/solve.hpp"

namespace multimargin {

namespace {

using testing::Clouds;

constexpr Index n = 900, d = 9;

// Labels that have nothing to do with the place: with a smooth kernel and no bounds every variable stays free.
struct NoisyCase {
    NoisyCase(Loss given_loss, double C) : loss(given_loss), source(clouds.view(), testing::rbf(0.02)) {
        testing::Numbers numbers(2);
        for (Index& y : clouds.y) y = numbers.below(d);
        clouds.C.assign(clouds.C.size(), C);
        std::iota(all.begin(), all.end(), Index{0});
    }

    // Steps taken, and whether the block was given up.
    std::pair<Index, bool> solve_block(double target, Index max_steps, bool may_give_up) {
        const Problem problem = clouds.problem(source, testing::llw(d), loss);
        FullState state(problem);
        Tally tally;
        BlockSolver<float> solver(problem, false, monitor, tally, team);
        Workspace block(problem, state, all);
        const bool solved = solver.solve(block, {}, target, max_steps, may_give_up);
        CHECK(!(solved && solver.gave_up()));
        block.scatter(state);
        FullState feasible = state;
        make_feasible(problem, feasible);
        for (std::size_t k = 0; k < state.variables.size(); ++k) {
            CHECK_CLOSE(state.variables[k], feasible.variables[k], 1e-12);
        }
        CHECK(refresh_scores(problem, state, team, nullptr));
        CHECK_CLOSE(summarize(problem, state).dual, tally.dual, 1e-4 * tally.dual);
        return {tally.iterations, solver.gave_up()};
    }

    Loss loss;
    Clouds clouds{n, 3, d, 2};
    DenseSource source;
    std::vector<Index> all = std::vector<Index>(unsigned_index(n));
    Monitor monitor{nullptr, infinity};
    ThreadTeam team{1};
};

}  // namespace

TEST(block_solver_gives_up_only_where_it_may) {
    NoisyCase c(Loss::squared_hinge, 1.0);
    const auto [steps, gave_up] = c.solve_block(1e-6, 12 * n, true);
    CHECK(gave_up && steps >= 6 * n && steps < 12 * n);
    CHECK(c.solve_block(1e-6, 12 * n, false) == std::pair(12 * n, false));
    CHECK(c.solve_block(1e-6, 5 * n, true) == std::pair(5 * n, false));  // out of steps before
}

TEST(block_solver_does_not_give_up_where_few_are_free) {
    NoisyCase c(Loss::hinge, 0.001);
    const auto [steps, gave_up] = c.solve_block(1e-3, 100 * n, true);
    CHECK(!gave_up && steps < 100 * n);
}

// The whole solve goes over to the features and on to a converged end; float64 rows never do.
TEST(solve_goes_over_to_features) {
    NoisyCase c(Loss::squared_hinge, 1.0);
    const Problem problem = c.clouds.problem(c.source, testing::llw(d), c.loss);
    for (const Precision precision : {Precision::automatic, Precision::float32, Precision::float64}) {
        Options options;
        options.solver = SolverKind::two_level;
        options.precision = precision;
        options.tol = 1e-4;
        FullState state(problem);
        const Report report = solve(problem, state, options, nullptr);
        CHECK(report.stop_reason == StopReason::converged && report.verified);
        CHECK((report.phases.feature_sweeps > 0) == (precision != Precision::float64));
        CHECK(report.float64_rows == (precision == Precision::float64));
    }
}

}  // namespace multimargin
