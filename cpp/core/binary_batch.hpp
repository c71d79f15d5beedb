// Many binary problems over the same kernel, spread over the threads: one-vs-one, one-vs-all.
#pragma once

#include <atomic>
#include <deque>

#include "binary_solve.hpp"

namespace multimargin {

struct BinaryTask {
    BinaryTask(BinaryProblem stated) : problem(std::move(stated)), state(problem) {}

    BinaryProblem problem;
    BinaryState state;
    BinaryReport report;
    std::atomic<bool> finished{false};  // then state and report may be read from another thread
};

// Large problems one after the other, each on all threads; then the small ones side by side, the largest first.
// What a task leaves does not depend on the number of threads. A stop leaves every task feasible and usable; those that
// had not begun are at zero. options.max_iter holds for each, options.max_time, max_work and the cache for all
// together. Returns why it ended: converged also stands for tasks that ended by themselves.
StopReason solve_batch(std::deque<BinaryTask>& tasks, const Options& options, Watcher* watcher);

}  // namespace multimargin
