#include "solvers/multiclass/two_level.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/rng.hpp"

namespace multimargin {

namespace {

constexpr Index default_block = 512;
constexpr Index large_block = 1024;      // for machines in which all components of an example are free together
constexpr Index whole_block = 2560;      // of the active set
constexpr double carried_share = 0.35;   // of a block, at most: free examples of the one before
constexpr double round_share = 0.1;      // a round leaves this share of the violation it began with
constexpr double block_share = 0.3;      // so does a block of steps on examples ...
constexpr double exact_share = 0.1;      // ... and of the active set, which is exact anyway
constexpr double near_violation = 0.3;   // gradients above minus this are watched, relative to the largest target
constexpr double most_kept_bytes = 2e8;  // of kernel rows of a round
// In multiply-adds per value: below, computing a row is as fast as fetching it from memory.
constexpr double cost_worth_keeping = 64;

double largest_target(const Machine& machine) {
    double largest = 0.0;
    for (const auto& components : machine.components) {
        for (const Component& c : components) largest = std::max(largest, c.target);
    }
    return largest;
}

// The active set takes a small problem as a whole: a factor that is kept beats blocks that begin anew.
bool fits_active_set(const Problem& problem) { return problem.size() <= whole_block; }

template <class T>
bool takes_whole(const Problem& problem) {
    return std::is_same_v<T, double> && fits_active_set(problem);
}

}  // namespace

template <class T>
TwoLevel<T>::TwoLevel(const Problem& problem, FullState& state, const Options& options, bool prefers_active_set,
                      bool may_give_up, Monitor& monitor, Tally& tally, ThreadTeam& team)
    : problem_(problem),
      machine_(problem.machine()),
      state_(state),
      options_(options),
      monitor_(monitor),
      tally_(tally),
      team_(team),
      block_size_(takes_whole<T>(problem) ? whole_block
                  : machine_.sum_to_zero  ? large_block
                                          : default_block),
      one_block_(problem.size() <= block_size_),
      may_give_up_(may_give_up),
      block_solver_(problem, prefers_active_set || takes_whole<T>(problem), monitor, tally, team) {}

template <class T>
std::vector<Index> TwoLevel<T>::members() const {
    const std::vector<Index> all = first_indices(problem_.size());
    return all;
}

template <class T>
const KernelColumns<double>* TwoLevel<T>::exact_columns() const {
    if constexpr (std::is_same_v<T, double>) return whole_columns_.get();
    return nullptr;
}

template <class T>
void TwoLevel<T>::scatter() {
    if (round_) round_->workspace.scatter(state_);
    if (current_block_ != nullptr) current_block_->scatter(state_);
}

// Holds the whole kernel matrix where it fits: a support vector's row is asked for in some ten blocks.
template <class T>
void TwoLevel<T>::store_kernel() {
    const Index n = problem_.size();
    const double bytes = static_cast<double>(n) * static_cast<double>(n) * sizeof(T);
    if (!one_block_ && problem_.source().cost() < cost_worth_keeping) return;
    if (whole_ != nullptr || bytes > std::min(options_.cache_bytes, most_kept_bytes)) return;
    const PhaseTimer timer(tally_.phases.kernel);
    whole_ = std::make_unique<SquareKernel<T>>(problem_.source(), problem_.source_rows(members()),
                                               one_block_ ? Layout::rows : Layout::panels, team_, monitor_);
    whole_columns_ = whole_->columns();
    tally_.cache.rows_computed += n;
}

// Where the kernel values of a round come from.
template <class T>
void TwoLevel<T>::choose_columns(std::span<const Index> active) {
    const PhaseTimer timer(tally_.phases.kernel);
    if (whole_ != nullptr) {
        if (static_cast<Index>(active.size()) < problem_.size()) {
            round_->square = std::make_unique<SquareKernel<T>>(*whole_, active, team_);
        }
        round_->columns = square()->columns();
        return;
    }
    round_->columns = problem_.source().template columns<T>(problem_.source_rows(active));
    if (problem_.source().cost() < cost_worth_keeping) return;
    round_->columns = std::make_unique<CachedColumns<T>>(std::move(round_->columns), problem_.source().size(),
                                                         std::min(options_.cache_bytes, most_kept_bytes), rows_);
}

template <class T>
Outcome TwoLevel<T>::run(double target, Index max_iterations) {
    store_kernel();
    if (monitor_.poll()) return Outcome::stopped;
    std::vector<Index> active = members();
    double violation = summarize(problem_, state_).violation;
    int idle = 0;  // rounds in a row without a step: what they see is not what the scores of all say
    while (violation > target && idle < 2) {
        if (monitor_.poll()) return Outcome::stopped;
        const AlignedVector<double> before = state_.variables;
        const Index iterations = tally_.iterations;
        begin_round(active);
        const double goal = one_block_ ? target : std::max(target, round_share * violation);
        const Outcome outcome = run_blocks(goal, max_iterations);
        scatter();
        const bool complete = update_rest(active, before);
        round_.reset();
        if (!complete) return Outcome::stopped;
        if (outcome != Outcome::satisfied) return outcome;
        idle = tally_.iterations == iterations ? idle + 1 : 0;
        const bool coarse = std::is_same_v<T, float> && options_.precision == Precision::automatic &&
                            float32_too_coarse(problem_, state_, options_.tol);
        if (coarse) return Outcome::imprecise;
        const PhaseTimer timer(tally_.phases.selection);
        tally_.violation = violation = summarize(problem_, state_).violation;
        if (!one_block_) active = choose_active(violation);
    }
    return Outcome::satisfied;
}

template <class T>
void TwoLevel<T>::begin_round(std::span<const Index> active) {
    ++tally_.phases.rounds;
    Stopwatch watch;
    Workspace workspace(problem_, state_, {active.begin(), active.end()});
    const Index ld = workspace.ld();
    // Where many violate alike (at the start all do) the block must not be one class: positions go by class.
    round_.emplace(Round{std::move(workspace),
                         nullptr,
                         nullptr,
                         ViolationScan<double>(machine_, ld),
                         AlignedVector<double>(unsigned_index(ld)),
                         {},
                         random_permutation(static_cast<Index>(active.size()), 0),
                         {},
                         {},
                         0.0});
    tally_.phases.selection += watch.lap();
    choose_columns(active);
    tally_.n_active = round_->workspace.size();
    tally_.violation = scan_all();
}

// Support vectors, violators, and examples that may become either before the round ends.
template <class T>
std::vector<Index> TwoLevel<T>::choose_active(double violation) {
    const double scale = largest_target(machine_);
    const double margin = std::min(near_violation * scale, 0.5 * violation);
    std::vector<double> gradient(unsigned_index(machine_.max_components()));
    std::vector<Index> active;
    for (Index e = 0; e < problem_.size(); ++e) {
        const std::size_t n = machine_.of(problem_.class_of(e)).size();
        bool chosen = false;
        for (std::size_t p = 0; p < n && !chosen; ++p) chosen = state_.variable(static_cast<Index>(p), e) > 0.0;
        if (!chosen) {
            gradient_of(problem_, state_, e, gradient);
            // Nor may those rest of whom nothing is known: a round without examples has no violation.
            chosen = !(*std::max_element(gradient.begin(), gradient.begin() + static_cast<Index>(n)) <= -margin);
        }
        if (chosen) active.push_back(e);
    }
    return active;
}

template <class T>
double TwoLevel<T>::scan_all() {
    const PhaseTimer timer(tally_.phases.selection);
    round_->scan.scan(round_->workspace.view(), 0, round_->workspace.size(), round_->violations.data());
    return largest_violation();
}

template <class T>
double TwoLevel<T>::largest_violation() const {
    return *std::max_element(round_->violations.begin(), round_->violations.begin() + round_->workspace.size());
}

template <class T>
Outcome TwoLevel<T>::run_blocks(double target, Index max_iterations) {
    while (true) {
        if (monitor_.poll()) return Outcome::stopped;
        const double violation = tally_.violation = largest_violation();
        // Examples outside the round have no variable above zero.
        tally_.record([this] { return round_->workspace.census(); });
        if (violation <= 0.9 * target) return Outcome::satisfied;
        if (max_iterations >= 0 && tally_.iterations >= max_iterations) return Outcome::out_of_steps;
        Stopwatch watch;
        const std::vector<Index> positions = choose_block();
        Workspace block(round_->workspace, positions);
        const AlignedVector<double> before = block.all_variables();
        tally_.phases.selection += watch.lap();
        const double share = one_block_ ? 0.0 : (block_solver_.prefers_active_set() ? exact_share : block_share);
        const double block_target = std::max(0.45 * target, share * violation);
        const Index left = max_iterations >= 0 ? max_iterations - tally_.iterations : std::numeric_limits<Index>::max();
        const double dual = tally_.dual;
        current_block_ = &block;
        const bool solved = block_solver_.solve(block, {square(), positions}, block_target, left, may_give_up_);
        current_block_ = nullptr;
        if (!merge(block, before, positions)) return Outcome::stopped;
        if (monitor_.stopped()) return Outcome::stopped;
        if (max_iterations >= 0 && tally_.iterations >= max_iterations) return Outcome::out_of_steps;
        if (block_solver_.gave_up()) return Outcome::crawling;
        // Steps crawled and the active set did not: in float64 it may have the whole problem.
        const bool better_whole = std::is_same_v<T, float> && !one_block_ && block_solver_.prefers_active_set();
        if (better_whole && options_.precision == Precision::automatic && fits_active_set(problem_)) {
            return Outcome::imprecise;
        }
        if (!solved && std::is_same_v<T, float> && options_.precision == Precision::automatic)
            return Outcome::imprecise;
        if (!(tally_.dual > dual)) return Outcome::stuck;
    }
}

// First free examples of the last block, the worst of them; then the worst of all.
template <class T>
std::vector<Index> TwoLevel<T>::choose_block() {
    std::vector<Index> chosen;
    if (one_block_) return members();
    take_worst(round_->previous, static_cast<std::size_t>(carried_share * static_cast<double>(block_size_)), chosen);
    const std::size_t room = unsigned_index(block_size_) - chosen.size();
    round_->taken.assign(unsigned_index(round_->workspace.size()), 0);
    for (const Index j : chosen) round_->taken[unsigned_index(j)] = 1;
    // The last block's threshold tells where to look; nearly all violate by less, and are passed over.
    std::vector<Index> others = violators_above(0.75 * round_->threshold);
    if (others.size() < room) others = violators_above(0.0);
    round_->threshold = take_worst(others, room, chosen);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

// Positions that violate by more than a threshold and are not in the block yet.
template <class T>
std::vector<Index> TwoLevel<T>::violators_above(double threshold) {
    const double least = std::max(threshold, std::numeric_limits<double>::min());
    round_->found.resize(unsigned_index(round_->workspace.ld()));
    const Index count = simd::best_table().collect_f64(round_->violations.data(), round_->workspace.size(), least,
                                                       round_->found.data());
    std::vector<Index> positions;
    for (Index i = 0; i < count; ++i) {
        const Index j = round_->found[unsigned_index(i)];
        if (round_->taken[unsigned_index(j)] == 0) positions.push_back(j);
    }
    return positions;
}

// The positions with the largest violations; equal ones in an order that mixes the classes. The least one taken.
template <class T>
double TwoLevel<T>::take_worst(std::span<const Index> positions, std::size_t room, std::vector<Index>& chosen) const {
    if (positions.size() <= room) {
        chosen.insert(chosen.end(), positions.begin(), positions.end());
        return 0.0;
    }
    if (room == 0) return 0.0;
    const auto violation = [&](Index j) {
        const double v = round_->violations[unsigned_index(j)];
        return std::isnan(v) ? infinity : v;  // to be sorted, values need an order
    };
    std::vector<double> values(positions.size());
    std::transform(positions.begin(), positions.end(), values.begin(), violation);
    const auto last = values.begin() + static_cast<Index>(room) - 1;
    std::nth_element(values.begin(), last, values.end(), std::greater<>());
    std::vector<Index> equal;
    const std::size_t before = chosen.size();
    for (const Index j : positions) {
        if (violation(j) > *last) chosen.push_back(j);
        if (violation(j) == *last) equal.push_back(j);
    }
    std::sort(equal.begin(), equal.end(), [&](Index i, Index j) {
        return round_->tie_break[unsigned_index(i)] < round_->tie_break[unsigned_index(j)];
    });
    equal.resize(room - (chosen.size() - before));
    chosen.insert(chosen.end(), equal.begin(), equal.end());
    return *last;
}

template <class T>
bool TwoLevel<T>::merge(const Workspace& block, const AlignedVector<double>& before, std::span<const Index> positions) {
    Stopwatch watch;
    Workspace& active = round_->workspace;
    const Index n = block.size(), ld = block.ld();
    std::vector<char> inside(unsigned_index(n), 0), changed(unsigned_index(n), 0);
    for (Index p = 0; p < machine_.max_components(); ++p) {
        const double* a = block.variables(p);
        const double* old = before.data() + p * ld;
        for (Index b = 0; b < n; ++b) {
            if (a[b] > 0.0 && a[b] < block.cap()[b]) inside[unsigned_index(b)] = 1;
            if (a[b] == old[b]) continue;
            changed[unsigned_index(b)] = 1;
            active.variables(p)[positions[unsigned_index(b)]] = a[b];
        }
    }
    round_->previous.clear();
    std::vector<Index> moved, examples;
    for (Index b = 0; b < n; ++b) {
        if (inside[unsigned_index(b)] != 0) round_->previous.push_back(positions[unsigned_index(b)]);
        if (changed[unsigned_index(b)] == 0) continue;
        active.sum()[positions[unsigned_index(b)]] = block.sum()[b];
        moved.push_back(b);
        examples.push_back(block.example(b));
    }
    const Coefficients changes = changed_coefficients(problem_, examples, [&](Index k, Index p) {
        const Index b = moved[unsigned_index(k)];
        return block.variables(p)[b] - before[unsigned_index(p * ld + b)];
    });
    state_.scores_current = false;
    tally_.phases.selection += watch.lap();
    const auto rescan = [&](Index panel) {
        // A panel writes no violation of the next one: that may be another thread's.
        alignas(alignment) double found[simd::panel_width + simd::overrun];
        const Index first = panel * simd::panel_width;
        const Index last = std::min<Index>(first + simd::panel_width, active.size());
        round_->scan.scan(active.view(), first, last, found);
        std::copy_n(found, last - first, round_->violations.data() + first);
    };
    return add_scores(*round_->columns, changes, active.scores(0), active.ld(), team_, &monitor_,
                      {rescan, &tally_.phases, &tally_.cache});
}

template <class T>
bool TwoLevel<T>::update_rest(std::span<const Index> active, const AlignedVector<double>& before) {
    if (static_cast<Index>(active.size()) == problem_.size()) return true;
    const Coefficients changes = changed_coefficients(problem_, active, [&](Index k, Index p) {
        const Index e = active[unsigned_index(k)];
        return state_.variable(p, e) - before[unsigned_index(p * state_.ld + e)];
    });
    const PassExtras account{nullptr, &tally_.phases, &tally_.cache};
    if (whole_ != nullptr) {  // all examples at once; those of the round get their own scores back
        if (!add_scores(*whole_columns_, changes, state_.scores.data(), state_.ld, team_, &monitor_, account)) {
            return false;
        }
        scatter();
        return true;
    }
    std::vector<Index> rest;
    std::size_t next = 0;
    for (Index e = 0; e < problem_.size(); ++e) {
        if (next < active.size() && active[next] == e) {
            ++next;
        } else {
            rest.push_back(e);
        }
    }
    Workspace others(problem_, state_, rest);
    const auto columns = problem_.source().template columns<T>(problem_.source_rows(rest));
    if (!add_scores(*columns, changes, others.scores(0), others.ld(), team_, &monitor_, account)) return false;
    others.scatter(state_);
    return true;
}

template class TwoLevel<float>;
template class TwoLevel<double>;

}  // namespace multimargin
