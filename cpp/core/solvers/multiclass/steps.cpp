#include "solvers/multiclass/steps.hpp"

#include <algorithm>
#include <cmath>

#include "subproblem/two_variables.hpp"

namespace multimargin {

template <class T>
Steps<T>::Steps(const Problem& problem)
    : problem_(problem),
      machine_(problem.machine()),
      gradient_(unsigned_index(machine_.max_components())),
      target_(unsigned_index(machine_.max_components())),
      column_deltas_(unsigned_index(machine_.n_scores())) {}

template <class T>
void Steps<T>::attach(Workspace& workspace, RowProvider<T>& rows) {
    workspace_ = &workspace;
    rows_ = &rows;
}

template <class T>
StepResult Steps<T>::box_variables(const Variable& first, BoxSelector* selector) {
    const auto curvature_of = [&](const Variable& v) {
        const Index e = workspace_->example(v.position);
        return problem_.diagonal(e) * machine_.coupling(component_of(v), component_of(v)) + problem_.ridge(e);
    };
    const double q11 = curvature_of(first);
    const double a1 = workspace_->variables(first.p)[first.position], cap1 = workspace_->cap()[first.position];
    double mu1 = one_variable_step(first.gradient, std::max(q11, curvature_floor), a1, cap1), mu2 = 0.0;
    double gain = mu1 * (first.gradient - 0.5 * q11 * mu1);
    Variable second;
    if (selector != nullptr) {
        const T* row = rows_->row(first.position);
        second = selector->partner(*workspace_, first, q11, row);
        if (second.exists()) {
            const double q22 = curvature_of(second);
            const double q12 = machine_.coupling(component_of(first), component_of(second)) *
                               static_cast<double>(row[second.position]);
            const double a2 = workspace_->variables(second.p)[second.position];
            const auto [both1, both2] = two_variable_step(
                {first.gradient, second.gradient, q11, q22, q12, a1, a2, cap1, workspace_->cap()[second.position]});
            const double joint = both1 * (first.gradient - 0.5 * q11 * both1 - q12 * both2) +
                                 both2 * (second.gradient - 0.5 * q22 * both2);
            if (std::isfinite(joint) && joint > gain) {
                mu1 = both1;
                mu2 = both2;
                gain = joint;
            }
        }
    }
    const bool moved1 = move_variable(first, mu1);
    const bool moved2 = second.exists() && move_variable(second, mu2);
    return {moved1 || moved2, gain};
}

template <class T>
bool Steps<T>::move_variable(const Variable& variable, double change) {
    if (change == 0.0) return false;
    const Index n = workspace_->n_components(variable.position);
    for (Index p = 0; p < n; ++p) target_[unsigned_index(p)] = workspace_->variables(p)[variable.position];
    target_[unsigned_index(variable.p)] += change;
    return move_example(variable.position);
}

template <class T>
StepResult Steps<T>::working_set(std::vector<Variable>& variables) {
    std::sort(variables.begin(), variables.end(), [](const Variable& a, const Variable& b) {
        return a.position != b.position ? a.position < b.position : a.p < b.p;
    });
    const Index n = static_cast<Index>(variables.size());
    few_.resize(n);
    const T* row = nullptr;
    for (Index i = 0; i < n; ++i) {
        const Variable& v = variables[unsigned_index(i)];
        if (i == 0 || v.position != variables[unsigned_index(i - 1)].position) row = rows_->row(v.position);
        few_.gradient[unsigned_index(i)] = v.gradient;
        few_.a[unsigned_index(i)] = workspace_->variables(v.p)[v.position];
        few_.cap[unsigned_index(i)] = workspace_->cap()[v.position];
        for (Index j = i; j < n; ++j) {
            const Variable& w = variables[unsigned_index(j)];
            const bool same = w.position == v.position;
            const double k = same ? workspace_->diagonal()[v.position] : static_cast<double>(row[w.position]);
            few_.q(i, j) = few_.q(j, i) = k * machine_.coupling(component_of(v), component_of(w));
        }
        few_.q(i, i) += problem_.ridge(workspace_->example(v.position));
    }
    StepResult result{false, newton_.solve(few_)};
    for (Index i = 0; i < n;) {
        const Index position = variables[unsigned_index(i)].position;
        for (Index p = 0; p < workspace_->n_components(position); ++p) {
            target_[unsigned_index(p)] = workspace_->variables(p)[position];
        }
        for (; i < n && variables[unsigned_index(i)].position == position; ++i) {
            target_[unsigned_index(variables[unsigned_index(i)].p)] = few_.a[unsigned_index(i)];
        }
        result.moved = move_example(position) || result.moved;
    }
    return result;
}

template <class T>
StepResult Steps<T>::pair_in_example(Index position) {
    const Index n = workspace_->n_components(position);
    const auto& components = machine_.of(workspace_->class_of(position));
    const double k = workspace_->diagonal()[position], ridge = problem_.ridge(workspace_->example(position));
    workspace_->gradient_at(position, gradient_);
    constexpr Index slack = -1;
    const double cap = workspace_->cap()[position];
    const double slack_left = slack_of(workspace_->sum()[position], cap);
    const auto gradient_at = [&](Index p) { return p == slack ? 0.0 : gradient_[unsigned_index(p)]; };
    const auto variable_at = [&](Index p) { return p == slack ? slack_left : workspace_->variables(p)[position]; };
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
        if (q == rise || !(variable_at(q) > 0.0) || !(difference > 0.0)) continue;
        const double gain = difference * difference / std::max(curvature(rise, q), curvature_floor);
        if (gain > largest) {
            largest = gain;
            fall = q;
        }
    }
    if (largest < 0.0) return {};
    const double difference = gradient_at(rise) - gradient_at(fall), q = curvature(rise, fall);
    const double mu = std::min(variable_at(fall), difference / std::max(q, curvature_floor));
    for (Index p = 0; p < n; ++p) target_[unsigned_index(p)] = workspace_->variables(p)[position];
    if (rise != slack) target_[unsigned_index(rise)] += mu;
    if (fall != slack)
        target_[unsigned_index(fall)] = mu < variable_at(fall) ? target_[unsigned_index(fall)] - mu : 0.0;
    return {move_example(position), mu * (difference - 0.5 * q * mu)};
}

template <class T>
double Steps<T>::violation_at(Index position) {
    const std::size_t n = unsigned_index(workspace_->n_components(position));
    workspace_->gradient_at(position, gradient_);
    for (std::size_t p = 0; p < n; ++p) target_[p] = workspace_->variables(static_cast<Index>(p))[position];
    return example_violation(machine_.bound, {gradient_.data(), n}, {target_.data(), n}, workspace_->cap()[position]);
}

template <class T>
StepResult Steps<T>::whole_example(Index position) {
    const Index y = workspace_->class_of(position);
    const std::size_t n = unsigned_index(workspace_->n_components(position));
    workspace_->gradient_at(position, gradient_);
    for (std::size_t p = 0; p < n; ++p) target_[p] = workspace_->variables(static_cast<Index>(p))[position];
    const ExampleProblem example{{gradient_.data(), n},
                                 machine_.terms_of(y).private_square,
                                 machine_.terms_of(y).weight,
                                 machine_.sigma[unsigned_index(y)],
                                 workspace_->diagonal()[position],
                                 workspace_->cap()[position],
                                 problem_.ridge(workspace_->example(position)),
                                 machine_.terms_of(y).uniform};
    const std::span<double> a(target_.data(), n);
    if (machine_.bound == Bound::box) {
        solve_box_example(example, a, scratch_);
    } else {
        solve_simplex_example(example, a, scratch_);
    }
    // gain = g'delta - 1/2 delta'H delta, with w'delta and sum delta for the two rank-one parts
    double linear = 0.0, square = 0.0, shared = 0.0, sum = 0.0, ridge_square = 0.0;
    for (std::size_t p = 0; p < n; ++p) {
        const double delta = target_[p] - workspace_->variables(static_cast<Index>(p))[position];
        linear += gradient_[p] * delta;
        square += example.private_square[p] * delta * delta;
        shared += example.weight[p] * delta;
        ridge_square += delta * delta;
        sum += delta;
    }
    const double ridge_part = example.ridge * (machine_.bound == Bound::simplex ? sum * sum : ridge_square);
    const double curvature = example.diagonal * (square + example.sigma * shared * shared) + ridge_part;
    return {move_example(position), linear - 0.5 * curvature};
}

template <class T>
bool Steps<T>::move_example(Index position) {
    const Index n = workspace_->n_components(position);
    const auto& components = machine_.of(workspace_->class_of(position));
    std::fill(column_deltas_.begin(), column_deltas_.end(), 0.0);
    bool changed = false;
    const Index example = workspace_->example(position);
    const double cap = workspace_->cap()[position], negligible = problem_.negligible(example);
    for (Index p = 0; p < n; ++p) {
        const double old = workspace_->variables(p)[position];
        double value = target_[unsigned_index(p)];
        if (value <= negligible) value = 0.0;
        if (value >= (1.0 - bound_tolerance) * cap) value = cap;
        if (value == old || std::isnan(value)) continue;  // a step that overflowed is none
        changed = true;
        workspace_->set_variable(position, p, value);
        machine_.add_to_coefficients(components[unsigned_index(p)], value - old, column_deltas_.data());
    }
    if (!changed) return false;
    const T* row = rows_->row(position);
    for (std::size_t c = 0; c < column_deltas_.size(); ++c) {
        if (column_deltas_[c] == 0.0) continue;
        add_row(column_deltas_[c], row, workspace_->scores(static_cast<Index>(c)), workspace_->size());
    }
    return true;
}

template class Steps<float>;
template class Steps<double>;

}  // namespace multimargin
