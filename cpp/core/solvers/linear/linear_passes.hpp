// Coordinate descent over examples on weights by feature: the order of visits, shrinking, limits and the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/monitor.hpp"
#include "base/rng.hpp"
#include "base/types.hpp"

namespace multimargin {

struct LinearOptions {
    double tol = 1e-3;
    Index max_iter = -1;    // steps on an example; -1: no limit
    Index max_passes = -1;  // over the active examples; -1: no limit
    double max_time = infinity;
    double max_cost = infinity;  // multiply-adds after which, if not before, the solve ends as unfinished
    bool shrinking = true;
    Index n_threads = 1;
    std::uint64_t seed = 0;  // of the order of visits
};

struct LinearReport {
    StopReason stop_reason = StopReason::converged;
    Index iterations = 0;
    Index passes = 0;
    double seconds = 0.0;
    double violation = infinity;  // largest one met in the last pass over all examples
    double dual = 0.0;
    double cost = 0.0;
    double width = 1.0;  // of Newton's last problem, in units of its first
    Index n_support = 0;
    bool verified = false;  // in that pass the weights did not change
};

struct Visit {
    double violation = 0.0;
    bool stepped = false;
    bool rests = false;  // all variables are at bounds, and pushed there
};

// Visits examples in a random order, new for each pass. Those that rest are left out, however little holds them, until
// the others violate half as much as all did: measured against HCLKS08, which waits for the pushes to exceed the last
// pass's violation, that takes 20 to 60 % less. The end is a pass over all examples which steps on those that violate
// by more than tol only: where it finds none the weights stood still, so that the largest violation it met is that of
// one point.
//
// Steps has: visit(example, step_above); cost() so far; passed_over, the share of the last pass's
// violation up to which an example is not worth a step; fetch_example and fetch_row, which ask memory for what a later
// visit needs; drift(n), how far n steps may have taken scores from those of the variables, and refresh() to undo it;
// rounding(), below which a violation need not fall.
template <class Steps>
class LinearPasses {
  public:
    LinearPasses(Steps& steps, Index n, const LinearOptions& options, Monitor& monitor)
        : steps_(steps), options_(options), monitor_(monitor), order_(unsigned_index(n)), rng_(options.seed) {
        std::iota(order_.begin(), order_.end(), Index{0});
        active_ = n;
    }

    // `warm`: the start may be an optimum already, which one pass would show.
    StopReason run(bool warm) {
        bool closing = warm;
        bool may_rest = false;
        double of_all = infinity;  // violation in the last pass over all
        while (true) {
            const bool full = active_ == size();
            const double worthwhile = violation_ < infinity ? Steps::passed_over * violation_ : 0.0;
            const bool complete = pass(may_rest, closing && full ? options_.tol : worthwhile);
            if (!complete) return reason_;
            ++passes_;
            violation_ = seen_;
            if (passes_ == 1) first_ = violation_;
            if (full) full_violation_ = violation_;
            if (closing && full && !stepped_) {
                verified_ = true;
                return StopReason::converged;
            }
            if (passes_ == options_.max_passes) return StopReason::max_iter;
            closing = violation_ <= options_.tol;
            may_rest = options_.shrinking && !closing;
            if (full) of_all = violation_;
            if (closing || violation_ <= return_at * of_all) active_ = size();
            if (closing && steps_.drift(n_steps_) > 0.1 * options_.tol) steps_.refresh();
            if (hovers(full)) return StopReason::stalled;
            if (is_hopeless()) return StopReason::unfinished;
        }
    }

    Index passes() const { return passes_; }
    Index iterations() const { return n_steps_; }
    Index active() const { return active_; }
    double violation() const { return violation_; }
    double full_violation() const { return full_violation_; }
    bool verified() const { return verified_; }

  private:
    static constexpr double return_at = 0.5;
    static constexpr double cost_between_polls = 1e5;
    static constexpr Index patience = 50;  // passes without a smaller violation
    static constexpr double judged_from = 0.1;

    Index size() const { return static_cast<Index>(order_.size()); }

    // False when a limit or the monitor ended it; then reason_ says which.
    bool pass(bool may_rest, double step_above) {
        for (Index i = active_ - 1; i > 0; --i) std::swap(at(i), at(rng_.below_fast(i + 1)));
        seen_ = 0.0;
        stepped_ = false;
        for (Index s = 0; s < active_; ++s) {
            if (steps_.cost() >= next_poll_ && must_stop()) return false;
            if (s + 8 < active_) steps_.fetch_example(at(s + 8));
            if (s + 4 < active_) steps_.fetch_row(at(s + 4));
            const Visit visit = steps_.visit(at(s), step_above);
            seen_ = std::max(seen_, visit.violation);
            if (visit.rests && may_rest) {
                std::swap(at(s--), at(--active_));
                continue;
            }
            if (!visit.stepped) continue;
            stepped_ = true;
            if (++n_steps_ == options_.max_iter) {
                reason_ = StopReason::max_iter;
                return false;
            }
        }
        return true;
    }

    Index& at(Index position) { return order_[unsigned_index(position)]; }

    bool must_stop() {
        next_poll_ = std::min(steps_.cost() + cost_between_polls, options_.max_cost);
        if (steps_.cost() >= options_.max_cost) {
            reason_ = StopReason::unfinished;
            return true;
        }
        if (!monitor_.poll()) return false;
        reason_ = monitor_.reason();
        return true;
    }

    // From a tenth of max_cost on: at the pace so far, a factor of the violation for a cost, more than all would be
    // needed. The pace slows down, if anything, so that what is hopeless by it is.
    bool is_hopeless() const {
        const double cost = steps_.cost();
        if (violation_ <= options_.tol || cost < judged_from * options_.max_cost) return false;
        return cost * std::log(violation_ / options_.tol) > (options_.max_cost - cost) * std::log(first_ / violation_);
    }

    // A tolerance below what rounding allows is never met: then the violation hovers. It is measured over all examples.
    bool hovers(bool full) {
        if (violation_ < 0.9 * least_) {
            least_ = violation_;
            waited_ = 0;
        }
        if (++waited_ < patience) return false;
        const bool rounded = violation_ <= steps_.rounding();
        if (rounded && !full) active_ = size();
        if (!rounded) waited_ = 0;
        return rounded && full;
    }

    Steps& steps_;
    const LinearOptions& options_;
    Monitor& monitor_;
    std::vector<Index> order_;
    Rng rng_;
    Index active_ = 0;
    double seen_ = 0.0;  // largest violation of this pass
    bool stepped_ = false, verified_ = false;
    Index passes_ = 0, n_steps_ = 0, waited_ = 0;
    double violation_ = infinity, full_violation_ = infinity, least_ = infinity, first_ = infinity;
    double next_poll_ = 0.0;
    StopReason reason_ = StopReason::converged;
};

}  // namespace multimargin
