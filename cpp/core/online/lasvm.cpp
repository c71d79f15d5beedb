#include "online/lasvm.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace multimargin {

namespace {

// Examples of each class that are kept before the first step could be made (BEWB05 begins with five).
constexpr Index enough_to_begin = 5;

// The gain of a step along a direction with this slope and curvature, no longer than `most`.
double gain_of(double slope, double curvature, double most) {
    const double length = std::min(slope / curvature, most);
    return length * (slope - 0.5 * length * curvature);
}

}  // namespace

template <class Visit>
void OnlineBinary::for_each_member(Visit visit) const {
    for (Index place = 0; place < n_places(); ++place) {
        if (is_member(place)) visit(place);
    }
}

std::vector<OnlineBinary::Member> OnlineBinary::members() const {
    std::vector<Member> found;
    for_each_member([&](Index k) {
        const bool positive = sign(k) > 0.0;
        const double cap = positive ? at(beta_, k) + at(up_, k) : at(down_, k) - at(beta_, k);
        found.push_back({slot(k), at(beta_, k), at(errors_, k), positive ? 0.0 : -cap, positive ? cap : 0.0});
    });
    return found;
}

// Its arrays get the places that its kernel rows have. All memory first, also for the lists of members, so that steps
// are made whole or not at all.
void OnlineBinary::cover(const KeptExamples& kept) {
    rows_->make_ready(kept);
    const std::size_t n = unsigned_index(rows_->n_places());
    reserve_ahead(signs_, unsigned_index(rows_->n_panels()));
    for (AlignedVector<double>* values : {&errors_, &up_, &down_, &beta_, &diagonals_}) reserve_ahead(*values, n);
    for (std::vector<Index>* places : {&idle_, &left_}) reserve_ahead(*places, n);
    for (Index panel = static_cast<Index>(signs_.size()); panel < rows_->n_panels(); ++panel) {
        const Index label = kept.panel_label(slot(panel * simd::panel_width));
        signs_.push_back(label == part_.positive_label ? 1.0 : -1.0);
    }
    if (n == errors_.size()) return;
    for (AlignedVector<double>* values : {&errors_, &up_, &down_, &beta_, &diagonals_}) values->resize(n, 0.0);
}

// Its place.
Index OnlineBinary::take_in(const Member& member, const World& world) {
    cover(world.kept);
    const Index place = rows_->place(member.slot);
    if (place < 0 || !(member.low < member.high)) throw std::invalid_argument("a member has no place in its machine");
    at(errors_, place) = member.error;
    at(beta_, place) = member.beta;
    at(up_, place) = member.high - member.beta;
    at(down_, place) = member.beta - member.low;
    at(diagonals_, place) = world.kept.diagonal(member.slot);
    if (member.beta == 0.0) idle_.push_back(place);
    ++n_members_;
    n_positive_ += sign(place) > 0.0;
    return place;
}

void OnlineBinary::update(double step, const double* rise, const double* fall) {
    extremes_ = simd::best_table().move_members(view(), step, rise, fall);
}

double OnlineBinary::score(std::span<const double> row) const {
    const Index n_panels = static_cast<Index>(signs_.size());
    return simd::best_table().members_score(rows_->starts().data(), n_panels, beta_.data(), row.data());
}

bool OnlineBinary::wants(double y, double error, const OnlineOptions& options) const {
    if (!options.exact_bias) return y * error > options.tol;
    const bool opposed = (y > 0.0 ? extremes_.bottom : extremes_.top) >= 0;
    if (opposed && y * (error - (y > 0.0 ? extremes_.lowest : extremes_.highest)) > options.tol) return true;
    const bool begun = n_members_ > static_cast<Index>(idle_.size());
    return !begun && (y > 0.0 ? n_positive_ : n_members_ - n_positive_) < enough_to_begin;
}

void OnlineBinary::process(Index slot, double y, double error, const World& world) {
    const double cap = world.kept.cap(slot);
    const Index own = take_in({slot, 0.0, error, y > 0.0 ? 0.0 : -cap, y > 0.0 ? cap : 0.0}, world);
    const Index steps = n_steps_;
    if (slot == world.newest) rows_->newest_row(world.kept, own);
    if (!world.options.exact_bias) {
        move_one(own, error / std::max(world.kept.diagonal(slot), curvature_floor), world);
    } else {
        const Pair pair = pair_of(own, world);
        if (pair.rising >= 0) move_pair(pair, infinity, world);
    }
    if (n_steps_ == steps) update(0.0, nullptr, nullptr);
}

simd::FirstMember OnlineBinary::first(Index place, bool rises, const World& world) const {
    return {at(errors_, place), at(rises ? up_ : down_, place), at(diagonals_, place), world.options.tol, rises,
            row(place, world)};
}

// A new member with the one that moves against it: with the largest gain, the largest slope, or one of those with any.
OnlineBinary::Pair OnlineBinary::pair_of(Index own, const World& world) {
    const bool rises = sign(own) > 0.0;
    Index other = -1;
    const double* values = nullptr;
    if (world.options.selection == Selection::second_order) {
        const simd::FirstMember a = first(own, rises, world);
        other = static_cast<Index>(simd::best_table().best_partner(view(), diagonals_.data(), a).place);
        values = a.row;
    } else if (world.options.selection == Selection::random) {
        other = drawn_partner(own, rises, world);
    } else {
        const Index worst = static_cast<Index>(rises ? extremes_.bottom : extremes_.top);
        const double difference = worst >= 0 ? at(errors_, own) - at(errors_, worst) : 0.0;
        other = sign(own) * difference > world.options.tol ? worst : -1;
    }
    if (other < 0) return {};
    return rises ? Pair{own, other, values, nullptr} : Pair{other, own, nullptr, values};
}

// Each with the same chance.
Index OnlineBinary::drawn_partner(Index first, bool rises, const World& world) const {
    Index drawn = -1, n_found = 0;
    for_each_member([&](Index k) {
        const double slope = (rises ? 1.0 : -1.0) * (at(errors_, first) - at(errors_, k));
        if (slope <= world.options.tol || at(rises ? down_ : up_, k) <= 0.0) return;
        if (world.rng.below(++n_found) == 0) drawn = k;
    });
    return drawn;
}

// The two worst; by gain, the better of the pairs that each of them makes with its best partner; by chance, any that
// may rise and any that it can move against.
OnlineBinary::Pair OnlineBinary::choose_pair(const World& world) {
    const Index top = static_cast<Index>(extremes_.top), bottom = static_cast<Index>(extremes_.bottom);
    if (top < 0 || bottom < 0 || extremes_.highest - extremes_.lowest <= world.options.tol) return {};
    if (world.options.selection == Selection::second_order) {
        const simd::FirstMember rising = first(top, true, world), falling = first(bottom, false, world);
        std::array<simd::Partner, 2> found;
        simd::best_table().best_partners(view(), diagonals_.data(), rising, falling, found.data());
        const Index below = static_cast<Index>(found[0].place), above = static_cast<Index>(found[1].place);
        if (found[0].merit >= found[1].merit) {
            return {top, below, rising.row, below == bottom ? falling.row : nullptr};
        }
        return {above, bottom, above == top ? rising.row : nullptr, falling.row};
    }
    if (world.options.selection == Selection::random) {
        Index left = world.rng.below(size()), drawn = -1;
        for_each_member([&](Index k) { drawn = left-- == 0 ? k : drawn; });
        const Index other = at(up_, drawn) > 0.0 ? drawn_partner(drawn, true, world) : -1;
        if (other >= 0) return {drawn, other};
    }
    return {top, bottom};
}

// Without the constraint one variable moves alone.
Index OnlineBinary::choose_one(const World& world) const {
    Index best = -1, n_found = 0;
    double largest = 0.0;
    for_each_member([&](Index k) {
        const double slope = std::abs(at(errors_, k)), most = at(at(errors_, k) > 0.0 ? up_ : down_, k);
        if (slope <= world.options.tol || most <= 0.0) return;
        double merit = slope;
        if (world.options.selection == Selection::second_order) {
            merit = gain_of(slope, std::max(at(diagonals_, k), curvature_floor), most);
        } else if (world.options.selection == Selection::random) {
            merit = world.rng.below(++n_found) == 0 ? largest + 1.0 : 0.0;
        }
        if (merit <= largest) return;
        largest = merit;
        best = k;
    });
    return best;
}

void OnlineBinary::add_to(Index place, double change, const World& world) {
    const bool positive = sign(place) > 0.0, idle = at(beta_, place) == 0.0;
    const double cap = world.kept.cap(slot(place)), low = positive ? 0.0 : -cap, high = positive ? cap : 0.0;
    double beta = std::clamp(at(beta_, place) + change, low, high);
    const double near = bound_tolerance * cap;
    if (std::abs(beta - low) <= near) beta = low;
    if (std::abs(beta - high) <= near) beta = high;
    at(beta_, place) = beta;
    at(up_, place) = high - beta;
    at(down_, place) = beta - low;
    world.table.at(slot(place), positive ? part_.positive_column : part_.negative_column) = beta;
    if (idle && beta != 0.0) std::erase(idle_, place);
    if (!idle && beta == 0.0) idle_.push_back(place);
}

// beta_rising + step, beta_falling - step, the best step that is not longer than `most`.
void OnlineBinary::move_pair(Pair pair, double most, const World& world) {
    const auto [rising, falling, known_rise, known_fall] = pair;
    const double* rise = known_rise != nullptr ? known_rise : row(rising, world);
    const double* fall = known_fall != nullptr ? known_fall : row(falling, world);
    const double curvature = at(diagonals_, rising) + at(diagonals_, falling) - 2.0 * rise[falling];
    double step = (at(errors_, rising) - at(errors_, falling)) / std::max(curvature, curvature_floor);
    if (most < infinity) step = most;  // a step that must be made
    step = std::min({step, at(up_, rising), at(down_, falling)});
    if (step <= 0.0) return;
    add_to(rising, step, world);
    add_to(falling, -step, world);
    update(step, rise, fall);
    ++n_steps_;
}

void OnlineBinary::move_one(Index place, double change, const World& world) {
    const double step = std::clamp(change, -at(down_, place), at(up_, place));
    if (step == 0.0) return;
    const double* values = row(place, world);
    add_to(place, step, world);
    update(step, values, nullptr);
    ++n_steps_;
}

bool OnlineBinary::reprocess(const World& world) {
    rows_->make_ready(world.kept);
    bool moved = false;
    if (!world.options.exact_bias) {
        const Index chosen = choose_one(world);
        moved = chosen >= 0;
        if (moved) move_one(chosen, at(errors_, chosen) / std::max(at(diagonals_, chosen), curvature_floor), world);
    } else {
        const Pair pair = choose_pair(world);
        moved = pair.rising >= 0;
        if (moved) move_pair(pair, infinity, world);
    }
    let_go(world);
    return moved;
}

// Members at 0 whose gradient keeps them there. An exact bias is known only when errors lie on both sides of it.
void OnlineBinary::let_go(const World& world) {
    const bool exact = world.options.exact_bias;
    if (exact && (extremes_.top < 0 || extremes_.bottom < 0)) return;
    if (exact && n_members_ == static_cast<Index>(idle_.size())) return;  // no step was made yet
    const double highest = exact ? extremes_.highest : 0.0, lowest = exact ? extremes_.lowest : 0.0;
    bool extreme = false;  // no other removal changes the extremes
    for (std::size_t i = idle_.size(); i-- > 0;) {
        const Index place = idle_[i];
        const double error = at(errors_, place);
        if (sign(place) > 0.0 ? error > lowest : error < highest) continue;
        extreme = extreme || place == extremes_.top || place == extremes_.bottom;
        erase(place);
        idle_[i] = idle_.back();
        idle_.pop_back();
    }
    if (extreme) update(0.0, nullptr, nullptr);
}

// Of a member at 0; its place among the idle ones is the caller's business.
void OnlineBinary::erase(Index place) {
    left_.push_back(slot(place));
    at(up_, place) = at(down_, place) = 0.0;
    --n_members_;
    n_positive_ -= sign(place) > 0.0;
}

// Who takes over what an example has, with the least loss in the dual for a unit of length.
Index OnlineBinary::most_willing(Index own, const double* values) const {
    const double beta = at(beta_, own);
    const bool falls = beta > 0.0;
    Index best = -1;
    double highest = -infinity;
    for_each_member([&](Index k) {
        const double room = at(falls ? up_ : down_, k);
        if (k == own || room <= 0.0) return;
        const double length = std::min(room, std::abs(beta));
        const double slope = (falls ? 1.0 : -1.0) * (at(errors_, k) - at(errors_, own));
        const double curvature = at(diagonals_, own) + at(diagonals_, k) - 2.0 * values[k];
        const double change = slope - 0.5 * length * curvature;
        if (change <= highest) return;
        highest = change;
        best = k;
    });
    return best;
}

void OnlineBinary::expel(Index slot, const World& world) {
    const Index own = rows_->place(slot);
    if (!is_member(own)) return;
    // Every turn makes the example's beta 0 or takes another to its bound, so that they come to an end; the others can
    // take up all of it, because with their beta at 0 on one side they would outweigh it.
    while (world.options.exact_bias && at(beta_, own) != 0.0) {
        rows_->make_ready(world.kept);
        const double beta = at(beta_, own);
        const Index best = most_willing(own, row(own, world));
        if (best < 0) break;  // what is left is rounding
        const double length = std::abs(beta);
        move_pair(beta > 0.0 ? Pair{best, own} : Pair{own, best}, length, world);
    }
    rows_->make_ready(world.kept);
    move_one(own, -at(beta_, own), world);
    erase(own);
    std::erase(idle_, own);
    update(0.0, nullptr, nullptr);
}

void OnlineBinary::restore(const std::vector<Member>& members, const World& world) {
    cover(world.kept);
    for (const Member& member : members) add_to(take_in(member, world), 0.0, world);
    update(0.0, nullptr, nullptr);
}

double OnlineBinary::bias(bool exact) const {
    if (!exact) return 0.0;
    const bool rising = extremes_.top >= 0, falling = extremes_.bottom >= 0;
    if (!rising && !falling) return 0.0;
    if (rising != falling) return rising ? 1.0 : -1.0;  // one class only
    // Errors of free examples are the bias at the optimum. Before it the extremes that LASVM takes the middle of are
    // the worst informed about it.
    if (extremes_.n_free > 0) return extremes_.free_errors / static_cast<double>(extremes_.n_free);
    return 0.5 * (extremes_.highest + extremes_.lowest);
}

double OnlineBinary::dual() const {
    double twice = 0.0;  // sum y beta - beta'K beta/2, with K beta = y - error
    for (Index k = 0; k < n_places(); ++k) twice += at(beta_, k) * (sign(k) + at(errors_, k));
    return 0.5 * twice;
}

double OnlineBinary::violation(bool exact) const {
    const double highest = extremes_.top >= 0 ? extremes_.highest : -infinity;
    const double lowest = extremes_.bottom >= 0 ? extremes_.lowest : infinity;
    return exact ? std::max(0.0, highest - lowest) : std::max({0.0, highest, -lowest});
}

}  // namespace multimargin
