#include "solvers/binary/solve.hpp"

#include "binary_cases.hpp"
#include "check.hpp"

namespace multimargin {

namespace {

using testing::check_optimal;
using testing::Numbers;
using testing::PlainCheck;
using testing::TwoClouds;

constexpr Loss losses[] = {Loss::hinge, Loss::squared_hinge};

BinaryReport solve_alone(const BinaryProblem& problem, BinaryState& state, const Options& options,
                         Watcher* watcher = nullptr) {
    Monitor monitor(watcher, options.max_time);
    ThreadTeam team(options.n_threads);
    BinaryMemory memory;
    return solve_binary(problem, state, options, monitor, team, memory);
}

// A verified report says what plain loops find, and all errors that matter are as good as new.
void check_report(const PlainCheck& exact, const BinaryState& state, const BinaryReport& report) {
    CHECK(report.verified && state.errors_current);
    const double scale = 1.0 + exact.primal;
    CHECK_CLOSE(report.violation, exact.violation, 1e-11 * (1.0 + exact.mass));
    CHECK_CLOSE(report.dual, exact.dual, 1e-11 * scale);
    CHECK_CLOSE(report.primal, exact.primal, 1e-11 * scale);
    CHECK_CLOSE(report.bias, exact.bias, 1e-11 * (1.0 + exact.mass));
    CHECK(report.n_support == exact.n_support);
}

PlainCheck check_converged(const TwoClouds& clouds, Loss loss, const BinaryState& state, const BinaryReport& report,
                           double tol) {
    CHECK(report.stop_reason == StopReason::converged && report.violation <= tol);
    const PlainCheck exact(clouds, loss, state.variables);
    check_report(exact, state, report);
    check_optimal(clouds, loss, exact, tol + 1e-11 * exact.mass);
    return exact;
}

void check_usable(const TwoClouds& clouds, Loss loss, const BinaryState& state, const BinaryReport& report) {
    const PlainCheck exact(clouds, loss, state.variables);
    CHECK(exact.feasible());
    CHECK(std::isfinite(report.bias));
    CHECK(report.n_support == exact.n_support);
    CHECK(report.verified == state.errors_current);
    CHECK(report.verified || report.primal == infinity);
    if (report.verified) check_report(exact, state, report);
}

// Large C, many wrong labels, a tolerance that takes long to reach.
struct LongWork {
    explicit LongWork(Index n) : clouds(n / 2, n - n / 2, 4, 5, 0.3) {
        clouds.C.assign(clouds.C.size(), 1e4);
        options.tol = 1e-9;
        options.precision = Precision::float64;
    }
    TwoClouds clouds;
    Options options;
};

}  // namespace

TEST(binary_solve_converges_for_every_choice) {
    for (const Loss loss : losses) {
        TwoClouds clouds(120, 80, 3, 3);
        Numbers numbers(2);
        for (double& C : clouds.C) C = numbers.uniform(0.2, 3.0);
        const DenseSource source = clouds.source();
        const BinaryProblem problem = clouds.problem(source, loss);
        double reference = infinity;
        for (const Precision precision : {Precision::float64, Precision::automatic, Precision::float32}) {
            for (const bool shrinking : {true, false}) {
                Options options;
                options.precision = precision;
                options.shrink_variables = options.shrink_examples = shrinking;
                options.cache_bytes = shrinking ? 0.0 : 1e8;
                options.tol = precision == Precision::float64 ? 1e-8 : 1e-3;
                BinaryState state(problem);
                const BinaryReport report = solve_alone(problem, state, options);
                const PlainCheck exact = check_converged(clouds, loss, state, report, options.tol);
                CHECK(report.float64_rows == (precision == Precision::float64));
                CHECK(report.iterations > 0 && report.kernel_rows > 0);
                if (reference == infinity) reference = exact.primal;
                CHECK(exact.dual <= reference + 1e-4);
                CHECK_CLOSE(exact.dual, reference, 200.0 * 3.0 * options.tol);
            }
        }
    }
}

// Whoever names the choice of pairs gets single pairs at every size, and their number.
TEST(binary_solve_by_named_pairs_of_a_large_problem) {
    const Index n = binary_one_level_max + 100;
    const TwoClouds clouds(n / 2, n - n / 2, 3, 8);
    const DenseSource source = clouds.source();
    const BinaryProblem problem = clouds.problem(source);
    Index steps[2] = {0, 0};
    double duals[3];
    const SolverKind kinds[] = {SolverKind::maximum_gain, SolverKind::most_violating_pair, SolverKind::smo};
    for (int i = 0; i < 3; ++i) {
        Options options;
        options.solver = kinds[i];
        options.tol = 1e-3;
        BinaryState state(problem);
        const BinaryReport report = solve_alone(problem, state, options);
        CHECK(report.stop_reason == StopReason::converged && report.verified);
        CHECK((report.phases.blocks == 0) == (i < 2));
        if (i < 2) steps[i] = report.iterations;
        duals[i] = report.dual;
    }
    CHECK(steps[0] < steps[1]);
    CHECK_CLOSE(duals[0], duals[2], 1e-4 * duals[2]);
    CHECK_CLOSE(duals[1], duals[2], 1e-4 * duals[2]);
}

TEST(binary_solve_takes_float64_where_float32_is_too_coarse) {
    TwoClouds clouds(60, 70, 3, 3);
    const DenseSource source = clouds.source();
    Options options;
    options.tol = 4e-5;
    BinaryState fine(clouds.problem(source));
    CHECK(solve_alone(clouds.problem(source), fine, options).float64_rows);
    clouds.C.assign(clouds.C.size(), 1e4);  // the coefficients grow until float32 no longer carries 1e-3
    options.tol = 1e-3;
    const BinaryProblem problem = clouds.problem(source);
    BinaryState state(problem);
    const BinaryReport report = solve_alone(problem, state, options);
    CHECK(report.float64_rows);
    check_converged(clouds, Loss::hinge, state, report, options.tol);
}

TEST(binary_solve_goes_on_after_many_steps) {
    // more steps than fit between two float64 checks
    TwoClouds clouds(30, 30, 3, 3);
    clouds.C.assign(clouds.C.size(), 1e7);
    const DenseSource source = clouds.source();
    const BinaryProblem problem = clouds.problem(source);
    Options options;
    options.tol = 1e-6;
    BinaryState state(problem);
    const BinaryReport report = solve_alone(problem, state, options);
    CHECK(report.iterations > 7000);
    CHECK(report.stop_reason == StopReason::converged);
    const PlainCheck exact(clouds, Loss::hinge, state.variables);
    CHECK(exact.feasible() && exact.violation <= 1e-6 + 1e-13 * exact.mass);
}

TEST(binary_solve_of_two_examples) {
    const TwoClouds clouds(1, 1, 2, 1);
    const DenseSource source = clouds.source();
    for (const Loss loss : losses) {
        const BinaryProblem problem = clouds.problem(source, loss);
        BinaryState state(problem);
        check_converged(clouds, loss, state, solve_alone(problem, state, Options{}), 1e-3);
    }
}

TEST(binary_solve_starts_where_it_stands) {
    for (const Loss loss : losses) {
        const TwoClouds clouds(120, 80, 3, 3);
        const DenseSource source = clouds.source();
        const BinaryProblem problem = clouds.problem(source, loss);
        const Options options;
        BinaryState state(problem);
        const BinaryReport first = solve_alone(problem, state, options);
        BinaryState copy(problem);  // the variables alone: errors are computed anew
        copy.variables = state.variables;
        const BinaryReport again = solve_alone(problem, copy, options);
        CHECK(again.iterations <= 5 && again.iterations < first.iterations);
        check_converged(clouds, loss, copy, again, options.tol);
        // a start that is not feasible
        BinaryState bad(problem);
        Numbers numbers(1);
        for (double& a : bad.variables) a = numbers.uniform(-5.0, 5.0);
        check_converged(clouds, loss, bad, solve_alone(problem, bad, options), options.tol);
    }
}

TEST(binary_solve_stops_after_max_iter) {
    for (const Index n : {500, 4500}) {
        LongWork work(n);
        const DenseSource source = work.clouds.source();
        const BinaryProblem problem = work.clouds.problem(source);
        for (const Precision precision : {Precision::automatic, Precision::float32, Precision::float64}) {
            for (const Index limit : {0, 1, 7, 333}) {
                work.options.max_iter = limit;
                work.options.precision = precision;
                BinaryState state(problem);
                const BinaryReport report = solve_alone(problem, state, work.options);
                CHECK(report.stop_reason == StopReason::max_iter && report.iterations == limit);
                CHECK(report.violation > work.options.tol);
                check_usable(work.clouds, Loss::hinge, state, report);
                CHECK(report.verified);
            }
        }
    }
}

TEST(binary_solve_max_iter_that_is_just_enough_is_no_failure) {
    const TwoClouds clouds(120, 80, 3, 3);
    const DenseSource source = clouds.source();
    const BinaryProblem problem = clouds.problem(source);
    Options options;
    BinaryState state(problem), limited(problem);
    options.max_iter = solve_alone(problem, state, options).iterations;
    const BinaryReport report = solve_alone(problem, limited, options);
    CHECK(report.stop_reason == StopReason::converged && report.iterations == options.max_iter);
    CHECK(limited.variables == state.variables);
}

TEST(binary_solve_max_iter_with_tol_met_is_convergence) {
    // The steps aim below tol: they may run out between there and tol. Where they do is only known afterwards.
    const TwoClouds clouds(120, 80, 3, 3);
    const DenseSource source = clouds.source();
    const BinaryProblem problem = clouds.problem(source);
    Index n_seen = 0;
    for (const Index steps : {100, 120, 140, 160, 180, 200}) {
        Options options;
        options.precision = Precision::float64;
        options.max_iter = steps;
        options.tol = 1e-12;
        BinaryState far(problem), near(problem);
        options.tol = 1.05 * solve_alone(problem, far, options).violation;
        const BinaryReport report = solve_alone(problem, near, options);
        CHECK(report.stop_reason == StopReason::converged && report.violation <= options.tol);
        n_seen += report.iterations == steps && report.violation > 0.95 * options.tol ? 1 : 0;
    }
    CHECK(n_seen > 0);
}

TEST(binary_solve_stops_at_any_moment) {
    for (const Index n : {500, 4300}) {
        LongWork work(n);
        const DenseSource source = work.clouds.source();
        for (const Loss loss : losses) {
            const BinaryProblem problem = work.clouds.problem(source, loss);
            for (const double seconds : {0.0, 1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 4e-3, 7e-3, 0.011, 0.017, 0.029}) {
                work.options.max_time = seconds;
                work.options.precision = seconds > 0.005 ? Precision::float32 : Precision::float64;
                BinaryState state(problem);
                const BinaryReport report = solve_alone(problem, state, work.options);
                CHECK(report.stop_reason == StopReason::max_time);
                check_usable(work.clouds, loss, state, report);
            }
        }
    }
}

TEST(binary_solve_stopped_before_the_first_look_verifies_nothing) {
    const TwoClouds clouds(120, 80, 3, 3);
    const DenseSource source = clouds.source();
    const BinaryProblem problem = clouds.problem(source);
    Options options;
    BinaryState state(problem);
    const BinaryReport first = solve_alone(problem, state, options);
    CHECK(first.verified && state.errors_current);
    const std::vector<double> variables = state.variables;
    options.max_time = 0.0;
    const BinaryReport again = solve_alone(problem, state, options);
    CHECK(again.stop_reason == StopReason::max_time && !again.verified && again.primal == infinity);
    CHECK_CLOSE(again.bias, first.bias, 1e-2);
    CHECK(state.variables == variables && !state.errors_current);
    check_usable(clouds, Loss::hinge, state, again);
    BinaryState copy(problem);  // nor does it know any error
    copy.variables = variables;
    CHECK_CLOSE(solve_alone(problem, copy, options).bias, first.bias, 1e-2);
}

TEST(binary_solve_stops_by_a_watcher) {
    struct AtTheSecondLook final : Watcher {  // the first comes before any step
        Verdict watch(const Progress&, const std::function<void()>&) override {
            return ++calls == 2 ? Verdict::callback : Verdict::go_on;
        }
        int calls = 0;
    };
    LongWork work(900);
    work.clouds.C.assign(work.clouds.C.size(), 1e6);
    work.options.tol = 1e-13;
    const DenseSource source = work.clouds.source();
    const BinaryProblem problem = work.clouds.problem(source);
    AtTheSecondLook watcher;
    BinaryState state(problem);
    const BinaryReport report = solve_alone(problem, state, work.options, &watcher);
    CHECK(report.stop_reason == StopReason::callback && watcher.calls == 2 && report.iterations > 0);
    CHECK(!report.verified);
    check_usable(work.clouds, Loss::hinge, state, report);
}

TEST(binary_solve_goes_on_from_a_stop) {
    const TwoClouds clouds(300, 400, 3, 3);
    const DenseSource source = clouds.source();
    for (const Loss loss : losses) {
        const BinaryProblem problem = clouds.problem(source, loss);
        BinaryState state(problem);
        Options options;
        options.max_time = 1e-3;
        Index n_stops = 0;
        while (n_stops < 200 && solve_alone(problem, state, options).stop_reason == StopReason::max_time) {
            ++n_stops;
            options.max_time *= 1.2;
        }
        options.max_time = infinity;
        check_converged(clouds, loss, state, solve_alone(problem, state, options), options.tol);
    }
}

TEST(binary_solve_is_never_endless) {
    // tolerances below what rounding allows: steps that gain nothing must be noticed
    struct Case {
        Index n;
        double C, tol, reached;
        Precision precision;
    };
    for (const Case& c :
         {Case{200, 1.0, 1e-12, 1e-5, Precision::float32}, Case{200, 1e4, 1e-13, 1e-6, Precision::float64},
          Case{4200, 1.0, 1e-12, 1e-4, Precision::float32}}) {
        TwoClouds clouds(c.n / 2, c.n / 2, 3, 3);
        clouds.C.assign(clouds.C.size(), c.C);
        const DenseSource source = clouds.source();
        const BinaryProblem problem = clouds.problem(source);
        Options options;
        options.precision = c.precision;
        options.tol = c.tol;
        options.max_time = 60.0;  // an upper limit only
        BinaryState state(problem);
        const BinaryReport report = solve_alone(problem, state, options);
        CHECK(report.stop_reason == StopReason::stalled);
        CHECK(report.verified && report.violation < c.reached);
        CHECK(PlainCheck(clouds, Loss::hinge, state.variables).feasible());
    }
}

}  // namespace multimargin
