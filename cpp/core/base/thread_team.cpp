#include "base/thread_team.hpp"

#include <chrono>
#include <new>
#include <system_error>

namespace multimargin {

namespace {

// Address space that glibc reserves for a thread's heap. More than 32 MB are never taken from what was freed before, so
// that asking for them shows what the system still gives; no page of them is touched.
constexpr std::size_t bytes_of_a_thread = std::size_t{1} << 26;

}  // namespace

bool add_thread(std::vector<std::thread>& threads, std::function<void()> work) {
    void* room = ::operator new(bytes_of_a_thread, std::nothrow);
    if (room == nullptr) return false;
    ::operator delete(room);
    try {
        threads.emplace_back([work = std::move(work)] {
            if (std::uncaught_exceptions() == 0) work();  // asking makes the thread's record of exceptions
        });
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

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
        if (!add_thread(workers_, [this] { worker_loop(); })) n_threads_ = static_cast<Index>(workers_.size()) + 1;
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
        wake_.wait(lock, [&] { return closing_ || generation_ != seen; });
        if (closing_) return;
        seen = generation_;
        lock.unlock();
        take_tasks();
        lock.lock();
        if (--busy_ == 0) rest_.notify_one();
    }
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
            busy_ = static_cast<Index>(workers_.size());
            ++generation_;
        }
        wake_.notify_all();
    }
    take_tasks();
    if (together) {
        std::unique_lock lock(mutex_);
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
