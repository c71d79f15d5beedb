#include "online_binary.hpp"

#include <algorithm>
#include <cmath>

namespace multimargin {

namespace {

// Examples of each class that are kept before the first step could be made (BEWB05 begins with five).
constexpr Index enough_to_begin = 5;

double sign_of(const OnlineBinary::Member& m) { return m.high > 0.0 ? 1.0 : -1.0; }

// The gain of a step along a direction with this slope and curvature, no longer than `most`.
double gain_of(double slope, double curvature, double most) {
    const double length = std::min(slope / curvature, most);
    return length * (slope - 0.5 * length * curvature);
}

}  // namespace

OnlineBinary::Member OnlineBinary::make_member(Index slot, double y, double error, const World& world) const {
    const double cap = world.kept.cap(slot);
    return {slot, 0.0, error, y > 0.0 ? 0.0 : -cap, y > 0.0 ? cap : 0.0};
}

Index OnlineBinary::find(Index slot) const {
    const auto found = std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.slot == slot; });
    return found == members_.end() ? -1 : found - members_.begin();
}

void OnlineBinary::find_extremes() {
    double highest = -infinity, lowest = infinity;
    top_ = bottom_ = -1;
    free_errors_ = 0.0;
    n_free_ = 0;
    for (std::size_t k = 0; k < members_.size(); ++k) {
        const Member& m = members_[k];
        if (m.error > highest && may_rise(m)) {
            highest = m.error;
            top_ = static_cast<Index>(k);
        }
        if (m.error < lowest && may_fall(m)) {
            lowest = m.error;
            bottom_ = static_cast<Index>(k);
        }
        if (may_rise(m) && may_fall(m)) {
            free_errors_ += m.error;
            ++n_free_;
        }
    }
}

bool OnlineBinary::wants(double y, double error, const OnlineOptions& options) const {
    if (!options.exact_bias) return y * error > options.tol;
    const Index opposite = y > 0.0 ? bottom_ : top_;
    if (opposite >= 0 && y * (error - members_[unsigned_index(opposite)].error) > options.tol) return true;
    Index same = 0;
    for (const Member& m : members_) {
        if (m.beta != 0.0) return false;
        same += sign_of(m) == y;
    }
    return same < enough_to_begin;
}

void OnlineBinary::process(Index slot, double y, double error, const World& world) {
    members_.push_back(make_member(slot, y, error, world));
    const Index own = size() - 1;
    if (!world.options.exact_bias) {
        move_one(own, error / std::max(world.kept.diagonal(slot), curvature_floor), world);
    } else {
        const Index other = partner(own, y > 0.0, world).index;
        if (other >= 0) y > 0.0 ? move_pair(own, other, infinity, world) : move_pair(other, own, infinity, world);
    }
    find_extremes();
}

// The member that moves against `first`: with the largest gain, the largest slope, or one of those with any.
OnlineBinary::Choice OnlineBinary::partner(Index first, bool rises, const World& world) const {
    const Member& a = members_[unsigned_index(first)];
    const double room = rises ? a.high - a.beta : a.beta - a.low;
    const double* values = row(a.slot, world);
    const double k_aa = world.kept.diagonal(a.slot);
    Choice best;
    Index n_found = 0;
    for (Index k = 0; k < size(); ++k) {
        const Member& b = members_[unsigned_index(k)];
        const double slope = rises ? a.error - b.error : b.error - a.error;
        if (slope <= world.options.tol || !(rises ? may_fall(b) : may_rise(b))) continue;
        double merit = slope;
        if (world.options.selection == Selection::second_order) {
            const double most = std::min(room, rises ? b.beta - b.low : b.high - b.beta);
            const double curvature = k_aa + world.kept.diagonal(b.slot) - 2.0 * values[b.slot];
            merit = gain_of(slope, std::max(curvature, curvature_floor), most);
        } else if (world.options.selection == Selection::random) {
            merit = world.rng.below(++n_found) == 0 ? best.merit + 1.0 : 0.0;  // each with the same chance
        }
        if (merit > best.merit) best = {k, merit};
    }
    return best;
}

// The two worst; by gain, the better of the pairs that each of them makes with its best partner; by chance, any that
// may rise and any that it can move against.
std::pair<Index, Index> OnlineBinary::choose_pair(const World& world) const {
    if (top_ < 0 || bottom_ < 0) return {-1, -1};
    if (members_[unsigned_index(top_)].error - members_[unsigned_index(bottom_)].error <= world.options.tol) {
        return {-1, -1};
    }
    if (world.options.selection == Selection::second_order) {
        const Choice below = partner(top_, true, world), above = partner(bottom_, false, world);
        return below.merit >= above.merit ? std::pair{top_, below.index} : std::pair{above.index, bottom_};
    }
    if (world.options.selection == Selection::random) {
        const Index drawn = world.rng.below(size());
        const Index other = may_rise(members_[unsigned_index(drawn)]) ? partner(drawn, true, world).index : -1;
        if (other >= 0) return {drawn, other};
    }
    return {top_, bottom_};
}

// Without the constraint one variable moves alone.
Index OnlineBinary::choose_one(const World& world) const {
    Index best = -1, n_found = 0;
    double largest = 0.0;
    for (Index k = 0; k < size(); ++k) {
        const Member& m = members_[unsigned_index(k)];
        const double slope = std::abs(m.error), most = m.error > 0.0 ? m.high - m.beta : m.beta - m.low;
        if (slope <= world.options.tol || most <= 0.0) continue;
        double merit = slope;
        if (world.options.selection == Selection::second_order) {
            merit = gain_of(slope, std::max(world.kept.diagonal(m.slot), curvature_floor), most);
        } else if (world.options.selection == Selection::random) {
            merit = world.rng.below(++n_found) == 0 ? largest + 1.0 : 0.0;
        }
        if (merit <= largest) continue;
        largest = merit;
        best = k;
    }
    return best;
}

void OnlineBinary::add_to(Index index, double change, const World& world) {
    Member& m = members_[unsigned_index(index)];
    m.beta = std::clamp(m.beta + change, m.low, m.high);
    const double near = bound_tolerance * (m.high - m.low);
    if (std::abs(m.beta - m.low) <= near) m.beta = m.low;
    if (std::abs(m.beta - m.high) <= near) m.beta = m.high;
    world.table.at(m.slot, sign_of(m) > 0.0 ? positive_column_ : negative_column_) = m.beta;
}

// beta_up + step, beta_down - step, the best step that is not longer than `most`.
void OnlineBinary::move_pair(Index up, Index down, double most, const World& world) {
    const Member u = members_[unsigned_index(up)], d = members_[unsigned_index(down)];
    const double* rise = row(u.slot, world);
    const double* fall = row(d.slot, world);
    const double curvature = world.kept.diagonal(u.slot) + world.kept.diagonal(d.slot) - 2.0 * rise[d.slot];
    double step = (u.error - d.error) / std::max(curvature, curvature_floor);
    if (most < infinity) step = most;  // a step that must be made
    step = std::min({step, u.high - u.beta, d.beta - d.low});
    if (step <= 0.0) return;
    add_to(up, step, world);
    add_to(down, -step, world);
    for (Member& m : members_) m.error -= step * (rise[m.slot] - fall[m.slot]);
    ++n_steps_;
}

void OnlineBinary::move_one(Index index, double change, const World& world) {
    const Member m = members_[unsigned_index(index)];
    const double step = std::clamp(change, m.low - m.beta, m.high - m.beta);
    if (step == 0.0) return;
    const double* values = row(m.slot, world);
    add_to(index, step, world);
    for (Member& each : members_) each.error -= step * values[each.slot];
    ++n_steps_;
}

bool OnlineBinary::reprocess(const World& world) {
    bool moved = false;
    if (!world.options.exact_bias) {
        const Index chosen = choose_one(world);
        moved = chosen >= 0;
        if (moved) {
            const Member& m = members_[unsigned_index(chosen)];
            move_one(chosen, m.error / std::max(world.kept.diagonal(m.slot), curvature_floor), world);
        }
    } else {
        const auto [up, down] = choose_pair(world);
        moved = up >= 0;
        if (moved) move_pair(up, down, infinity, world);
    }
    find_extremes();
    let_go(world);
    return moved;
}

// Members at 0 whose gradient keeps them there. An exact bias is known only when errors lie on both sides of it.
void OnlineBinary::let_go(const World& world) {
    const bool exact = world.options.exact_bias;
    if (exact && (top_ < 0 || bottom_ < 0)) return;
    const double highest = exact ? members_[unsigned_index(top_)].error : 0.0;
    const double lowest = exact ? members_[unsigned_index(bottom_)].error : 0.0;
    const bool begun = std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.beta != 0.0; });
    if (exact && !begun) return;
    bool any = false;
    for (Index k = size() - 1; k >= 0; --k) {
        const Member& m = members_[unsigned_index(k)];
        if (m.beta != 0.0 || !(sign_of(m) > 0.0 ? m.error <= lowest : m.error >= highest)) continue;
        erase(k, world);
        any = true;
    }
    if (any) find_extremes();
}

void OnlineBinary::erase(Index index, const World& world) {
    world.left.push_back(members_[unsigned_index(index)].slot);
    members_[unsigned_index(index)] = members_.back();
    members_.pop_back();
}

void OnlineBinary::expel(Index slot, const World& world) {
    const Index own = find(slot);
    if (own < 0) return;
    // Every turn makes the example's beta 0 or takes another to its bound, so that they come to an end; the others can
    // take up all of it, because with their beta at 0 on one side they would outweigh it.
    while (world.options.exact_bias && members_[unsigned_index(own)].beta != 0.0) {
        const Member s = members_[unsigned_index(own)];
        const bool falls = s.beta > 0.0;
        const double* values = row(slot, world);
        Index best = -1;
        double highest = -infinity;
        for (Index k = 0; k < size(); ++k) {
            const Member& m = members_[unsigned_index(k)];
            const double room = falls ? m.high - m.beta : m.beta - m.low;
            if (k == own || room <= 0.0) continue;
            const double length = std::min(room, std::abs(s.beta));
            const double slope = falls ? m.error - s.error : s.error - m.error;
            const double curvature = world.kept.diagonal(slot) + world.kept.diagonal(m.slot) - 2.0 * values[m.slot];
            const double change = slope - 0.5 * length * curvature;  // of the dual, for a unit of length
            if (change <= highest) continue;
            highest = change;
            best = k;
        }
        if (best < 0) break;  // what is left is rounding
        const double length = std::abs(s.beta);
        falls ? move_pair(best, own, length, world) : move_pair(own, best, length, world);
    }
    move_one(own, -members_[unsigned_index(own)].beta, world);
    erase(own, world);
    find_extremes();
}

void OnlineBinary::restore(std::vector<Member> members, const World& world) {
    members_ = std::move(members);
    for (Index k = 0; k < size(); ++k) add_to(k, 0.0, world);
    find_extremes();
}

double OnlineBinary::bias(bool exact) const {
    if (!exact) return 0.0;
    const bool rising = top_ >= 0, falling = bottom_ >= 0;
    if (!rising && !falling) return 0.0;
    if (rising != falling) return rising ? 1.0 : -1.0;  // one class only
    // Errors of free examples are the bias at the optimum. Before it the extremes that LASVM takes the middle of are
    // the worst informed about it.
    if (n_free_ > 0) return free_errors_ / static_cast<double>(n_free_);
    return 0.5 * (members_[unsigned_index(top_)].error + members_[unsigned_index(bottom_)].error);
}

double OnlineBinary::dual() const {
    double twice = 0.0;  // sum y beta - beta'K beta/2, with K beta = y - error
    for (const Member& m : members_) twice += m.beta * (sign_of(m) + m.error);
    return 0.5 * twice;
}

double OnlineBinary::violation(bool exact) const {
    double highest = exact ? -infinity : 0.0, lowest = exact ? infinity : 0.0;
    for (const Member& m : members_) {
        if (may_rise(m)) highest = std::max(highest, m.error);
        if (may_fall(m)) lowest = std::min(lowest, m.error);
    }
    if (exact) return std::max(0.0, highest - lowest);
    return std::max(highest, -lowest);
}

}  // namespace multimargin
