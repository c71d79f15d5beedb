// Descent on weights against the kernel solver and against the definitions.
#include <chrono>
#include <thread>

#include "check.hpp"
#include "problem/problem.hpp"
#include "problems.hpp"
#include "solvers/linear/binary_linear.hpp"
#include "solvers/linear/example_general.hpp"
#include "solvers/linear/linear_descent.hpp"
#include "solvers/multiclass/solve.hpp"

namespace multimargin {

namespace {

using testing::Clouds;
using testing::Numbers;

LinearOptions options_for(double tol) {
    LinearOptions options;
    options.tol = tol;
    return options;
}

LinearProblem linear(const Clouds& clouds, Machine machine, Loss loss, double offset) {
    return {clouds.view(), std::move(machine), loss, clouds.rows, clouds.y, clouds.C, offset};
}

// The state of the kernel problem that has these variables, with scores computed from kernel values.
Summary exact_check(const Clouds& clouds, const LinearProblem& problem, const std::vector<double>& variables) {
    const DenseSource source(clouds.view(), testing::linear(problem.offset));
    const Problem other = clouds.problem(source, problem.machine, problem.loss);
    FullState state(other);
    const Index width = other.machine().max_components();
    for (Index e = 0; e < other.size(); ++e) {
        for (Index p = 0; p < width; ++p) {
            state.variable(p, e) = variables[unsigned_index(other.given_position(e) * width + p)];
        }
    }
    ThreadTeam team(1);
    refresh_scores(other, state, team, nullptr);
    return summarize(other, state);
}

double solve_by_kernel(const Clouds& clouds, const LinearProblem& problem, double tol) {
    const DenseSource source(clouds.view(), testing::linear(problem.offset));
    const Problem other = clouds.problem(source, problem.machine, problem.loss);
    FullState state(other);
    Options options;
    options.solver = SolverKind::s2do;
    options.tol = tol;
    return solve(other, state, options, nullptr).dual;
}

void check_machine(const Machine& machine, Loss loss, double offset) {
    const Clouds clouds(70, 5, machine.n_classes, 11);
    const LinearProblem problem = linear(clouds, machine, loss, offset);
    const LinearOptions options = options_for(1e-5);
    LinearDescent descent(problem, options, nullptr);
    const LinearReport report = descent.run();
    CHECK(report.stop_reason == StopReason::converged && report.verified);
    const Summary check = exact_check(clouds, problem, descent.variables());
    CHECK(check.violation <= 1.001e-5);
    CHECK_CLOSE(check.violation, report.violation, 1e-9);
    CHECK_CLOSE(check.dual, report.dual, 1e-10 * check.dual);
    CHECK_CLOSE(check.dual, solve_by_kernel(clouds, problem, 1e-5), 1e-6 * check.dual);
    CHECK(check.n_support == report.n_support);
    CHECK(static_cast<Index>(descent.weights().size()) == (5 + (offset > 0.0 ? 1 : 0)) * machine.n_classes);
}

// Stops after some questions.
// Long enough for the monitor to ask again at its next poll, however fast the machine is.
void let_a_look_fall_due() { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

class Stopper final : public Watcher {
  public:
    explicit Stopper(int after) : left_(after) {}
    Verdict watch(const Progress& progress, const std::function<void()>&) override {
        last = progress;
        let_a_look_fall_due();
        return --left_ <= 0 ? Verdict::callback : Verdict::go_on;
    }
    Progress last;

  private:
    int left_;
};

LinearBinaryTask& add_task(std::deque<LinearBinaryTask>& tasks, Index n, double C) {
    LinearBinaryTask& task = tasks.emplace_back();
    for (Index i = 0; i < n; ++i) task.rows.push_back(i);
    task.n_positive = n / 3;
    task.C.assign(unsigned_index(n), C);
    return task;
}

}  // namespace

TEST(linear_descent_reaches_the_optimum) {
    for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
        for (const double offset : {0.0, 1.0, 0.3}) {
            for (const Machine& machine :
                 {testing::ww(3), testing::cs(4), testing::llw(5), testing::atm(3), testing::ats(4), testing::ova(3)}) {
                check_machine(machine, loss, offset);
            }
        }
    }
}

TEST(linear_descent_without_a_simple_hessian) {
    for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
        for (Machine machine : {testing::ww(4), testing::cs(4), testing::llw(3), testing::atm(3)}) {
            machine.structured = false;
            check_machine(machine, loss, 1.0);
        }
    }
}

TEST(linear_descent_steps_raise_the_dual) {
    const Clouds clouds(60, 4, 3, 5);
    const LinearProblem problem = linear(clouds, testing::atm(3), Loss::hinge, 1.0);
    double before = 0.0;
    for (Index steps = 1; steps <= 60; ++steps) {
        LinearOptions options = options_for(1e-9);
        options.max_iter = steps;
        LinearDescent descent(problem, options, nullptr);
        const LinearReport report = descent.run();
        CHECK(report.stop_reason == StopReason::max_iter && report.iterations == steps);
        CHECK(report.dual >= before);
        CHECK_CLOSE(exact_check(clouds, problem, descent.variables()).dual, report.dual, 1e-12);
        before = report.dual;
    }
}

TEST(linear_descent_a_watcher_ends_it) {
    const Clouds clouds(300, 4, 3, 5);
    const LinearProblem problem = linear(clouds, testing::cs(3), Loss::squared_hinge, 1.0);
    const LinearOptions options = options_for(1e-300);
    Stopper stopper(2);
    LinearDescent descent(problem, options, &stopper);
    let_a_look_fall_due();
    const LinearReport report = descent.run();
    CHECK(report.stop_reason == StopReason::callback);
    CHECK(stopper.last.iteration == report.iterations && stopper.last.n_active <= 300);
}

TEST(linear_descent_refuses_what_does_not_fit) {
    const Clouds clouds(10, 2, 3, 1);
    const auto make = [&](std::vector<Index> rows, std::vector<Index> y, double C, double offset) {
        const std::vector<double> bounds(rows.size(), C);
        return LinearProblem(clouds.view(), testing::ww(3), Loss::hinge, std::move(rows), std::move(y), bounds, offset);
    };
    CHECK_THROWS(make({0, 10}, {0, 1}, 1.0, 0.0), std::invalid_argument);
    CHECK_THROWS(make({0, -1}, {0, 1}, 1.0, 0.0), std::invalid_argument);
    CHECK_THROWS(make({0, 1}, {0, 3}, 1.0, 0.0), std::invalid_argument);
    CHECK_THROWS(make({0, 1}, {0}, 1.0, 0.0), std::invalid_argument);
    CHECK_THROWS(make({0, 1}, {0, 1}, 0.0, 0.0), std::invalid_argument);
    CHECK_THROWS(make({0, 1}, {0, 1}, 1.0, -1.0), std::invalid_argument);
    const LinearProblem problem = make({0, 1}, {0, 1}, 1.0, 0.0);
    const LinearOptions options;
    LinearDescent descent(problem, options, nullptr);
    const std::vector<double> variables(3, 0.0);
    CHECK_THROWS(descent.start(variables), std::invalid_argument);
}

TEST(linear_binary_is_the_same_for_any_number_of_threads) {
    const Clouds clouds(900, 40, 3, 7);
    std::vector<std::vector<double>> first;
    for (const Index n_threads : {1, 2, 3}) {
        std::deque<LinearBinaryTask> tasks;
        for (const Index n : {900, 500, 700, 30, 800, 400}) add_task(tasks, n, 0.1);
        LinearOptions options = options_for(1e-3);
        options.n_threads = n_threads;
        CHECK(solve_linear_binary(clouds.view(), tasks, {Loss::hinge, 1.0}, options, nullptr) == StopReason::converged);
        for (std::size_t t = 0; t < tasks.size(); ++t) {
            CHECK(tasks[t].finished && tasks[t].report.stop_reason == StopReason::converged &&
                  tasks[t].report.verified);
            if (n_threads == 1) first.push_back(tasks[t].variables);
            CHECK(tasks[t].variables == first[t]);
        }
    }
}

TEST(linear_binary_a_watcher_ends_everything) {
    const Clouds clouds(900, 6, 3, 7);
    for (const Index n_threads : {1, 3}) {
        std::deque<LinearBinaryTask> tasks;
        for (const Index n : {900, 500, 700, 800}) add_task(tasks, n, 1e9);
        LinearOptions options = options_for(1e-300);
        options.n_threads = n_threads;
        Stopper stopper(2);
        const StopReason reason = solve_linear_binary(clouds.view(), tasks, {Loss::hinge, 0.0}, options, &stopper);
        CHECK(reason == StopReason::callback);
        for (const LinearBinaryTask& task : tasks) {
            CHECK(task.finished && task.report.stop_reason == StopReason::callback && task.weights.size() == 6);
        }
    }
}

}  // namespace multimargin
