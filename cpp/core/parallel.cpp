#include "parallel.hpp"

#include <chrono>
#include <system_error>

namespace multimargin {

namespace {

constexpr int most_yields = 100;

}  // namespace

ThreadTeam::~ThreadTeam() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::start_workers() {
    while (static_cast<Index>(workers_.size()) < n_threads_ - 1) {
        try {
            workers_.emplace_back([this] { worker_loop(); });
        } catch (const std::system_error&) {
            n_threads_ = static_cast<Index>(workers_.size()) + 1;  // the system allows no more threads
        }
    }
}

void ThreadTeam::remember_failure() {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    failed_ = true;
}

void ThreadTeam::take_tasks() {
    while (!failed_) {
        const Index i = next_.fetch_add(1);
        if (i >= n_tasks_) return;
        try {
            (*task_)(i);
        } catch (...) {
            remember_failure();
        }
    }
}

void ThreadTeam::worker_loop() {
    std::size_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
        wake_.wait(lock, [&] { return closing_ || (open_ && generation_ != seen); });
        if (closing_) return;
        seen = generation_;
        ++busy_;
        lock.unlock();
        take_tasks();
        lock.lock();
        if (--busy_ == 0) rest_.notify_one();
    }
}

// The last tasks are mostly as short as falling asleep and waking up would be.
void ThreadTeam::yield_while_busy(std::unique_lock<std::mutex>& lock) const {
    lock.unlock();
    for (int turn = 0; turn < most_yields && busy_ > 0; ++turn) std::this_thread::yield();
    lock.lock();
}

void ThreadTeam::run(Index n_tasks, const Task& task, const std::function<void()>& meanwhile) {
    next_ = 0;
    failed_ = false;
    failure_ = nullptr;
    n_tasks_ = n_tasks;
    task_ = &task;
    const bool together = n_threads_ > 1 && n_tasks > 1;
    if (together) {
        start_workers();
        {
            const std::lock_guard lock(mutex_);
            open_ = true;
            ++generation_;
        }
        wake_.notify_all();
    }
    take_tasks();
    if (together) {
        std::unique_lock lock(mutex_);
        open_ = false;  // who has not come yet, because a processor is taken, is not waited for
        if (!meanwhile) yield_while_busy(lock);
        const auto at_rest = [&] { return busy_ == 0; };
        while (meanwhile && !rest_.wait_for(lock, std::chrono::milliseconds(20), at_rest)) {
            lock.unlock();
            try {
                meanwhile();
            } catch (...) {
                remember_failure();  // the others still use what the caller would take away
            }
            lock.lock();
        }
        rest_.wait(lock, at_rest);
    }
    if (failure_) std::rethrow_exception(failure_);
}

}  // namespace multimargin
