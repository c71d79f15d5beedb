#include "solvers/multiclass/block_solver.hpp"

#include <limits>
#include <numeric>

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Clouds;

constexpr Index d = 4, n = 90;         // two panels, the second one not full
constexpr Index no_limit = 1'000'000;  // twenty times what any of these problems needs

Machine (*const machines[])(Index) = {testing::ww, testing::cs, testing::llw, testing::atm, testing::ats, testing::ova};
constexpr Loss losses[] = {Loss::hinge, Loss::squared_hinge};

// Bounds that differ; `apart` pulls the classes away from each other, to the corners of a simplex.
Clouds bounded_clouds(double C, double apart) {
    Clouds clouds(n, 3, d, 4);
    clouds.C.assign(clouds.C.size(), C);
    for (std::size_t i = 0; i < clouds.C.size(); i += 3) clouds.C[i] = 0.5 * C;
    for (std::size_t i = 0; i < clouds.y.size(); ++i) {
        for (Index k = 0; k < 3; ++k) {
            const double corner = clouds.y[i] == 3 ? -0.5 : (clouds.y[i] == k ? 1.0 : 0.0);
            clouds.X[3 * i + unsigned_index(k)] += apart * corner;
        }
    }
    return clouds;
}

// A problem, its state, and everything a solver wants to be given.
struct BlockCase {
    BlockCase(const Machine& machine, Loss loss, double given_C, double gamma, double apart = 0.0)
        : C(given_C),
          clouds(bounded_clouds(C, apart)),
          source(clouds.view(), testing::rbf(gamma)),
          problem(clouds.problem(source, machine, loss)),
          state(problem),
          all(unsigned_index(n)) {
        std::iota(all.begin(), all.end(), Index{0});
    }

    template <class T>
    SquareKernel<T> kernel(Layout layout) {
        return {source, problem.source_rows(all), layout, team, monitor};
    }

    template <class T>
    BlockSolver<T> solver(bool prefers_active_set) {
        return {problem, prefers_active_set, monitor, tally, team};
    }

    // The block's variables, and scores that owe nothing to the solver.
    void take(const Workspace& block) {
        block.scatter(state);
        CHECK(refresh_scores(problem, state, team, nullptr));
        FullState feasible = state;
        make_feasible(problem, feasible);
        for (std::size_t k = 0; k < state.variables.size(); ++k) {
            CHECK_CLOSE(state.variables[k], feasible.variables[k], 1e-12 * C);
        }
    }

    // What scores in T may be wrong by: every unit of a coefficient brings the rounding of its kernel values.
    template <class T>
    double rounding() const {
        return 4.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * coefficient_mass(problem, state);
    }

    // The block meets the target, and the tally of the dual is right.
    template <class T>
    void check_solved(const Workspace& block, double target, double start) {
        take(block);
        for (const Index e : block.members()) {
            CHECK(testing::violation_of(problem, state, e) <= target + rounding<T>());
        }
        const Summary summary = summarize(problem, state);
        // What a step gains is the gradient times the way: both as large as the coefficients make them.
        const double allowed = rounding<T>() * coefficient_mass(problem, state);
        CHECK_CLOSE(start + tally.dual, summary.dual, allowed + 1e-10 * (1.0 + summary.primal));
    }

    double C;
    Clouds clouds;
    DenseSource source;
    Problem problem;
    FullState state;
    std::vector<Index> all;
    ThreadTeam team{1};
    Monitor monitor{nullptr, infinity};
    Tally tally;
};

template <class T>
void solve_all(BlockCase& c, BlockSolver<T>& solver, double target) {
    Workspace block(c.problem, c.state, c.all);
    const double start = summarize(c.problem, c.state).dual - c.tally.dual;
    CHECK(solver.solve(block, {}, target, no_limit));
    c.check_solved<T>(block, target, start);
}

// From nothing, and on from there.
template <class T>
void check_every_machine(double C, bool prefers_active_set, double target) {
    for (const auto machine : machines) {
        for (const Loss loss : losses) {
            BlockCase c(machine(d), loss, C, 0.8);
            BlockSolver<T> solver = c.solver<T>(prefers_active_set);
            solve_all(c, solver, 100.0 * target);
            solve_all(c, solver, target);
            CHECK(c.tally.iterations > 0 && c.tally.phases.blocks == 2);
        }
    }
}

// The variables of a block solved with values from somewhere.
template <class T>
AlignedVector<double> amounts_of(BlockCase& c, std::span<const Index> members, const BlockPlace<T>& place) {
    BlockSolver<T> solver = c.solver<T>(false);
    Workspace block(c.problem, c.state, {members.begin(), members.end()});
    CHECK(solver.solve(block, place, 1e-3, no_limit));
    return block.all_variables();
}

// One value is as good as the other to the bit, so that the solutions are.
template <class T>
void check_places(std::span<const Index> members) {
    for (const auto machine : {testing::ww, testing::atm}) {
        BlockCase c(machine(d), Loss::hinge, 1.0, 0.8);
        const AlignedVector<double> expected = amounts_of<T>(c, members, {});
        CHECK(c.tally.cache.rows_computed >= static_cast<Index>(members.size()) && c.tally.cache.hits == 0);
        for (const Layout layout : {Layout::rows, Layout::panels}) {
            const SquareKernel<T> square = c.kernel<T>(layout);
            CHECK(amounts_of<T>(c, members, {&square, members}) == expected);
        }
        CHECK(c.tally.cache.hits == 2 * static_cast<Index>(members.size()));
    }
}

std::vector<Index> every_third() {
    std::vector<Index> members;
    for (Index e = 1; e < n; e += 3) members.push_back(e);
    return members;
}

// Few support vectors, a smooth kernel and a large bound: steps on examples crawl, a few faces do.
template <class T>
void check_takes_over(const Machine& machine, Loss loss) {
    BlockCase c(machine, loss, 1e4, 0.01, 3.0);
    BlockSolver<T> solver = c.solver<T>(false);
    solve_all(c, solver, 1e-3);
    CHECK(solver.prefers_active_set());
    // What has won is tried first the next time: it does without the steps on examples.
    const Index before = c.tally.iterations;
    c.state = FullState(c.problem);
    c.tally.dual = 0.0;
    solve_all(c, solver, 1e-3);
    CHECK(c.tally.iterations - before < before);
}

// Out of steps: says so, took no more of them, and leaves what can be used.
template <class T>
void check_limit(const Machine& machine, Loss loss, bool prefers_active_set, Index limit) {
    BlockCase c(machine, loss, 1e3, 0.8);
    BlockSolver<T> solver = c.solver<T>(prefers_active_set);
    Workspace block(c.problem, c.state, c.all);
    CHECK(!solver.solve(block, {}, 1e-6, limit));
    CHECK(c.tally.iterations == limit);
    c.take(block);
    const Summary summary = summarize(c.problem, c.state);
    CHECK(summary.dual > 0.0 || limit <= 1);  // the active set's first step may only change the face
    CHECK_CLOSE(c.tally.dual, summary.dual, 1e-5 * (1.0 + summary.primal));
}

template <class T>
void check_descent(const Machine& machine, Loss loss, double target) {
    BlockCase c(machine, loss, 0.5, 0.8);
    const SquareKernel<T> kernel = c.kernel<T>(Layout::rows);
    BlockDescent<T> descent(c.problem);
    for (const Index limit : {Index{0}, Index{1}, Index{50}, no_limit}) {
        Workspace block(c.problem, c.state, c.all);
        const double start = summarize(c.problem, c.state).dual - c.tally.dual;
        const Index before = c.tally.iterations;
        descent.attach(block, kernel.panel_row(0, 0), kernel.ld());
        CHECK_CLOSE(descent.scan(), summarize(c.problem, c.state).violation, c.rounding<T>() + 1e-6);
        const bool solved = descent.run(target, limit, c.monitor, c.tally);
        CHECK(solved == (limit == no_limit));
        CHECK(solved ? descent.scan() <= target : c.tally.iterations - before == limit);
        descent.write_back();
        c.check_solved<T>(block, solved ? target : infinity, start);
    }
}

template <class T>
void check_scores_stay_true(const Machine& machine, Loss loss) {
    BlockCase c(machine, loss, 1e4, 0.01, 3.0);
    const SquareKernel<T> kernel = c.kernel<T>(Layout::rows);
    BlockDescent<T> descent(c.problem);
    for (int turn = 0; turn < 30; ++turn) {  // as BlockSolver does: scores anew after two steps an example
        Workspace block(c.problem, c.state, c.all);
        descent.attach(block, kernel.panel_row(0, 0), kernel.ld());
        static_cast<void>(descent.run(1e-3, 2 * block.size(), c.monitor, c.tally));
        descent.write_back();
        c.take(block);
        CHECK_CLOSE(descent.scan(), summarize(c.problem, c.state).violation, 10.0 * c.rounding<T>());
    }
}

}  // namespace

TEST(block_solver_small_bound) {
    check_every_machine<float>(0.5, false, 1e-3);
    check_every_machine<double>(0.5, false, 1e-6);
}

// The active set is exact in float64, also for a block whose other values are float32.
TEST(block_solver_large_bound) {
    check_every_machine<float>(1e3, true, 1e-6);
    check_every_machine<double>(1e3, true, 1e-6);
}

// No bound at all: points that differ can be separated, whatever their labels.
TEST(block_solver_hard_margin) {
    for (const auto machine : machines) {
        BlockCase c(machine(d), Loss::hinge, infinity, 20.0);
        BlockSolver<float> coarse = c.solver<float>(false);
        solve_all(c, coarse, 1e-3);
        BlockSolver<double> exact = c.solver<double>(true);
        solve_all(c, exact, 1e-8);
    }
}

TEST(block_solver_active_set_takes_over) {
    for (const auto machine : {testing::ww, testing::cs}) {
        for (const Loss loss : losses) {
            check_takes_over<float>(machine(d), loss);
            check_takes_over<double>(machine(d), loss);
        }
    }
}

// Where float32 gives up the caller goes on in float64: what is left must be of use.
TEST(block_solver_float64_finishes_what_float32_began) {
    for (const auto machine : machines) {
        for (const Loss loss : losses) {
            BlockCase c(machine(d), loss, 1e3, 0.8);
            Workspace block(c.problem, c.state, c.all);
            static_cast<void>(c.solver<float>(false).solve(block, {}, 1e-2, 2000));
            c.take(block);
            const double dual = c.tally.dual = summarize(c.problem, c.state).dual;
            CHECK(dual > 0.0);
            BlockSolver<double> exact = c.solver<double>(true);
            solve_all(c, exact, 1e-6);
            CHECK(c.tally.dual >= dual);
        }
    }
}

TEST(block_solver_kernel_values_from_a_square) {
    const std::vector<Index> members = every_third();
    std::vector<Index> all(unsigned_index(n));
    std::iota(all.begin(), all.end(), Index{0});
    check_places<float>(all);
    check_places<double>(all);
    check_places<float>(members);
    check_places<double>(members);
}

// All other variables stay as they are, and count.
TEST(block_solver_part_of_a_problem) {
    for (const auto machine : machines) {
        for (const Loss loss : losses) {
            BlockCase c(machine(d), loss, 1.0, 0.8);
            BlockSolver<float> solver = c.solver<float>(false);
            solve_all(c, solver, 0.3);
            const FullState before = c.state;
            Workspace block(c.problem, c.state, every_third());
            CHECK(solver.solve(block, {}, 1e-3, no_limit));
            c.check_solved<float>(block, 1e-3, 0.0);
            for (Index e = 0; e < n; ++e) {
                for (Index p = 0; p < c.problem.machine().max_components(); ++p) {
                    if (e % 3 != 1) CHECK(c.state.variable(p, e) == before.variable(p, e));
                }
            }
        }
    }
}

TEST(block_solver_same_for_any_number_of_threads) {
    for (const auto machine : {testing::ww, testing::atm}) {
        BlockCase c(machine(d), Loss::hinge, 1.0, 0.8);
        const auto variables = [&]<class T>(T, Index n_threads) {
            ThreadTeam team(n_threads);
            BlockSolver<T> solver(c.problem, false, c.monitor, c.tally, team);
            Workspace block(c.problem, c.state, c.all);
            CHECK(solver.solve(block, {}, 1e-3, no_limit));
            return block.all_variables();
        };
        CHECK(variables(float{}, 1) == variables(float{}, 3));
        CHECK(variables(double{}, 1) == variables(double{}, 3));
    }
}

TEST(block_solver_stops_after_max_steps) {
    for (const auto machine : machines) {
        for (const Loss loss : losses) {
            for (const Index limit : {0, 1, 7, 100}) {
                check_limit<float>(machine(d), loss, false, limit);
                check_limit<double>(machine(d), loss, false, limit);
                check_limit<double>(machine(d), loss, true, limit);
            }
        }
    }
}

// Steps of the one solver count for the other: whichever it is in when they run out, it took no more.
TEST(block_solver_counts_the_steps_of_both_solvers) {
    for (const auto machine : {testing::ww, testing::cs}) {
        BlockCase whole(machine(d), Loss::hinge, 1e4, 0.01, 3.0);
        BlockSolver<float> unlimited = whole.solver<float>(false);
        solve_all(whole, unlimited, 1e-3);
        CHECK(unlimited.prefers_active_set());  // so that the last steps were its own
        for (Index missing = 1; missing < 5; ++missing) {
            BlockCase c(machine(d), Loss::hinge, 1e4, 0.01, 3.0);
            Workspace block(c.problem, c.state, c.all);
            const Index limit = whole.tally.iterations - missing;
            static_cast<void>(c.solver<float>(false).solve(block, {}, 1e-3, limit));
            CHECK(c.tally.iterations <= limit);
            c.take(block);
        }
    }
}

TEST(block_solver_stops_with_the_monitor) {
    for (const auto machine : machines) {
        for (const bool prefers_active_set : {false, true}) {
            BlockCase c(machine(d), Loss::hinge, 1e3, 0.8);
            Monitor monitor(nullptr, 0.0);  // the time is up before it begins
            Workspace block(c.problem, c.state, c.all);
            const AlignedVector<double> before = block.all_variables();
            BlockSolver<float> solver(c.problem, prefers_active_set, monitor, c.tally, c.team);
            static_cast<void>(solver.solve(block, {}, 1e-6, no_limit));
            CHECK(monitor.stopped() && c.tally.iterations == 0 && block.all_variables() == before);
        }
    }
}

// Steps on examples alone: as many as allowed, then to the end.
TEST(block_solver_descent_alone) {
    for (const auto machine : machines) {
        for (const Loss loss : losses) {
            check_descent<float>(machine(d), loss, 1e-3);
            check_descent<double>(machine(d), loss, 1e-6);
        }
    }
}

// Scores go along with the variables for thousands of steps; what rounding does to them must not grow on itself.
TEST(block_solver_descent_scores_stay_true) {
    for (const auto machine : machines) {
        for (const Loss loss : losses) {
            check_scores_stay_true<float>(machine(d), loss);
            check_scores_stay_true<double>(machine(d), loss);
        }
    }
}

// One descent serves blocks of several sizes, one after the other; until it writes back nothing is changed.
TEST(block_solver_descent_changes_blocks) {
    for (const auto machine : {testing::ww, testing::atm}) {
        BlockCase c(machine(d), Loss::hinge, 1.0, 0.8);
        const SquareKernel<double> kernel = c.kernel<double>(Layout::rows);
        BlockDescent<double> descent(c.problem);
        for (const Index size : {50, 3, 90, 17, 17}) {
            const std::vector<Index> members(c.all.end() - size, c.all.end());
            Workspace block(c.problem, c.state, members);
            const AlignedVector<double> before = block.all_variables();
            descent.attach(block, kernel.panel_row(0, n - size) + (n - size), kernel.ld());
            CHECK(descent.run(1e-6, no_limit, c.monitor, c.tally));
            CHECK(block.all_variables() == before);
            descent.write_back();
            c.check_solved<double>(block, 1e-6, 0.0);
        }
    }
}

}  // namespace multimargin
