// The history of a solve: points recorded on the way, thinned so that they stay few. Nothing is decided by them.
#pragma once

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "base/types.hpp"

namespace multimargin {

// What a solver works on, and where the dual variables are.
struct Census {
    Index examples = 0;   // that are active
    Index variables = 0;  // that are active
    Index free = 0;       // of all variables: between their bounds
    Index bounded = 0;    // of all variables: at the upper one

    void count(double a, double cap) {
        free += a > 0.0 && a < cap ? 1 : 0;
        bounded += a > 0.0 && a >= cap ? 1 : 0;
    }
};

struct TracePoint {
    double seconds = 0.0;
    Index iterations = 0;
    Index kernel_rows = 0;
    double violation = infinity;
    double dual = 0.0;
    double primal = std::numeric_limits<double>::quiet_NaN();
    Census census;
};

// At most 2,000 points: when it is full every second one is dropped, and from then on every second one is kept.
// The first and the last always stay.
class Trace {
  public:
    static constexpr std::size_t most_points = 2000;

    // Off until this is called. `primal` may be empty: that objective costs a pass over all examples.
    void begin(std::function<double()> seconds, std::function<double()> primal) {
        seconds_ = std::move(seconds);
        primal_ = std::move(primal);
        on_ = true;
    }

    bool on() const { return on_; }

    // Whether the current point is to be kept; every call counts as one point.
    bool wants_next() { return on_ && offered_++ % stride_ == 0; }

    // Adds the time, and the primal objective if that is recorded.
    void keep(TracePoint point) {
        point.seconds = seconds_();
        if (primal_) point.primal = primal_();
        points_.push_back(point);
        if (points_.size() < most_points) return;
        for (std::size_t k = 1; 2 * k < points_.size(); ++k) points_[k] = points_[2 * k];
        points_.resize(points_.size() / 2);
        stride_ *= 2;
    }

    // The last point, complete as it is, and all of them.
    std::vector<TracePoint> end(TracePoint last) {
        if (!on_) return {};
        if (!primal_ || !(last.primal < infinity)) last.primal = TracePoint{}.primal;  // not known
        // The float64 check at the end has often been recorded already.
        const bool known = points_.size() > 1 && points_.back().iterations == last.iterations &&
                           points_.back().violation == last.violation && points_.back().dual == last.dual;
        if (known) points_.pop_back();
        points_.push_back(last);
        return std::move(points_);
    }

  private:
    std::function<double()> seconds_, primal_;
    bool on_ = false;
    Index offered_ = 0, stride_ = 1;
    std::vector<TracePoint> points_;
};

}  // namespace multimargin
