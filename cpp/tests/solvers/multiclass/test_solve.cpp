#include "solvers/multiclass/solve.hpp"

#include <limits>
#include <thread>

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Clouds;

constexpr Index d = 3;

Machine (*const machines[])(Index) = {testing::ww, testing::cs, testing::llw, testing::atm};
constexpr SolverKind solvers[] = {SolverKind::smo,         SolverKind::s2do,      SolverKind::whole_example,
                                  SolverKind::semi_greedy, SolverKind::two_level, SolverKind::working_set};

bool applies(SolverKind solver, const Problem& problem) {
    return solver != SolverKind::working_set || problem.machine().bound == Bound::box;
}

// Scores anew, so that nothing of the solver's own bookkeeping is used.
Summary look_again(const Problem& problem, FullState state) {
    ThreadTeam team(1);
    CHECK(refresh_scores(problem, state, team, nullptr));
    return summarize(problem, state);
}

void check_converged(const Problem& problem, const FullState& state, const Report& report, double tol) {
    CHECK(report.stop_reason == StopReason::converged);
    CHECK(report.verified && state.scores_current);
    const Summary summary = look_again(problem, state);
    CHECK(summary.violation <= tol);
    CHECK_CLOSE(report.violation, summary.violation, 1e-12);
    CHECK_CLOSE(report.dual, summary.dual, 1e-10 * (1.0 + summary.primal));
    CHECK_CLOSE(report.primal, summary.primal, 1e-10 * (1.0 + summary.primal));
    CHECK(report.n_support == summary.n_support && report.iterations > 0);
    CHECK(summary.dual <= summary.primal * (1.0 + 1e-12));
}

Report solve_with(const Problem& problem, FullState& state, const Options& options, Watcher* watcher = nullptr) {
    return solve(problem, state, options, watcher);
}

// Wrong labels and a large C: far from done when the watcher is first asked.
struct LongProblem {
    LongProblem() : clouds(900, 4, d, 5), source(clouds.view(), testing::rbf(0.3)) {
        clouds.C.assign(clouds.C.size(), 1e5);
    }
    Clouds clouds;
    DenseSource source;
};

Options endless() {
    Options options;
    options.tol = 1e-12;
    options.precision = Precision::float64;
    return options;
}

class CountingWatcher final : public Watcher {
  public:
    CountingWatcher(Verdict verdict, bool detail) : verdict_(verdict), detail_(detail) {}
    Verdict watch(const Progress& progress, const std::function<void()>& synchronize) override {
        ++calls;
        last = progress;
        synchronize();
        if (throws) throw std::runtime_error("from the watcher");
        return calls == 2 ? verdict_ : Verdict::go_on;  // the first call comes before any step
    }
    bool wants_detail() const override { return detail_; }
    int calls = 0;
    bool throws = false;
    Progress last;

  private:
    Verdict verdict_;
    bool detail_;
};

}  // namespace

TEST(solve_every_solver_converges) {
    const Clouds clouds(90, 3, d, 1);
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    for (const auto machine : machines) {
        for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
            const Problem problem = clouds.problem(source, machine(d), loss);
            double reference = infinity;
            for (const SolverKind solver : solvers) {
                if (!applies(solver, problem)) continue;
                Options options;
                options.solver = solver;
                options.tol = 1e-6;
                FullState state(problem);
                const Report report = solve_with(problem, state, options);
                check_converged(problem, state, report, options.tol);
                if (reference == infinity) reference = report.dual;
                CHECK_CLOSE(report.dual, reference, 1e-5 * (1.0 + std::abs(reference)));
            }
        }
    }
}

TEST(solve_options_change_nothing_in_the_optimum) {
    const Clouds clouds(400, 3, d, 2);
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    for (const auto machine : machines) {
        const Problem problem = clouds.problem(source, machine(d));
        double reference = infinity;
        for (const Precision precision : {Precision::automatic, Precision::float32, Precision::float64}) {
            for (const bool shrinking : {false, true}) {
                Options options;
                options.precision = precision;
                options.shrink_variables = options.shrink_examples = shrinking;
                options.cache_bytes = shrinking ? 0.0 : 1e8;  // the smallest cache as well
                FullState state(problem);
                const Report report = solve_with(problem, state, options);
                check_converged(problem, state, report, options.tol);
                CHECK(report.float64_rows || precision != Precision::float64);
                if (reference == infinity) reference = report.dual;
                CHECK_CLOSE(report.dual, reference, 1e-3 * (1.0 + std::abs(reference)));
            }
        }
    }
}

TEST(solve_shrinks_on_either_level) {
    Clouds clouds(160, 3, d, 2);
    clouds.C.assign(clouds.C.size(), 30.0);  // so that shrinking happens
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    for (const auto machine : machines) {
        const Problem problem = clouds.problem(source, machine(d));
        for (const SolverKind solver : solvers) {
            if (!applies(solver, problem)) continue;
            double reference = infinity;
            for (const bool variables : {false, true}) {
                for (const bool examples : {false, true}) {
                    Options options;
                    options.solver = solver;
                    options.tol = 1e-3;
                    options.shrink_variables = variables;
                    options.shrink_examples = examples;
                    FullState state(problem);
                    const Report report = solve_with(problem, state, options);
                    check_converged(problem, state, report, options.tol);
                    if (reference == infinity) reference = report.dual;
                    CHECK_CLOSE(report.dual, reference, 1e-3 * (1.0 + std::abs(reference)));
                }
            }
        }
    }
}

// A descent whose examples are all active is done when all their variables are, those off the scan included.
TEST(solve_shrunk_variables_come_back) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        Clouds clouds(300, 3, d, seed);
        clouds.C.assign(clouds.C.size(), 100.0);
        const DenseSource source(clouds.view(), testing::rbf(0.8));
        const Problem problem = clouds.problem(source, testing::llw(d));
        for (const SolverKind solver : {SolverKind::smo, SolverKind::s2do, SolverKind::working_set}) {
            Options options;
            options.solver = solver;
            options.shrink_examples = false;
            FullState state(problem);
            Monitor monitor(nullptr, infinity);
            Tally tally;
            Descent<double> descent(problem, state, options, monitor, tally);
            CHECK(descent.run(1e-2, -1) == Outcome::satisfied && descent.all_active());
            descent.scatter();
            CHECK(look_again(problem, state).violation <= 1e-2 * (1.0 + 1e-9));
        }
    }
}

// Without a cache a step computes each of its rows once.
TEST(solve_without_a_cache_computes_rows_anew) {
    const Clouds clouds(150, 3, d, 2);
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    const Problem problem = clouds.problem(source, testing::ww(d));
    for (const SolverKind solver : {SolverKind::smo, SolverKind::s2do, SolverKind::working_set}) {
        Options options;
        options.solver = solver;
        options.precision = Precision::float64;
        options.shrink_variables = options.shrink_examples = false;
        FullState kept(problem), anew(problem);
        const Report with = solve_with(problem, kept, options);
        options.cache_bytes = 0.0;
        const Report without = solve_with(problem, anew, options);
        check_converged(problem, anew, without, options.tol);
        CHECK(kept.variables == anew.variables && with.iterations == without.iterations);
        CHECK(with.kernel_rows <= problem.size());
        const Index most = solver == SolverKind::smo ? 1 : (solver == SolverKind::s2do ? 2 : options.working_set_size);
        CHECK(without.kernel_rows > with.iterations - 1 && without.kernel_rows <= most * with.iterations);
    }
}

TEST(solve_working_sets_of_any_size) {
    const Clouds clouds(120, 3, d, 4);
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    const Problem problem = clouds.problem(source, testing::llw(d));
    Index before = std::numeric_limits<Index>::max();
    for (const Index size : {2, 3, 10, 60, 1000}) {  // the last holds all variables: one step
        Options options;
        options.solver = SolverKind::working_set;
        options.working_set_size = size;
        options.tol = 1e-6;
        options.precision = Precision::float64;
        FullState state(problem);
        const Report report = solve_with(problem, state, options);
        check_converged(problem, state, report, options.tol);
        CHECK(report.iterations < before);
        before = report.iterations;
    }
    CHECK(before == 1);
}

TEST(solve_refuses_solvers_that_are_for_other_problems) {
    const Clouds clouds(30, 3, d, 4);
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    const Problem simplex = clouds.problem(source, testing::cs(d)), box = clouds.problem(source, testing::ww(d));
    const auto refused = [](const Problem& problem, SolverKind solver, Index size) {
        Options options;
        options.solver = solver;
        options.working_set_size = size;
        FullState state(problem);
        CHECK_THROWS(solve_with(problem, state, options), std::invalid_argument);
    };
    refused(simplex, SolverKind::working_set, 10);
    refused(box, SolverKind::working_set, 1);
    refused(box, SolverKind::most_violating_pair, 10);
    refused(box, SolverKind::maximum_gain, 10);
}

TEST(solve_is_the_same_for_any_number_of_threads) {
    const Clouds clouds(600, 3, d, 3);
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    const Problem problem = clouds.problem(source, testing::ww(d));
    Options options;
    FullState one(problem), three(problem);
    const Report first = solve_with(problem, one, options);
    options.n_threads = 3;
    const Report second = solve_with(problem, three, options);
    CHECK(one.variables == three.variables && one.scores == three.scores);
    CHECK(first.iterations == second.iterations && first.dual == second.dual);
}

TEST(solve_warm_start_needs_no_step) {
    const Clouds clouds(90, 3, d, 1);
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    const Problem problem = clouds.problem(source, testing::llw(d));
    Options options;
    FullState state(problem);
    CHECK(solve_with(problem, state, options).iterations > 0);
    const Report again = solve_with(problem, state, options);
    CHECK(again.stop_reason == StopReason::converged && again.verified);
    CHECK(again.iterations <= 2);  // the solver aims a little below tol
}

TEST(solve_takes_a_small_problem_further) {
    const Clouds clouds(60, 3, d, 4);
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    const Problem problem = clouds.problem(source, testing::ww(d));
    Options options;
    options.solver = SolverKind::semi_greedy;
    options.precision = Precision::float64;
    options.extra_tol = 1e-9;
    options.extra_steps = 100'000;
    FullState state(problem);
    const Report report = solve_with(problem, state, options);
    check_converged(problem, state, report, 1e-9);
}

TEST(solve_stops_after_max_iter) {
    const LongProblem work;
    for (const auto machine : machines) {
        const Problem problem = work.clouds.problem(work.source, machine(d));
        for (const SolverKind solver : solvers) {
            if (!applies(solver, problem)) continue;
            for (const Index limit : {0, 7}) {
                Options options = endless();
                options.solver = solver;
                options.max_iter = limit;
                FullState state(problem);
                const Report report = solve_with(problem, state, options);
                CHECK(report.stop_reason == StopReason::max_iter && report.iterations == limit);
                CHECK(report.verified && report.violation > options.tol);
                CHECK_CLOSE(report.dual, look_again(problem, state).dual, 1e-9 * (1.0 + std::abs(report.dual)));
            }
        }
    }
}

TEST(solve_stops_after_max_time) {
    const LongProblem work;
    const Problem problem = work.clouds.problem(work.source, testing::ww(d));
    Options options = endless();
    options.max_time = 0.05;
    FullState state(problem);
    const Report report = solve_with(problem, state, options);
    CHECK(report.stop_reason == StopReason::max_time);
    CHECK(report.violation > options.tol && report.iterations > 0);
    CHECK(report.verified == state.scores_current);
}

TEST(solve_stops_by_a_watcher) {
    const LongProblem work;
    for (const Verdict verdict : {Verdict::callback, Verdict::interrupted}) {
        for (const bool detail : {false, true}) {
            const Problem problem = work.clouds.problem(work.source, testing::ww(d));
            FullState state(problem);
            CountingWatcher watcher(verdict, detail);
            const Report report = solve_with(problem, state, endless(), &watcher);
            const bool callback = verdict == Verdict::callback;
            CHECK(report.stop_reason == (callback ? StopReason::callback : StopReason::interrupted));
            CHECK(watcher.calls == 2 && watcher.last.iteration > 0);
            CHECK(!report.verified && report.primal == infinity);
            // what is left is feasible, and as good as reported to the watcher
            FullState feasible = state;
            make_feasible(problem, feasible);
            CHECK(feasible.variables == state.variables);
            const Summary summary = look_again(problem, state);
            CHECK_CLOSE(report.dual, summary.dual, 1e-6 * (1.0 + std::abs(summary.dual)));
            CHECK(detail == (watcher.last.n_support > 0 && watcher.last.primal < infinity) || !detail);
        }
    }
}

TEST(solve_lets_an_exception_of_the_watcher_through) {
    const LongProblem work;
    const Problem problem = work.clouds.problem(work.source, testing::cs(d));
    FullState state(problem);
    CountingWatcher watcher(Verdict::go_on, false);
    watcher.throws = true;
    CHECK_THROWS(solve_with(problem, state, endless(), &watcher), std::runtime_error);
}

TEST(solve_without_examples) {
    const Clouds clouds(5, 2, d, 1);
    const DenseSource source(clouds.view(), testing::rbf(0.8));
    const Problem problem(source, testing::ww(d), Loss::hinge, {}, {}, {});
    FullState state(problem);
    const Report report = solve_with(problem, state, Options{});
    CHECK(report.stop_reason == StopReason::converged && report.dual == 0.0);
}

}  // namespace multimargin
