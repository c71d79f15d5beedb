// Many binary problems over the same kernel, spread over the threads: one-vs-one, one-vs-all.
#pragma once

#include <atomic>
#include <deque>

#include "problem/options.hpp"
#include "solvers/binary/solve.hpp"

namespace multimargin {

struct BinaryTask {
    BinaryTask(BinaryProblem stated) : problem(std::move(stated)), state(problem) {}

    BinaryProblem problem;
    BinaryState state;
    BinaryReport report;
    std::atomic<bool> finished{false};  // then state and report may be read from another thread
};

// What a batch works on: numbered problems, each solved by any thread; solved again, one goes on where it was.
class BatchWork {
  public:
    virtual ~BatchWork() = default;
    virtual Index count() const = 0;
    virtual Index size(Index t) const = 0;
    virtual BinaryReport solve(Index t, const Options& options, Monitor& monitor, ThreadTeam& team,
                               BinaryMemory& memory) = 0;
    // Takes the report of a problem that is solved; one call at a time.
    virtual void finish(Index t, BinaryReport report) = 0;
};

// Large problems one after the other, each on all threads; then the small ones side by side, the largest first.
// What a problem leaves does not depend on the number of threads. A stop leaves every one feasible and usable; those
// that had not begun are at zero. options.max_iter holds for each, options.max_time, max_work and the cache for all
// together. Returns why it ended: converged also stands for those that ended by themselves.
StopReason solve_batch(BatchWork& work, const Options& options, Watcher* watcher);
StopReason solve_batch(std::deque<BinaryTask>& tasks, const Options& options, Watcher* watcher);

}  // namespace multimargin
