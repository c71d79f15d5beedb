#include "solvers/binary/batch.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

namespace multimargin {

namespace {

// With fewer kernel values in all problems together, a second thread takes longer to start than it helps.
constexpr double entries_worth_threads = 300'000;

// The report of two solves, the second of which continued where the first had used up its share of the work.
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
    Batch(BatchWork& work, const Options& options, Watcher* watcher)
        : work_(work),
          options_(options),
          team_(options.n_threads),
          monitor_(watcher, options.max_time),
          share_(options.max_work / static_cast<double>(std::max<Index>(1, work.count()))),
          spent_(unsigned_index(work.count()), 0.0) {
        monitor_.describe([this] {
            const std::lock_guard lock(mutex_);
            return progress_;
        });
    }

    StopReason run() {
        std::vector<Index> order(unsigned_index(work_.count()));
        std::iota(order.begin(), order.end(), Index{0});
        std::stable_sort(order.begin(), order.end(),
                         [this](Index a, Index b) { return work_.size(a) > work_.size(b); });
        const auto small = std::find_if(order.begin(), order.end(), [this](Index t) { return is_small(t); });
        BinaryMemory memory;
        for (auto t = order.begin(); t != small; ++t) solve(*t, options_, team_, memory);
        run_small({small, order.end()});
        use_what_is_left();
        return monitor_.stopped() ? monitor_.reason() : StopReason::converged;
    }

  private:
    bool is_small(Index t) const { return by_one_level(options_, work_.size(t)); }

    // The limit of work is dealt out in equal shares; what others did not need goes to those that used theirs up. So
    // the end of each depends neither on threads nor on a clock.
    void use_what_is_left() {
        while (!monitor_.stopped() && !waiting_.empty()) {
            const double left = std::accumulate(spent_.begin(), spent_.end(), options_.max_work, std::minus<>());
            if (left < 0.01 * options_.max_work) break;
            share_ = left / static_cast<double>(waiting_.size());
            std::vector<Index> short_of_work;
            for (const auto& [t, report] : waiting_) short_of_work.push_back(t);
            run_small(std::move(short_of_work));
        }
        const std::lock_guard lock(mutex_);
        for (auto& [t, report] : waiting_) finish(t, std::move(report));
    }

    void run_small(std::vector<Index> order) {
        Options options = options_;
        double entries = 0.0;
        for (const Index t : order) entries += static_cast<double>(work_.size(t) * work_.size(t));
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
        options.max_work = share_;
        const std::optional<BinaryReport> before = take_waiting(t);
        if (before && options.max_iter >= 0) options.max_iter -= before->iterations;
        BinaryReport report = work_.solve(t, options, monitor_, team, memory);
        if (before) report = joined(*before, std::move(report));
        const std::lock_guard lock(mutex_);
        spent_[unsigned_index(t)] = report.phases.work;
        if (report.out_of_work) {
            waiting_.emplace(t, std::move(report));
        } else {
            finish(t, std::move(report));
        }
    }

    std::optional<BinaryReport> take_waiting(Index t) {
        const std::lock_guard lock(mutex_);
        auto found = waiting_.extract(t);
        if (found.empty()) return std::nullopt;
        return std::move(found.mapped());
    }

    // With the lock.
    void finish(Index t, BinaryReport report) {
        progress_.iteration += report.iterations;
        progress_.dual += report.dual;
        progress_.primal = (progress_.primal < infinity ? progress_.primal : 0.0) + report.primal;
        progress_.violation = std::max(progress_.violation < infinity ? progress_.violation : 0.0, report.violation);
        progress_.n_support += report.n_support;
        progress_.n_active += work_.size(t);
        progress_.kernel_rows += report.kernel_rows;
        progress_.cache_hits += report.cache_hits;
        work_.finish(t, std::move(report));
    }

    BatchWork& work_;
    const Options& options_;
    ThreadTeam team_;
    Monitor monitor_;
    double share_;                           // of the limit of work, for each of the problems that run
    std::vector<double> spent_;              // of the limit of work, by each problem
    std::map<Index, BinaryReport> waiting_;  // of problems that used up their share
    std::mutex mutex_;
    Progress progress_;
    std::vector<BinaryMemory> spare_;  // of tasks that are done
};

// Problems with states of their own.
class TaskWork final : public BatchWork {
  public:
    explicit TaskWork(std::deque<BinaryTask>& tasks) : tasks_(tasks) {}

    Index count() const override { return static_cast<Index>(tasks_.size()); }
    Index size(Index t) const override { return tasks_[unsigned_index(t)].problem.size(); }

    BinaryReport solve(Index t, const Options& options, Monitor& monitor, ThreadTeam& team,
                       BinaryMemory& memory) override {
        BinaryTask& task = tasks_[unsigned_index(t)];
        return solve_binary(task.problem, task.state, options, monitor, team, memory);
    }

    void finish(Index t, BinaryReport report) override {
        BinaryTask& task = tasks_[unsigned_index(t)];
        task.report = std::move(report);
        task.finished = true;
    }

  private:
    std::deque<BinaryTask>& tasks_;
};

}  // namespace

StopReason solve_batch(BatchWork& work, const Options& options, Watcher* watcher) {
    return Batch(work, options, watcher).run();
}

StopReason solve_batch(std::deque<BinaryTask>& tasks, const Options& options, Watcher* watcher) {
    TaskWork work(tasks);
    return solve_batch(work, options, watcher);
}

}  // namespace multimargin
