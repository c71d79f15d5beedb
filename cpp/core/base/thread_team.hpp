// Threads that live for one call: no process-wide pool, so nothing to break after a fork.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/types.hpp"

namespace multimargin {

// Adds a thread that runs `work`; false where the system allows no more, or has no memory for what it keeps of one. A
// thread's first exception takes some, and where that fails the C library aborts: so it is taken at the start, while
// there is enough.
bool add_thread(std::vector<std::thread>& threads, std::function<void()> work);

// Runs numbered tasks on several threads. Which thread runs a task never changes its result:
// every task writes its own output, and reductions over tasks are done by the caller in order.
class ThreadTeam {
  public:
    explicit ThreadTeam(Index n_threads) : n_threads_(n_threads < 1 ? 1 : n_threads) {}
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;
    ~ThreadTeam();

    using Task = std::function<void(Index task)>;

    // Runs task 0..n_tasks-1; the calling thread works too. A task that must not go on returns at once.
    // An exception of a task is rethrown here after all threads have come to rest.
    // While others are still busy the caller wakes up every 20 ms for `meanwhile`, whose exceptions are treated alike.
    void run(Index n_tasks, const Task& task, const std::function<void()>& meanwhile = nullptr);

    Index n_threads() const { return n_threads_; }

  private:
    void start_workers();
    void worker_loop();
    void take_tasks();
    void remember_failure();

    Index n_threads_;
    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable wake_, rest_;
    const Task* task_ = nullptr;
    std::atomic<Index> next_{0};
    std::atomic<bool> failed_{false};
    Index n_tasks_ = 0;
    Index busy_ = 0;
    std::size_t generation_ = 0;
    bool closing_ = false;
    std::exception_ptr failure_;
};

}  // namespace multimargin
