#include "problem/problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/unrolled.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

namespace {

void check_sizes(const KernelSource& source, std::span<const Index> rows, std::span<const Index> y,
                 std::span<const double> C, Index n_classes) {
    if (rows.size() != y.size() || rows.size() != C.size()) {
        throw std::invalid_argument("rows, classes and bounds must have the same length");
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] < 0 || rows[i] >= source.size()) throw std::invalid_argument("a row does not exist in the store");
        if (y[i] < 0 || y[i] >= n_classes) throw std::invalid_argument("a class code is out of range");
        if (!(C[i] > 0.0)) throw std::invalid_argument("every bound C must be positive");
    }
}

// Loss and curvature of one example, for the objectives.
double squared_penalty(Bound bound, std::span<const double> a, double C) {
    double total = 0.0;
    if (bound == Bound::simplex) {
        const double sum = std::accumulate(a.begin(), a.end(), 0.0);
        return sum * sum / (4.0 * C);
    }
    for (const double v : a) total += v * v / (4.0 * C);
    return total;
}

double primal_loss(Bound bound, Loss loss, std::span<const double> shortfall, double C) {
    double total = 0.0;
    const auto cost = [&](double xi) { return xi > 0.0 ? C * xi * (loss == Loss::hinge ? 1.0 : xi) : 0.0; };
    if (bound == Bound::simplex) {
        double worst = 0.0;
        for (const double s : shortfall) worst = std::max(worst, s);
        return cost(worst);
    }
    for (const double s : shortfall) total += cost(s);
    return total;
}

}  // namespace

Problem::Problem(const KernelSource& source, Machine machine, Loss loss, std::span<const Index> rows,
                 std::span<const Index> y, std::span<const double> C)
    : source_(&source), machine_(std::move(machine)), loss_(loss) {
    machine_.complete();
    check_sizes(source, rows, y, C, machine_.n_classes);
    order_.resize(y.size());
    std::iota(order_.begin(), order_.end(), Index{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](Index a, Index b) { return y[unsigned_index(a)] < y[unsigned_index(b)]; });
    group_begin_.assign(unsigned_index(machine_.n_classes + 1), 0);
    for (const Index position : order_) {
        const std::size_t i = unsigned_index(position);
        ++group_begin_[unsigned_index(y[i] + 1)];
        class_of_.push_back(y[i]);
        source_row_.push_back(rows[i]);
        C_.push_back(C[i]);
        cap_.push_back(loss == Loss::hinge ? C[i] : infinity);
        ridge_.push_back(loss == Loss::hinge ? 0.0 : 1.0 / (2.0 * C[i]));
        diagonal_.push_back(source.diagonal(rows[i]));
    }
    std::partial_sum(group_begin_.begin(), group_begin_.end(), group_begin_.begin());
}

std::vector<Index> Problem::source_rows(std::span<const Index> examples) const {
    std::vector<Index> rows;
    rows.reserve(examples.size());
    for (const Index e : examples) rows.push_back(source_row(e));
    return rows;
}

FullState::FullState(const Problem& problem)
    : ld(round_up(std::max<Index>(problem.size(), 1), simd::panel_width)),
      variables(checked_product(problem.machine().max_components(), ld), 0.0),
      scores(checked_product(problem.machine().n_scores(), ld), 0.0) {}

void gradient_of(const Problem& problem, const FullState& state, Index example, std::span<double> gradient) {
    const Machine& machine = problem.machine();
    const auto& components = machine.of(problem.class_of(example));
    const double mean = machine.sum_to_zero ? state.score(machine.n_classes, example) : 0.0;
    const bool simplex = machine.bound == Bound::simplex;
    double sum = 0.0;
    for (std::size_t p = 0; p < components.size(); ++p) sum += state.variable(static_cast<Index>(p), example);
    for (std::size_t p = 0; p < components.size(); ++p) {
        const Component& c = components[p];
        double margin = c.value1 * state.score(c.class1, example) - c.row_sum() * mean;
        if (c.class2 >= 0) margin += c.value2 * state.score(c.class2, example);
        const double a = simplex ? sum : state.variable(static_cast<Index>(p), example);
        gradient[p] = c.target - margin - problem.ridge(example) * a;
    }
}

double example_violation(Bound bound, std::span<const double> gradient, std::span<const double> a, double cap) {
    if (bound == Bound::box) {
        double largest = 0.0;
        for (std::size_t p = 0; p < a.size(); ++p) {
            largest = std::max(largest, simd::box_violation_of(gradient[p], a[p], cap));
        }
        return largest;
    }
    double tops[n_lanes] = {}, lows[n_lanes] = {infinity, infinity, infinity, infinity}, sums[n_lanes] = {};
    by_lanes(a.size(), [&](std::size_t k, std::size_t p) {
        tops[k] = std::max(tops[k], gradient[p]);
        lows[k] = std::min(lows[k], a[p] > 0.0 ? gradient[p] : infinity);
        sums[k] += a[p];
    });
    const bool slack = slack_of(total_of(sums), cap) > 0.0;
    return std::max(0.0, largest_of(tops) - std::min(smallest_of(lows), slack ? 0.0 : infinity));
}

double certain_violation(Bound bound, std::span<const double> gradient, std::span<const double> a, double cap) {
    for (std::size_t p = 0; p < a.size(); ++p) {
        if (!std::isfinite(gradient[p]) || !std::isfinite(a[p])) return infinity;
    }
    return example_violation(bound, gradient, a, cap);
}

Summary summarize(const Problem& problem, const FullState& state) {
    const Machine& machine = problem.machine();
    const std::size_t most = unsigned_index(machine.max_components());
    std::vector<double> gradient(most), a(most), shortfall(most);
    double linear = 0.0, norm = 0.0, penalty = 0.0, loss = 0.0;
    Summary summary;
    for (Index e = 0; e < problem.size(); ++e) {
        const auto& components = machine.of(problem.class_of(e));
        const std::size_t n = components.size();
        gradient_of(problem, state, e, gradient);
        double sum = 0.0;
        for (std::size_t p = 0; p < n; ++p) sum += (a[p] = state.variable(static_cast<Index>(p), e));
        const std::span<const double> own(a.data(), n);
        for (std::size_t p = 0; p < n; ++p) {
            const double undo = machine.bound == Bound::simplex ? sum : a[p];
            shortfall[p] = gradient[p] + problem.ridge(e) * undo;  // t - margin
            linear += components[p].target * a[p];
            norm += (components[p].target - shortfall[p]) * a[p];  // sum a m(F) = |w|^2
        }
        if (problem.loss() == Loss::squared_hinge) penalty += squared_penalty(machine.bound, own, problem.C(e));
        loss += primal_loss(machine.bound, problem.loss(), {shortfall.data(), n}, problem.C(e));
        const double v = certain_violation(machine.bound, {gradient.data(), n}, own, problem.cap(e));
        summary.violation = std::max(summary.violation, v);
        if (sum > 0.0) ++summary.n_support;
    }
    summary.dual = linear - 0.5 * norm - penalty;
    summary.primal = 0.5 * norm + loss;
    return summary;
}

Census census_of(const Problem& problem, const FullState& state) {
    Census census{problem.size(), 0};
    for (Index e = 0; e < problem.size(); ++e) {
        const Index n = static_cast<Index>(problem.machine().of(problem.class_of(e)).size());
        census.variables += n;
        for (Index p = 0; p < n; ++p) census.count(state.variable(p, e), problem.cap(e));
    }
    return census;
}

void make_feasible(const Problem& problem, FullState& state) {
    const Machine& machine = problem.machine();
    for (Index e = 0; e < problem.size(); ++e) {
        const Index n = static_cast<Index>(machine.of(problem.class_of(e)).size());
        const double cap = problem.cap(e);
        double sum = 0.0;
        for (Index p = 0; p < machine.max_components(); ++p) {
            double& a = state.variable(p, e);
            a = p < n ? std::clamp(a, 0.0, cap) : 0.0;
            if (a <= problem.negligible(e)) a = 0.0;
            if (cap < infinity && a >= (1.0 - bound_tolerance) * cap) a = cap;
            sum += a;
        }
        if (machine.bound == Bound::simplex && sum > cap) {
            for (Index p = 0; p < n; ++p) state.variable(p, e) *= cap / sum;
        }
    }
}

double coefficient_mass(const Problem& problem, const FullState& state) {
    const Machine& machine = problem.machine();
    std::vector<double> mass(unsigned_index(machine.n_classes), 0.0);
    for (Index e = 0; e < problem.size(); ++e) {
        const auto& components = machine.of(problem.class_of(e));
        for (std::size_t p = 0; p < components.size(); ++p) {
            const Component& c = components[p];
            const double a = state.variable(static_cast<Index>(p), e);
            mass[unsigned_index(c.class1)] += std::abs(c.value1) * a;
            if (c.class2 >= 0) mass[unsigned_index(c.class2)] += std::abs(c.value2) * a;
        }
    }
    return *std::max_element(mass.begin(), mass.end());
}

bool float32_too_coarse(const Problem& problem, const FullState& state, double tol) {
    if (!problem.source().fits_float32()) return true;
    double largest = 0.0;
    for (Index e = 0; e < problem.size(); ++e) largest = std::max(largest, problem.diagonal(e));
    return 1e-8 * largest * coefficient_mass(problem, state) > 0.25 * tol;
}

bool refresh_scores(const Problem& problem, FullState& state, ThreadTeam& team, Monitor* monitor,
                    const KernelColumns<double>* columns) {
    const std::vector<Index> all = first_indices(problem.size());
    const auto all_of_it = [&](Index e, Index p) { return state.variable(p, e); };
    return refresh_scores(problem, state, changed_coefficients(problem, all, all_of_it), team, monitor, columns);
}

bool refresh_scores(const Problem& problem, FullState& state, const Coefficients& beta, ThreadTeam& team,
                    Monitor* monitor, const KernelColumns<double>* columns) {
    AlignedVector<double> scores(state.scores.size(), 0.0);
    std::unique_ptr<KernelColumns<double>> made;
    if (columns == nullptr) {
        made = problem.source().columns<double>(problem.source_rows(first_indices(problem.size())));
        columns = made.get();
    }
    if (!add_scores(*columns, beta, scores.data(), state.ld, team, monitor)) return false;
    state.scores = std::move(scores);
    state.scores_current = true;
    return true;
}

}  // namespace multimargin
