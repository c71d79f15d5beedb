#include "solvers/binary/batch.hpp"

#include <chrono>

#include "binary_cases.hpp"
#include "check.hpp"

namespace multimargin {

namespace {

using testing::check_optimal;
using testing::PlainCheck;
using testing::TwoClouds;

// Many problems, one after the other in the order given; each has its own data.
struct Tasks {
    explicit Tasks(const std::vector<Index>& sizes, double C = 1.0) {
        for (std::size_t t = 0; t < sizes.size(); ++t) {
            const Index positive = std::max<Index>(1, sizes[t] / (t % 2 == 0 ? 2 : 3));
            clouds.emplace_back(positive, sizes[t] - positive, 3, 10 + t);
            clouds.back().C.assign(clouds.back().C.size(), C);
        }
        for (const TwoClouds& c : clouds) sources.push_back(c.source());
        for (std::size_t t = 0; t < clouds.size(); ++t) tasks.emplace_back(clouds[t].problem(sources[t]));
    }
    std::deque<TwoClouds> clouds;
    std::deque<DenseSource> sources;
    std::deque<BinaryTask> tasks;
};

Options endless() {
    Options options;
    options.tol = 1e-13;
    options.precision = Precision::float64;
    options.max_time = 60.0;  // an upper limit only
    return options;
}

// Stops at the n-th call, and remembers what was said and what was finished then.
struct Observer final : Watcher {
    Observer(const std::deque<BinaryTask>& of, int stop_) : tasks(of), stop(stop_) {}
    Verdict watch(const Progress& progress, const std::function<void()>&) override {
        seen.push_back(progress);
        n_finished = 0;
        for (const BinaryTask& task : tasks) n_finished += task.finished ? 1 : 0;
        if (throws) throw std::runtime_error("from the watcher");
        return static_cast<int>(seen.size()) >= stop ? Verdict::callback : Verdict::go_on;
    }
    const std::deque<BinaryTask>& tasks;
    int stop;
    bool throws = false;
    std::vector<Progress> seen;
    Index n_finished = 0;
};

bool same_bits(const BinaryTask& a, const BinaryTask& b) {
    return a.state.variables == b.state.variables && a.state.errors == b.state.errors &&
           a.report.dual == b.report.dual && a.report.primal == b.report.primal && a.report.bias == b.report.bias &&
           a.report.violation == b.report.violation && a.report.iterations == b.report.iterations &&
           a.report.n_support == b.report.n_support;
}

}  // namespace

TEST(binary_batch_does_not_depend_on_the_threads) {
    const std::vector<Index> sizes{150, 4200, 2, 300, 90, 700, 4096, 4097, 33, 512, 5, 64};
    Options options;
    options.cache_bytes = 1e6;  // shared by the threads: the capacity changes, the values must not
    Tasks alone(sizes);
    CHECK(solve_batch(alone.tasks, options, nullptr) == StopReason::converged);
    for (std::size_t t = 0; t < sizes.size(); ++t) {
        const BinaryTask& task = alone.tasks[t];
        CHECK(task.finished && task.report.stop_reason == StopReason::converged && task.report.verified);
        const PlainCheck exact(alone.clouds[t], Loss::hinge, task.state.variables);
        check_optimal(alone.clouds[t], Loss::hinge, exact, options.tol + 1e-9);
        CHECK_CLOSE(task.report.dual, exact.dual, 1e-11 * (1.0 + exact.primal));
        CHECK_CLOSE(task.report.bias, exact.bias, 1e-10);
        CHECK((task.report.phases.blocks > 0) == (sizes[t] > binary_one_level_max));
    }
    for (const Index n_threads : {2, 3}) {
        options.n_threads = n_threads;
        Tasks more(sizes);
        CHECK(solve_batch(more.tasks, options, nullptr) == StopReason::converged);
        for (std::size_t t = 0; t < sizes.size(); ++t) CHECK(same_bits(alone.tasks[t], more.tasks[t]));
    }
}

TEST(binary_batch_of_nothing) {
    std::deque<BinaryTask> none;
    CHECK(solve_batch(none, Options{}, nullptr) == StopReason::converged);
}

TEST(binary_batch_max_iter_holds_for_each) {
    Tasks work({4200, 200, 300});
    Options options;
    options.max_iter = 10;
    CHECK(solve_batch(work.tasks, options, nullptr) == StopReason::converged);  // not stopped
    for (const BinaryTask& task : work.tasks) {
        CHECK(task.report.iterations == 10 && task.report.stop_reason == StopReason::max_iter && task.report.verified);
    }
}

TEST(binary_batch_max_time_holds_for_all) {
    for (const Index n_threads : {1, 3}) {
        Tasks work({500, 600, 700, 4200}, 1e6);
        Options options = endless();
        options.max_time = 0.03;
        options.n_threads = n_threads;
        CHECK(solve_batch(work.tasks, options, nullptr) == StopReason::max_time);
        for (std::size_t t = 0; t < work.tasks.size(); ++t) {
            const BinaryTask& task = work.tasks[t];
            CHECK(task.finished && task.report.stop_reason == StopReason::max_time);
            CHECK(PlainCheck(work.clouds[t], Loss::hinge, task.state.variables).feasible());
            CHECK(std::isfinite(task.report.bias));
        }
    }
}

TEST(binary_batch_a_watcher_ends_everything) {
    for (const Index n_threads : {1, 2, 3}) {
        Tasks work({500, 400, 700, 450, 300, 600, 420}, 1e6);
        Options options = endless();
        options.n_threads = n_threads;
        Observer watcher(work.tasks, 2);
        CHECK(solve_batch(work.tasks, options, &watcher) == StopReason::callback);
        CHECK(watcher.seen.size() == 2);  // not asked again after it has said stop
        Index n_begun = 0;
        for (std::size_t t = 0; t < work.tasks.size(); ++t) {
            const BinaryTask& task = work.tasks[t];
            CHECK(task.finished && task.report.stop_reason == StopReason::callback);
            const PlainCheck exact(work.clouds[t], Loss::hinge, task.state.variables);
            CHECK(exact.feasible() && std::isfinite(task.report.bias));
            if (task.report.iterations > 0) {
                ++n_begun;
            } else {
                CHECK(exact.mass == 0.0 && task.report.dual == 0.0 && task.report.n_support == 0);
            }
        }
        CHECK(n_begun >= 1 && n_begun <= n_threads);
        CHECK(work.tasks[2].report.iterations > 0);  // the largest began first
    }
}

TEST(binary_batch_is_watched_while_only_others_work) {
    // The larger one is done at once, the other takes long: a thread without tasks must go on polling.
    Tasks work({1500, 300}, 1e6);
    work.clouds[0].C.assign(1500, 1e-3);
    work.tasks.clear();
    for (std::size_t t = 0; t < 2; ++t) work.tasks.emplace_back(work.clouds[t].problem(work.sources[t]));
    Options options = endless();
    options.n_threads = 2;
    options.max_iter = 3'000'000;  // an end, if the deadline is not checked
    Observer watcher(work.tasks, 3);
    CHECK(solve_batch(work.tasks, options, &watcher) == StopReason::callback);
    CHECK(work.tasks[1].report.stop_reason == StopReason::callback && watcher.seen.size() == 3);
}

TEST(binary_batch_threads_share_the_cache) {
    const auto rows_computed = [](Index n_threads, double bytes) {
        Tasks work({600, 400});  // enough kernel values for a second thread
        Options options;
        options.n_threads = n_threads;
        options.cache_bytes = bytes;
        solve_batch(work.tasks, options, nullptr);
        return std::pair{work.tasks[0].report.kernel_rows, work.tasks[1].report.kernel_rows};
    };
    CHECK(rows_computed(2, 2e5) == rows_computed(1, 1e5));
    CHECK(rows_computed(1, 2e5) != rows_computed(1, 1e5));  // so that it matters
}

TEST(binary_batch_progress_counts_what_is_finished) {
    // The larger ones are easy, the small one takes as long as the watcher lets it.
    Tasks work({310, 800, 500, 300});
    work.clouds[3].C.assign(300, 1e6);
    work.tasks.pop_back();
    work.tasks.emplace_back(work.clouds[3].problem(work.sources[3]));
    Observer watcher(work.tasks, 4);
    CHECK(solve_batch(work.tasks, endless(), &watcher) == StopReason::callback);
    // whatever it saw last: sums over the tasks that were finished then, the largest first
    Progress expected;
    const Index order[] = {1, 2, 0, 3};
    for (Index k = 0; k < watcher.n_finished; ++k) {
        const BinaryReport& r = work.tasks[unsigned_index(order[k])].report;
        expected.iteration += r.iterations;
        expected.dual += r.dual;
        expected.primal = (k == 0 ? 0.0 : expected.primal) + r.primal;
        expected.violation = std::max(k == 0 ? 0.0 : expected.violation, r.violation);
        expected.n_support += r.n_support;
        expected.n_active += work.tasks[unsigned_index(order[k])].problem.size();
        expected.kernel_rows += r.kernel_rows;
        expected.cache_hits += r.cache_hits;
    }
    CHECK(!watcher.seen.empty());
    if (watcher.seen.empty()) return;
    const Progress& last = watcher.seen.back();
    CHECK(last.iteration == expected.iteration && last.n_support == expected.n_support);
    CHECK(last.n_active == expected.n_active && last.dual == expected.dual && last.primal == expected.primal);
    CHECK(last.violation == expected.violation && last.kernel_rows == expected.kernel_rows);
    CHECK(last.cache_hits == expected.cache_hits && last.seconds > 0.0);
}

TEST(binary_batch_goes_on_where_it_stands) {
    Tasks work({300, 4200, 500}), fresh({300, 4200, 500});
    Options options;
    options.max_iter = 50;
    solve_batch(work.tasks, options, nullptr);
    for (BinaryTask& task : work.tasks) task.finished = false;
    options.max_iter = -1;
    CHECK(solve_batch(work.tasks, options, nullptr) == StopReason::converged);
    solve_batch(fresh.tasks, options, nullptr);
    for (std::size_t t = 0; t < work.tasks.size(); ++t) {
        CHECK(work.tasks[t].finished && work.tasks[t].report.stop_reason == StopReason::converged);
        CHECK(work.tasks[t].report.dual <= fresh.tasks[t].report.primal);
        CHECK(fresh.tasks[t].report.dual <= work.tasks[t].report.primal);
    }
}

TEST(binary_batch_lets_an_exception_of_the_watcher_through) {
    for (const Index n_threads : {1, 3}) {
        Tasks work({500, 400, 700, 450}, 1e6);
        Options options = endless();
        options.n_threads = n_threads;
        Observer watcher(work.tasks, 100);
        watcher.throws = true;
        const auto begin = std::chrono::steady_clock::now();
        CHECK_THROWS(solve_batch(work.tasks, options, &watcher), std::runtime_error);
        CHECK(watcher.seen.size() == 1);
        // and the other tasks do not go on until the deadline
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
    }
}

}  // namespace multimargin
