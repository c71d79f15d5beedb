#include "solvers/binary/local_engine.hpp"

#include <algorithm>

namespace multimargin {

namespace {

// Below this many multiply-adds a kernel row is computed as fast as it is fetched.
constexpr double cost_worth_keeping = 64;

}  // namespace

bool are_alike(std::span<const BinaryCandidate> candidates) {
    const auto differs = [&](const BinaryCandidate& c) { return c.error != candidates.front().error; };
    return std::none_of(candidates.begin(), candidates.end(), differs);
}

std::vector<BinaryCandidate> worst_of(std::vector<BinaryCandidate> candidates, Direction direction, Index k) {
    const Index n = static_cast<Index>(candidates.size()), count = std::clamp<Index>(k, 0, n);
    const auto is_worse = [direction](const BinaryCandidate& a, const BinaryCandidate& b) {
        if (a.error != b.error) return direction == Direction::rise ? a.error < b.error : a.error > b.error;
        return a.position < b.position;
    };
    if (are_alike(candidates)) {
        for (Index c = 0; c < count; ++c) candidates[unsigned_index(c)] = candidates[unsigned_index(c * n / count)];
    } else if (count < n) {
        std::nth_element(candidates.begin(), candidates.begin() + count, candidates.end(), is_worse);
    }
    candidates.resize(unsigned_index(count));
    return candidates;
}

template <class T>
LocalBinaryEngine<T>::LocalBinaryEngine(const BinaryProblem& problem, BinaryState& state, const Options& options,
                                        Monitor& monitor, Tally& tally, ThreadTeam& team)
    : problem_(problem), state_(state), options_(options), monitor_(monitor), tally_(tally), team_(team) {}

// The support vectors, unless they rest at their bound, and every example near the interval.
template <class T>
std::vector<Index> LocalBinaryEngine<T>::begin_round(const BinaryInterval& interval, double slack) {
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
    before_ = state_.variables;
    in_round_ = true;
    return active_;
}

template <class T>
void LocalBinaryEngine<T>::synchronize() {
    if (!in_round_) return;
    for (std::size_t k = 0; k < active_.size(); ++k) state_.errors[unsigned_index(active_[k])] = errors_[k];
}

template <class T>
BinaryInterval LocalBinaryEngine<T>::round_interval() const {
    BinaryInterval interval;
    for (std::size_t k = 0; k < active_.size(); ++k) {
        const double a = state_.variables[unsigned_index(active_[k])];
        if (problem_.may_rise(active_[k], a)) interval.lowest_up = std::min(interval.lowest_up, errors_[k]);
        if (problem_.may_fall(active_[k], a)) interval.largest_low = std::max(interval.largest_low, errors_[k]);
    }
    return interval;
}

template <class T>
Index LocalBinaryEngine<T>::n_support() const {
    Index n = 0;
    for (const Index e : active_) n += state_.variables[unsigned_index(e)] > 0.0 ? 1 : 0;
    return n;
}

template <class T>
Census LocalBinaryEngine<T>::census() const {
    Census census = census_of(problem_, state_);
    census.examples = census.variables = static_cast<Index>(active_.size());
    return census;
}

template <class T>
std::vector<BinaryCandidate> LocalBinaryEngine<T>::violators(Direction direction, const BinaryInterval& interval,
                                                             std::span<const Index> without) {
    std::fill(in_block_.begin(), in_block_.end(), char{0});
    for (const Index position : without) in_block_[unsigned_index(position)] = 1;
    const bool rise = direction == Direction::rise;
    std::vector<BinaryCandidate> candidates;
    for (std::size_t i = 0; i < active_.size(); ++i) {
        if (in_block_[i]) continue;
        const double a = state_.variables[unsigned_index(active_[i])], error = errors_[i];
        const bool violates = rise ? error < interval.largest_low && problem_.may_rise(active_[i], a)
                                   : error > interval.lowest_up && problem_.may_fall(active_[i], a);
        if (violates) candidates.push_back({static_cast<Index>(i), error});
    }
    return candidates;
}

template <class T>
BinaryValues LocalBinaryEngine<T>::gather(std::span<const Index> positions) const {
    BinaryValues values;
    for (const Index position : positions) {
        values.variables.push_back(state_.variables[unsigned_index(active_[unsigned_index(position)])]);
        values.errors.push_back(errors_[unsigned_index(position)]);
    }
    return values;
}

template <class T>
bool LocalBinaryEngine<T>::add(std::span<const Index> positions, std::span<const double> variables,
                               std::span<const double> changes) {
    Coefficients added(1);
    for (std::size_t k = 0; k < positions.size(); ++k) {
        if (changes[k] == 0.0) continue;
        set_variable(positions[k], variables[k], changes[k]);
        added.add_row(problem_.row(active_[unsigned_index(positions[k])]), {&changes[k], 1});
    }
    return add(added);
}

template <class T>
void LocalBinaryEngine<T>::set_variable(Index position, double variable, double change) {
    const Index e = active_[unsigned_index(position)];
    state_.variables[unsigned_index(e)] = variable;
    errors_[unsigned_index(position)] += problem_.ridge(e) * change;
}

template <class T>
bool LocalBinaryEngine<T>::add(const Coefficients& changes) {
    const PassExtras extras{nullptr, &tally_.phases, &tally_.cache};
    const Index ld = columns_->n_panels() * simd::panel_width;
    return add_scores(*columns_, changes, errors_.data(), ld, team_, &monitor_, extras);
}

template <class T>
Coefficients LocalBinaryEngine<T>::round_changes() const {
    Coefficients changes(1);
    for (const Index e : active_) {
        const double change = problem_.sign(e) * (state_.variables[unsigned_index(e)] - before_[unsigned_index(e)]);
        if (change != 0.0) changes.add_row(problem_.row(e), {&change, 1});
    }
    return changes;
}

template <class T>
bool LocalBinaryEngine<T>::end_round(const Coefficients& changes) {
    synchronize();
    in_round_ = false;
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
    AlignedVector<double> scores(unsigned_index(ld), 0.0);
    const PassExtras extras{nullptr, &tally_.phases, &tally_.cache};
    if (!add_scores(*columns, changes, scores.data(), ld, team_, &monitor_, extras)) return false;
    for (std::size_t k = 0; k < resting.size(); ++k) state_.errors[unsigned_index(resting[k])] += scores[k];
    return true;
}

template class LocalBinaryEngine<float>;
template class LocalBinaryEngine<double>;

}  // namespace multimargin
