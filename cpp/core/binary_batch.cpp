#include "binary_batch.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

namespace multimargin {

namespace {

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
        for (auto t = order.begin(); t != small; ++t) solve(*t, options_, team_);
        run_small({small, order.end()});
        return monitor_.stopped() ? monitor_.reason() : StopReason::converged;
    }

  private:
    const BinaryTask& task(Index t) const { return tasks_[unsigned_index(t)]; }
    Index work(Index t) const { return task(t).problem.size(); }
    bool is_small(Index t) const { return work(t) <= binary_one_level_max; }

    void run_small(std::vector<Index> order) {
        Options options = options_;
        options.cache_bytes /= static_cast<double>(team_.n_threads());
        const auto one = [&](Index i) {
            ThreadTeam alone(1);
            solve(order[unsigned_index(i)], options, alone);
        };
        team_.run(static_cast<Index>(order.size()), one, [this] { monitor_.poll(); });
    }

    void solve(Index t, const Options& options, ThreadTeam& team) {
        BinaryTask& task = tasks_[unsigned_index(t)];
        task.report = solve_binary(task.problem, task.state, options, monitor_, team);
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
};

}  // namespace

StopReason solve_batch(std::deque<BinaryTask>& tasks, const Options& options, Watcher* watcher) {
    return Batch(tasks, options, watcher).run();
}

}  // namespace multimargin
