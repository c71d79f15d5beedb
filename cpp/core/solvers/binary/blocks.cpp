#include "solvers/binary/blocks.hpp"

#include <algorithm>
#include <cmath>

namespace multimargin {

template <class T>
BinaryBlocks<T>::BinaryBlocks(const BinaryProblem& problem, BinaryState& state, const Options& options,
                              Monitor& monitor, Tally& tally, ThreadTeam& team, BinaryMemory& memory)
    : problem_(problem),
      options_(options),
      monitor_(monitor),
      tally_(tally),
      memory_(memory),
      local_(problem, state, options, monitor, tally, team),
      engine_(local_) {}

template <class T>
Outcome BinaryBlocks<T>::run(double target, Index limit) {
    while (true) {
        const BinaryInterval interval = engine_.interval();
        const double violation = tally_.violation = interval.violation();
        if (violation <= target) return Outcome::satisfied;
        const bool may_change = std::is_same_v<T, float> && options_.precision == Precision::automatic;
        if (may_change && engine_.float32_too_coarse(options_.tol)) return Outcome::imprecise;
        ++tally_.phases.rounds;
        {
            const PhaseTimer timer(tally_.phases.selection);
            active_ = engine_.begin_round(interval, std::max(Rules::resting_share * violation, Rules::resting_least));
        }
        const Outcome outcome = round(std::max(target, Rules::round_share * violation), limit);
        if (!engine_.end_round()) return Outcome::stopped;
        if (outcome != Outcome::satisfied) return outcome;
    }
}

template <class T>
Outcome BinaryBlocks<T>::round(double target, Index limit) {
    while (true) {
        const BinaryInterval interval = engine_.round_interval();
        tally_.violation = interval.violation();
        tally_.record([this] { return engine_.census(); });
        if (interval.violation() <= target) return Outcome::satisfied;
        if (monitor_.poll()) return Outcome::stopped;
        {
            const PhaseTimer timer(tally_.phases.selection);
            choose_block(interval);
        }
        ++tally_.phases.blocks;
        const double block_target = std::max(0.5 * target, Rules::block_share * interval.violation());
        const Outcome outcome = solve_block(interval, block_target, limit);
        if (outcome != Outcome::satisfied) return outcome;
    }
}

template <class T>
Index BinaryBlocks<T>::block_size() const {
    return std::clamp(round_up(engine_.n_support() / 2, simd::panel_width), Rules::least_block, Rules::largest_block);
}

// Half of the room for the examples that should rise, the rest for those that should fall.
template <class T>
void BinaryBlocks<T>::choose_block(const BinaryInterval& interval) {
    const Index size = std::min(block_size(), static_cast<Index>(active_.size()));
    block_.clear();
    keep_from_last_block(size / 2);
    const Index kept = static_cast<Index>(block_.size());
    add_violators(Direction::rise, interval, kept + (size - kept) / 2);
    add_violators(Direction::fall, interval, size);
    add_violators(Direction::rise, interval, size);
    std::sort(block_.begin(), block_.end());
}

// Of those still active, free ones first, then other support vectors.
template <class T>
void BinaryBlocks<T>::keep_from_last_block(Index room) {
    for (const bool free : {true, false}) {
        for (std::size_t b = 0; b < last_block_.size(); ++b) {
            if (static_cast<Index>(block_.size()) >= room) return;
            const double a = last_variables_[b];
            if (a == 0.0 || (a < problem_.cap(last_block_[b])) != free) continue;
            const auto place = std::lower_bound(active_.begin(), active_.end(), last_block_[b]);
            if (place != active_.end() && *place == last_block_[b]) block_.push_back(place - active_.begin());
        }
    }
}

// The worst of one direction, until the block has `size` members.
template <class T>
void BinaryBlocks<T>::add_violators(Direction direction, const BinaryInterval& interval, Index size) {
    const Index room = size - static_cast<Index>(block_.size());
    if (room <= 0) return;
    for (const BinaryCandidate& c : engine_.worst(direction, interval, room, block_)) block_.push_back(c.position);
}

// Satisfied where the block has raised the dual, so that blocks may go on; else they would go round in circles.
template <class T>
Outcome BinaryBlocks<T>::solve_block(const BinaryInterval& interval, double target, Index limit) {
    last_block_.clear();
    std::vector<Index> rows;
    for (const Index k : block_) {
        last_block_.push_back(active_[unsigned_index(k)]);
        rows.push_back(problem_.row(last_block_.back()));
    }
    const BinaryValues values = engine_.gather(block_);
    Stopwatch watch;
    descent_.load(problem_, last_block_, values.variables, values.errors);
    SlotRows<T> block_rows(problem_.source(), rows, options_.cache_bytes, tally_.cache, memory_.of<T>());
    const Index allowed = limit < 0 ? std::numeric_limits<Index>::max() : std::max<Index>(0, limit - counted_);
    const Index chunk = Rules::steps_per_example * descent_.size();
    Outcome outcome = descent_.run(block_rows, target, std::min(chunk, allowed), monitor_);
    tally_.phases.inner += watch.lap();
    counted_ += descent_.steps();
    tally_.iterations += descent_.steps();
    if (outcome == Outcome::out_of_steps && chunk <= allowed) outcome = Outcome::satisfied;
    std::vector<double> changes(block_.size());
    last_variables_.resize(block_.size());
    for (std::size_t b = 0; b < block_.size(); ++b) {
        last_variables_[b] = descent_.variable(static_cast<Index>(b));
        changes[b] = problem_.sign(last_block_[b]) * (last_variables_[b] - values.variables[b]);
        travel_ += std::abs(changes[b]);
    }
    if (!engine_.add(block_, last_variables_, changes)) return Outcome::stopped;
    if (outcome != Outcome::satisfied) return outcome;
    // What the block has added to the dual: -1/2 sum (E before + E after) change, exact for a quadratic. The changes
    // sum to zero up to rounding, which the offset keeps small.
    const BinaryValues after = engine_.gather(block_);
    double gain = 0.0;
    for (std::size_t b = 0; b < block_.size(); ++b) {
        gain -= 0.5 * (values.errors[b] + after.errors[b] - 2.0 * interval.lowest_up) * changes[b];
    }
    tally_.dual += gain;
    return gain > 0.0 ? Outcome::satisfied : Outcome::stuck;
}

template class BinaryBlocks<float>;
template class BinaryBlocks<double>;

}  // namespace multimargin
