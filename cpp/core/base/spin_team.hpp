// Threads for tasks of microseconds: workers spin briefly before sleeping.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/types.hpp"

namespace multimargin {

// Runs numbered tasks on several threads, as ThreadTeam does, with two differences: workers poll for the next run for
// about a tenth of a millisecond before they sleep, and the caller waits for tasks, not for workers, so that a worker
// that is not scheduled delays no other. Lives for one call.
class QuickTeam {
  public:
    explicit QuickTeam(Index n_threads) : n_threads_(n_threads < 1 ? 1 : n_threads) {}
    QuickTeam(const QuickTeam&) = delete;
    QuickTeam& operator=(const QuickTeam&) = delete;
    ~QuickTeam();

    using Task = std::function<void(Index task)>;

    // Runs task 0..n_tasks-1; the calling thread works too. The first exception of a task is thrown again here, after
    // the tasks that were begun have ended.
    void run(Index n_tasks, const Task& task);
    Index n_threads() const { return n_threads_; }

  private:
    // The number of a run, and how many of its tasks are not taken yet: one word, so that a worker that comes late
    // cannot take a task of the next run for one of its own.
    using Ticket = std::uint64_t;
    static constexpr int run_shift = 32;
    static Ticket run_of(Ticket ticket) { return ticket >> run_shift; }
    static Index left_in(Ticket ticket) { return static_cast<Index>(ticket & ((Ticket{1} << run_shift) - 1)); }

    void start_workers();
    void worker_loop();
    void take_tasks();
    void perform(const Task& task, Index number);

    Index n_threads_;
    std::vector<std::thread> workers_;
    std::atomic<Ticket> ticket_{0};
    std::atomic<const Task*> task_{nullptr};
    std::atomic<Index> n_done_{0}, n_asleep_{0};
    std::atomic<bool> closing_{false}, failed_{false};
    std::mutex mutex_;
    std::exception_ptr failure_;
};

}  // namespace multimargin
