// Large binary problems: blocks within rounds, alone and inside a whole solve.
#include "solvers/binary/blocks.hpp"

#include <numeric>

#include "binary_cases.hpp"
#include "check.hpp"
#include "solvers/binary/solve.hpp"

namespace multimargin {

namespace {

using testing::check_optimal;
using testing::PlainCheck;
using testing::TwoClouds;

constexpr Loss losses[] = {Loss::hinge, Loss::squared_hinge};

// The blocks by themselves, from zero.
template <class T>
struct Rounds {
    Rounds(const TwoClouds& of, Loss loss_ = Loss::hinge)
        : clouds(of), loss(loss_), source(of.source()), problem(of.problem(source, loss_)), state(problem) {
        options.precision = sizeof(T) == 4 ? Precision::float32 : Precision::float64;
        for (Index e = 0; e < problem.size(); ++e) state.errors[unsigned_index(e)] = -problem.sign(e);
    }
    Outcome run(double target, Index limit = -1, double seconds = infinity) {
        Monitor monitor(nullptr, seconds);
        ThreadTeam team(2);
        BinaryMemory memory;
        BinaryBlocks<T> blocks(problem, state, options, monitor, tally, team, memory);
        return blocks.run(target, limit);
    }
    // All errors are kept up to date, also those of examples that rest.
    PlainCheck check_scores(double rounding) const {
        PlainCheck exact(clouds, loss, state.variables);
        for (std::size_t e = 0; e < exact.E.size(); ++e) CHECK_CLOSE(state.errors[e], exact.E[e], rounding);
        CHECK(exact.feasible());
        return exact;
    }

    const TwoClouds& clouds;
    Loss loss;
    DenseSource source;
    BinaryProblem problem;
    BinaryState state;
    Options options;
    Tally tally;
};

BinaryReport solve_alone(const BinaryProblem& problem, BinaryState& state, const Options& options) {
    Monitor monitor(nullptr, options.max_time);
    ThreadTeam team(options.n_threads);
    BinaryMemory memory;
    return solve_binary(problem, state, options, monitor, team, memory);
}

PlainCheck check_solved(const TwoClouds& clouds, Loss loss, const Options& options) {
    const DenseSource source = clouds.source();
    const BinaryProblem problem = clouds.problem(source, loss);
    BinaryState state(problem);
    const BinaryReport report = solve_alone(problem, state, options);
    CHECK(report.stop_reason == StopReason::converged && report.verified && report.phases.blocks > 0);
    PlainCheck exact(clouds, loss, state.variables);
    check_optimal(clouds, loss, exact, options.tol + 1e-11 * exact.mass);
    CHECK_CLOSE(report.violation, exact.violation, 1e-11 * (1.0 + exact.mass));
    CHECK_CLOSE(report.dual, exact.dual, 1e-11 * (1.0 + exact.primal));
    CHECK_CLOSE(report.primal, exact.primal, 1e-11 * (1.0 + exact.primal));
    CHECK_CLOSE(report.bias, exact.bias, 1e-11 * (1.0 + exact.mass));
    CHECK(report.n_support == exact.n_support);
    return exact;
}

// Each dual lies below every primal: so far and no further may two solutions differ.
void check_same_optimum(const PlainCheck& a, const PlainCheck& b) {
    CHECK(a.dual <= b.primal * (1.0 + 1e-12) && b.dual <= a.primal * (1.0 + 1e-12));
}

}  // namespace

TEST(binary_blocks_keep_all_scores) {
    for (const Loss loss : losses) {
        const TwoClouds clouds(1000, 1300, 3, 4);
        Rounds<double> work(clouds, loss);
        CHECK(work.run(1e-4) == Outcome::satisfied);
        const PlainCheck exact = work.check_scores(1e-10);
        check_optimal(clouds, loss, exact, 1e-4 + 1e-9);
        CHECK(work.tally.violation <= 1e-4 && work.tally.iterations > 0);
        CHECK(work.tally.phases.rounds > 1 && work.tally.phases.blocks > 1);
        Rounds<float> coarse(clouds, loss);
        CHECK(coarse.run(1e-3) == Outcome::satisfied);
        check_optimal(clouds, loss, coarse.check_scores(1e-7 * coefficient_mass(coarse.state)), 1.2e-3);
    }
}

TEST(binary_blocks_add_up_the_dual_and_leave_a_state_at_rest_alone) {
    const TwoClouds clouds(1000, 1300, 3, 4);
    Rounds<double> work(clouds);
    Monitor monitor(nullptr, infinity);
    ThreadTeam team(1);
    BinaryMemory memory;
    BinaryBlocks<double> blocks(work.problem, work.state, work.options, monitor, work.tally, team, memory);
    CHECK(blocks.run(1e-4, -1) == Outcome::satisfied);
    const double dual = summarize(work.problem, work.state).dual;
    CHECK_CLOSE(work.tally.dual, dual, 1e-9 * dual);
    for (double& error : work.state.errors) error += 1.0;  // an exact check changes them, too
    const std::vector<double> known = work.state.errors;
    blocks.scatter();
    CHECK(work.state.errors == known);
}

TEST(binary_blocks_of_points_with_many_features) {
    // rows are kept from block to block: with room for all, for some, for none
    TwoClouds clouds(600, 900, 70, 4, 0.02);
    for (const double bytes : {0.0, 1e6, 1e9}) {
        Rounds<double> work(clouds);
        work.options.cache_bytes = bytes;
        CHECK(work.run(1e-4) == Outcome::satisfied);
        check_optimal(clouds, Loss::hinge, work.check_scores(1e-10), 1e-4 + 1e-9);
        CHECK(bytes < 1e9 || work.tally.cache.hits > 0);
    }
}

TEST(binary_blocks_go_on_where_they_stand) {
    const TwoClouds clouds(1000, 1300, 3, 4);
    Rounds<double> work(clouds);
    Index before = 0;
    for (const Index limit : {0, 1, 40, 700}) {
        CHECK(work.run(1e-5, limit) == Outcome::out_of_steps);
        CHECK(work.tally.iterations == before + limit);
        before = work.tally.iterations;
        work.check_scores(1e-10);
    }
    for (const double seconds : {0.0, 1e-4, 1e-3}) {
        CHECK(work.run(1e-12, -1, seconds) == Outcome::stopped);
        const PlainCheck exact(clouds, Loss::hinge, work.state.variables);
        CHECK(exact.feasible());
        work.state.errors = exact.E;
    }
    CHECK(work.run(1e-5) == Outcome::satisfied);
    check_optimal(clouds, Loss::hinge, work.check_scores(1e-10), 1e-5 + 1e-9);
    const Index steps = work.tally.iterations;
    CHECK(work.run(2e-5) == Outcome::satisfied && work.tally.iterations == steps);  // nothing left to do
}

TEST(binary_blocks_say_when_float32_is_too_coarse) {
    TwoClouds clouds(700, 700, 3, 4);
    clouds.C.assign(clouds.C.size(), 1e4);
    Rounds<float> work(clouds);
    work.options.precision = Precision::automatic;
    CHECK(work.run(1e-4) == Outcome::imprecise);
    CHECK(PlainCheck(clouds, Loss::hinge, work.state.variables).feasible());
    work.check_scores(1.0);
}

TEST(binary_blocks_find_the_optimum_of_one_level) {
    const TwoClouds clouds(2300, 2700, 3, 6);
    const DenseSource source = clouds.source();
    for (const Loss loss : losses) {
        const BinaryProblem problem = clouds.problem(source, loss);
        std::vector<Index> all(unsigned_index(problem.size()));
        std::iota(all.begin(), all.end(), Index{0});
        BinaryState zero(problem);
        for (Index e = 0; e < problem.size(); ++e) zero.errors[unsigned_index(e)] = -problem.sign(e);
        BinaryDescent<double> descent;
        descent.load(problem, all, zero.variables, zero.errors);
        CacheCounters counters;
        RowMemory<double> memory;
        SlotRows<double> rows(source, problem.rows(), 3e8, counters, memory);
        Monitor monitor(nullptr, infinity);
        CHECK(descent.run(rows, 1e-5, std::numeric_limits<Index>::max(), monitor) == Outcome::satisfied);
        std::vector<double> variables;
        for (const Index e : all) variables.push_back(descent.variable(e));
        const PlainCheck reference(clouds, loss, variables);
        check_optimal(clouds, loss, reference, 2e-5);
        for (const auto& [shrinking, precision] :
             {std::pair{true, Precision::automatic}, {true, Precision::float64}, {false, Precision::automatic}}) {
            Options options;
            options.shrink_variables = options.shrink_examples = shrinking;
            options.precision = precision;
            options.tol = precision == Precision::float64 ? 1e-5 : 1e-3;
            const PlainCheck exact = check_solved(clouds, loss, options);
            check_same_optimum(exact, reference);
            CHECK_CLOSE(exact.bias, reference.bias, 3.0 * options.tol);
            if (options.tol == 1e-5) CHECK_CLOSE(exact.dual, reference.dual, 5000.0 * 1e-5);
        }
    }
}

TEST(binary_blocks_of_unbalanced_classes) {
    for (const bool first : {true, false}) {
        for (const Loss loss : losses) {
            TwoClouds clouds(first ? 6 : 5000, first ? 5000 : 6, 3, 7);
            check_solved(clouds, loss, Options{});
            // balanced by weights
            for (Index e = 0; e < clouds.size(); ++e) {
                if ((e < clouds.n_positive) == first) clouds.C[unsigned_index(e)] = 800.0;
            }
            check_solved(clouds, loss, Options{});
        }
    }
}

TEST(binary_blocks_of_scores_that_tie) {
    // only so many different points, each many times in both classes: whole blocks of equal errors
    for (const Index n_points : {1, 2, 30}) {
        TwoClouds clouds(2100, 2400, 2, 8);
        for (Index e = 0; e < clouds.size(); ++e) {
            for (Index k = 0; k < 2; ++k) {
                clouds.X[unsigned_index(clouds.rows[unsigned_index(e)] * 2 + k)] =
                    static_cast<double>(((e % 7 < 5 ? e : e + e / 2100) * (k + 3)) % n_points) / 8.0;
            }
        }
        for (const Loss loss : losses) check_solved(clouds, loss, Options{});
    }
}

TEST(binary_blocks_do_not_depend_on_the_threads) {
    const TwoClouds clouds(2000, 2500, 3, 9);
    const DenseSource source = clouds.source();
    const BinaryProblem problem = clouds.problem(source);
    Options options;
    BinaryState one(problem);
    const BinaryReport first = solve_alone(problem, one, options);
    for (const Index n_threads : {2, 3}) {
        options.n_threads = n_threads;
        BinaryState more(problem);
        const BinaryReport second = solve_alone(problem, more, options);
        CHECK(one.variables == more.variables && one.errors == more.errors);
        CHECK(first.dual == second.dual && first.bias == second.bias && first.iterations == second.iterations);
    }
}

}  // namespace multimargin
