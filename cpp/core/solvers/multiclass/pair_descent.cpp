#include "solvers/multiclass/pair_descent.hpp"

#include <algorithm>

#include "subproblem/two_variables.hpp"

namespace multimargin {

namespace {

constexpr double most_bytes = 2e8;     // of the kernel matrix
constexpr double inner_share = 0.1;    // of the violation that a pair of classes leaves
constexpr Index steps_a_variable = 4;  // within one visit

}  // namespace

bool PairDescent::fits(const Problem& problem, const Options& options) {
    const double n = static_cast<double>(problem.size());
    const Machine& machine = problem.machine();
    bool compares = machine.bound == Bound::box && !machine.sum_to_zero && problem.loss() == Loss::hinge;
    for (Index y = 0; y < machine.n_classes && compares; ++y) {
        compares = static_cast<Index>(machine.of(y).size()) == machine.n_classes - 1;
        for (const Component& c : machine.of(y)) {
            compares = compares && c.class1 == y && c.value1 == 1.0 && c.class2 >= 0 && c.value2 == -1.0;
        }
    }
    return compares && n * n * sizeof(float) <= std::min(most_bytes, options.cache_bytes);
}

PairDescent::PairDescent(const Problem& problem, FullState& state, const Options& options, Monitor& monitor,
                         Tally& tally, ThreadTeam& team)
    : problem_(problem),
      machine_(problem.machine()),
      state_(state),
      options_(options),
      monitor_(monitor),
      tally_(tally),
      team_(team) {
    const std::size_t n = unsigned_index(round_up(problem.size(), simd::panel_width));
    for (AlignedVector<double>* v : {&gradient_, &a_, &before_, &cap_, &diagonal_, &change_}) v->resize(n);
}

Outcome PairDescent::run(double target) {
    {
        const PhaseTimer timer(tally_.phases.kernel);
        const std::vector<Index> all = first_indices(problem_.size());
        kernel_ = std::make_unique<SquareKernel<float>>(problem_.source(), problem_.source_rows(all), Layout::rows,
                                                        team_, monitor_);
        if (!kernel_->filled()) return Outcome::stopped;
        tally_.cache.rows_computed += problem_.size();
    }
    const PhaseTimer timer(tally_.phases.inner);
    const Index d = machine_.n_classes;
    violations_.assign(unsigned_index(d * d), 0.0);
    for (Index c = 0; c < d; ++c) {
        for (Index e = c + 1; e < d; ++e) violations_[unsigned_index(c * d + e)] = pair_violation(c, e);
    }
    while (true) {
        const auto worst = std::max_element(violations_.begin(), violations_.end());
        tally_.violation = *worst;
        if (*worst <= target) return Outcome::satisfied;
        if (monitor_.poll()) return Outcome::stopped;
        if (options_.max_iter >= 0 && tally_.iterations >= options_.max_iter) return Outcome::out_of_steps;
        const Index place = worst - violations_.begin(), c = place / d, e = place % d;
        const double goal = std::max(0.5 * target, inner_share * *worst);
        ++tally_.phases.pair_visits;
        solve_pair(c, e, goal);
        for (Index k = 0; k < d; ++k) {
            if (k != c) violations_[unsigned_index(std::min(k, c) * d + std::max(k, c))] = pair_violation(k, c);
            if (k != e) violations_[unsigned_index(std::min(k, e) * d + std::max(k, e))] = pair_violation(k, e);
        }
    }
}

PairDescent::Side PairDescent::side(Index y, Index p) const {
    const Index begin = problem_.group_begin(y), end = problem_.group_begin(y + 1);
    const auto& components = machine_.of(y);
    Index k = 0;
    while (components[unsigned_index(k)].class2 != p) ++k;
    return {y, p, k, begin, end - begin};
}

double PairDescent::pair_violation(Index c, Index e) {
    const simd::Table& table = simd::best_table();
    double largest = 0.0;
    for (const Side& s : {side(c, e), side(e, c)}) {
        load(s, 0);
        largest = std::max(largest, table.box_violation({gradient_.data(), a_.data(), cap_.data(), s.length}));
    }
    return largest;
}

void PairDescent::load(const Side& s, Index offset) {
    const double target = machine_.of(s.y)[unsigned_index(s.component)].target;
    const double* own = state_.scores.data() + s.y * state_.ld + s.begin;
    const double* other = state_.scores.data() + s.p * state_.ld + s.begin;
    const double* a = state_.variables.data() + s.component * state_.ld + s.begin;
    for (Index t = 0; t < s.length; ++t) {
        const std::size_t i = unsigned_index(offset + t);
        gradient_[i] = target - (own[t] - other[t]);
        a_[i] = a[t];
        cap_[i] = problem_.cap(s.begin + t);
    }
    monitor_.spend(static_cast<double>(s.length));
}

void PairDescent::solve_pair(Index c, Index e, double target) {
    sides_[0] = side(c, e);
    sides_[1] = side(e, c);
    size_ = sides_[0].length + sides_[1].length;
    load(sides_[0], 0);
    load(sides_[1], sides_[0].length);
    for (Index i = 0; i < size_; ++i) diagonal_[unsigned_index(i)] = problem_.diagonal(example_of(i));
    std::copy_n(a_.begin(), size_, before_.begin());
    const Index most = steps_a_variable * size_;
    bool out = false;
    for (Index k = 0; k < most && !out && step(target); ++k) {
        ++tally_.iterations;
        out = options_.max_iter >= 0 && tally_.iterations >= options_.max_iter;
        if (k % 64 == 63 && monitor_.poll()) break;
    }
    finish(c, e);
}

// One step on the variable that violates most and, where there is one, its best partner. False when none violates.
// The variable with which a step gains most, DGI11 section 4; -1 where no pair gains.
Index PairDescent::partner_of(Index i) const {
    const simd::Table& table = simd::best_table();
    const float* values = row(example_of(i));
    const double g = gradient_[unsigned_index(i)], k = 2.0 * diagonal_[unsigned_index(i)];
    double best = 0.0;
    Index partner = -1;
    for (Index first = 0, s = 0; s < 2; first += sides_[s].length, ++s) {
        const Side& side = sides_[s];
        const double coupling = (&side == &side_of(i)) ? 2.0 : -2.0;
        const simd::GainBlock block{
            {&gradient_[unsigned_index(first)], &a_[unsigned_index(first)], &cap_[unsigned_index(first)], side.length},
            &diagonal_[unsigned_index(first)],
            nullptr,
            coupling,
            2.0,
            g,
            k};
        const double gain = table.pair_gain_f32(block, values + side.begin);
        if (!(gain > best)) continue;
        for (Index t = 0; t < side.length; ++t) {
            if (first + t == i) continue;
            const double found = simd::pair_gain_of(block, t, static_cast<double>(values[side.begin + t]));
            if (found > best) best = found, partner = first + t;
        }
    }
    return partner;
}

bool PairDescent::step(double target) {
    const simd::Table& table = simd::best_table();
    const double worst = table.box_violation({gradient_.data(), a_.data(), cap_.data(), size_});
    monitor_.spend(4.0 * static_cast<double>(size_));
    if (worst <= target) return false;
    Index i = 0;
    const auto violation = [&](Index k) {
        const std::size_t j = unsigned_index(k);
        return simd::box_violation_of(gradient_[j], a_[j], cap_[j]);
    };
    while (i < size_ && violation(i) != worst) ++i;
    if (i == size_) return false;
    const Index partner = partner_of(i);
    const std::size_t u = unsigned_index(i);
    const double g = gradient_[u], k = 2.0 * diagonal_[u];
    if (partner < 0) {
        take(i, std::clamp(a_[u] + g / k, 0.0, cap_[u]));
        return true;
    }
    const std::size_t v = unsigned_index(partner);
    const double sign = (&side_of(i) == &side_of(partner)) ? 2.0 : -2.0;
    const double q = sign * static_cast<double>(row(example_of(i))[example_of(partner)]);
    const double gv = gradient_[v], kv = 2.0 * diagonal_[v];
    const auto [bx, by] = two_variable_step({g, gv, k, kv, q, a_[u], a_[v], cap_[u], cap_[v]});
    const double gained = g * bx + gv * by - 0.5 * (k * bx * bx + kv * by * by) - q * bx * by;
    if (bx == 0.0 && by == 0.0) return false;
    if (bx != 0.0) take(i, a_[u] + bx);
    if (by != 0.0) take(partner, a_[v] + by);
    tally_.dual += std::max(0.0, gained);
    return true;
}

void PairDescent::take(Index i, double value) {
    const std::size_t u = unsigned_index(i);
    const Index example = example_of(i);
    if (value <= problem_.negligible(example)) value = 0.0;
    if (value >= (1.0 - bound_tolerance) * cap_[u]) value = cap_[u];
    const double delta = 2.0 * (value - a_[u]);
    a_[u] = value;
    const float* values = row(example);
    const bool first = i < sides_[0].length;
    add_row(first ? -delta : delta, values + sides_[0].begin, gradient_.data(), sides_[0].length);
    add_row(first ? delta : -delta, values + sides_[1].begin, gradient_.data() + sides_[0].length, sides_[1].length);
    monitor_.spend(static_cast<double>(size_));
}

// What the variables have changed by, into the state and the scores of all examples.
void PairDescent::finish(Index c, Index e) {
    std::fill(change_.begin(), change_.end(), 0.0);
    const Index n = problem_.size();
    bool any = false;
    for (Index i = 0; i < size_; ++i) {
        const double delta = a_[unsigned_index(i)] - before_[unsigned_index(i)];
        if (delta == 0.0) continue;
        any = true;
        const Side& side = side_of(i);
        state_.variable(side.component, example_of(i)) = a_[unsigned_index(i)];
        add_row(&side == &sides_[0] ? delta : -delta, row(example_of(i)), change_.data(), n);
        monitor_.spend(static_cast<double>(n));
    }
    if (!any) return;
    state_.scores_current = false;
    double* fc = state_.scores.data() + c * state_.ld;
    double* fe = state_.scores.data() + e * state_.ld;
    for (Index j = 0; j < n; ++j) {
        fc[j] += change_[unsigned_index(j)];
        fe[j] -= change_[unsigned_index(j)];
    }
}

}  // namespace multimargin
