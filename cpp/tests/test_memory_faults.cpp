// Every request for memory of every solver fails once: std::bad_alloc comes out, nothing is lost, and the next call
// gives what an undisturbed one gives.
#include <memory>

#include "binary_cases.hpp"
#include "check.hpp"
#include "failing_memory.hpp"
#include "kernel/score_pass.hpp"
#include "problems.hpp"
#include "solvers/binary/batch.hpp"
#include "solvers/binary/c_path.hpp"
#include "solvers/linear/binary_linear.hpp"
#include "solvers/linear/linear_descent.hpp"
#include "solvers/multiclass/solve.hpp"

namespace multimargin {

namespace {

using testing::Clouds;
using testing::FailingMemory;
using testing::live_pieces;
using testing::TwoClouds;

// Failures tried of a computation that asks for memory more often than that.
constexpr std::ptrdiff_t most_tried = 300;

// `compute` returns a number that differs between results.
template <class Compute>
void check_all_failures(const Compute& compute) {
    const double expected = compute();  // what is made once and kept is made here
    std::ptrdiff_t n_requests = 0;
    {
        const FailingMemory memory(0);
        CHECK(compute() == expected);
        n_requests = memory.n_requests();
    }
    CHECK(n_requests > 0);
    const std::ptrdiff_t step = 1 + n_requests / most_tried;
    for (const bool for_good : {false, true}) {
        for (std::ptrdiff_t n = 1; n <= n_requests; n += step) {
            const std::ptrdiff_t before = live_pieces();
            double result = expected;  // also where one can do without: a sort takes what memory it gets
            try {
                const FailingMemory memory(n, for_good);
                result = compute();
            } catch (const std::bad_alloc&) {
            }
            const bool all_back = live_pieces() == before;
            CHECK(all_back);
            CHECK(result == expected);
        }
    }
    CHECK(compute() == expected);
}

const Index thread_numbers[] = {1, 3};

}  // namespace

TEST(memory_faults_of_machines_of_all_classes) {
    const Clouds clouds(60, 4, 3, 5);
    const DenseSource source(clouds.view(), testing::rbf(0.5));
    for (const SolverKind solver : {SolverKind::smo, SolverKind::s2do, SolverKind::whole_example,
                                    SolverKind::semi_greedy, SolverKind::two_level, SolverKind::working_set}) {
        for (const Index n_threads : thread_numbers) {
            check_all_failures([&] {
                const Problem problem = clouds.problem(source, testing::ww(3));
                FullState state(problem);
                Options options;
                options.solver = solver;
                options.n_threads = n_threads;
                options.trace = n_threads > 1;
                return solve(problem, state, options, nullptr).dual;
            });
        }
    }
}

TEST(memory_faults_of_two_levels_on_several_threads) {
    const Clouds clouds(700, 4, 3, 5);
    const DenseSource source(clouds.view(), testing::rbf(0.5));
    check_all_failures([&] {
        const Problem problem = clouds.problem(source, testing::cs(3));
        FullState state(problem);
        Options options;
        options.solver = SolverKind::two_level;
        options.tol = 0.5;
        options.n_threads = 3;
        return solve(problem, state, options, nullptr).dual;
    });
}

TEST(memory_faults_of_binary_machines) {
    const TwoClouds small(20, 30, 3, 5), large(40, 50, 3, 6);
    const DenseSource small_source = small.source(), large_source = large.source();
    for (const Index n_threads : thread_numbers) {
        for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
            check_all_failures([&] {
                std::deque<BinaryTask> tasks;
                for (int copy = 0; copy < 4; ++copy) {
                    tasks.emplace_back(small.problem(small_source, loss));
                    tasks.emplace_back(large.problem(large_source, loss));
                }
                Options options;
                options.n_threads = n_threads;
                solve_batch(tasks, options, nullptr);
                double sum = 0.0;
                for (const BinaryTask& task : tasks) sum += task.report.dual;
                return sum;
            });
        }
    }
}

TEST(memory_faults_of_a_large_binary_machine) {
    const TwoClouds clouds(2100, 2100, 3, 7);
    const DenseSource source = clouds.source();
    check_all_failures([&] {
        std::deque<BinaryTask> tasks;
        tasks.emplace_back(clouds.problem(source));
        Options options;
        options.n_threads = 2;
        options.max_iter = 50;
        solve_batch(tasks, options, nullptr);
        return tasks.front().report.dual;
    });
}

TEST(memory_faults_of_paths) {
    const TwoClouds clouds(20, 30, 3, 5);
    const DenseSource source = clouds.source();
    const std::vector<double> costs{0.1, 1.0, 10.0};
    for (const Index n_threads : thread_numbers) {
        check_all_failures([&] {
            PathPool pool;
            std::deque<BinaryPath> paths;
            for (int copy = 0; copy < 3; ++copy) {
                BinaryPath& path = paths.emplace_back();
                path.rows = clouds.rows;
                path.n_positive = clouds.n_positive;
                path.weights.assign(clouds.rows.size(), 1.0);
            }
            Options options;
            options.n_threads = n_threads;
            solve_paths(source, paths, costs, Loss::hinge, options, pool, nullptr);
            double sum = 0.0;
            for (const BinaryPath& path : paths) sum += path.points.back().report.dual;
            return sum;
        });
    }
}

TEST(memory_faults_of_linear_machines) {
    const Clouds clouds(60, 4, 3, 11);
    for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
        check_all_failures([&] {
            const LinearProblem problem{clouds.view(), testing::ww(3), loss, clouds.rows, clouds.y, clouds.C, 1.0};
            const LinearOptions options;
            LinearDescent descent(problem, options, nullptr);
            return descent.run().dual;
        });
    }
}

TEST(memory_faults_of_linear_binary_machines) {
    const Clouds clouds(60, 4, 3, 11);
    for (const bool newton : {false, true}) {
        for (const Index n_threads : thread_numbers) {
            check_all_failures([&] {
                std::deque<LinearBinaryTask> tasks;
                for (const Index n : {60, 40, 30}) {
                    LinearBinaryTask& task = tasks.emplace_back();
                    for (Index i = 0; i < n; ++i) task.rows.push_back(i);
                    task.n_positive = n / 3;
                    task.C.assign(unsigned_index(n), 1.0);
                }
                LinearOptions options;
                options.n_threads = n_threads;
                const LinearSetting setting{Loss::squared_hinge, 1.0};
                (newton ? solve_newton_binary : solve_linear_binary)(clouds.view(), tasks, setting, options, nullptr);
                double sum = 0.0;
                for (const LinearBinaryTask& task : tasks) sum += task.report.dual;
                return sum;
            });
        }
    }
}

TEST(memory_faults_of_prediction) {
    const Clouds clouds(700, 4, 3, 5);
    const DenseSource source(clouds.view(), testing::rbf(0.5));
    for (const Index n_threads : thread_numbers) {
        check_all_failures([&] {
            std::vector<Index> rows = first_indices(700);
            Coefficients coefficients(rows, 2);
            for (Index s = 0; s < 700; ++s) coefficients.add(s % 2, s, 1.0);
            ThreadTeam team(n_threads);
            AlignedVector<double> out(unsigned_index(2 * 704), 0.0);
            add_scores(*source.columns<double>(rows), coefficients, out.data(), 704, team, nullptr);
            return out[5] + out[704];
        });
    }
}

}  // namespace multimargin
