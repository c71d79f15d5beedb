#include "binary_problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "scores.hpp"

namespace multimargin {

BinaryProblem::BinaryProblem(const KernelSource& source, std::vector<Index> rows, Index n_positive,
                             std::vector<double> C, Loss loss)
    : source_(&source), rows_(std::move(rows)), n_positive_(n_positive), C_(std::move(C)), loss_(loss) {
    if (C_.size() != rows_.size()) throw std::invalid_argument("a binary problem needs one C per example");
    if (n_positive < 1 || n_positive >= size()) throw std::invalid_argument("a binary problem needs both classes");
    for (const Index row : rows_) {
        if (row < 0 || row >= source.size()) throw std::invalid_argument("a row that the kernel does not know");
    }
    for (const double C_i : C_) {
        if (!(C_i > 0.0)) throw std::invalid_argument("every C must be positive");
    }
    diagonal_.reserve(rows_.size());
    for (Index e = 0; e < size(); ++e) {
        diagonal_.push_back(source.diagonal(row(e)) + ridge(e));
        largest_diagonal_ = std::max(largest_diagonal_, diagonal_.back());
    }
}

void ExactPoint::remember(const BinaryProblem& problem, const BinaryState& state) {
    if (problem.source().kept_row(problem.row(0)) == nullptr || problem.source().size() != problem.size()) return;
    amounts_ = state.amounts;
    scores_ = state.scores;
}

bool ExactPoint::update(const BinaryProblem& problem, BinaryState& state) const {
    if (amounts_.empty()) return false;
    Index n_changed = 0, n_support = 0;
    for (std::size_t e = 0; e < amounts_.size(); ++e) {
        n_changed += state.amounts[e] != amounts_[e] ? 1 : 0;
        n_support += state.amounts[e] != 0.0 ? 1 : 0;
    }
    if (n_changed >= n_support) return false;
    state.scores = scores_;
    for (Index e = 0; e < problem.size(); ++e) {
        const double change = problem.sign(e) * (state.amounts[unsigned_index(e)] - amounts_[unsigned_index(e)]);
        if (change == 0.0) continue;
        add_row(change, problem.source().kept_row(problem.row(e)), state.scores.data(), problem.size());
        state.scores[unsigned_index(e)] += problem.ridge(e) * change;
    }
    return true;
}

BinaryInterval interval_of(const BinaryProblem& problem, const BinaryState& state) {
    BinaryInterval interval;
    for (Index e = 0; e < problem.size(); ++e) {
        const double a = state.amounts[unsigned_index(e)], score = state.scores[unsigned_index(e)];
        if (problem.may_rise(e, a)) interval.lowest_up = std::min(interval.lowest_up, score);
        if (problem.may_fall(e, a)) interval.largest_low = std::max(interval.largest_low, score);
    }
    return interval;
}

BinarySummary summarize(const BinaryProblem& problem, const BinaryState& state) {
    BinarySummary summary;
    const BinaryInterval interval = interval_of(problem, state);
    summary.violation = interval.violation();
    double sum = 0.0;
    Index n_free = 0;
    for (Index e = 0; e < problem.size(); ++e) {
        const double a = state.amounts[unsigned_index(e)];
        if (!(a > 0.0 && a < problem.cap(e))) continue;
        sum += state.scores[unsigned_index(e)];
        ++n_free;
    }
    // Finite: with the equality kept, each set has a member.
    summary.bias = -(n_free > 0 ? sum / static_cast<double>(n_free) : (interval.lowest_up + interval.largest_low) / 2);
    double norm = 0.0, linear = 0.0, ridge = 0.0, charge = 0.0;
    for (Index e = 0; e < problem.size(); ++e) {
        const double a = state.amounts[unsigned_index(e)], y = problem.sign(e);
        const double f = state.scores[unsigned_index(e)] + y - problem.ridge(e) * y * a;
        const double shortfall = problem.charge(1.0 - y * (f + summary.bias));
        if (shortfall > 0.0 && problem.penalty(e) < infinity) charge += problem.penalty(e) * shortfall;
        if (a == 0.0) continue;
        ++summary.n_support;
        norm += a * y * f;
        linear += a;
        ridge += problem.ridge(e) * a * a;
    }
    summary.dual = linear - 0.5 * norm - 0.5 * ridge;
    summary.primal = 0.5 * norm + charge;
    // Comparisons pass over scores that are not numbers (kernel values that overflow); such a point is no solution.
    if (!std::isfinite(summary.dual)) summary.violation = infinity;
    return summary;
}

Census census_of(const BinaryProblem& problem, const BinaryState& state) {
    Census census{problem.size(), problem.size()};
    for (Index e = 0; e < problem.size(); ++e) census.count(state.amounts[unsigned_index(e)], problem.cap(e));
    return census;
}

bool make_feasible(const BinaryProblem& problem, BinaryState& state) {
    double sums[2] = {0.0, 0.0};
    bool changed = false;
    for (Index e = 0; e < problem.size(); ++e) {
        double& a = state.amounts[unsigned_index(e)];
        const double before = std::exchange(a, std::clamp(a, 0.0, problem.cap(e)));
        changed = changed || a != before;
        sums[e < problem.n_positive() ? 0 : 1] += a;
    }
    const bool first_heavier = sums[0] > sums[1];
    const double heavy = std::max(sums[0], sums[1]), light = std::min(sums[0], sums[1]);
    // Rounding: taking it off would move variables off their upper bounds, and all would have to find back.
    constexpr double rounding = 1e-12;
    if (heavy - light <= rounding * heavy) return changed;
    const Index begin = first_heavier ? 0 : problem.n_positive();
    const Index end = first_heavier ? problem.n_positive() : problem.size();
    for (Index e = begin; e < end; ++e) state.amounts[unsigned_index(e)] *= light / heavy;
    return true;
}

double coefficient_mass(const BinaryState& state) {
    return std::accumulate(state.amounts.begin(), state.amounts.end(), 0.0);
}

bool float32_too_coarse(const BinaryProblem& problem, const BinaryState& state, double tol) {
    double largest = 0.0;
    for (Index e = 0; e < problem.size(); ++e) {
        if (state.amounts[unsigned_index(e)] > 0.0) largest = std::max(largest, problem.diagonal(e) - problem.ridge(e));
    }
    return 1e-8 * largest * coefficient_mass(state) > 0.25 * tol;
}

bool refresh_scores(const BinaryProblem& problem, BinaryState& state, std::span<const Index> examples, ThreadTeam& team,
                    Monitor& monitor) {
    std::vector<Index> columns;
    columns.reserve(examples.size());
    for (const Index e : examples) columns.push_back(problem.row(e));
    Coefficients coefficients(1);
    for (Index e = 0; e < problem.size(); ++e) {
        const double beta = problem.sign(e) * state.amounts[unsigned_index(e)];
        if (beta != 0.0) coefficients.add_row(problem.row(e), {&beta, 1});
    }
    const auto prepared = problem.source().columns<double>(columns);
    const Index ld = prepared->n_panels() * simd::panel_width;
    AlignedVector<double> f(unsigned_index(ld), 0.0);
    if (!add_scores(*prepared, coefficients, f.data(), ld, team, &monitor)) return false;
    for (std::size_t k = 0; k < examples.size(); ++k) {
        const Index e = examples[k];
        const double y = problem.sign(e);
        state.scores[unsigned_index(e)] = f[k] - y + problem.ridge(e) * y * state.amounts[unsigned_index(e)];
    }
    return true;
}

}  // namespace multimargin
