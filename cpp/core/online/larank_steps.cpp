// The steps of LaRank: which two variables of an example move, and how far.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "online/larank.hpp"
#include "problem/problem.hpp"
#include "subproblem/two_variables.hpp"

namespace multimargin {

namespace {

// From so many features on a kernel value costs more than fetching one from memory, and below that more than from a
// processor's cache of about this size.
constexpr Index dear_features = 24;
constexpr double near_bytes = 16e6;

}  // namespace

// t - m(F) of the components considered, given the score columns.
template <class Column>
void OnlineMachine::gradients_at(Index label, Column column) {
    const auto& components = machine_.of(label);
    gradient_.resize(components.size());
    const double mean = machine_.sum_to_zero ? column(machine_.n_classes) : 0.0;
    for (const Index p : considered_) {
        const Component& m = components[unsigned_index(p)];
        const double margin = m.value1 * column(m.class1) + (m.class2 >= 0 ? m.value2 * column(m.class2) : 0.0);
        gradient_[unsigned_index(p)] = m.target - margin + m.row_sum() * mean;
    }
}

// All components of an example, or those whose variables are not 0: few of many classes.
void OnlineMachine::consider(Index slot, bool only_nonzero) {
    considered_.clear();
    const Index n = static_cast<Index>(machine_.of(kept_.label(slot)).size());
    for (Index p = 0; p < n; ++p) {
        if (!only_nonzero || variables_.at(slot, p) > 0.0) considered_.push_back(p);
    }
}

void OnlineMachine::gradients(Index slot, bool only_nonzero) {
    consider(slot, only_nonzero);
    scores_.read(slot, kept_.example(slot), read_);
    gradients_at(kept_.label(slot), [&](Index c) { return read_[unsigned_index(c)]; });
}

bool OnlineMachine::is_violated_at_zero(Index label) {
    considered_.resize(machine_.of(label).size());
    std::iota(considered_.begin(), considered_.end(), 0);
    gradients_at(label, [&](Index c) { return columns_[unsigned_index(c)]; });
    return *std::max_element(gradient_.begin(), gradient_.end()) > options_.tol;
}

// Given the gradients.
double OnlineMachine::violation_of(Index slot) const {
    return example_violation(machine_.bound, gradient_, {variables_.line(slot), gradient_.size()}, kept_.cap(slot));
}

double OnlineMachine::hessian(Index slot, Index p, Index q) const {
    if (p < 0 || q < 0) return 0.0;
    const auto& components = machine_.of(kept_.label(slot));
    return kept_.diagonal(slot) * machine_.coupling(components[unsigned_index(p)], components[unsigned_index(q)]);
}

// The exact step on two variables of a box, or on one where the second is -1.
OnlineMachine::Move OnlineMachine::box_step(Index slot, Index first, Index second) const {
    const double cap = kept_.cap(slot), g1 = gradient_[unsigned_index(first)], a1 = variables_.at(slot, first);
    const double q11 = hessian(slot, first, first);
    if (second < 0) {
        const double by = one_variable_step(g1, q11, a1, cap);
        return {first, second, by, 0.0, by * (g1 - 0.5 * q11 * by)};
    }
    const double g2 = gradient_[unsigned_index(second)], q22 = hessian(slot, second, second);
    const double q12 = hessian(slot, first, second);
    const auto [m1, m2] = two_variable_step({g1, g2, q11, q22, q12, a1, variables_.at(slot, second), cap, cap});
    return {first, second, m1, m2, g1 * m1 + g2 * m2 - 0.5 * (q11 * m1 * m1 + q22 * m2 * m2) - q12 * m1 * m2};
}

// A variable at 0 whose gradient points down, the more so the farther the first one goes, adds nothing to its step.
bool OnlineMachine::stays_at_zero(Index slot, Index first, Index q) const {
    if (variables_.at(slot, q) > 0.0 || gradient_[unsigned_index(q)] > 0.0) return false;
    return hessian(slot, first, q) * gradient_[unsigned_index(first)] >= 0.0;
}

// The first variable violates most (by chance: at all); the second gains most beside it, violates next, or is drawn.
OnlineMachine::Move OnlineMachine::box_move(Index slot) {
    const double cap = kept_.cap(slot);
    const bool drawn = options_.selection == Selection::random;
    Index first = -1, n_found = 0;
    double largest = options_.tol;
    for (const Index p : considered_) {
        const double here = simd::box_violation_of(gradient_[unsigned_index(p)], variables_.at(slot, p), cap);
        if (here <= options_.tol || !(drawn ? rng_.below(++n_found) == 0 : here > largest)) continue;
        largest = here;
        first = p;
    }
    if (first < 0) return {};
    Move best = box_step(slot, first, -1);
    if (options_.selection == Selection::second_order) {
        for (const Index q : considered_) {
            if (q == first || stays_at_zero(slot, first, q)) continue;
            const Move move = box_step(slot, first, q);
            if (move.gain > best.gain) best = move;
        }
        return best;
    }
    const Index second = box_second(slot, first);
    return second < 0 ? best : box_step(slot, first, second);
}

// By the gradient or by chance; -1: none violates.
Index OnlineMachine::box_second(Index slot, Index first) {
    const double cap = kept_.cap(slot);
    Index second = -1, n_found = 0;
    double largest = 0.0;
    for (const Index q : considered_) {
        const double here = simd::box_violation_of(gradient_[unsigned_index(q)], variables_.at(slot, q), cap);
        const bool taken = options_.selection == Selection::random
                               ? here > 0.0 && q != first && rng_.below(++n_found) == 0
                               : here > largest;
        if (q == first || !taken) continue;
        largest = here;
        second = q;
    }
    return second;
}

// One variable rises by what another, or the slack, falls. The slack is a component of gradient 0 (HL02 (21)).
OnlineMachine::Move OnlineMachine::simplex_move(Index slot) {
    double sum = 0.0;
    for (const Index p : considered_) sum += variables_.at(slot, p);  // all others are 0
    const double cap = kept_.cap(slot), slack = sum < cap * simd::full_share ? cap - sum : 0.0;
    const auto slope = [&](Index p) { return p < 0 ? 0.0 : gradient_[unsigned_index(p)]; };
    const auto room = [&](Index p) { return p < 0 ? slack : variables_.at(slot, p); };
    Move move;
    Index rise = -1, fall = -2, n_found = 0;
    for (const Index p : considered_) {
        if (slope(p) > slope(rise)) rise = p;
    }
    double largest = 0.0;
    for (std::size_t k = 0; k <= considered_.size(); ++k) {
        const Index q = k == 0 ? -1 : considered_[k - 1];
        const double difference = slope(rise) - slope(q);
        if (q == rise || room(q) <= 0.0 || difference <= options_.tol) continue;
        double merit = difference;
        if (options_.selection == Selection::second_order) {
            const double curvature = hessian(slot, rise, rise) + hessian(slot, q, q) - 2.0 * hessian(slot, rise, q);
            const double length = std::min(difference / std::max(curvature, curvature_floor), room(q));
            merit = length * (difference - 0.5 * length * curvature);
        } else if (options_.selection == Selection::random) {
            merit = rng_.below(++n_found) == 0 ? largest + 1.0 : 0.0;
        }
        if (merit <= largest) continue;
        largest = merit;
        fall = q;
    }
    if (fall == -2) return move;
    const double difference = slope(rise) - slope(fall);
    const double curvature = hessian(slot, rise, rise) + hessian(slot, fall, fall) - 2.0 * hessian(slot, rise, fall);
    const double length = std::min(difference / std::max(curvature, curvature_floor), room(fall));
    return {rise, fall, length, -length, length * (difference - 0.5 * length * curvature)};
}

void OnlineMachine::apply(Index slot, const Move& move) {
    const auto& components = machine_.of(kept_.label(slot));
    const double cap = kept_.cap(slot);
    std::fill(change_.begin(), change_.end(), 0.0);
    for (const auto& [p, by] : {std::pair{move.first, move.by_first}, std::pair{move.second, move.by_second}}) {
        if (p < 0 || by == 0.0) continue;
        double& a = variables_.at(slot, p);
        const double before = a;
        a = std::clamp(a + by, 0.0, cap);
        if (a <= bound_tolerance * cap) a = 0.0;
        if (at_bound(a, cap)) a = cap;
        machine_.add_to_coefficients(components[unsigned_index(p)], a - before, change_.data());
    }
    for (Index c = 0; c < machine_.n_scores(); ++c) {
        const double change = change_[unsigned_index(c)];
        if (change == 0.0) continue;
        coefficients_.set(slot, c, coefficients_.at(slot, c) + change);
        work_ += static_cast<double>(kept_.n_slots());
    }
    change_scores(slot);
    ++n_steps_;
}

// Whether kernel rows are kept: all of them must fit, and be cheaper to fetch than to compute together. Slots are never
// given up, so that once they do not they never will.
bool OnlineMachine::rows_pay() const {
    const double bytes = static_cast<double>(kept_.n_slots()) * static_cast<double>(kept_.n_slots()) * sizeof(double);
    return bytes <= options_.cache_bytes && (kept_.n_features() >= dear_features || bytes <= near_bytes);
}

// Of all examples, by what the coefficients of one have changed.
void OnlineMachine::change_scores(Index slot) {
    if (rows_ != nullptr && !rows_pay()) rows_.reset();
    if (rows_ != nullptr) {
        rows_->make_ready(kept_);
        return scores_.add_row(rows_->row(kept_, slot), change_);
    }
    if (scores_.is_full()) scores_.catch_up(kept_, team_);
    scores_.add_step(kept_.example(slot), change_);
}

OnlineMachine::Move OnlineMachine::choose(Index slot, bool only_nonzero) {
    gradients(slot, only_nonzero);
    work_ += static_cast<double>(variables_.width());
    return machine_.bound == Bound::box ? box_move(slot) : simplex_move(slot);
}

// One step on an example; its gain in the dual. Counts the row as computed, whether or not it was kept, so that the
// order of operations does not depend on the cache.
double OnlineMachine::step(Index slot, const Move& move) {
    if (move.by_first == 0.0 && move.by_second == 0.0) return 0.0;
    work_ += static_cast<double>(kept_.n_slots() * kept_.n_features());
    apply(slot, move);
    return move.gain;
}

double OnlineMachine::dual() {
    scores_.catch_up(kept_, team_);
    double twice = 0.0;  // sum t a - sum a m(F)/2, with m(F) = t - gradient
    for (Index slot = 0; slot < kept_.n_slots(); ++slot) {
        if (!kept_.is_used(slot)) continue;
        gradients(slot);
        const auto& components = machine_.of(kept_.label(slot));
        for (std::size_t p = 0; p < components.size(); ++p) {
            twice += variables_.at(slot, static_cast<Index>(p)) * (components[p].target + gradient_[p]);
        }
    }
    return 0.5 * twice;
}

double OnlineMachine::violation() {
    scores_.catch_up(kept_, team_);
    double largest = 0.0;
    for (Index slot = 0; slot < kept_.n_slots(); ++slot) {
        if (!kept_.is_used(slot)) continue;
        gradients(slot);
        largest = std::max(largest, violation_of(slot));
    }
    return largest;
}

}  // namespace multimargin
