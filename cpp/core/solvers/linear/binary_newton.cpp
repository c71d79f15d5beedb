#include "solvers/linear/binary_newton.hpp"

#include <algorithm>
#include <cmath>

#include "base/root_search.hpp"
#include "simd/table.hpp"

namespace multimargin {

namespace {

// The numbers of linear/newton.py, which explains them.
constexpr double first_width = 0.5, growth = 4.0;
constexpr double first_rho = 10.0, most_rho = 1e10, shift_share = 0.1;
constexpr Index max_outer = 60, max_inner = 60, easy = 20, rounded_steps = 2;
constexpr double rounded_violation = 0.1;
constexpr double inner_share = 0.1;
constexpr double least_damping = 1e-6, most_damping = 1.0, short_step = 0.1, long_step = 0.5;
// The numbers of linear/near_start.py.
constexpr double active_share = 0.1, most_active = 0.6, round_aim = 0.5;
constexpr std::size_t few_examples = 2000;
constexpr Index max_rounds = 8;

double product(std::span<const double> x, std::span<const double> y) {
    return simd::best_table().dot(x.data(), y.data(), static_cast<Index>(x.size()));
}

}  // namespace

NewtonProblem NewtonProblem::part(const std::vector<std::size_t>& positions) const {
    std::vector<double> bounds;
    for (const std::size_t i : positions) bounds.push_back(C[i]);
    return {examples.part(positions), std::move(bounds), loss, exact_bias};
}

BinaryNewton::BinaryNewton(const NewtonProblem& problem, NewtonPoint start, Monitor& monitor, std::vector<double> given)
    : problem_(problem),
      monitor_(monitor),
      given_(std::move(given)),
      variables_(std::move(start.variables)),
      weights_(std::move(start.weights)),
      regularization_(problem.examples.n_weights(), 1.0),
      near_(!weights_.empty()),
      center_(start.bias),
      width_(first_width),
      rho_(first_rho) {
    given_.resize(problem.examples.n_weights(), 0.0);
    const bool hinge = problem.loss == Loss::hinge;
    for (const double C : problem.C) {
        scale_.push_back(C < infinity ? C : 1.0);
        ridge_.push_back(hinge ? 0.0 : 0.5 / C);
        cap_.push_back(hinge ? C : infinity);
    }
    point_ = variables_;
    if (near_) return;
    problem.examples.gather(variables_, weights_);
    for (std::size_t k = 0; k < weights_.size(); ++k) weights_[k] += given_[k];
    if (problem.exact_bias) weights_.back() = center_;
}

void BinaryNewton::set_width() {
    sigma_.resize(size());
    damp_.resize(size());
    for (std::size_t i = 0; i < size(); ++i) {
        sigma_[i] = width_ * scale_[i];
        damp_[i] = 1.0 / (1.0 + sigma_[i] * ridge_[i]);
    }
}

double BinaryNewton::dual() const {
    double value = -0.5 * product(weights_, weights_);
    if (problem_.exact_bias) value += 0.5 * weights_.back() * weights_.back();
    for (std::size_t i = 0; i < size(); ++i) value += variables_[i] * (1.0 - 0.5 * ridge_[i] * variables_[i]);
    return value;
}

double BinaryNewton::width() const { return width_ / first_width; }

StopReason BinaryNewton::run(double tol, Index max_steps, double width) {
    max_steps_ = max_steps;
    if (near_ && size() > few_examples) {
        const StopReason ended = approach(tol, max_steps);
        if (ended != StopReason::unfinished) return ended;
    }
    width_ = first_width * width;
    for (Index outer = 0; outer < max_outer; ++outer) {
        const Index before = n_steps_;
        const double last_violation = violation_, last_shift = shift_;
        const Inner inner = minimize();
        if (inner == Inner::unsolved) {  // too little of it is smooth: a narrower problem from the same multipliers
            width_ /= growth * growth;
            continue;
        }
        take_multipliers();
        if (violation_ <= tol && shift_ <= negligible_shift(tol)) return StopReason::converged;
        if (inner == Inner::ended) return reason_;
        if (n_steps_ - before <= easy) widen(tol, last_violation, last_shift, n_steps_ - before);
    }
    return StopReason::stalled;
}

// The sum that it has left, shift / rho, will be taken off some examples, whose scores are large where |x|^2 is.
double BinaryNewton::negligible_shift(double tol) const {
    return shift_share * tol * std::min(1.0, rho_ / std::max(problem_.examples.largest_square(), 1e-300));
}

// Wider, unless progress is fast as it is. A wide step turns the rounding of margins into sigma times as much of a dual
// variable, and of sums into rho times as much of b: where that has made the violation larger, the width was too large.
void BinaryNewton::widen(double tol, double last_violation, double last_shift, Index steps) {
    if (last_violation == infinity) last_violation = last_shift = 0.0;
    if (shift_ > std::max(last_shift / growth, negligible_shift(tol))) rho_ = std::min(most_rho, growth * rho_);
    const bool worse = violation_ >= 2.0 * last_violation && violation_ < rounded_violation;
    const bool rounded = worse && steps <= rounded_steps && shift_ <= shift_share * violation_;
    most_width_ = rounded ? std::max(first_width, width_ / (growth * growth)) : 2.0 * most_width_;
    if (violation_ > std::max(last_violation / growth, tol)) width_ *= growth;
    width_ = std::min(most_width_, width_);
}

// Newton's method on phi.
BinaryNewton::Inner BinaryNewton::minimize() {
    if (problem_.exact_bias) regularization_.back() = 1.0 / rho_;
    set_width();
    problem_.examples.margins(weights_, margins_);
    gathered_.clear();
    for (Index inner = 0; inner < max_inner; ++inner) {
        project();
        if (good_enough()) return Inner::solved;
        ++n_steps_;
        if (must_stop() || !find_direction()) return Inner::ended;
        problem_.examples.margins(direction_, change_);
        const double length = find_length();
        if (length == 0.0) return Inner::solved;  // as far as rounding lets it come
        adapt_damping(length);
        for (std::size_t k = 0; k < weights_.size(); ++k) weights_[k] += length * direction_[k];
        for (std::size_t i = 0; i < size(); ++i) margins_[i] += length * change_[i];
    }
    return Inner::unsolved;
}

// The proximal point of the margins and phi's gradient. From one step to the next few examples change.
void BinaryNewton::project() {
    const bool anew = gathered_.empty();
    std::vector<double> changes(size()), sums;
    double moved = 0.0;
    for (std::size_t i = 0; i < size(); ++i) {
        const double v = variables_[i] + sigma_[i] * (1.0 - margins_[i]);
        const double p = std::min(std::max(v, 0.0), cap_[i]) * damp_[i];
        changes[i] = anew ? p : p - point_[i];
        point_[i] = p;
        const double distance = p - variables_[i];
        moved += distance * distance / sigma_[i];
    }
    moved_ = moved;
    problem_.examples.gather(changes, sums);
    if (anew) gathered_.assign(sums.size(), 0.0);
    gradient_.resize(sums.size());
    for (std::size_t k = 0; k < sums.size(); ++k) {
        gathered_[k] += sums[k];
        gradient_[k] = regularization_[k] * weights_[k] - given_[k] - gathered_[k];
    }
    if (problem_.exact_bias) gradient_.back() -= center_ / rho_;
}

// What is left of phi, by its strong convexity, is a share of the proximal distance.
bool BinaryNewton::good_enough() const {
    double left = 0.0, moved = moved_;
    for (std::size_t k = 0; k < gradient_.size(); ++k) left += gradient_[k] * gradient_[k] / regularization_[k];
    if (problem_.exact_bias) moved += (weights_.back() - center_) * (weights_.back() - center_) / rho_;
    return left <= std::max(inner_share * inner_share * moved, 1e-24);
}

bool BinaryNewton::must_stop() {
    const bool enough = max_steps_ >= 0 && n_steps_ > max_steps_;
    if (!enough && !monitor_.poll()) return false;
    reason_ = enough ? StopReason::max_iter : monitor_.reason();
    return true;
}

// (R + sum_i slope_i x_i x_i' over the free examples) D = -gradient.
bool BinaryNewton::find_direction() {
    std::vector<double> weights(size()), matrix;
    for (std::size_t i = 0; i < size(); ++i)
        weights[i] = point_[i] > 0.0 && point_[i] < cap_[i] ? sigma_[i] * damp_[i] : 0.0;
    bool complete = problem_.examples.gram(weights, matrix, monitor_);
    if (complete && damping_ > 0.0 && metric_.empty()) complete = problem_.examples.gram(scale_, metric_, monitor_);
    complete = complete && equations_.factorize(matrix, regularization_, damping_ * width_, metric_, monitor_);
    if (!complete) {
        reason_ = monitor_.reason();
        return false;
    }
    direction_.resize(gradient_.size());
    for (std::size_t k = 0; k < gradient_.size(); ++k) direction_[k] = -gradient_[k];
    equations_.solve(direction_);
    return true;
}

// Where phi's slope along the direction has nearly vanished.
double BinaryNewton::find_length() {
    double linear = 0.0, square = 0.0;
    for (std::size_t k = 0; k < weights_.size(); ++k) {
        double of_weight = regularization_[k] * weights_[k] - given_[k];
        if (problem_.exact_bias && k + 1 == weights_.size()) of_weight -= center_ / rho_;
        linear += of_weight * direction_[k];
        square += regularization_[k] * direction_[k] * direction_[k];
    }
    from_.resize(size());
    rate_.resize(size());
    steep_.resize(size());
    for (std::size_t i = 0; i < size(); ++i) {
        from_[i] = variables_[i] + sigma_[i] * (1.0 - margins_[i]);
        rate_[i] = sigma_[i] * change_[i];
        steep_[i] = rate_[i] * damp_[i] * change_[i];
    }
    return find_root([&](double t) {
        // Several sums side by side, so that an addition need not wait for the last one.
        constexpr std::size_t lanes = 4;
        double slopes[lanes] = {}, curvatures[lanes] = {};
        const auto add = [&](std::size_t i, std::size_t lane) {
            const double v = from_[i] - t * rate_[i], p = std::min(std::max(v, 0.0), cap_[i]);
            slopes[lane] += p * damp_[i] * change_[i];
            curvatures[lane] += v == p ? steep_[i] : 0.0;
        };
        std::size_t i = 0;
        for (; i + lanes <= size(); i += lanes) {
            for (std::size_t lane = 0; lane < lanes; ++lane) add(i + lane, lane);
        }
        for (; i < size(); ++i) add(i, 0);
        return SlopeAndCurvature{linear + t * square - ((slopes[0] + slopes[1]) + (slopes[2] + slopes[3])),
                                 square + ((curvatures[0] + curvatures[1]) + (curvatures[2] + curvatures[3]))};
    });
}

// More of it after a step that had to be cut short, less after one that had not.
void BinaryNewton::adapt_damping(double length) {
    if (length < short_step) {
        damping_ = std::min(most_damping, std::max(least_damping, 10.0 * damping_));
    } else if (length > long_step) {
        damping_ = damping_ > least_damping ? 0.25 * damping_ : 0.0;
    }
}

// a <- a(w), the center of the bias <- the bias.
void BinaryNewton::take_multipliers() {
    variables_ = point_;
    std::vector<double> of_amounts;
    problem_.examples.gather(variables_, of_amounts);
    for (std::size_t k = 0; k < of_amounts.size(); ++k) of_amounts[k] += given_[k];
    shift_ = 0.0;
    if (problem_.exact_bias) {
        shift_ = std::abs(weights_.back() - center_);
        center_ = of_amounts.back() = weights_.back();
    }
    std::vector<double> margins;
    problem_.examples.margins(of_amounts, margins);
    violation_ = violation_of(margins);
}

double BinaryNewton::violation_of(std::span<const double> margins) const {
    double largest = 0.0;
    for (std::size_t i = 0; i < size(); ++i) {
        const double g = push(i, margins[i]);
        if (variables_[i] < cap_[i]) largest = std::max(largest, g);
        if (variables_[i] > 0.0) largest = std::max(largest, -g);
    }
    return largest;
}

// Rounds on the examples near their margins, while the others rest: near_start.py. Unfinished: go on with all of them.
StopReason BinaryNewton::approach(double tol, Index max_steps) {
    for (Index round = 0; round < max_rounds; ++round) {
        problem_.examples.margins(weights_, margins_);
        if (round > 0 && violation_of(margins_) <= tol) break;
        const std::vector<std::size_t> active = near_margins();
        if (static_cast<double>(active.size()) > most_active * static_cast<double>(size())) break;
        const StopReason ended = solve_part(active, round_aim * tol, max_steps);
        if (ended != StopReason::converged && ended != StopReason::stalled) return ended;
    }
    return StopReason::unfinished;
}

// The examples with free variables, with violations, and of the others those nearest to one.
std::vector<std::size_t> BinaryNewton::near_margins() const {
    std::vector<double> safety(size());
    for (std::size_t i = 0; i < size(); ++i) {
        const double g = push(i, margins_[i]);
        const double safe = variables_[i] <= 0.0 ? -g : variables_[i] >= cap_[i] ? g : -infinity;
        safety[i] = std::isnan(safe) ? -infinity : safe;  // to be sorted, values need an order
    }
    std::vector<double> ordered = safety;
    const auto rank = ordered.begin() + static_cast<Index>(active_share * static_cast<double>(size() - 1));
    std::nth_element(ordered.begin(), rank, ordered.end());
    const double limit = std::max(*rank, 0.0);
    std::vector<std::size_t> active;
    for (std::size_t i = 0; i < size(); ++i) {
        if (safety[i] <= limit) active.push_back(i);
    }
    return active;
}

StopReason BinaryNewton::solve_part(const std::vector<std::size_t>& active, double tol, Index max_steps) {
    std::vector<double> resting = variables_, given;
    NewtonPoint start{{}, center_, weights_};
    for (const std::size_t i : active) {
        start.variables.push_back(variables_[i]);
        resting[i] = 0.0;
    }
    problem_.examples.gather(resting, given);
    const NewtonProblem own = problem_.part(active);
    BinaryNewton part(own, std::move(start), monitor_, std::move(given));
    part.near_ = false;  // it has the weights, and no rounds of its own
    const StopReason ended = part.run(tol, max_steps < 0 ? -1 : max_steps - n_steps_);
    for (std::size_t k = 0; k < active.size(); ++k) variables_[active[k]] = part.variables_[k];
    n_steps_ += part.n_steps_;
    problem_.examples.gather(variables_, weights_);
    if (problem_.exact_bias) weights_.back() = center_ = part.center_;
    return ended;
}

}  // namespace multimargin
