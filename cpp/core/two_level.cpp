#include "two_level.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "rng.hpp"

namespace multimargin {

namespace {

constexpr Index default_block = 512;
constexpr Index large_block = 1024;      // for machines in which all components of an example are free together
constexpr double round_share = 0.1;      // a round leaves this share of the violation it began with
constexpr double block_share = 0.1;      // so does a block
constexpr double near_violation = 0.3;   // gradients above minus this are watched, relative to the largest target
constexpr Index steps_per_example = 40;  // a block that needs more is ill-conditioned
constexpr double fair_share = 0.25;      // ... unless its steps bring it this far in each such turn
constexpr double most_stored_bytes = 2e8;
constexpr Index most_free = 1500;  // of the active set: its factor costs the square of this per step

double largest_target(const Machine& machine) {
    double largest = 0.0;
    for (const auto& components : machine.components) {
        for (const Component& c : components) largest = std::max(largest, c.target);
    }
    return largest;
}

}  // namespace

template <class T>
TwoLevel<T>::TwoLevel(const Problem& problem, FullState& state, const Options& options, Monitor& monitor, Tally& tally,
                      ThreadTeam& team)
    : problem_(problem),
      machine_(problem.machine()),
      state_(state),
      options_(options),
      monitor_(monitor),
      tally_(tally),
      team_(team),
      semi_greedy_(problem),
      active_set_(problem),
      selector_(machine_),
      block_size_(machine_.sum_to_zero ? large_block : default_block),
      prefers_active_set_(std::is_same_v<T, double>) {}

template <class T>
std::vector<Index> TwoLevel<T>::members() const {
    std::vector<Index> all(unsigned_index(problem_.size()));
    std::iota(all.begin(), all.end(), Index{0});
    return all;
}

template <class T>
double TwoLevel<T>::scan(Workspace& workspace) {
    return tally_.violation = selector_.most_violating(workspace).violation;
}

// Holds the whole kernel matrix where that is cheap: a support vector's row is asked for in some ten blocks.
template <class T>
void TwoLevel<T>::store_kernel() {
    const Index n = problem_.size();
    const double bytes = static_cast<double>(n) * static_cast<double>(n) * sizeof(T);
    if (stored_ != nullptr || n <= block_size_ || bytes > std::min(options_.cache_bytes, most_stored_bytes)) return;
    stored_ = std::make_unique<StoredSource<T>>(problem_.source(), problem_.source_rows(members()), team_, monitor_);
    tally_.cache.rows_computed += n;
}

template <class T>
const KernelSource& TwoLevel<T>::source() const {
    return stored_ != nullptr ? static_cast<const KernelSource&>(*stored_) : problem_.source();
}

template <class T>
Outcome TwoLevel<T>::run(double target, Index max_iterations) {
    store_kernel();
    if (monitor_.poll()) return Outcome::stopped;
    std::vector<Index> active = members();
    while (true) {
        if (monitor_.poll()) return Outcome::stopped;
        Workspace workspace(problem_, state_, active);
        const double violation = scan(workspace);
        if (violation <= target && static_cast<Index>(active.size()) == problem_.size()) return Outcome::satisfied;
        columns_ = source().template columns<T>(problem_.source_rows(active));
        previous_.clear();
        // Where many violate alike (at the start all do) the block must not be one class: positions go by class.
        tie_break_ = random_permutation(workspace.size(), 0);
        tally_.n_active = workspace.size();
        const AlignedVector<double> before = state_.amounts;
        current_ = &workspace;
        const Outcome outcome = run_blocks(workspace, std::max(target, round_share * violation), max_iterations);
        scatter();
        current_ = nullptr;
        if (!update_rest(active, before)) return Outcome::stopped;
        if (outcome != Outcome::satisfied) return outcome;
        const bool coarse = std::is_same_v<T, float> && options_.precision == Precision::automatic &&
                            float32_too_coarse(problem_, state_, options_.tol);
        if (coarse) return Outcome::imprecise;
        const double left = summarize(problem_, state_).violation;
        tally_.violation = left;
        if (left <= target) return Outcome::satisfied;
        active = choose_active(left);
    }
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
        for (std::size_t p = 0; p < n && !chosen; ++p) chosen = state_.amount(static_cast<Index>(p), e) > 0.0;
        if (!chosen) {
            gradient_of(problem_, state_, e, gradient);
            chosen = *std::max_element(gradient.begin(), gradient.begin() + static_cast<Index>(n)) > -margin;
        }
        if (chosen) active.push_back(e);
    }
    return active;
}

template <class T>
Outcome TwoLevel<T>::run_blocks(Workspace& active, double target, Index max_iterations) {
    while (true) {
        if (monitor_.poll()) return Outcome::stopped;
        const double violation = scan(active);
        if (violation <= 0.9 * target) return Outcome::satisfied;
        if (max_iterations >= 0 && tally_.iterations >= max_iterations) return Outcome::out_of_steps;
        const std::vector<Index> positions = choose_block(active);
        Workspace block(active, positions);
        const double block_target = std::max(0.45 * target, block_share * violation);
        const Index left = max_iterations >= 0 ? max_iterations - tally_.iterations : std::numeric_limits<Index>::max();
        const double dual = tally_.dual;
        current_block_ = &block;
        const bool solved = solve_block(block, block_target, left);
        current_block_ = nullptr;
        if (!merge(active, block, positions)) return Outcome::stopped;
        previous_ = positions;
        if (monitor_.stopped()) return Outcome::stopped;
        if (max_iterations >= 0 && tally_.iterations >= max_iterations) return Outcome::out_of_steps;
        if (!solved && std::is_same_v<T, float> && options_.precision == Precision::automatic)
            return Outcome::imprecise;
        if (!(tally_.dual > dual)) return Outcome::stuck;
    }
}

template <class T>
bool TwoLevel<T>::is_free(Workspace& workspace, Index position) const {
    const double cap = workspace.cap()[position];
    for (Index p = 0; p < workspace.n_components(position); ++p) {
        const double a = workspace.amounts(p)[position];
        if (a > 0.0 && a < cap) return true;
    }
    return false;
}

// Half of the block: the free examples of the last one, the worst first. The rest: the worst of all.
template <class T>
std::vector<Index> TwoLevel<T>::choose_block(Workspace& active) {
    const auto violation = [&](Index j) {
        return selector_.top()[unsigned_index(j)] - selector_.low()[unsigned_index(j)];
    };
    const auto worse = [&](Index i, Index j) {
        const double vi = violation(i), vj = violation(j);
        return vi > vj || (vi == vj && tie_break_[unsigned_index(i)] < tie_break_[unsigned_index(j)]);
    };
    std::vector<char> taken(unsigned_index(active.size()), 0);
    std::vector<Index> chosen;
    std::vector<Index> kept;
    for (const Index j : previous_) {
        if (is_free(active, j)) kept.push_back(j);
    }
    std::sort(kept.begin(), kept.end(), worse);
    for (const Index j : kept) {
        if (static_cast<Index>(chosen.size()) >= block_size_ / 2) break;
        chosen.push_back(j);
        taken[unsigned_index(j)] = 1;
    }
    std::vector<Index> rest;
    for (Index j = 0; j < active.size(); ++j) {
        if (taken[unsigned_index(j)] == 0 && violation(j) > 0.0) rest.push_back(j);
    }
    const std::size_t room = unsigned_index(block_size_) - chosen.size();
    if (rest.size() > room) {
        std::nth_element(rest.begin(), rest.begin() + static_cast<Index>(room), rest.end(), worse);
        rest.resize(room);
    }
    chosen.insert(chosen.end(), rest.begin(), rest.end());
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

template <class T>
bool TwoLevel<T>::solve_block(Workspace& block, double target, Index max_steps) {
    const std::vector<Index> rows = problem_.source_rows(block.members());
    const auto columns = source().template columns<T>(rows);
    kernel_.ld = columns->n_panels() * simd::panel_width;
    kernel_.values.resize(checked_product(block.size(), kernel_.ld));
    columns->fill(rows, kernel_.values.data(), kernel_.ld);
    (stored_ != nullptr ? tally_.cache.hits : tally_.cache.rows_computed) += block.size();
    const Index before = tally_.iterations;
    if (prefers_active_set_ && solve_by_active_set(block, target, max_steps)) return true;
    semi_greedy_.attach(block, kernel_);
    const Index all = max_steps - (tally_.iterations - before);
    const double start = semi_greedy_.scan();
    for (Index used = 0; used < all;) {
        const Index budget = std::min(steps_per_example * block.size(), all - used);
        if (semi_greedy_.run(target, budget, monitor_, tally_) || monitor_.stopped()) return true;
        used += budget;
        // Steps that bring a fair share of the way in each turn are well spent; steps that crawl are not.
        const double left = semi_greedy_.worst().violation;
        const double share = std::log(start / left) / std::log(start / target);
        if (share < fair_share * static_cast<double>(used) / static_cast<double>(budget)) return false;
    }
    return false;
}

template <class T>
bool TwoLevel<T>::solve_by_active_set(Workspace& block, double target, Index max_steps) {
    if constexpr (std::is_same_v<T, double>) {
        const ActiveSet::Limits limits{target, most_free, std::min<Index>(max_steps, 20 * most_free)};
        const ActiveSetResult result =
            active_set_.solve(block, kernel_.values.data(), kernel_.ld, limits, monitor_, tally_);
        return result.success || monitor_.stopped();
    }
    return false;
}

// The score columns' changes between two states of the variables, for examples of the problem.
template <class T>
Coefficients TwoLevel<T>::changes(std::span<const Index> examples, const AlignedVector<double>& before) const {
    std::vector<Index> changed;
    const auto old = [&](Index p, Index e) { return before[unsigned_index(p * state_.ld + e)]; };
    for (const Index e : examples) {
        bool any = false;
        for (Index p = 0; p < machine_.max_components() && !any; ++p) any = state_.amount(p, e) != old(p, e);
        if (any) changed.push_back(e);
    }
    Coefficients coefficients(problem_.source_rows(changed), machine_.n_columns());
    std::vector<double> columns(unsigned_index(machine_.n_columns()));
    for (std::size_t s = 0; s < changed.size(); ++s) {
        std::fill(columns.begin(), columns.end(), 0.0);
        const auto& components = machine_.of(problem_.class_of(changed[s]));
        for (std::size_t p = 0; p < components.size(); ++p) {
            const double delta =
                state_.amount(static_cast<Index>(p), changed[s]) - old(static_cast<Index>(p), changed[s]);
            if (delta != 0.0) machine_.add_to_columns(components[p], delta, columns.data());
        }
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (columns[c] != 0.0) coefficients.add(static_cast<Index>(c), static_cast<Index>(s), columns[c]);
        }
    }
    return coefficients;
}

template <class T>
bool TwoLevel<T>::merge(Workspace& active, Workspace& block, std::span<const Index> positions) {
    std::vector<Index> changed;
    std::vector<std::vector<std::pair<Index, double>>> deltas;
    std::vector<double> columns(unsigned_index(machine_.n_columns()));
    for (std::size_t b = 0; b < positions.size(); ++b) {
        const Index j = positions[b];
        std::fill(columns.begin(), columns.end(), 0.0);
        const auto& components = machine_.of(active.class_of(j));
        bool any = false;
        for (Index p = 0; p < active.n_components(j); ++p) {
            const double value = block.amounts(p)[static_cast<Index>(b)], delta = value - active.amounts(p)[j];
            if (delta == 0.0) continue;
            any = true;
            machine_.add_to_columns(components[unsigned_index(p)], delta, columns.data());
            active.set_amount(j, p, value);
        }
        if (!any) continue;
        changed.push_back(active.example(j));
        deltas.emplace_back();
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (columns[c] != 0.0) deltas.back().emplace_back(static_cast<Index>(c), columns[c]);
        }
    }
    Coefficients coefficients(problem_.source_rows(changed), machine_.n_columns());
    for (std::size_t s = 0; s < deltas.size(); ++s) {
        for (const auto& [c, value] : deltas[s]) coefficients.add(c, static_cast<Index>(s), value);
    }
    state_.columns_current = false;
    return add_scores(*columns_, coefficients, active.column(0), active.ld(), team_, &monitor_);
}

template <class T>
bool TwoLevel<T>::update_rest(std::span<const Index> active, const AlignedVector<double>& before) {
    if (static_cast<Index>(active.size()) == problem_.size()) return true;
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
    const auto columns = source().template columns<T>(problem_.source_rows(rest));
    const bool done = add_scores(*columns, changes(active, before), others.column(0), others.ld(), team_, &monitor_);
    if (done) others.scatter(state_);
    return done;
}

template class TwoLevel<float>;
template class TwoLevel<double>;

}  // namespace multimargin
