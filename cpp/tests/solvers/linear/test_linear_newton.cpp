// Newton's method for binary machines against coordinate steps, and the passes of the coupled one.
#include "check.hpp"
#include "problems.hpp"
#include "solvers/linear/binary_linear.hpp"
#include "solvers/linear/proximal_passes.hpp"

namespace multimargin {

namespace {

using testing::Clouds;

void add_tasks(std::deque<LinearBinaryTask>& tasks, std::initializer_list<Index> sizes, double C) {
    for (const Index n : sizes) {
        LinearBinaryTask& task = tasks.emplace_back();
        for (Index i = 0; i < n; ++i) task.rows.push_back(i);
        task.n_positive = n / 3;
        task.C.assign(unsigned_index(n), C);
    }
}

LinearOptions options_for(double tol, Index n_threads) {
    LinearOptions options;
    options.tol = tol;
    options.n_threads = n_threads;
    return options;
}

}  // namespace

TEST(linear_newton_reaches_what_coordinate_steps_reach) {
    const Clouds clouds(200, 5, 3, 7);
    for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
        for (const double offset : {0.0, 1.0}) {
            std::deque<LinearBinaryTask> newton, descent;
            add_tasks(newton, {200, 150, 30}, 0.3);
            add_tasks(descent, {200, 150, 30}, 0.3);
            const LinearSetting setting{loss, offset};
            const LinearOptions options = options_for(1e-6, 2);
            CHECK(solve_newton_binary(clouds.view(), newton, setting, options, nullptr) == StopReason::converged);
            solve_linear_binary(clouds.view(), descent, setting, options, nullptr);
            for (std::size_t t = 0; t < newton.size(); ++t) {
                CHECK(newton[t].finished && newton[t].report.stop_reason == StopReason::converged);
                CHECK_CLOSE(newton[t].report.dual, descent[t].report.dual, 1e-5);
                CHECK(newton[t].weights.size() == descent[t].weights.size());
            }
        }
    }
}

TEST(linear_newton_is_the_same_for_any_number_of_threads) {
    const Clouds clouds(6000, 80, 3, 7);
    for (const bool alone : {true, false}) {
        std::vector<std::vector<double>> first;
        for (const Index n_threads : {1, 2, 3}) {
            std::deque<LinearBinaryTask> tasks;
            add_tasks(tasks, {6000}, 0.1);
            if (!alone) add_tasks(tasks, {500, 5000}, 0.1);
            const LinearSetting setting{Loss::hinge, 0.0, true};
            solve_newton_binary(clouds.view(), tasks, setting, options_for(1e-3, n_threads), nullptr);
            for (std::size_t t = 0; t < tasks.size(); ++t) {
                if (n_threads == 1) first.push_back(tasks[t].variables);
                CHECK(tasks[t].variables == first[t] && tasks[t].report.violation <= 1e-3);
            }
        }
    }
}

TEST(linear_newton_from_near_weights) {
    const Clouds clouds(3000, 6, 3, 7);
    std::deque<LinearBinaryTask> cold, warm;
    add_tasks(cold, {3000}, 1.0);
    add_tasks(warm, {3000}, 1.2);
    const LinearSetting setting{Loss::hinge, 1.0};
    solve_newton_binary(clouds.view(), cold, setting, options_for(1e-4, 1), nullptr);
    warm[0].variables = cold[0].variables;
    warm[0].start.weights = cold[0].weights;
    solve_newton_binary(clouds.view(), warm, setting, options_for(1e-4, 1), nullptr);
    CHECK(warm[0].report.stop_reason == StopReason::converged && warm[0].report.violation <= 1e-4);
}

TEST(linear_newton_limits) {
    const Clouds clouds(300, 6, 3, 7);
    std::deque<LinearBinaryTask> tasks;
    add_tasks(tasks, {300, 200}, 100.0);
    LinearOptions options = options_for(1e-9, 2);
    options.max_passes = 2;
    solve_newton_binary(clouds.view(), tasks, {Loss::hinge, 1.0}, options, nullptr);
    for (const LinearBinaryTask& task : tasks) CHECK(task.report.stop_reason == StopReason::max_iter);
    options.max_time = 0.0;
    CHECK(solve_newton_binary(clouds.view(), tasks, {Loss::hinge, 1.0}, options, nullptr) == StopReason::max_time);
}

TEST(linear_passes_of_coupled_machines) {
    const Clouds clouds(90, 4, 3, 3);
    ThreadTeam team(2);
    for (const Machine& machine : {testing::ww(3), testing::cs(3), testing::llw(3), testing::atm(3)}) {
        for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
            ProximalPasses passes(machine.components, 3, machine.bound, machine.sum_to_zero, loss, clouds.y, clouds.C);
            const std::size_t n = passes.size(), side = 3 * 5;
            const std::vector<double> scores(n * 3, 0.1), from(n * passes.width(), 0.0);
            std::vector<double> point(n * passes.width()), beta(n * 3), matrix(side * side);
            CHECK(passes.step(scores.data(), from.data(), 0.7, point.data(), beta.data(), team) > 0.0);
            Monitor monitor(nullptr, infinity);
            CHECK(passes.matrix(clouds.view(), 1.0, point.data(), 0.7, matrix.data(), team, monitor));
            for (std::size_t r = 0; r < side; ++r) {
                for (std::size_t k = 0; k < side; ++k) CHECK(matrix[r * side + k] == matrix[k * side + r]);
            }
            const double t = passes.length(scores.data(), beta.data(), from.data(), 0.7, 0.0, 1.0, team);
            CHECK(t > 0.0 && t < infinity);
        }
    }
    CHECK_THROWS(ProximalPasses(testing::ww(3).components, 2, Bound::box, false, Loss::hinge, clouds.y, clouds.C),
                 std::invalid_argument);
    CHECK_THROWS(ProximalPasses(testing::ww(3).components, 3, Bound::box, false, Loss::hinge, {3}, {1.0}),
                 std::invalid_argument);
    CHECK_THROWS(ProximalPasses(testing::ww(3).components, 3, Bound::box, false, Loss::hinge, {0, 1}, {1.0}),
                 std::invalid_argument);
}

}  // namespace multimargin
