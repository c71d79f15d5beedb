#include "binary_batch.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

namespace multimargin {

namespace {

// With fewer kernel values in all problems together, a second thread takes longer to start than it helps.
constexpr double entries_worth_threads = 300'000;

// What two solves in a row say, the second of which went on where the first had used up its share of the work.
BinaryReport joined(const BinaryReport& before, BinaryReport now) {
    now.trace.insert(now.trace.begin(), before.trace.begin(), before.trace.end());
    for (std::size_t i = before.trace.size(); i < now.trace.size(); ++i) {
        now.trace[i].seconds += before.seconds;
        now.trace[i].iterations += before.iterations;
        now.trace[i].kernel_rows += before.kernel_rows;
    }
    now.iterations += before.iterations;
    now.seconds += before.seconds;
    now.kernel_rows += before.kernel_rows;
    now.cache_hits += before.cache_hits;
    now.phases.work += before.phases.work;
    now.phases.check += before.phases.check;
    now.phases.exact_blocks += before.phases.exact_blocks;
    return now;
}

class Batch {
  public:
    Batch(std::deque<BinaryTask>& tasks, const Options& options, Watcher* watcher)
        : tasks_(tasks),
          options_(options),
          team_(options.n_threads),
          monitor_(watcher, options.max_time),
          share_(options.max_work / static_cast<double>(std::max<std::size_t>(1, tasks.size()))) {
        monitor_.describe([this] {
            const std::lock_guard lock(mutex_);
            return progress_;
        });
    }

    StopReason run() {
        std::vector<Index> order(tasks_.size());
        std::iota(order.begin(), order.end(), Index{0});
        std::stable_sort(order.begin(), order.end(), [this](Index a, Index b) { return work(a) > work(b); });
        const auto small = std::find_if(order.begin(), order.end(), [this](Index t) { return is_small(t); });
        BinaryMemory memory;
        for (auto t = order.begin(); t != small; ++t) solve(*t, options_, team_, memory);
        run_small({small, order.end()});
        use_what_is_left();
        return monitor_.stopped() ? monitor_.reason() : StopReason::converged;
    }

  private:
    const BinaryTask& task(Index t) const { return tasks_[unsigned_index(t)]; }
    Index work(Index t) const { return task(t).problem.size(); }
    bool is_small(Index t) const { return by_one_level(options_, work(t)); }

    // The limit of work is dealt out in equal shares; what others did not need goes to those that used theirs up. So
    // the end of each depends neither on threads nor on a clock.
    void use_what_is_left() {
        while (!monitor_.stopped()) {
            std::vector<Index> short_of_work;
            double left = options_.max_work;
            for (Index t = 0; t < static_cast<Index>(tasks_.size()); ++t) {
                left -= task(t).report.phases.work;
                if (task(t).report.out_of_work) short_of_work.push_back(t);
            }
            if (short_of_work.empty() || left < 0.01 * options_.max_work) break;
            share_ = left / static_cast<double>(short_of_work.size());
            run_small(std::move(short_of_work));
        }
        for (BinaryTask& task : tasks_) {
            if (task.report.out_of_work && !task.finished) finish(task);
        }
    }

    void run_small(std::vector<Index> order) {
        Options options = options_;
        double entries = 0.0;
        for (const Index t : order) entries += static_cast<double>(work(t) * work(t));
        ThreadTeam alone(1);
        ThreadTeam& team = entries < entries_worth_threads ? alone : team_;
        options.cache_bytes /= static_cast<double>(team.n_threads());
        const auto one = [&](Index i) {
            ThreadTeam just_this(1);
            BinaryMemory memory = take_memory();
            solve(order[unsigned_index(i)], options, just_this, memory);
            const std::lock_guard lock(mutex_);
            spare_.push_back(std::move(memory));
        };
        team.run(static_cast<Index>(order.size()), one, [this] { monitor_.poll(); });
    }

    BinaryMemory take_memory() {
        const std::lock_guard lock(mutex_);
        if (spare_.empty()) return {};
        BinaryMemory memory = std::move(spare_.back());
        spare_.pop_back();
        return memory;
    }

    void solve(Index t, Options options, ThreadTeam& team, BinaryMemory& memory) {
        BinaryTask& task = tasks_[unsigned_index(t)];
        options.max_work = share_;
        const bool again = task.report.out_of_work;
        if (again && options.max_iter >= 0) options.max_iter -= task.report.iterations;
        BinaryReport report = solve_binary(task.problem, task.state, options, monitor_, team, memory);
        task.report = again ? joined(task.report, std::move(report)) : std::move(report);
        if (!task.report.out_of_work) finish(task);
    }

    void finish(BinaryTask& task) {
        const std::lock_guard lock(mutex_);
        task.finished = true;
        progress_.iteration += task.report.iterations;
        progress_.dual += task.report.dual;
        progress_.primal = (progress_.primal < infinity ? progress_.primal : 0.0) + task.report.primal;
        progress_.violation =
            std::max(progress_.violation < infinity ? progress_.violation : 0.0, task.report.violation);
        progress_.n_support += task.report.n_support;
        progress_.n_active += task.problem.size();
        progress_.kernel_rows += task.report.kernel_rows;
        progress_.cache_hits += task.report.cache_hits;
    }

    std::deque<BinaryTask>& tasks_;
    const Options& options_;
    ThreadTeam team_;
    Monitor monitor_;
    double share_;  // of the limit of work, for each of the tasks that run
    std::mutex mutex_;
    Progress progress_;
    std::vector<BinaryMemory> spare_;  // of tasks that are done
};

}  // namespace

StopReason solve_batch(std::deque<BinaryTask>& tasks, const Options& options, Watcher* watcher) {
    return Batch(tasks, options, watcher).run();
}

}  // namespace multimargin
