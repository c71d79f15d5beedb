#include "solvers/multiclass/feature_descent.hpp"

#include <numeric>

#include "check.hpp"
#include "problems.hpp"
#include "solvers/multiclass/solve.hpp"

namespace multimargin {

namespace {

using testing::Clouds;
using testing::Numbers;

constexpr Index n = 203, d = 4;
constexpr double smooth = 0.05, rough = 1000.0;  // gamma

Machine (*const machines[])(Index) = {testing::ww, testing::cs, testing::llw, testing::atm, testing::ats, testing::ova};
constexpr Loss losses[] = {Loss::hinge, Loss::squared_hinge};

Clouds weighted_clouds(Index size, Index n_classes, double C) {
    Clouds clouds(size, 3, n_classes, 6);
    for (std::size_t i = 0; i < clouds.C.size(); ++i) clouds.C[i] = clouds.y[i] == 1 ? 0.3 * C : C;
    return clouds;
}

struct Case {
    Case(const Machine& machine, Loss loss, double C, double gamma = smooth, Index size = n)
        : clouds(weighted_clouds(size, machine.n_classes, C)),
          source(clouds.view(), testing::rbf(gamma)),
          problem(clouds.problem(source, machine, loss)),
          state(problem) {}

    Outcome run(double target, Index max_iterations = -1) { return run(target, max_iterations, monitor); }
    Outcome run(double target, Index max_iterations, Monitor& watched) {
        FeatureDescent features(problem, state, watched, tally, team);
        return features.run(target, max_iterations);
    }

    // Somewhere within the bounds, with the scores that belong to it.
    void start_anywhere() {
        Numbers numbers(8);
        for (Index e = 0; e < problem.size(); ++e) {
            const Index count = static_cast<Index>(problem.machine().of(problem.class_of(e)).size());
            const double room = problem.C(e) / static_cast<double>(count);
            for (Index p = 0; p < count; ++p) state.variable(p, e) = std::max(0.0, numbers.uniform(-room, room));
        }
        CHECK(refresh_scores(problem, state, team, nullptr));
    }

    void check_feasible() const {
        const Machine& machine = problem.machine();
        for (Index e = 0; e < problem.size(); ++e) {
            double sum = 0.0;
            for (Index p = 0; p < machine.max_components(); ++p) {
                const double a = state.variable(p, e);
                const bool used = p < static_cast<Index>(machine.of(problem.class_of(e)).size());
                CHECK(a >= 0.0 && a <= problem.cap(e) && (used || a == 0.0));  // not a number fails too
                sum += a;
            }
            if (machine.bound == Bound::simplex) CHECK(sum <= problem.cap(e) * (1.0 + 1e-14));
        }
    }

    // Scores of the state are those of its variables to the bit, and the tally agrees with them.
    Summary check_exact() {
        check_feasible();
        FullState again = state;
        CHECK(state.scores_current);
        CHECK(refresh_scores(problem, again, team, nullptr));
        CHECK(again.scores == state.scores);
        const Summary summary = summarize(problem, again);
        CHECK(summary.violation == tally.violation && summary.dual == tally.dual && summary.primal == tally.primal);
        CHECK(summary.n_support == tally.n_support && tally.n_active == problem.size());
        return summary;
    }

    double mass() const { return std::accumulate(state.variables.begin(), state.variables.end(), 0.0); }

    Clouds clouds;
    DenseSource source;
    Problem problem;
    FullState state;
    ThreadTeam team{1};
    Monitor monitor{nullptr, infinity};
    Tally tally;
};

// By concavity dual* - dual <= g'(a* - a), and no coordinate of g violates by more than tol.
void check_optimum(Case& c, const Summary& summary) {
    Options options;
    options.solver = SolverKind::two_level;
    options.precision = Precision::float64;
    options.tol = 1e-7;
    FullState solved(c.problem);
    const Report report = solve(c.problem, solved, options, nullptr);
    CHECK(report.stop_reason == StopReason::converged);
    const double both = c.mass() + std::accumulate(solved.variables.begin(), solved.variables.end(), 0.0);
    CHECK(summary.dual <= report.dual + options.tol * both);
    CHECK(summary.dual >= report.dual - summary.violation * both);
}

template <class Function>
void for_each_kind(Function function) {
    for (const auto machine : machines) {
        for (const Loss loss : losses) function(machine, loss);
    }
}

}  // namespace

TEST(feature_descent_reaches_the_target) {
    for_each_kind([](auto machine, Loss loss) {
        Case c(machine(d), loss, 1.0);
        CHECK(c.run(1e-3) == Outcome::satisfied);
        const Summary summary = c.check_exact();
        CHECK(summary.violation <= 1e-3);
        CHECK(c.tally.iterations > n && c.tally.phases.feature_sweeps > 1);
        check_optimum(c, summary);
    });
}

TEST(feature_descent_goes_on_from_a_state) {
    for_each_kind([](auto machine, Loss loss) {
        Case c(machine(d), loss, 1.0);
        c.start_anywhere();
        const double start = summarize(c.problem, c.state).dual;
        CHECK(c.run(1e-1) == Outcome::satisfied);
        CHECK(c.tally.dual > start);
        const Index before = c.tally.iterations;
        CHECK(c.run(1e-3) == Outcome::satisfied);
        const Summary summary = c.check_exact();
        CHECK(summary.violation <= 1e-3);
        check_optimum(c, summary);
        const Index sweeps = c.tally.phases.feature_sweeps;
        CHECK(c.tally.iterations > before);
        CHECK(c.run(1e-3) == Outcome::satisfied && c.tally.phases.feature_sweeps == sweeps);  // nothing left to do
    });
}

// W holds changes only, so that float32 does not keep it from small violations.
TEST(feature_descent_reaches_small_violations) {
    for (const auto machine : {testing::ww, testing::cs, testing::llw}) {
        Case c(machine(d), Loss::squared_hinge, 1.0);
        CHECK(c.run(1e-6) == Outcome::satisfied);
        CHECK(c.check_exact().violation <= 1e-6);
    }
}

// Wherever a limit falls, also between examples that stand beyond the last sweep's end. A small bound leaves no slack.
TEST(feature_descent_takes_as_many_steps_as_it_may) {
    for_each_kind([](auto machine, Loss loss) {
        for (const double C : {0.01, 1.0, 30.0}) {
            for (const Index limit : {0, 1, 7, 300, 997, 2500}) {
                Case c(machine(d), loss, C);
                const Outcome outcome = c.run(1e-9, limit);
                CHECK(outcome == Outcome::out_of_steps ? c.tally.iterations == limit : c.tally.iterations <= limit);
                CHECK(outcome != Outcome::stopped);
                CHECK(c.check_exact().dual > 0.0 || limit == 0);
            }
        }
    });
}

TEST(feature_descent_meets_full_and_open_simplices) {
    const auto full = [](const Case& c) {
        Index count = 0;
        for (Index e = 0; e < c.problem.size(); ++e) {
            double sum = 0.0;
            for (Index p = 0; p < c.problem.machine().max_components(); ++p) sum += c.state.variable(p, e);
            count += slack_of(sum, c.problem.cap(e)) == 0.0 ? 1 : 0;
        }
        return count;
    };
    Case tight(testing::cs(d), Loss::hinge, 0.01), open(testing::cs(d), Loss::hinge, 30.0);
    CHECK(tight.run(1e-3) == Outcome::satisfied && full(tight) == n);
    static_cast<void>(open.run(1e-3));
    CHECK(full(open) > 0 && full(open) < n);
    check_optimum(tight, tight.check_exact());
    open.check_exact();
}

// No bound: the hard margin of points that differ.
TEST(feature_descent_without_bounds) {
    for (const auto machine : {testing::ww, testing::cs}) {
        Case c(machine(d), Loss::hinge, infinity);
        static_cast<void>(c.run(1e-3, 5000));
        c.check_feasible();
        CHECK(c.mass() > 0.0 && c.mass() < infinity && c.tally.phases.feature_sweeps > 0);
    }
}

TEST(feature_descent_is_stuck_where_the_kernel_is_rough) {
    Case c(testing::llw(d), Loss::hinge, 1.0, rough);
    const AlignedVector<double> before = c.state.variables;
    CHECK(c.run(1e-3) == Outcome::stuck);
    CHECK(c.state.variables == before && c.state.scores_current && c.tally.phases.feature_sweeps == 0);
}

// Coefficients so large that what G G' leaves out decides: it ends no worse than it began, near the optimum too.
TEST(feature_descent_goes_back_where_it_gets_nowhere) {
    for (const auto machine : {testing::ww, testing::cs, testing::llw}) {
        Case c(machine(d), Loss::hinge, 1e5);
        c.start_anywhere();
        for (int turn = 0; turn < 2; ++turn) {
            const double start = summarize(c.problem, c.state).dual;
            CHECK(c.run(1e-9) == Outcome::stuck);
            CHECK(c.check_exact().dual >= start);
            Options options;
            options.solver = SolverKind::two_level;
            options.precision = Precision::float64;
            CHECK(solve(c.problem, c.state, options, nullptr).stop_reason == StopReason::converged);
            make_feasible(c.problem, c.state);  // to the bit
            CHECK(refresh_scores(c.problem, c.state, c.team, nullptr));
        }
    }
}

// A deadline at any time; most of them fall into sweeps.
TEST(feature_descent_is_stopped_by_the_monitor) {
    constexpr Index many = 1100, classes = 9;
    for (const auto machine : {testing::llw, testing::cs}) {
        int in_sweeps = 0;
        for (double seconds = 0.001; seconds < 30.0; seconds *= 1.5) {
            Case c(machine(classes), Loss::hinge, 1.0, smooth, many);
            c.tally.dual = summarize(c.problem, c.state).dual;
            Monitor monitor(nullptr, seconds);
            const Outcome outcome = c.run(1e-9, -1, monitor);
            c.check_feasible();
            if (outcome != Outcome::stopped || !monitor.stopped()) break;
            if (c.tally.phases.feature_sweeps == 0) continue;
            ++in_sweeps;
            // The solver's own dual is about that of the variables.
            const double told = c.tally.dual;
            CHECK(refresh_scores(c.problem, c.state, c.team, nullptr));
            const double dual = summarize(c.problem, c.state).dual;
            CHECK_CLOSE(told, dual, 1e-2 * dual);
            if (in_sweeps == 5) break;
        }
        CHECK(in_sweeps > 0);
    }
}

TEST(feature_descent_is_the_same_for_any_number_of_threads) {
    for (const auto machine : {testing::llw, testing::atm}) {
        const auto solved = [&](Index n_threads) {
            Case c(machine(d), Loss::hinge, 1.0);
            ThreadTeam team(n_threads);
            FeatureDescent features(c.problem, c.state, c.monitor, c.tally, team);
            CHECK(features.run(1e-3, -1) == Outcome::satisfied);
            return c.state;
        };
        const FullState one = solved(1), two = solved(2);
        CHECK(one.variables == two.variables && one.scores == two.scores);
    }
}

// More classes than a vector holds, and a number that fills none.
TEST(feature_descent_of_many_classes) {
    for (const auto machine : {testing::ww, testing::cs, testing::llw}) {
        Case c(machine(70), Loss::hinge, 1.0);
        CHECK(c.run(1e-3) == Outcome::satisfied);
        const Summary summary = c.check_exact();
        CHECK(summary.violation <= 1e-3);
        CHECK(summary.primal - summary.dual <= 1e-2 * summary.primal);
    }
}

TEST(feature_descent_records_every_look) {
    Case c(testing::cs(d), Loss::hinge, 1.0);
    c.tally.trace.begin([] { return 0.0; }, {});
    CHECK(c.run(1e-4) == Outcome::satisfied);
    const Census census = census_of(c.problem, c.state);
    const std::vector<TracePoint> points = c.tally.trace.end(c.tally.moment(census));
    CHECK(points.size() >= 2 && points.front().iterations == 0 && points.front().dual == 0.0);
    for (std::size_t k = 1; k < points.size(); ++k) {
        CHECK(points[k].iterations > points[k - 1].iterations && points[k].dual > points[k - 1].dual);
        CHECK(points[k].census.examples == n && points[k].census.variables == n * (d - 1));
    }
    CHECK(points.back().census.free == census.free && points.back().census.bounded == census.bounded);
}

}  // namespace multimargin
