#include "solvers/linear/example_general.hpp"

#include <algorithm>
#include <numeric>

#include "subproblem/example_problem.hpp"

namespace multimargin {

namespace {

// So many steps for each variable; the next visit goes on where that is too few.
constexpr std::size_t steps_a_variable = 20;
// A violation below this share of the first one is not worth a step.
constexpr double enough = 1e-3;

constexpr std::size_t slack = static_cast<std::size_t>(-1);  // as a variable of gradient 0 that changes no score

class GeneralSteps {
  public:
    GeneralSteps(const Machine& machine, Index y, const GeneralExample& example, std::span<double> a)
        : machine_(machine), components_(machine.of(y)), example_(example), gradient_(example.gradient), a_(a) {}

    // The variable with the largest projected gradient, to its optimum; its violation before. DGI11 4.1
    double step_single() {
        std::size_t worst = 0;
        double largest = 0.0;
        for (std::size_t p = 0; p < a_.size(); ++p) {
            const double violation = simd::box_violation_of(gradient_[p], a_[p], example_.cap);
            if (!(violation > largest)) continue;
            largest = violation;
            worst = p;
        }
        if (!(largest > 0.0)) return 0.0;
        const double bend = std::max(curvature(worst, worst) + example_.ridge, curvature_floor);
        const double moved = std::clamp(a_[worst] + gradient_[worst] / bend, 0.0, example_.cap);
        const double delta = moved - a_[worst];
        gradient_[worst] -= example_.ridge * delta;
        move(worst, delta);
        a_[worst] = moved;
        return largest;
    }

    // From the variable that may fall with the smallest gradient to the one with the largest. HL02 (19), (21)
    double step_pair() {
        const double room = slack_of(std::accumulate(a_.begin(), a_.end(), 0.0), example_.cap);
        std::size_t up = slack, down = slack;
        double top = 0.0, low = room > 0.0 ? 0.0 : infinity;
        for (std::size_t p = 0; p < a_.size(); ++p) {
            if (gradient_[p] > top) top = gradient_[up = p];
            if (a_[p] > 0.0 && gradient_[p] < low) low = gradient_[down = p];
        }
        if (!(top > low)) return 0.0;
        const bool sum_moves = up == slack || down == slack;
        const double bend = curvature(up, up) - 2.0 * curvature(up, down) + curvature(down, down);
        const double limit = down == slack ? room : a_[down];
        const double amount =
            std::min(limit, (top - low) / std::max(bend + (sum_moves ? example_.ridge : 0.0), curvature_floor));
        shift(down, -amount, amount == limit);
        shift(up, amount, false);
        return top - low;
    }

  private:
    double curvature(std::size_t p, std::size_t q) const {
        if (p == slack || q == slack) return 0.0;
        return example_.diagonal * machine_.coupling(components_[p], components_[q]);
    }

    void move(std::size_t p, double delta) {
        for (std::size_t q = 0; q < gradient_.size(); ++q) gradient_[q] -= delta * curvature(p, q);
    }

    // In a simplex the ridge is the sum's: what the slack gives goes to the sum.
    void shift(std::size_t p, double delta, bool to_zero) {
        if (p == slack) {
            for (double& g : gradient_) g += example_.ridge * delta;
            return;
        }
        move(p, delta);
        a_[p] = to_zero ? 0.0 : a_[p] + delta;
    }

    const Machine& machine_;
    const std::vector<Component>& components_;
    const GeneralExample& example_;
    std::span<double> gradient_, a_;
};

}  // namespace

void improve_example(const Machine& machine, Index y, const GeneralExample& example, std::span<double> a) {
    GeneralSteps steps(machine, y, example, a);
    double first = 0.0;
    for (std::size_t i = 0; i < steps_a_variable * a.size(); ++i) {
        const double violation = machine.bound == Bound::box ? steps.step_single() : steps.step_pair();
        first = std::max(first, violation);
        if (!(violation > enough * first)) return;
    }
}

}  // namespace multimargin
