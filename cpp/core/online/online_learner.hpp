// What all online machines have in common.
#pragma once

#include <atomic>
#include <exception>
#include <stdexcept>

#include "base/spin_team.hpp"
#include "base/types.hpp"
#include "online/example_store.hpp"

namespace multimargin {

// How the variables of a step are chosen: by the gain in the dual, by the gradient alone, or by chance.
enum class Selection { second_order, first_order, random };

struct OnlineOptions {
    Selection selection = Selection::second_order;
    Index reprocess = 1;  // steps on kept examples for each new one
    Index budget = -1;    // the most examples to keep; -1: no limit
    bool exact_bias = true;
    double tol = 1e-3;
    double cache_bytes = 2e8;
};

class OnlineLearner {
  public:
    virtual ~OnlineLearner() = default;

    // One use of a learner from outside. A second one at the same time, from another thread or from what this one
    // calls, would find changes half made and is refused. So is one after an exception came out of a change, except
    // for what salvages: the state, with examples and dual variables that are whole and scores that may not be.
    class Turn {
      public:
        enum Purpose { change, inspect, salvage };
        explicit Turn(const OnlineLearner& learner, Purpose purpose = inspect) : learner_(learner), purpose_(purpose) {
            if (learner_.in_use_.exchange(true)) {
                throw std::runtime_error("the online machine is in use already, by another thread or further up");
            }
            if (learner_.broken_ && purpose != salvage) {
                learner_.in_use_ = false;
                throw std::runtime_error("the online machine was left unfinished by an error");
            }
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn() {
            if (purpose_ == change && std::uncaught_exceptions() > n_exceptions_) learner_.broken_ = true;
            learner_.in_use_ = false;
        }

      private:
        const OnlineLearner& learner_;
        Purpose purpose_;
        int n_exceptions_ = std::uncaught_exceptions();
    };
    bool is_broken() const { return broken_; }

    // Threads that may help, until null is given; what is learnt does not depend on them.
    virtual void work_with(QuickTeam* team) = 0;
    // Returns the example's class by what was learnt before it, then learns from it.
    virtual Index add(const double* x, Index label, double cap, Index id) = 0;
    // Takes an example out; false when it is not kept.
    virtual bool forget(Index id) = 0;
    // A round of steps on kept examples; false when none of them violates optimality.
    virtual bool improve() = 0;
    virtual const KeptExamples& kept() const = 0;
    virtual Index n_steps() const = 0;
    virtual Index n_support() const = 0;
    virtual double dual() = 0;
    // Of the kept examples.
    virtual double violation() = 0;

  private:
    mutable std::atomic<bool> in_use_{false}, broken_{false};
};

}  // namespace multimargin
