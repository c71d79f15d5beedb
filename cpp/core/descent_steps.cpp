// The steps of the decomposition: one and two variables, two variables of one example, a whole example.
#include <algorithm>
#include <cmath>

#include "descent.hpp"
#include "two_variables.hpp"

namespace multimargin {

// DGI11 4.2 (one variable) and 4.3 with appendix A.2 (two).
template <class T>
bool Descent<T>::step_box_variables() {
    const Variable first = box_choice_.variable;
    const auto component_of = [&](const Variable& v) -> const Component& {
        return machine_.of(workspace_->class_of(v.position))[unsigned_index(v.p)];
    };
    const auto curvature_of = [&](const Variable& v) {
        const Index e = workspace_->example(v.position);
        return problem_.diagonal(e) * machine_.coupling(component_of(v), component_of(v)) + problem_.ridge(e);
    };
    const double q11 = curvature_of(first);
    const double a1 = workspace_->amounts(first.p)[first.position], cap1 = workspace_->cap()[first.position];
    const T* row = row_of(first.position);
    Variable second;
    if (options_.solver == SolverKind::s2do) second = box_selector_.partner(*workspace_, first, q11, row);
    double mu1 = one_variable_step(first.gradient, std::max(q11, curvature_floor), a1, cap1), mu2 = 0.0;
    double gain = mu1 * (first.gradient - 0.5 * q11 * mu1);
    double a2 = 0.0;
    if (second.exists()) {
        const double q22 = curvature_of(second);
        const double q12 = machine_.coupling(component_of(first), component_of(second)) *
                           static_cast<double>(row[second.position]);
        a2 = workspace_->amounts(second.p)[second.position];
        const PairProblem pair{first.gradient, second.gradient, q11, q22, q12, a1, a2, cap1,
                               workspace_->cap()[second.position]};
        const auto [both1, both2] = two_variable_step(pair);
        const double joint = both1 * (first.gradient - 0.5 * q11 * both1 - q12 * both2) +
                             both2 * (second.gradient - 0.5 * q22 * both2);
        if (std::isfinite(joint) && joint > gain) {
            mu1 = both1;
            mu2 = both2;
            gain = joint;
        }
    }
    tally_.dual += gain;
    const auto move = [&](const Variable& v, double a, double mu) {
        if (mu == 0.0) return false;
        const Index n = workspace_->n_components(v.position);
        for (Index p = 0; p < n; ++p) target_[unsigned_index(p)] = workspace_->amounts(p)[v.position];
        target_[unsigned_index(v.p)] = a + mu;
        return move_example(v.position);
    };
    const bool moved1 = move(first, a1, mu1);
    if (second.exists() && second.position == first.position) a2 = workspace_->amounts(second.p)[second.position];
    const bool moved2 = second.exists() && move(second, a2, mu2);
    return moved1 || moved2;
}

// Two variables of one example, the slack being one of them: DGI11 4.4.
template <class T>
bool Descent<T>::step_pair_in_example() {
    const Index position = example_choice_.position;
    const Index n = workspace_->n_components(position);
    const auto& components = machine_.of(workspace_->class_of(position));
    const double k = workspace_->diagonal()[position], ridge = problem_.ridge(workspace_->example(position));
    workspace_->gradient_at(position, gradient_);
    constexpr Index slack = -1;
    const double cap = workspace_->cap()[position];
    const double slack_left = slack_of(workspace_->sum()[position], cap);
    const auto gradient_at = [&](Index p) { return p == slack ? 0.0 : gradient_[unsigned_index(p)]; };
    const auto amount_at = [&](Index p) { return p == slack ? slack_left : workspace_->amounts(p)[position]; };
    const auto curvature = [&](Index p, Index q) {  // of the direction e_p - e_q
        double m = 0.0;
        for (const Index r : {p, q}) {
            if (r != slack) m += machine_.coupling(components[unsigned_index(r)], components[unsigned_index(r)]);
        }
        if (p == slack || q == slack) return k * m + ridge;
        return k * (m - 2.0 * machine_.coupling(components[unsigned_index(p)], components[unsigned_index(q)]));
    };
    Index rise = slack, fall = slack;
    for (Index p = 0; p < n; ++p) {
        if (gradient_at(p) > gradient_at(rise)) rise = p;
    }
    double largest = -1.0;
    for (Index q = slack; q < n; ++q) {
        const double difference = gradient_at(rise) - gradient_at(q);
        if (q == rise || !(amount_at(q) > 0.0) || !(difference > 0.0)) continue;
        const double gain = difference * difference / std::max(curvature(rise, q), curvature_floor);
        if (gain > largest) {
            largest = gain;
            fall = q;
        }
    }
    if (largest < 0.0) return false;
    const double difference = gradient_at(rise) - gradient_at(fall), q = curvature(rise, fall);
    const double mu = std::min(amount_at(fall), difference / std::max(q, curvature_floor));
    tally_.dual += mu * (difference - 0.5 * q * mu);
    for (Index p = 0; p < n; ++p) target_[unsigned_index(p)] = workspace_->amounts(p)[position];
    if (rise != slack) target_[unsigned_index(rise)] += mu;
    if (fall != slack) target_[unsigned_index(fall)] = mu < amount_at(fall) ? target_[unsigned_index(fall)] - mu : 0.0;
    return move_example(position);
}

template <class T>
double Descent<T>::violation_at(Index position) {
    const std::size_t n = unsigned_index(workspace_->n_components(position));
    workspace_->gradient_at(position, gradient_);
    for (std::size_t p = 0; p < n; ++p) target_[p] = workspace_->amounts(static_cast<Index>(p))[position];
    return example_violation(machine_.bound, {gradient_.data(), n}, {target_.data(), n}, workspace_->cap()[position]);
}

// All variables of the example at once: HL02 (18)-(20).
template <class T>
bool Descent<T>::step_whole_example(Index position) {
    const Index y = workspace_->class_of(position);
    const std::size_t n = unsigned_index(workspace_->n_components(position));
    workspace_->gradient_at(position, gradient_);
    for (std::size_t p = 0; p < n; ++p) target_[p] = workspace_->amounts(static_cast<Index>(p))[position];
    const ExampleProblem example{{gradient_.data(), n},
                                 private_square_[unsigned_index(y)],
                                 weight_[unsigned_index(y)],
                                 machine_.sigma[unsigned_index(y)],
                                 workspace_->diagonal()[position],
                                 workspace_->cap()[position],
                                 problem_.ridge(workspace_->example(position))};
    const std::span<double> a(target_.data(), n);
    if (machine_.bound == Bound::box) {
        solve_box_example(example, a, scratch_);
    } else {
        solve_simplex_example(example, a, scratch_);
    }
    // gain = g'delta - 1/2 delta'H delta, with w'delta and sum delta for the two rank-one parts
    double linear = 0.0, square = 0.0, shared = 0.0, sum = 0.0, ridge_square = 0.0;
    for (std::size_t p = 0; p < n; ++p) {
        const double delta = target_[p] - workspace_->amounts(static_cast<Index>(p))[position];
        linear += gradient_[p] * delta;
        square += example.private_square[p] * delta * delta;
        shared += example.weight[p] * delta;
        ridge_square += delta * delta;
        sum += delta;
    }
    const double ridge_part = example.ridge * (machine_.bound == Bound::simplex ? sum * sum : ridge_square);
    tally_.dual += linear - 0.5 * (example.diagonal * (square + example.sigma * shared * shared) + ridge_part);
    return move_example(position);
}

template bool Descent<float>::step_box_variables();
template bool Descent<double>::step_box_variables();
template double Descent<float>::violation_at(Index);
template double Descent<double>::violation_at(Index);
template bool Descent<float>::step_pair_in_example();
template bool Descent<double>::step_pair_in_example();
template bool Descent<float>::step_whole_example(Index);
template bool Descent<double>::step_whole_example(Index);

}  // namespace multimargin
