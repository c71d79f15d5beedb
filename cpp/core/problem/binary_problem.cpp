#include "problem/binary_problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/memory.hpp"
#include "base/unrolled.hpp"
#include "kernel/score_pass.hpp"

namespace multimargin {

BinaryProblem::BinaryProblem(const KernelSource& source, std::vector<Index> rows, Index n_positive,
                             std::vector<double> C, Loss loss)
    : source_(&source), rows_(std::move(rows)), n_positive_(n_positive), C_(std::move(C)), loss_(loss) {
    if (n_positive < 1 || n_positive >= size()) throw std::invalid_argument("a binary problem needs both classes");
    check();
}

BinaryProblem::BinaryProblem(const KernelSource& source, std::vector<Index> rows, Index n_positive,
                             std::vector<double> C, Loss loss, std::vector<double> targets, double sum)
    : source_(&source),
      rows_(std::move(rows)),
      n_positive_(n_positive),
      targets_(std::move(targets)),
      sum_(sum),
      C_(std::move(C)),
      loss_(loss) {
    if (n_positive < 0 || n_positive > size() || size() == 0) {
        throw std::invalid_argument("the number of positive examples is between 0 and that of all");
    }
    if (targets_.size() != rows_.size()) throw std::invalid_argument("a binary problem needs one target per example");
    check();
    double least = 0.0, most = 0.0;
    for (Index e = 0; e < size(); ++e) (e < n_positive_ ? most : least) += e < n_positive_ ? cap(e) : -cap(e);
    if (!(sum >= least && sum <= most)) throw std::invalid_argument("no variables within the bounds have this sum");
}

void BinaryProblem::check() {
    if (C_.size() != rows_.size()) throw std::invalid_argument("a binary problem needs one C per example");
    for (const Index row : rows_) {
        if (row < 0 || row >= source_->size()) throw std::invalid_argument("a row that the kernel does not know");
    }
    for (const double C_i : C_) {
        if (!(C_i > 0.0)) throw std::invalid_argument("every C must be positive");
    }
    diagonal_.reserve(rows_.size());
    for (Index e = 0; e < size(); ++e) {
        diagonal_.push_back(source_->diagonal(row(e)) + ridge(e));
        largest_diagonal_ = std::max(largest_diagonal_, diagonal_.back());
    }
}

BinaryProblem BinaryProblem::part(std::span<const Index> examples) const {
    BinaryProblem part(*this);
    part.rows_.clear();
    part.C_.clear();
    part.diagonal_.clear();
    part.targets_.clear();
    part.n_positive_ = 0;
    for (const Index e : examples) {
        if (e < 0 || e >= size()) throw std::invalid_argument("an example that the problem does not have");
        part.rows_.push_back(row(e));
        part.C_.push_back(C(e));
        part.diagonal_.push_back(diagonal(e));
        if (!targets_.empty()) part.targets_.push_back(target(e));
        part.n_positive_ += e < n_positive_ ? 1 : 0;
    }
    return part;
}

void ExactPoint::remember(const BinaryProblem& problem, const BinaryState& state) {
    if (problem.source().kept_row(problem.row(0)) == nullptr || problem.source().size() != problem.size()) return;
    variables_ = state.variables;
    errors_ = state.errors;
}

bool ExactPoint::update(const BinaryProblem& problem, BinaryState& state) const {
    if (variables_.empty()) return false;
    Index n_changed = 0, n_support = 0;
    for (std::size_t e = 0; e < variables_.size(); ++e) {
        n_changed += state.variables[e] != variables_[e] ? 1 : 0;
        n_support += state.variables[e] != 0.0 ? 1 : 0;
    }
    if (n_changed >= n_support) return false;
    state.errors = errors_;
    for (Index e = 0; e < problem.size(); ++e) {
        const double change = problem.sign(e) * (state.variables[unsigned_index(e)] - variables_[unsigned_index(e)]);
        if (change == 0.0) continue;
        add_row(change, problem.source().kept_row(problem.row(e)), state.errors.data(), problem.size());
        state.errors[unsigned_index(e)] += problem.ridge(e) * change;
    }
    return true;
}

namespace {

// Of the examples begin to end: the lowest and the largest E of those above 0, and of those below their bounds.
// Selects instead of branches, which would be mispredicted.
struct Extremes {
    double lowest_above[n_lanes], largest_above[n_lanes], lowest_below[n_lanes], largest_below[n_lanes];
};

Extremes extremes_of(const BinaryProblem& problem, const BinaryState& state, Index begin, Index end) {
    Extremes found;
    for (std::size_t k = 0; k < n_lanes; ++k) {
        found.lowest_above[k] = found.lowest_below[k] = infinity;
        found.largest_above[k] = found.largest_below[k] = -infinity;
    }
    by_lanes(unsigned_index(end - begin), [&](std::size_t k, std::size_t p) {
        const std::size_t e = unsigned_index(begin) + p;
        const double a = state.variables[e], error = state.errors[e];
        const bool above = a > 0.0, below = a < problem.cap(static_cast<Index>(e));
        found.lowest_above[k] = std::min(found.lowest_above[k], above ? error : infinity);
        found.largest_above[k] = std::max(found.largest_above[k], above ? error : -infinity);
        found.lowest_below[k] = std::min(found.lowest_below[k], below ? error : infinity);
        found.largest_below[k] = std::max(found.largest_below[k], below ? error : -infinity);
    });
    return found;
}

// The mean of E over the free variables; the middle of the interval where there are none.
double middle_of(const BinaryProblem& problem, const BinaryState& state, const BinaryInterval& interval) {
    double sum[n_lanes] = {}, n_free[n_lanes] = {};
    by_lanes(state.variables.size(), [&](std::size_t k, std::size_t e) {
        const double a = state.variables[e];
        const bool free = (a > 0.0) & (a < problem.cap(static_cast<Index>(e)));
        sum[k] += free ? state.errors[e] : 0.0;
        n_free[k] += free ? 1.0 : 0.0;
    });
    const double n = total_of(n_free);
    // Finite: with the equality kept, each set has a member.
    return n > 0.0 ? total_of(sum) / n : (interval.lowest_up + interval.largest_low) / 2;
}

}  // namespace

BinaryInterval interval_of(const BinaryProblem& problem, const BinaryState& state) {
    const Extremes positive = extremes_of(problem, state, 0, problem.n_positive());
    const Extremes negative = extremes_of(problem, state, problem.n_positive(), problem.size());
    return {std::min(smallest_of(positive.lowest_below), smallest_of(negative.lowest_above)),
            std::max(largest_of(positive.largest_above), largest_of(negative.largest_below))};
}

namespace {

// What the examples of one class add to the objectives.
struct Terms {
    double norm[n_lanes] = {}, linear[n_lanes] = {}, ridge[n_lanes] = {}, charge[n_lanes] = {}, n_support[n_lanes] = {};
};

// One sign, one loss and one kind of targets at a time: nothing in the loop depends on them.
template <Loss loss, bool given_targets>
void add_terms(const BinaryProblem& problem, const BinaryState& state, double bias, bool positive, Terms& terms) {
    const std::size_t begin = unsigned_index(positive ? 0 : problem.n_positive());
    const std::size_t end = unsigned_index(positive ? problem.n_positive() : problem.size());
    const double y = positive ? 1.0 : -1.0;
    const double* targets = problem.targets();
    by_lanes(end - begin, [&](std::size_t k, std::size_t p) {
        const std::size_t e = begin + p;
        const double a = state.variables[e], C = problem.C(static_cast<Index>(e));
        const double target = given_targets ? targets[e] : y, signed_target = given_targets ? y * target : 1.0;
        const double bend = loss == Loss::hinge ? 0.0 : problem.ridge(static_cast<Index>(e)) * a;
        const double f = state.errors[e] + target - y * bend;
        const double missing = signed_target - y * (f + bias);
        const double shortfall = missing <= 0.0 ? 0.0 : missing;  // what is not a number stays so
        const double finite = C < infinity ? C : 0.0;
        terms.charge[k] += finite * (loss == Loss::hinge ? shortfall : shortfall * shortfall);
        terms.norm[k] += a != 0.0 ? a * y * f : 0.0;  // f may be infinite where nothing depends on it
        terms.linear[k] += given_targets ? signed_target * a : a;
        terms.ridge[k] += bend * a;
        terms.n_support[k] += a != 0.0 ? 1.0 : 0.0;
    });
}

template <bool given_targets>
void add_terms(const BinaryProblem& problem, const BinaryState& state, double bias, Terms& terms) {
    for (const bool positive : {true, false}) {
        const auto add = problem.loss() == Loss::hinge ? &add_terms<Loss::hinge, given_targets>
                                                       : &add_terms<Loss::squared_hinge, given_targets>;
        add(problem, state, bias, positive, terms);
    }
}

}  // namespace

BinarySummary summarize(const BinaryProblem& problem, const BinaryState& state) {
    BinarySummary summary;
    const BinaryInterval interval = interval_of(problem, state);
    summary.violation = interval.violation();
    summary.bias = -middle_of(problem, state, interval);
    Terms terms;
    const auto add = problem.targets() == nullptr ? &add_terms<false> : &add_terms<true>;
    add(problem, state, summary.bias, terms);
    const double norm = total_of(terms.norm);
    summary.n_support = static_cast<Index>(total_of(terms.n_support));
    summary.dual = total_of(terms.linear) - 0.5 * norm - 0.5 * total_of(terms.ridge);
    summary.primal = 0.5 * norm + total_of(terms.charge);
    if (problem.sum() != 0.0) summary.primal += problem.sum() * summary.bias;
    // Comparisons pass over errors that are not numbers (kernel values that overflow); such a point is no solution.
    if (!std::isfinite(summary.dual) || !std::isfinite(summary.primal)) summary.violation = infinity;
    return summary;
}

Census census_of(const BinaryProblem& problem, const BinaryState& state) {
    Census census{problem.size(), problem.size()};
    for (Index e = 0; e < problem.size(); ++e) census.count(state.variables[unsigned_index(e)], problem.cap(e));
    return census;
}

namespace {

// Moves variables towards their bounds, in order, until the sum is that of the problem.
void reach_sum(const BinaryProblem& problem, BinaryState& state, double missing) {
    for (Index e = 0; e < problem.size(); ++e) {
        double& a = state.variables[unsigned_index(e)];
        const bool grows = (e < problem.n_positive()) == (missing > 0.0);
        const double moved = std::min(std::abs(missing), grows ? problem.cap(e) - a : a);
        a += grows ? moved : -moved;
        missing -= missing > 0.0 ? moved : -moved;
    }
}

}  // namespace

bool make_feasible(const BinaryProblem& problem, BinaryState& state) {
    double sums[2] = {0.0, 0.0};
    bool changed = false;
    for (Index e = 0; e < problem.size(); ++e) {
        double& a = state.variables[unsigned_index(e)];
        const double before = std::exchange(a, std::clamp(a, 0.0, problem.cap(e)));
        changed |= a != before;
        sums[e < problem.n_positive() ? 0 : 1] += a;
    }
    if (problem.sum() != 0.0) {
        const double missing = problem.sum() - (sums[0] - sums[1]);
        if (std::abs(missing) <= 1e-12 * std::max(std::abs(problem.sum()), sums[0] + sums[1])) return changed;
        reach_sum(problem, state, missing);
        return true;
    }
    const bool first_heavier = sums[0] > sums[1];
    const double heavy = std::max(sums[0], sums[1]), light = std::min(sums[0], sums[1]);
    // Rounding: removing it would move variables off their upper bounds, to which all would have to return.
    constexpr double rounding = 1e-12;
    if (heavy - light <= rounding * heavy) return changed;
    const Index begin = first_heavier ? 0 : problem.n_positive();
    const Index end = first_heavier ? problem.n_positive() : problem.size();
    for (Index e = begin; e < end; ++e) state.variables[unsigned_index(e)] *= light / heavy;
    return true;
}

double coefficient_mass(const BinaryState& state) {
    return std::accumulate(state.variables.begin(), state.variables.end(), 0.0);
}

bool float32_too_coarse(const BinaryProblem& problem, const BinaryState& state, double tol) {
    if (!problem.source().fits_float32()) return true;
    double largest = 0.0;
    for (Index e = 0; e < problem.size(); ++e) {
        if (state.variables[unsigned_index(e)] > 0.0)
            largest = std::max(largest, problem.diagonal(e) - problem.ridge(e));
    }
    return 1e-8 * largest * coefficient_mass(state) > 0.25 * tol;
}

bool refresh_errors(const BinaryProblem& problem, BinaryState& state, std::span<const Index> examples, ThreadTeam& team,
                    Monitor& monitor) {
    Coefficients coefficients(1);
    for (Index e = 0; e < problem.size(); ++e) {
        const double beta = problem.sign(e) * state.variables[unsigned_index(e)];
        if (beta != 0.0) coefficients.add_row(problem.row(e), {&beta, 1});
    }
    return refresh_errors(problem, state, examples, coefficients, team, monitor);
}

bool refresh_errors(const BinaryProblem& problem, BinaryState& state, std::span<const Index> examples,
                    const Coefficients& beta, ThreadTeam& team, Monitor& monitor) {
    std::vector<Index> columns;
    columns.reserve(examples.size());
    for (const Index e : examples) columns.push_back(problem.row(e));
    const auto prepared = problem.source().columns<double>(columns);
    const Index ld = prepared->n_panels() * simd::panel_width;
    AlignedVector<double> f(unsigned_index(ld), 0.0);
    if (!add_scores(*prepared, beta, f.data(), ld, team, &monitor)) return false;
    for (std::size_t k = 0; k < examples.size(); ++k) {
        const Index e = examples[k];
        const double y = problem.sign(e), p = problem.target(e);
        state.errors[unsigned_index(e)] = f[k] - p + problem.ridge(e) * y * state.variables[unsigned_index(e)];
    }
    return true;
}

}  // namespace multimargin
