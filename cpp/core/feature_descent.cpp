#include "feature_descent.hpp"

#include <algorithm>
#include <cmath>

#include "rng.hpp"

namespace multimargin {

namespace {

constexpr Index group_size = 8;         // examples that share one pass over W
constexpr Index most_rank = 512;        // of G: a step costs the rank times the classes
constexpr double relative_rest = 1e-3;  // of the kernel's diagonal that G G' may leave
constexpr Index fast_sweeps = 40;       // with momentum, ...
constexpr Index plain_sweeps = 10;      // ... and without it, from one look to the next
constexpr double most_momentum = 0.9;
constexpr double visit_share = 0.05;  // examples that violate by less of the last sweep's largest are passed over
constexpr Index patience = 6;         // looks without a new best violation

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
      amounts_(unsigned_index(problem.size() * machine_.max_components())),
      gradient_(unsigned_index(machine_.max_components())),
      own_scores_(unsigned_index(machine_.n_classes)),
      before_(unsigned_index(machine_.n_classes)) {
    for (const auto& components : machine_.components) {
        private_square_.emplace_back();
        weight_.emplace_back();
        for (const Component& c : components) {
            private_square_.back().push_back(c.private_square);
            weight_.back().push_back(c.weight);
        }
    }
    for (Index e = 0; e < problem.size(); ++e) {
        for (Index p = 0; p < machine_.max_components(); ++p) amounts_of(e)[p] = state.amount(p, e);
    }
    earlier_ = amounts_;
}

void FeatureDescent::scatter() {
    for (Index e = 0; e < problem_.size(); ++e) {
        for (Index p = 0; p < machine_.max_components(); ++p) state_.amount(p, e) = amounts_of(e)[p];
    }
}

Outcome FeatureDescent::run(double target, Index max_iterations) {
    if (!prepare()) return monitor_.stopped() ? Outcome::stopped : Outcome::stuck;
    double best = infinity, dual = -infinity;
    for (Index waited = 0; waited < patience; ++waited) {
        if (!look()) return Outcome::stopped;
        if (tally_.violation <= target) return Outcome::satisfied;
        if (!(tally_.dual > dual)) return Outcome::stuck;  // what G G' leaves out matters too much
        dual = tally_.dual;
        if (max_iterations >= 0 && tally_.iterations >= max_iterations) return Outcome::out_of_steps;
        if (tally_.violation < 0.95 * best) {
            best = tally_.violation;
            waited = -1;
        }
        const bool complete = run_phase(max_iterations);
        scatter();
        state_.columns_current = false;
        if (!complete) return Outcome::stopped;
    }
    return Outcome::stuck;
}

bool FeatureDescent::prepare() {
    const PhaseTimer timer(tally_.phases.kernel);
    double largest = 0.0;
    for (Index e = 0; e < problem_.size(); ++e) largest = std::max(largest, problem_.diagonal(e));
    const Index limit = std::min(most_rank, problem_.size() / 4);
    kernel_ = approximate_kernel(problem_, relative_rest * largest, limit, monitor_);
    if (kernel_.rank == 0) return false;
    for (AlignedVector<float>* matrix : {&z_, &rest_}) matrix->assign(checked_product(problem_.size(), width_), 0.0F);
    weights_.resize(checked_product(kernel_.ld, width_));
    rows_.resize(checked_product(group_size, kernel_.ld));
    scores_.resize(checked_product(group_size, width_));
    changes_.resize(scores_.size());
    return true;
}

// beta_i = Pi nu' a_i
void FeatureDescent::coefficients_of(Index e, float* z) const {
    const auto& components = machine_.of(problem_.class_of(e));
    const double* a = amounts_of(e);
    double total = 0.0;
    std::fill_n(z, machine_.n_classes, 0.0F);
    for (std::size_t p = 0; p < components.size(); ++p) {
        const Component& c = components[p];
        z[c.class1] += static_cast<float>(a[p] * c.value1);
        if (c.class2 >= 0) z[c.class2] += static_cast<float>(a[p] * c.value2);
        total += a[p] * c.row_sum();
    }
    if (!machine_.sum_to_zero) return;
    const float mean = static_cast<float>(total / static_cast<double>(machine_.n_classes));
    for (Index c = 0; c < machine_.n_classes; ++c) z[c] -= mean;
}

// W += G' changes
void FeatureDescent::add_to_weights(const float* rows, const float* changes, Index count) {
    const Index r = kernel_.ld;
    simd::best_table().multiply({rows, 1, r, changes, width_, weights_.data(), width_, r, width_, count});
}

bool FeatureDescent::look() {
    {
        const PhaseTimer timer(tally_.phases.check);
        if (!state_.columns_current && !refresh_columns(problem_, state_, team_, &monitor_)) return false;
    }
    const PhaseTimer timer(tally_.phases.inner);
    const Summary summary = summarize(problem_, state_);
    tally_.violation = largest_ = summary.violation;
    tally_.dual = summary.dual;
    tally_.primal = summary.primal;
    tally_.n_support = summary.n_support;
    const Index n = problem_.size(), r = kernel_.ld;
    for (Index e = 0; e < n; ++e) coefficients_of(e, z_.data() + e * width_);
    std::fill(weights_.begin(), weights_.end(), 0.0F);
    add_to_weights(kernel_.rows.data(), z_.data(), n);
    std::fill(rest_.begin(), rest_.end(), 0.0F);
    simd::best_table().multiply(
        {kernel_.rows.data(), r, 1, weights_.data(), width_, rest_.data(), width_, n, width_, r});
    for (Index e = 0; e < n; ++e) {
        const double mean = machine_.sum_to_zero ? state_.column(machine_.n_classes, e) : 0.0;
        for (Index c = 0; c < machine_.n_classes; ++c) {
            const std::size_t at = unsigned_index(e * width_ + c);
            const double known =
                static_cast<double>(rest_[at]) + static_cast<double>(kernel_.rest[unsigned_index(e)] * z_[at]);
            rest_[at] = static_cast<float>(state_.column(c, e) - mean - known);
        }
    }
    return true;
}

bool FeatureDescent::run_phase(Index max_iterations) {
    const PhaseTimer timer(tally_.phases.inner);
    double age = 1.0;
    earlier_ = amounts_;
    for (Index s = 0; s < fast_sweeps + plain_sweeps; ++s) {
        if (max_iterations >= 0 && tally_.iterations >= max_iterations) break;
        sweep();
        if (monitor_.stopped()) return false;
        if (s + 1 >= fast_sweeps) continue;
        const double next = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * age * age));
        extrapolate(std::min(most_momentum, (age - 1.0) / next));
        age = next;
    }
    return true;
}

void FeatureDescent::sweep() {
    const std::vector<Index> order = random_permutation(problem_.size(), n_sweeps_++);
    double largest = 0.0;
    for (std::size_t begin = 0; begin < order.size(); begin += unsigned_index(group_size)) {
        if (monitor_.poll()) return;
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
    for (Index k = 0; k < count; ++k) {
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
    float* z = z_.data() + e * width_;
    const float own = kernel_.rest[unsigned_index(e)];
    const float* rest = rest_.data() + e * width_;
    double mean = 0.0;
    for (Index c = 0; c < machine_.n_classes; ++c) {
        mean += own_scores_[unsigned_index(c)] = static_cast<double>(scores[c] + own * z[c] + rest[c]);
    }
    mean = machine_.sum_to_zero ? mean / static_cast<double>(machine_.n_classes) : 0.0;
    double* a = amounts_of(e);
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
    const ExampleProblem example{{gradient_.data(), n}, private_square_[y], weight_[y],       machine_.sigma[y],
                                 problem_.diagonal(e),  problem_.cap(e),    problem_.ridge(e)};
    simplex ? solve_simplex_example(example, {a, n}, scratch_) : solve_box_example(example, {a, n}, scratch_);
    std::copy_n(z, machine_.n_classes, before_.begin());
    coefficients_of(e, z);
    for (Index c = 0; c < machine_.n_classes; ++c) change[c] = z[c] - before_[unsigned_index(c)];
    return violation;
}

// a <- a + factor (a - earlier a), as far as the bounds allow.
void FeatureDescent::extrapolate(double factor) {
    for (Index begin = 0; begin < problem_.size(); begin += group_size) {
        const Index count = std::min(group_size, problem_.size() - begin);
        std::fill(changes_.begin(), changes_.end(), 0.0F);
        for (Index k = 0; k < count; ++k) move_beyond(begin + k, factor, changes_.data() + k * width_);
        add_to_weights(kernel_.row(begin), changes_.data(), count);
    }
}

void FeatureDescent::move_beyond(Index e, double factor, float* change) {
    const Index n = static_cast<Index>(machine_.of(problem_.class_of(e)).size());
    const double cap = problem_.cap(e);
    const bool simplex = machine_.bound == Bound::simplex;
    double* a = amounts_of(e);
    double* earlier = earlier_.data() + e * machine_.max_components();
    double sum = 0.0, earlier_sum = 0.0, reached = 0.0;
    for (Index p = 0; p < n; ++p) {
        const double now = a[p];
        sum += now;
        earlier_sum += earlier[p];
        reached += a[p] = std::clamp(now + factor * (now - earlier[p]), 0.0, cap);
        earlier[p] = now;
    }
    if (simplex) {  // the slack is one more component; clipping has made the sum too large
        const double slack = std::max(0.0, cap - sum + factor * (earlier_sum - sum));
        const double share = cap / std::max(reached + slack, cap);
        for (Index p = 0; p < n; ++p) a[p] *= share;
    }
    float* z = z_.data() + e * width_;
    std::copy_n(z, machine_.n_classes, before_.begin());
    coefficients_of(e, z);
    for (Index c = 0; c < machine_.n_classes; ++c) change[c] = z[c] - before_[unsigned_index(c)];
}

}  // namespace multimargin
