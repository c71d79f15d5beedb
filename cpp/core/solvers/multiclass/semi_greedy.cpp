#include "solvers/multiclass/semi_greedy.hpp"

#include <algorithm>

namespace multimargin {

template <class T>
SweepResult SemiGreedy<T>::sweep(double target, Index max_steps, Monitor& monitor) {
    const double threshold = std::max(0.5 * worst_.violation, 0.5 * target);
    SweepResult result;
    for (Index j = 0; j < workspace_->size(); ++j) {
        const std::size_t i = unsigned_index(j);
        if (selector_.top()[i] - selector_.low()[i] < threshold) continue;
        if (steps_.violation_at(j) < threshold) continue;
        if (monitor.poll() || (max_steps >= 0 && result.steps >= max_steps)) return result;
        const StepResult step = steps_.whole_example(j);
        ++result.steps;
        result.gain += step.gain;
        result.moved = result.moved || step.moved;
    }
    return result;
}

template class SemiGreedy<float>;
template class SemiGreedy<double>;

}  // namespace multimargin
