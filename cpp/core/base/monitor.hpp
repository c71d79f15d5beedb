// Progress, deadline and stop of a long computation.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/types.hpp"

namespace multimargin {

// Multiply-adds that a step of any kind takes beside those that grow with the problem, for budgets of work.
constexpr double step_overhead = 1200.0;

struct Progress {
    Index iteration = 0;
    double seconds = 0.0;
    double violation = infinity;
    double dual = 0.0;
    double primal = infinity;
    Index n_active = 0;
    Index n_support = 0;
    Index kernel_rows = 0;
    Index cache_hits = 0;
};

enum class Verdict { go_on, interrupted, callback };

// Asked at the first poll and then about every 50 ms from the calling thread. Implemented by the bindings.
class Watcher {
  public:
    virtual ~Watcher() = default;
    // `synchronize` brings the full state up to date, for a watcher that reads it.
    virtual Verdict watch(const Progress& progress, const std::function<void()>& synchronize) = 0;
    // Whether primal and support vectors are worth counting for it.
    virtual bool wants_detail() const { return false; }
};

// Reads the clock for a solve: reports to the watcher, and turns its verdict or the deadline into a stop.
class Monitor {
  public:
    using Clock = std::chrono::steady_clock;

    Monitor(Watcher* watcher, double max_seconds) : watcher_(watcher), max_seconds_(max_seconds) {}

    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

    // How to report progress and to bring the state up to date; called only when the watcher is called.
    void describe(std::function<Progress()> describe) { describe_ = std::move(describe); }
    void synchronize(std::function<void()> synchronize) { synchronize_ = std::move(synchronize); }
    bool wants_detail() const { return watcher_ != nullptr && watcher_->wants_detail(); }

    // Seconds kept back from max_time for what follows the iterations.
    void reserve(double seconds) { reserve_ = seconds; }

    // A budget of work in multiply-adds, after which the work ends as stalled. No clock decides that, so that it does
    // not depend on machine, load or threads.
    void limit_work(double work) { max_work_ = work; }
    double work() const { return work_; }
    // Accounts for work done by the thread that made the monitor.
    void spend(double work) {
        work_ += work;
        if (work_ > max_work_ && !stopped_) stop(StopReason::stalled);
    }

    bool stopped() const { return stopped_; }
    StopReason reason() const { return reason_; }

    // True when the work must end now. Cheap enough for every few microseconds of work.
    // Only the thread that made the monitor reads the clock and calls the watcher; the others see the outcome.
    bool poll() {
        if (stopped_) return true;
        if (std::this_thread::get_id() != owner_) return false;
        const double now = seconds();
        if (now + reserve_ >= max_seconds_) return stop(StopReason::max_time);
        if (watcher_ == nullptr || now - last_ < interval) return false;
        last_ = now;
        Progress progress = describe_ ? describe_() : Progress{};
        progress.seconds = now;
        switch (ask(progress)) {
            case Verdict::go_on: return false;
            case Verdict::interrupted: return stop(StopReason::interrupted);
            case Verdict::callback: return stop(StopReason::callback);
        }
        return false;
    }

  private:
    static constexpr double interval = 0.05;

    Verdict ask(const Progress& progress) {
        try {
            return watcher_->watch(progress, synchronize_);
        } catch (...) {
            stop(StopReason::interrupted);  // so that other threads end too
            throw;
        }
    }

    bool stop(StopReason reason) {
        reason_ = reason;
        stopped_ = true;
        return true;
    }

    Watcher* watcher_;
    double max_seconds_;
    double reserve_ = 0.0;
    double work_ = 0.0, max_work_ = infinity;
    double last_ = -interval;  // the first poll calls the watcher, so that many short solves in a row are watched, too
    std::atomic<bool> stopped_{false};
    StopReason reason_ = StopReason::converged;
    std::function<Progress()> describe_;
    std::function<void()> synchronize_ = [] {};
    Clock::time_point start_ = Clock::now();
    std::thread::id owner_ = std::this_thread::get_id();
};

}  // namespace multimargin
