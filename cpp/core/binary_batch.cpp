#include "binary_batch.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

namespace multimargin {

namespace {

// With fewer kernel values in all problems together, a second thread takes longer to start than it helps.
constexpr double entries_worth_threads = 300'000;

class Batch {
  public:
    Batch(std::deque<BinaryTask>& tasks, const Options& options, Watcher* watcher)
        : tasks_(tasks), options_(options), team_(options.n_threads), monitor_(watcher, options.max_time) {
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
        return monitor_.stopped() ? monitor_.reason() : StopReason::converged;
    }

  private:
    const BinaryTask& task(Index t) const { return tasks_[unsigned_index(t)]; }
    Index work(Index t) const { return task(t).problem.size(); }
    bool is_small(Index t) const { return by_one_level(options_, work(t)); }

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

    void solve(Index t, const Options& options, ThreadTeam& team, BinaryMemory& memory) {
        BinaryTask& task = tasks_[unsigned_index(t)];
        task.report = solve_binary(task.problem, task.state, options, monitor_, team, memory);
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
    std::mutex mutex_;
    Progress progress_;
    std::vector<BinaryMemory> spare_;  // of tasks that are done
};

}  // namespace

StopReason solve_batch(std::deque<BinaryTask>& tasks, const Options& options, Watcher* watcher) {
    return Batch(tasks, options, watcher).run();
}

}  // namespace multimargin
