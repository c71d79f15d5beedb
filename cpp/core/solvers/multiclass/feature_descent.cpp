#include "solvers/multiclass/feature_descent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.hpp"

namespace multimargin {

namespace {

constexpr Index group_size = 8;         // examples that share one pass over W
constexpr Index most_rank = 512;        // of G: a step costs the rank times the classes
constexpr double relative_rest = 1e-3;  // of the kernel's diagonal that G G' may leave
constexpr Index fast_sweeps = 40;       // with momentum, ...
constexpr Index plain_sweeps = 10;      // ... and without it, from one check to the next
constexpr Index sweeps_a_report = 10;   // of the dual, for progress
constexpr double most_momentum = 0.9;
constexpr double most_bytes = 4e8;    // of G and of its columns in float64 while it is made
constexpr double well_below = 0.5;    // of the target: a sweep that meets no more ends the phase
constexpr double visit_share = 0.05;  // examples that violate by less of the last sweep's largest are passed over
constexpr Index patience = 6;         // checks without a new best violation

}  // namespace

FeatureDescent::FeatureDescent(const Problem& problem, FullState& state, Monitor& monitor, Tally& tally,
                               ThreadTeam& team)
    : problem_(problem),
      machine_(problem.machine()),
      state_(state),
      monitor_(monitor),
      tally_(tally),
      team_(team),
      width_(round_up(machine_.n_classes, 16)),
      variables_(checked_product(problem.size(), machine_.max_components())),
      gradient_(unsigned_index(machine_.max_components())),
      own_scores_(unsigned_index(machine_.n_classes)),
      before_(unsigned_index(machine_.n_scores())),
      after_(before_.size()) {
    gather();
}

void FeatureDescent::gather() {
    for (Index e = 0; e < problem_.size(); ++e) {
        for (Index p = 0; p < machine_.max_components(); ++p) variables_of(e)[p] = state_.variable(p, e);
    }
}

void FeatureDescent::scatter() {
    for (Index e = 0; e < problem_.size(); ++e) {
        for (Index p = 0; p < machine_.max_components(); ++p) state_.variable(p, e) = variables_of(e)[p];
    }
}

Outcome FeatureDescent::run(double target, Index max_iterations) {
    limit_ = max_iterations >= 0 ? max_iterations : std::numeric_limits<Index>::max();
    tally_.n_active = problem_.size();
    if (!prepare()) return monitor_.stopped() ? Outcome::stopped : Outcome::stuck;
    FullState best = state_;
    double best_dual = -infinity, least = infinity;
    for (Index waited = 0; confirm();) {
        if (tally_.violation <= target) return Outcome::satisfied;
        if (!(tally_.dual > best_dual)) {  // what G G' leaves out matters too much
            state_ = std::move(best);
            gather();
            tally_.note(summarize(problem_, state_));
            return Outcome::stuck;
        }
        best = state_;
        best_dual = tally_.dual;
        waited = tally_.violation < 0.95 * least ? 0 : waited + 1;
        least = std::min(least, tally_.violation);
        if (out_of_steps()) return Outcome::out_of_steps;
        if (waited == patience) return Outcome::stuck;
        const bool complete = run_phase(target);
        tally_.dual = dual_base_ + potential();  // of the state that is left if the check is stopped
        scatter();
        state_.scores_current = false;
        if (!complete) return Outcome::stopped;
    }
    return Outcome::stopped;
}

bool FeatureDescent::prepare() {
    const PhaseTimer timer(tally_.phases.kernel);
    const Index n = problem_.size();
    double largest = 0.0;
    for (Index e = 0; e < n; ++e) largest = std::max(largest, problem_.diagonal(e));
    const double bytes_a_column = static_cast<double>(n) * (sizeof(float) + sizeof(double));
    const Index limit = std::min({most_rank, n / 4, static_cast<Index>(most_bytes / bytes_a_column)});
    kernel_ = approximate_kernel(problem_, relative_rest * largest, limit, monitor_);
    if (kernel_.rank == 0) return false;
    base_.resize(checked_product(n, machine_.n_classes));
    weights_.resize(checked_product(kernel_.ld, width_));
    rows_.resize(checked_product(group_size, kernel_.ld));
    scores_.resize(checked_product(group_size, width_));
    changes_.resize(scores_.size());
    return true;
}

// beta_i = Pi nu' a_i, and its mean behind it where that is taken off.
void FeatureDescent::coefficients_of(Index e, std::vector<double>& beta) const {
    const auto& components = machine_.of(problem_.class_of(e));
    const double* a = variables_of(e);
    std::fill(beta.begin(), beta.end(), 0.0);
    for (std::size_t p = 0; p < components.size(); ++p) {
        if (a[p] != 0.0) machine_.add_to_coefficients(components[p], a[p], beta.data());
    }
    if (!machine_.sum_to_zero) return;
    for (Index c = 0; c < machine_.n_classes; ++c) beta[unsigned_index(c)] -= beta.back();
}

// Of beta, against what it was in before_.
void FeatureDescent::change_of(Index e, float* change) {
    coefficients_of(e, after_);
    for (std::size_t c = 0; c < own_scores_.size(); ++c) change[c] = static_cast<float>(after_[c] - before_[c]);
}

// W += G' changes
void FeatureDescent::add_to_weights(const float* rows, const float* changes, Index count) {
    const Index r = kernel_.ld;
    simd::best_table().multiply({rows, 1, r, changes, width_, weights_.data(), width_, r, width_, count});
}

bool FeatureDescent::confirm() {
    {
        const PhaseTimer timer(tally_.phases.check);
        if (!state_.scores_current && !refresh_scores(problem_, state_, team_, &monitor_)) return false;
    }
    const PhaseTimer timer(tally_.phases.inner);
    tally_.note(summarize(problem_, state_));
    tally_.record([this] { return census_of(problem_, state_); });
    largest_ = tally_.violation;
    std::fill(weights_.begin(), weights_.end(), 0.0F);
    for (Index e = 0; e < problem_.size(); ++e) {
        coefficients_of(e, before_);
        const double own = static_cast<double>(kernel_.rest[unsigned_index(e)]);
        const double mean = machine_.sum_to_zero ? state_.score(machine_.n_classes, e) : 0.0;
        float* base = base_.data() + e * machine_.n_classes;
        for (Index c = 0; c < machine_.n_classes; ++c) {
            base[c] = static_cast<float>(state_.score(c, e) - mean - own * before_[unsigned_index(c)]);
        }
    }
    dual_base_ = tally_.dual - potential();
    return true;
}

// sum t a - penalty(a) - 1/2 |W|^2 - sum_i (base_i + 1/2 R_ii beta_i)' beta_i: its gradient is that of the steps.
double FeatureDescent::potential() {
    double value = 0.0;
    for (const float w : weights_) value -= 0.5 * static_cast<double>(w) * static_cast<double>(w);
    for (Index e = 0; e < problem_.size(); ++e) {
        const auto& components = machine_.of(problem_.class_of(e));
        const double* a = variables_of(e);
        double sum = 0.0, squares = 0.0;
        for (std::size_t p = 0; p < components.size(); ++p) {
            value += components[p].target * a[p];
            sum += a[p];
            squares += a[p] * a[p];
        }
        value -= 0.5 * problem_.ridge(e) * (machine_.bound == Bound::simplex ? sum * sum : squares);
        coefficients_of(e, after_);
        const double own = static_cast<double>(kernel_.rest[unsigned_index(e)]);
        const float* base = base_.data() + e * machine_.n_classes;
        for (std::size_t c = 0; c < own_scores_.size(); ++c) {
            value -= (static_cast<double>(base[c]) + 0.5 * own * after_[c]) * after_[c];
        }
    }
    return value;
}

bool FeatureDescent::run_phase(double target) {
    const PhaseTimer timer(tally_.phases.inner);
    double age = 1.0;
    earlier_ = variables_;
    for (Index s = 0; s < fast_sweeps + plain_sweeps; ++s) {
        sweep();
        if (s % sweeps_a_report == 0) tally_.dual = dual_base_ + potential();
        if (monitor_.stopped()) return false;
        if (out_of_steps() || largest_ <= well_below * target) return true;
        if (s + 1 >= fast_sweeps) continue;
        const double next = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * age * age));
        extrapolate(std::min(most_momentum, (age - 1.0) / next));
        age = next;
    }
    return true;
}

// All examples in an order that is new each time.
void FeatureDescent::sweep() {
    ++tally_.phases.feature_sweeps;
    const std::vector<Index> order = random_permutation(problem_.size(), n_sweeps_++);
    double largest = 0.0;
    for (std::size_t begin = 0; begin < order.size(); begin += unsigned_index(group_size)) {
        if (monitor_.poll() || out_of_steps()) return;
        const std::size_t count = std::min(unsigned_index(group_size), order.size() - begin);
        largest = std::max(largest, step_group({order.data() + begin, count}));
    }
    tally_.violation = largest_ = largest;
}

// The scores of all of them from one pass over W; a step changes those of the later ones by the kernel value of both.
double FeatureDescent::step_group(std::span<const Index> examples) {
    const simd::Table& table = simd::best_table();
    const Index r = kernel_.ld, count = static_cast<Index>(examples.size());
    for (Index k = 0; k < count; ++k) std::copy_n(kernel_.row(examples[unsigned_index(k)]), r, rows_.data() + k * r);
    std::fill(scores_.begin(), scores_.end(), 0.0F);
    std::fill(changes_.begin(), changes_.end(), 0.0F);
    table.multiply({rows_.data(), r, 1, weights_.data(), width_, scores_.data(), width_, count, width_, r});
    double largest = 0.0;
    bool any = false;
    for (Index k = 0; k < count && !out_of_steps(); ++k) {
        float* change = changes_.data() + k * width_;
        const double violation = step_example(examples[unsigned_index(k)], scores_.data() + k * width_, change);
        largest = std::max(largest, violation);
        if (violation < visit_share * largest_) continue;
        any = true;
        ++tally_.iterations;
        for (Index j = k + 1; j < count; ++j) {
            const float value = static_cast<float>(table.dot_f32(rows_.data() + k * r, rows_.data() + j * r, r));
            float* later = scores_.data() + j * width_;
            for (Index c = 0; c < width_; ++c) later[c] += value * change[c];
        }
    }
    if (any) add_to_weights(rows_.data(), changes_.data(), count);
    return largest;
}

// The example's violation; unless that is small its exact step, and what it changes in beta.
double FeatureDescent::step_example(Index e, const float* scores, float* change) {
    const auto& components = machine_.of(problem_.class_of(e));
    const std::size_t y = unsigned_index(problem_.class_of(e)), n = components.size();
    const double own = static_cast<double>(kernel_.rest[unsigned_index(e)]);
    const float* base = base_.data() + e * machine_.n_classes;
    coefficients_of(e, before_);
    double mean = 0.0;
    for (std::size_t c = 0; c < own_scores_.size(); ++c) {
        mean += own_scores_[c] = static_cast<double>(base[c] + scores[c]) + own * before_[c];
    }
    mean = machine_.sum_to_zero ? mean / static_cast<double>(machine_.n_classes) : 0.0;
    double* a = variables_of(e);
    const bool simplex = machine_.bound == Bound::simplex;
    double sum = 0.0;
    for (std::size_t p = 0; p < n; ++p) sum += a[p];
    for (std::size_t p = 0; p < n; ++p) {
        const Component& c = components[p];
        gradient_[p] =
            c.target - c.margin(own_scores_.data()) + c.row_sum() * mean - problem_.ridge(e) * (simplex ? sum : a[p]);
    }
    const double violation = example_violation(machine_.bound, {gradient_.data(), n}, {a, n}, problem_.cap(e));
    if (violation < visit_share * largest_) return violation;
    const ExampleTerms& terms = machine_.terms_of(problem_.class_of(e));
    const ExampleProblem example{{gradient_.data(), n}, terms.private_square, terms.weight,      machine_.sigma[y],
                                 problem_.diagonal(e),  problem_.cap(e),      problem_.ridge(e), terms.uniform};
    simplex ? solve_simplex_example(example, {a, n}, scratch_) : solve_box_example(example, {a, n}, scratch_);
    change_of(e, change);
    return violation;
}

// a <- a + factor (a - earlier a), as far as the bounds allow. Stopped halfway, W belongs to what a is then.
void FeatureDescent::extrapolate(double factor) {
    for (Index begin = 0; begin < problem_.size() && !monitor_.poll(); begin += group_size) {
        const Index count = std::min(group_size, problem_.size() - begin);
        std::fill(changes_.begin(), changes_.end(), 0.0F);
        for (Index k = 0; k < count; ++k) move_beyond(begin + k, factor, changes_.data() + k * width_);
        add_to_weights(kernel_.row(begin), changes_.data(), count);
    }
}

void FeatureDescent::move_beyond(Index e, double factor, float* change) {
    coefficients_of(e, before_);
    double* a = variables_of(e);
    double* earlier = earlier_.data() + e * machine_.max_components();
    double sum = 0.0, earlier_sum = 0.0;
    for (std::size_t p = 0; p < machine_.of(problem_.class_of(e)).size(); ++p) {
        const double now = a[p];
        sum += now;
        earlier_sum += earlier[p];
        a[p] = now + factor * (now - earlier[p]);
        earlier[p] = now;
    }
    keep_within_bounds(e, problem_.cap(e) - sum + factor * (earlier_sum - sum));
    change_of(e, change);
}

// Clips each variable. In a simplex the slack is one more of them, and clipping makes their sum too large.
void FeatureDescent::keep_within_bounds(Index e, double slack) {
    const std::span<double> a(variables_of(e), machine_.of(problem_.class_of(e)).size());
    const double cap = problem_.cap(e), negligible = problem_.negligible(e);
    double sum = 0.0;
    for (double& value : a) {
        if (value <= negligible) value = 0.0;
        if (value >= (1.0 - bound_tolerance) * cap) value = cap;
        sum += value;
    }
    if (machine_.bound == Bound::box || !(cap < infinity)) return;
    const double share = cap / std::max(sum + std::max(0.0, slack), cap);
    for (double& value : a) value *= share;
}

}  // namespace multimargin
