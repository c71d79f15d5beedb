#include "base/spin_team.hpp"

#include "base/thread_team.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace multimargin {

namespace {

// Looks for the next run before a worker gives way to other threads, and before it sleeps.
constexpr int spinning_polls = 4'000, yielding_polls = 200;

void pause_briefly() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#endif
}

}  // namespace

QuickTeam::~QuickTeam() {
    closing_ = true;
    ticket_.fetch_add(Ticket{1} << run_shift);
    ticket_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void QuickTeam::start_workers() {
    while (static_cast<Index>(workers_.size()) < n_threads_ - 1) {
        if (!add_thread(workers_, [this] { worker_loop(); })) n_threads_ = static_cast<Index>(workers_.size()) + 1;
    }
}

void QuickTeam::perform(const Task& task, Index number) {
    if (!failed_) {
        try {
            task(number);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
            failed_ = true;
        }
    }
    n_done_.fetch_add(1);
}

// The last one first.
void QuickTeam::take_tasks() {
    Ticket ticket = ticket_.load();
    while (left_in(ticket) > 0) {
        const Task* task = task_.load();
        // What was read belongs to the ticket's run if the ticket is still the same.
        if (!ticket_.compare_exchange_weak(ticket, ticket - 1)) continue;
        perform(*task, left_in(ticket) - 1);
        ticket = ticket_.load();
    }
}

void QuickTeam::worker_loop() {
    while (!closing_) {
        take_tasks();
        Ticket ticket = ticket_.load();
        for (int polls = 0; left_in(ticket) == 0 && polls < spinning_polls + yielding_polls; ++polls) {
            polls < spinning_polls ? pause_briefly() : std::this_thread::yield();
            if (closing_) return;
            ticket = ticket_.load();
        }
        if (left_in(ticket) > 0) continue;
        ++n_asleep_;
        ticket_.wait(ticket);
        --n_asleep_;
    }
}

void QuickTeam::run(Index n_tasks, const Task& task) {
    if (n_threads_ < 2 || n_tasks < 2) {
        for (Index i = 0; i < n_tasks; ++i) task(i);
        return;
    }
    start_workers();
    // Nobody works on the run before: its tasks are done.
    failed_ = false;
    failure_ = nullptr;
    n_done_ = 0;
    task_ = &task;
    ticket_ = ((run_of(ticket_) + 1) << run_shift) + static_cast<Ticket>(n_tasks);
    if (n_asleep_ > 0) ticket_.notify_all();
    take_tasks();
    for (int polls = 0; n_done_ < n_tasks; ++polls) {
        polls < spinning_polls ? pause_briefly() : std::this_thread::yield();
    }
    if (failure_) std::rethrow_exception(failure_);
}

}  // namespace multimargin
