// What a solve costs: kernel rows, and where the time goes.
#pragma once

#include <chrono>

#include "base/types.hpp"

namespace multimargin {

// Kernel rows used: computed, or found in a cache.
struct CacheCounters {
    Index rows_computed = 0;
    Index hits = 0;
};

struct Phases {
    double kernel = 0.0;     // kernel values: tiles of the score passes, blocks, a stored matrix
    double scores = 0.0;     // adding them up
    double inner = 0.0;      // steps within blocks
    double selection = 0.0;  // choosing and gathering rounds and blocks
    double check = 0.0;      // the float64 check of all examples
    double work = 0.0;       // multiply-adds of the steps and checks, as counted against a budget
    Index rounds = 0;
    Index blocks = 0;
    Index exact_blocks = 0;    // of them by the active set; of a binary problem, linear systems of its free variables
    Index feature_sweeps = 0;  // over all examples, in the features of a kernel of low rank
    Index pair_visits = 0;     // problems between two classes of an all-in-one machine
    Index newton_steps = 0;    // on the variables that may move
};

class Stopwatch {
  public:
    using Clock = std::chrono::steady_clock;

    double lap() {
        const Clock::time_point now = Clock::now();
        const double seconds = std::chrono::duration<double>(now - last_).count();
        last_ = now;
        return seconds;
    }

  private:
    Clock::time_point last_ = Clock::now();
};

// Adds the time of its scope to a phase.
class PhaseTimer {
  public:
    explicit PhaseTimer(double& phase) : phase_(phase) {}
    PhaseTimer(const PhaseTimer&) = delete;
    PhaseTimer& operator=(const PhaseTimer&) = delete;
    ~PhaseTimer() { phase_ += watch_.lap(); }

  private:
    double& phase_;
    Stopwatch watch_;
};

}  // namespace multimargin
