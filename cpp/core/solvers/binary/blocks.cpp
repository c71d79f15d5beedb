#include "solvers/binary/blocks.hpp"

#include <algorithm>
#include <numeric>

namespace multimargin {

namespace {

// A round ends when this share of its violation is left; a block, when this share of the round's is.
constexpr double round_share = 0.1, block_share = 0.1;
// Examples that rest further from the interval of the bias than this much of the violation leave the round.
constexpr double resting_share = 0.5, resting_least = 0.02;
// A block is half as large as the number of support vectors, within limits: else each would be visited many times
// (ijcnn1, 9,000 of them: blocks of 512 took three times as long). Only the rows that steps ask for are computed.
constexpr Index least_block = 1024, largest_block = 4096;
constexpr Index steps_per_example = 100;
// Below this many multiply-adds a kernel row is computed as fast as it is fetched.
constexpr double cost_worth_keeping = 64;

}  // namespace

template <class T>
BinaryBlocks<T>::BinaryBlocks(const BinaryProblem& problem, BinaryState& state, const Options& options,
                              Monitor& monitor, Tally& tally, ThreadTeam& team, BinaryMemory& memory)
    : problem_(problem),
      state_(state),
      options_(options),
      monitor_(monitor),
      tally_(tally),
      team_(team),
      memory_(memory) {}

template <class T>
bool BinaryBlocks<T>::is_free(Index e) const {
    const double a = state_.variables[unsigned_index(e)];
    return a > 0.0 && a < problem_.cap(e);
}

template <class T>
void BinaryBlocks<T>::scatter() {
    if (!in_round_) return;
    for (std::size_t k = 0; k < active_.size(); ++k) state_.errors[unsigned_index(active_[k])] = errors_[k];
}

template <class T>
Census BinaryBlocks<T>::census() const {
    Census census = census_of(problem_, state_);
    census.examples = census.variables = static_cast<Index>(active_.size());
    return census;
}

template <class T>
Outcome BinaryBlocks<T>::run(double target, Index limit) {
    while (true) {
        const BinaryInterval interval = interval_of(problem_, state_);
        tally_.violation = interval.violation();
        if (interval.violation() <= target) return Outcome::satisfied;
        const bool may_change = std::is_same_v<T, float> && options_.precision == Precision::automatic;
        if (may_change && float32_too_coarse(problem_, state_, options_.tol)) return Outcome::imprecise;
        choose_active(interval);
        in_round_ = true;
        ++tally_.phases.rounds;
        const std::vector<double> before = state_.variables;
        const Outcome outcome = round(std::max(target, round_share * interval.violation()), limit);
        if (!finish_round(before)) return Outcome::stopped;
        if (outcome != Outcome::satisfied) return outcome;
    }
}

// The support vectors, unless they rest at their bound, and everybody near the interval.
template <class T>
void BinaryBlocks<T>::choose_active(const BinaryInterval& interval) {
    const PhaseTimer timer(tally_.phases.selection);
    const double slack = std::max(resting_share * interval.violation(), resting_least);
    std::vector<Index> block_before;  // as examples: positions are about to change
    for (const Index k : block_) block_before.push_back(active_[unsigned_index(k)]);
    active_.clear();
    for (Index e = 0; e < problem_.size(); ++e) {
        const double a = state_.variables[unsigned_index(e)], error = state_.errors[unsigned_index(e)];
        const bool up = problem_.may_rise(e, a) && error < interval.largest_low + slack;
        const bool low = problem_.may_fall(e, a) && error > interval.lowest_up - slack;
        if (up || low || !options_.shrink_examples) active_.push_back(e);
    }
    std::vector<Index> rows;
    rows.reserve(active_.size());
    for (const Index e : active_) rows.push_back(problem_.row(e));
    columns_.reset();
    columns_ = problem_.source().template columns<T>(rows);
    if (problem_.source().cost() >= cost_worth_keeping) {
        columns_ = std::make_unique<CachedColumns<T>>(std::move(columns_), problem_.source().size(),
                                                      options_.cache_bytes, kept_rows_);
    }
    errors_.assign(unsigned_index(columns_->n_panels() * simd::panel_width), 0.0);
    for (std::size_t k = 0; k < active_.size(); ++k) errors_[k] = state_.errors[unsigned_index(active_[k])];
    in_block_.assign(active_.size(), 0);
    block_.clear();
    for (const Index e : block_before) {
        const auto place = std::lower_bound(active_.begin(), active_.end(), e);
        if (place != active_.end() && *place == e) block_.push_back(place - active_.begin());
    }
}

template <class T>
BinaryInterval BinaryBlocks<T>::active_interval() const {
    BinaryInterval interval;
    for (std::size_t k = 0; k < active_.size(); ++k) {
        const double a = state_.variables[unsigned_index(active_[k])];
        if (problem_.may_rise(active_[k], a)) interval.lowest_up = std::min(interval.lowest_up, errors_[k]);
        if (problem_.may_fall(active_[k], a)) interval.largest_low = std::max(interval.largest_low, errors_[k]);
    }
    return interval;
}

template <class T>
Outcome BinaryBlocks<T>::round(double target, Index limit) {
    while (true) {
        const BinaryInterval interval = active_interval();
        tally_.violation = interval.violation();
        tally_.record([this] { return census(); });
        if (interval.violation() <= target) return Outcome::satisfied;
        if (monitor_.poll()) return Outcome::stopped;
        {
            const PhaseTimer timer(tally_.phases.selection);
            choose_block(interval);
        }
        ++tally_.phases.blocks;
        const Outcome outcome = solve_block(std::max(0.5 * target, block_share * interval.violation()), limit);
        if (outcome != Outcome::satisfied) return outcome;
        const double gain = gain_of_block(interval.lowest_up);
        tally_.dual += gain;
        if (!(gain > 0.0)) return Outcome::stuck;  // else it would go round in circles
    }
}

template <class T>
Index BinaryBlocks<T>::block_size() const {
    Index n_support = 0;
    for (const Index e : active_) n_support += state_.variables[unsigned_index(e)] > 0.0 ? 1 : 0;
    return std::clamp(round_up(n_support / 2, simd::panel_width), least_block, largest_block);
}

template <class T>
void BinaryBlocks<T>::choose_block(const BinaryInterval& interval) {
    const Index size = std::min(block_size(), static_cast<Index>(active_.size()));
    std::swap(block_, last_block_);
    block_.clear();
    std::fill(in_block_.begin(), in_block_.end(), char{0});
    keep_from_last_block(size / 2);
    add_violators(interval, size);
    std::sort(block_.begin(), block_.end());
}

// Free ones first, then other support vectors.
template <class T>
void BinaryBlocks<T>::keep_from_last_block(Index room) {
    for (const bool free : {true, false}) {
        for (const Index k : last_block_) {
            if (static_cast<Index>(block_.size()) >= room) return;
            const Index e = active_[unsigned_index(k)];
            if (state_.variables[unsigned_index(e)] == 0.0 || is_free(e) != free) continue;
            in_block_[unsigned_index(k)] = 1;
            block_.push_back(k);
        }
    }
}

// Half of the room for those that should rise, the rest for those that should fall.
template <class T>
void BinaryBlocks<T>::add_violators(const BinaryInterval& interval, Index size) {
    std::vector<Member> rising, falling;
    for (std::size_t k = 0; k < active_.size(); ++k) {
        if (in_block_[k]) continue;
        const double a = state_.variables[unsigned_index(active_[k])];
        const Member member{errors_[k], static_cast<Index>(k)};
        if (errors_[k] < interval.largest_low && problem_.may_rise(active_[k], a)) rising.push_back(member);
        if (errors_[k] > interval.lowest_up && problem_.may_fall(active_[k], a)) falling.push_back(member);
    }
    take_first(rising, static_cast<Index>(block_.size()) + (size - static_cast<Index>(block_.size())) / 2, true);
    take_first(falling, size, false);
    take_first(rising, size, true);
}

// The most extreme candidates, until the block has `size` members. Where all are alike, as at the start, every so
// many-th.
template <class T>
void BinaryBlocks<T>::take_first(std::vector<Member>& candidates, Index size, bool smallest) {
    std::erase_if(candidates, [this](const Member& m) { return in_block_[unsigned_index(m.position)] != 0; });
    const Index room = size - static_cast<Index>(block_.size());
    if (room <= 0 || candidates.empty()) return;
    const Index n = static_cast<Index>(candidates.size()), count = std::min(room, n);
    const auto before = [smallest](const Member& a, const Member& b) {
        if (a.error != b.error) return smallest ? a.error < b.error : a.error > b.error;
        return a.position < b.position;
    };
    const auto [low, high] = std::minmax_element(candidates.begin(), candidates.end(), before);
    const bool alike = low->error == high->error;
    if (!alike && count < n) std::nth_element(candidates.begin(), candidates.begin() + count, candidates.end(), before);
    for (Index c = 0; c < count; ++c) {
        const Index position = candidates[unsigned_index(alike ? c * n / count : c)].position;
        in_block_[unsigned_index(position)] = 1;
        block_.push_back(position);
    }
}

template <class T>
Outcome BinaryBlocks<T>::solve_block(double target, Index limit) {
    std::vector<Index> examples, rows;
    for (const Index k : block_) {
        examples.push_back(active_[unsigned_index(k)]);
        rows.push_back(problem_.row(examples.back()));
    }
    for (std::size_t b = 0; b < block_.size(); ++b) {
        state_.errors[unsigned_index(examples[b])] = errors_[unsigned_index(block_[b])];
    }
    Stopwatch watch;
    descent_.load(problem_, examples, state_.variables, state_.errors);
    SlotRows<T> block_rows(problem_.source(), rows, options_.cache_bytes, tally_.cache, memory_.of<T>());
    const Index allowed = limit < 0 ? std::numeric_limits<Index>::max() : std::max<Index>(0, limit - counted_);
    const Index chunk = steps_per_example * descent_.size();
    Outcome outcome = descent_.run(block_rows, target, std::min(chunk, allowed), monitor_);
    tally_.phases.inner += watch.lap();
    counted_ += descent_.steps();
    tally_.iterations += descent_.steps();
    if (outcome == Outcome::out_of_steps && chunk <= allowed) outcome = Outcome::satisfied;
    Coefficients changes(1);
    block_changes_.assign(block_.size(), 0.0);
    for (std::size_t b = 0; b < block_.size(); ++b) {
        double& a = state_.variables[unsigned_index(examples[b])];
        const double change = problem_.sign(examples[b]) * (descent_.variable(static_cast<Index>(b)) - a);
        block_changes_[b] = change;
        if (change == 0.0) continue;
        travel_ += std::abs(change);
        a = descent_.variable(static_cast<Index>(b));
        errors_[unsigned_index(block_[b])] += problem_.ridge(examples[b]) * change;
        changes.add_row(problem_.row(examples[b]), {&change, 1});
    }
    const PassExtras extras{nullptr, &tally_.phases, &tally_.cache};
    const Index ld = columns_->n_panels() * simd::panel_width;
    if (!add_scores(*columns_, changes, errors_.data(), ld, team_, &monitor_, extras)) return Outcome::stopped;
    return outcome;
}

// What the block has added to the dual: -1/2 sum (E before + E after) change, exact for a quadratic. The changes sum to
// zero up to rounding, which `offset` keeps small.
template <class T>
double BinaryBlocks<T>::gain_of_block(double offset) const {
    double gain = 0.0;
    for (std::size_t b = 0; b < block_.size(); ++b) {
        const double before = state_.errors[unsigned_index(active_[unsigned_index(block_[b])])];
        gain -= 0.5 * (before + errors_[unsigned_index(block_[b])] - 2.0 * offset) * block_changes_[b];
    }
    return gain;
}

// Brings the errors of the resting examples up to date with what the round has changed.
template <class T>
bool BinaryBlocks<T>::finish_round(std::span<const double> before) {
    scatter();
    in_round_ = false;
    Coefficients changes(1);
    for (Index e = 0; e < problem_.size(); ++e) {
        const double change = problem_.sign(e) * (state_.variables[unsigned_index(e)] - before[unsigned_index(e)]);
        if (change != 0.0) changes.add_row(problem_.row(e), {&change, 1});
    }
    std::vector<Index> resting, rows;
    for (Index e = 0, k = 0; e < problem_.size(); ++e) {
        const bool is_active = k < static_cast<Index>(active_.size()) && active_[unsigned_index(k)] == e;
        if (is_active) {
            ++k;
        } else {
            resting.push_back(e);
            rows.push_back(problem_.row(e));
        }
    }
    if (resting.empty() || changes.rows().empty()) return true;
    const auto columns = problem_.source().template columns<T>(rows);
    const Index ld = columns->n_panels() * simd::panel_width;
    AlignedVector<double> errors(unsigned_index(ld), 0.0);
    const PassExtras extras{nullptr, &tally_.phases, &tally_.cache};
    if (!add_scores(*columns, changes, errors.data(), ld, team_, &monitor_, extras)) return false;
    for (std::size_t k = 0; k < resting.size(); ++k) state_.errors[unsigned_index(resting[k])] += errors[k];
    return true;
}

template class BinaryBlocks<float>;
template class BinaryBlocks<double>;

}  // namespace multimargin
