#include "solvers/multiclass/local_engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace multimargin {

namespace {

constexpr double most_kept_bytes = 2e8;  // of kernel rows of a round
// In multiply-adds per value: below, computing a row is as fast as fetching it from memory.
constexpr double cost_worth_keeping = 64;

bool is_worse(const Candidate& a, const Candidate& b) {
    return a.violation != b.violation ? a.violation > b.violation : a.rank < b.rank;
}

}  // namespace

std::vector<Candidate> worst_of(std::vector<Candidate> candidates, std::size_t k) {
    if (candidates.size() <= k) return candidates;
    if (k > 0) {
        const auto last = candidates.begin() + static_cast<Index>(k) - 1;
        std::nth_element(candidates.begin(), last, candidates.end(), is_worse);
    }
    candidates.resize(k);
    return candidates;
}

template <class T>
LocalEngine<T>::LocalEngine(const Problem& problem, FullState& state, const Options& options, Monitor& monitor,
                            Tally& tally, ThreadTeam& team)
    : problem_(problem),
      machine_(problem.machine()),
      state_(state),
      options_(options),
      monitor_(monitor),
      tally_(tally),
      team_(team) {}

// A support vector's row is used in about ten blocks.
template <class T>
bool LocalEngine<T>::store_kernel(bool one_block) {
    const Index n = problem_.size();
    const double bytes = static_cast<double>(n) * static_cast<double>(n) * sizeof(T);
    const bool is_cheap = !one_block && problem_.source().cost() < cost_worth_keeping;
    if (!is_cheap && whole_ == nullptr && bytes <= std::min(options_.cache_bytes, most_kept_bytes)) {
        const PhaseTimer timer(tally_.phases.kernel);
        whole_ = std::make_unique<SquareKernel<T>>(problem_.source(), problem_.source_rows(first_indices(n)),
                                                   one_block ? Layout::rows : Layout::panels, team_, monitor_);
        whole_columns_ = whole_->columns();
        tally_.cache.rows_computed += n;
    }
    return !monitor_.poll();
}

template <class T>
bool LocalEngine<T>::confirm() {
    const KernelColumns<double>* columns = nullptr;
    if constexpr (std::is_same_v<T, double>) columns = whole_columns_.get();
    return refresh_scores(problem_, state_, team_, &monitor_, columns);
}

template <class T>
std::vector<Index> LocalEngine<T>::near_active(double margin) const {
    std::vector<double> gradient(unsigned_index(machine_.max_components()));
    std::vector<Index> active;
    for (Index e = 0; e < problem_.size(); ++e) {
        const std::size_t n = machine_.of(problem_.class_of(e)).size();
        bool chosen = false;
        for (std::size_t p = 0; p < n && !chosen; ++p) chosen = state_.variable(static_cast<Index>(p), e) > 0.0;
        if (!chosen) {
            gradient_of(problem_, state_, e, gradient);
            // A gradient that is not a number counts as near: a round without examples has no violation.
            chosen = !(*std::max_element(gradient.begin(), gradient.begin() + static_cast<Index>(n)) <= -margin);
        }
        if (chosen) active.push_back(e);
    }
    return active;
}

// Where the kernel values of a round come from.
template <class T>
void LocalEngine<T>::choose_columns(std::span<const Index> active) {
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
void LocalEngine<T>::begin_round(std::span<const Index> active, std::span<const Index> ranks) {
    Stopwatch watch;
    Workspace workspace(problem_, state_, {active.begin(), active.end()});
    const Index ld = workspace.ld();
    round_.emplace(Round{std::move(workspace),
                         {ranks.begin(), ranks.end()},
                         state_.variables,
                         nullptr,
                         nullptr,
                         ViolationScan<double>(machine_, ld),
                         AlignedVector<double>(unsigned_index(ld)),
                         {},
                         {},
                         0.0});
    tally_.phases.selection += watch.lap();
    choose_columns(active);
    const PhaseTimer timer(tally_.phases.selection);
    round_->scan.scan(round_->workspace.view(), 0, round_->workspace.size(), round_->violations.data());
}

template <class T>
void LocalEngine<T>::synchronize(const Workspace* block) {
    if (round_) round_->workspace.scatter(state_);
    if (block != nullptr) block->scatter(state_);
}

template <class T>
double LocalEngine<T>::violation() const {
    const auto begin = round_->violations.begin();
    return round_->workspace.size() > 0 ? *std::max_element(begin, begin + round_->workspace.size()) : 0.0;
}

// To be sorted, values need an order.
template <class T>
double LocalEngine<T>::violation_at(Index position) const {
    const double v = round_->violations[unsigned_index(position)];
    return std::isnan(v) ? infinity : v;
}

template <class T>
std::vector<Candidate> LocalEngine<T>::candidates_at(std::span<const Index> positions) const {
    std::vector<Candidate> candidates;
    candidates.reserve(positions.size());
    for (const Index j : positions) candidates.push_back({j, violation_at(j), round_->ranks[unsigned_index(j)]});
    return candidates;
}

template <class T>
std::vector<Candidate> LocalEngine<T>::violators_above(double threshold) {
    const double least = std::max(threshold, std::numeric_limits<double>::min());
    round_->found.resize(unsigned_index(round_->workspace.ld()));
    const Index count = simd::best_table().collect_f64(round_->violations.data(), round_->workspace.size(), least,
                                                       round_->found.data());
    std::vector<Index> positions;
    for (Index i = 0; i < count; ++i) {
        const Index j = round_->found[unsigned_index(i)];
        if (round_->taken[unsigned_index(j)] == 0) positions.push_back(j);
    }
    return candidates_at(positions);
}

// The threshold of the last call shows where to search: nearly all examples violate by less and are passed over.
template <class T>
std::vector<Candidate> LocalEngine<T>::worst(std::size_t k, std::span<const Index> without) {
    round_->taken.assign(unsigned_index(round_->workspace.size()), 0);
    for (const Index j : without) round_->taken[unsigned_index(j)] = 1;
    std::vector<Candidate> violators = violators_above(0.75 * round_->threshold);
    if (violators.size() < k) violators = violators_above(0.0);
    const bool takes_all = violators.size() <= k || k == 0;
    std::vector<Candidate> chosen = worst_of(std::move(violators), k);
    round_->threshold = takes_all ? 0.0 : std::max_element(chosen.begin(), chosen.end(), is_worse)->violation;
    return chosen;
}

template <class T>
GatheredBlock<T> LocalEngine<T>::gather(std::span<const Index> positions) {
    return {Workspace(round_->workspace, positions), square()};
}

template <class T>
bool LocalEngine<T>::add(const Workspace& block, const AlignedVector<double>& before,
                         std::span<const Index> positions) {
    Stopwatch watch;
    Workspace& active = round_->workspace;
    const Index n = block.size(), ld = block.ld();
    std::vector<char> changed(unsigned_index(n), 0);
    for (Index p = 0; p < machine_.max_components(); ++p) {
        const double* a = block.variables(p);
        const double* old = before.data() + p * ld;
        for (Index b = 0; b < n; ++b) {
            if (a[b] == old[b]) continue;
            changed[unsigned_index(b)] = 1;
            active.variables(p)[positions[unsigned_index(b)]] = a[b];
        }
    }
    std::vector<Index> moved, examples;
    for (Index b = 0; b < n; ++b) {
        if (changed[unsigned_index(b)] == 0) continue;
        active.sum()[positions[unsigned_index(b)]] = block.sum()[b];
        moved.push_back(b);
        examples.push_back(block.example(b));
    }
    const Coefficients changes = changed_coefficients(problem_, examples, [&](Index k, Index p) {
        const Index b = moved[unsigned_index(k)];
        return block.variables(p)[b] - before[unsigned_index(p * ld + b)];
    });
    tally_.phases.selection += watch.lap();
    return add(changes);
}

template <class T>
void LocalEngine<T>::set_variables(Index position, std::span<const double> variables) {
    for (std::size_t p = 0; p < variables.size(); ++p) {
        round_->workspace.set_variable(position, static_cast<Index>(p), variables[p]);
    }
}

template <class T>
bool LocalEngine<T>::add(const Coefficients& changes) {
    Workspace& active = round_->workspace;
    state_.scores_current = false;
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
Coefficients LocalEngine<T>::round_changes() const {
    const Workspace& active = round_->workspace;
    return changed_coefficients(problem_, active.members(), [&](Index k, Index p) {
        return active.variables(p)[k] - round_->before[unsigned_index(p * state_.ld + active.example(k))];
    });
}

template <class T>
bool LocalEngine<T>::end_round() {
    return end_round(all_active() ? Coefficients(machine_.n_scores()) : round_changes());
}

template <class T>
bool LocalEngine<T>::end_round(const Coefficients& changes) {
    synchronize(nullptr);
    const std::vector<Index> active(round_->workspace.members().begin(), round_->workspace.members().end());
    const PassExtras extras{nullptr, &tally_.phases, &tally_.cache};
    if (all_active() || whole_ != nullptr) {
        const bool complete = all_active() || add_scores(*whole_columns_, changes, state_.scores.data(), state_.ld,
                                                         team_, &monitor_, extras);
        if (complete) synchronize(nullptr);  // the examples of the round get their own scores back
        round_.reset();
        return complete;
    }
    std::vector<Index> rest;
    for (Index e = 0, k = 0; e < problem_.size(); ++e) {
        const bool is_active = k < static_cast<Index>(active.size()) && active[unsigned_index(k)] == e;
        if (is_active) ++k;
        if (!is_active) rest.push_back(e);
    }
    round_.reset();
    Workspace others(problem_, state_, rest);
    const auto columns = problem_.source().template columns<T>(problem_.source_rows(rest));
    if (!add_scores(*columns, changes, others.scores(0), others.ld(), team_, &monitor_, extras)) return false;
    others.scatter(state_);
    return true;
}

template class LocalEngine<float>;
template class LocalEngine<double>;

}  // namespace multimargin
