#include "solvers/multiclass/one_level.hpp"

#include <algorithm>
#include <numeric>

namespace multimargin {

namespace {

// Keeps those live variables of a block for which keep(t) holds. A list of more than half of them is no
// faster than the whole block, so that stays whole unless it must be exact: looking at a shrunk variable does no harm.
template <class Keep>
void keep_live(ComponentSlice& slice, bool exact, Keep keep) {
    std::vector<int> live;
    for (Index t = 0; t < slice.n_live(); ++t) {
        if (keep(t)) live.push_back(static_cast<int>(slice.position(t) - slice.begin));
    }
    if (!exact && slice.whole && 2 * static_cast<Index>(live.size()) > slice.length) return;
    slice.live = std::move(live);
    slice.whole = false;
}

}  // namespace

template <class T>
Descent<T>::Descent(const Problem& problem, FullState& state, const Options& options, Monitor& monitor, Tally& tally)
    : problem_(problem),
      machine_(problem.machine()),
      state_(state),
      options_(options),
      monitor_(monitor),
      tally_(tally),
      box_selector_(machine_),
      semi_greedy_(problem) {
    reload();
}

template <class T>
void Descent<T>::reload() {
    const bool keep_cache = workspace_ != nullptr && all_active();
    const std::vector<Index> all = first_indices(problem_.size());
    workspace_ = std::make_unique<Workspace>(problem_, state_, std::move(all));
    if (!keep_cache) {
        const Index rows_at_once = options_.solver == SolverKind::working_set ? options_.working_set_size : 2;
        auto columns = problem_.source().template columns<T>(problem_.source_rows(workspace_->members()));
        cache_ = std::make_unique<RowCache<T>>(std::move(columns), static_cast<std::size_t>(options_.cache_bytes),
                                               tally_.cache, rows_at_once);
    }
    since_shrinking_ = 0;
    resting_ = {};
    tally_.n_active = workspace_->size();
    semi_greedy_.attach(*workspace_, *this);
}

template <class T>
const T* Descent<T>::row(Index position) {
    return cache_->row(problem_.source_row(workspace_->example(position)));
}

template <class T>
bool Descent<T>::by_example() const {
    const bool whole = options_.solver == SolverKind::whole_example || options_.solver == SolverKind::semi_greedy;
    return machine_.bound == Bound::simplex || (whole && machine_.structured);
}

template <class T>
double Descent<T>::select() {
    if (by_example()) {
        return semi_greedy_.scan();
    }
    if (options_.solver == SolverKind::working_set) {
        return box_selector_.working_set(*workspace_, options_.working_set_size, working_set_);
    }
    box_choice_ = options_.solver == SolverKind::smo ? box_selector_.largest_gain(*workspace_)
                                                     : box_selector_.most_violating(*workspace_);
    return box_choice_.violation;
}

// The first choice scans all variables; the second, by the gain with the first, also divides for each of them.
template <class T>
double Descent<T>::cost_of_selection() const {
    const double variables = static_cast<double>(workspace_->size() * machine_.max_components());
    const double blocks = 8.0 * static_cast<double>(workspace_->slices().size());  // loops that begin, in variables
    return 4.0 * step_overhead + (by_example() ? 6.0 : 20.0) * (variables + blocks);
}

template <class T>
Outcome Descent<T>::run(double target, Index max_iterations) {
    const Index interval = std::clamp<Index>(problem_.size(), 1, 1000);
    while (true) {
        if (monitor_.poll()) return Outcome::stopped;
        tally_.violation = select();
        monitor_.spend(cost_of_selection());
        tally_.record([this] { return census(); });
        if (tally_.violation <= target) {
            if (!release_variables()) return Outcome::satisfied;
            continue;
        }
        if (!tally_.shrunk_before && !all_active() && tally_.violation < 10.0 * target) {
            tally_.shrunk_before = true;
            return Outcome::near;
        }
        if (max_iterations >= 0 && tally_.iterations >= max_iterations) return Outcome::out_of_steps;
        if (++since_shrinking_ >= interval) {
            since_shrinking_ = 0;
            if (std::is_same_v<T, float> && options_.precision == Precision::automatic && rows_too_coarse()) {
                return Outcome::imprecise;
            }
            if (options_.shrink_variables || options_.shrink_examples) {
                shrink();
                continue;  // positions have changed
            }
        }
        if (!step(target, max_iterations)) return monitor_.stopped() ? Outcome::stopped : Outcome::stuck;
    }
}

template <class T>
bool Descent<T>::step(double target, Index max_iterations) {
    if (options_.cache_bytes <= 0.0) cache_->forget();
    if (options_.solver == SolverKind::semi_greedy && machine_.structured) return sweep(target, max_iterations);
    ++tally_.iterations;
    if (options_.solver == SolverKind::whole_example && machine_.structured) {
        return take(steps().whole_example(semi_greedy_.worst().position));
    }
    if (machine_.bound == Bound::simplex) return take(steps().pair_in_example(semi_greedy_.worst().position));
    if (options_.solver == SolverKind::working_set) return take(steps().working_set(working_set_));
    const bool pairs = options_.solver != SolverKind::smo;
    return take(steps().box_variables(box_choice_.variable, pairs ? &box_selector_ : nullptr));
}

template <class T>
bool Descent<T>::take(const StepResult& result) {
    tally_.dual += result.gain;
    return result.moved;
}

template <class T>
bool Descent<T>::sweep(double target, Index max_iterations) {
    const Index left = max_iterations >= 0 ? max_iterations - tally_.iterations : -1;
    const SweepResult result = semi_greedy_.sweep(target, left, monitor_);
    tally_.iterations += result.steps;
    monitor_.spend(static_cast<double>(result.steps) * (step_overhead + 3.0 * static_cast<double>(workspace_->size())));
    tally_.dual += result.gain;
    since_shrinking_ += result.steps;
    return result.moved && !monitor_.stopped();
}

template <class T>
bool Descent<T>::rows_too_coarse() {
    scatter();
    return float32_too_coarse(problem_, state_, options_.tol);
}

// A variable at a bound whose gradient pushes it there harder than anything violates is left alone.
template <class T>
bool Descent<T>::may_shrink(const ComponentSlice& slice, Index t) {
    const Index j = slice.position(t);
    const double g = workspace_->gradient(slice)[t], a = workspace_->variables(slice.p)[j];
    if (machine_.bound == Bound::simplex) {
        return a == 0.0 && g < semi_greedy_.selector().low()[unsigned_index(j)] - tally_.violation;
    }
    return (a == 0.0 && g < -tally_.violation) || (a == workspace_->cap()[j] && g > tally_.violation);
}

// An example of a simplex machine rests when its whole mass sits on one component (or the slack) and no
// other may move; otherwise its positive components stay live.
template <class T>
void Descent<T>::release_resting_examples() {
    std::vector<int> movable(unsigned_index(workspace_->size()), 0), positive(movable.size(), 0);
    for (const ComponentSlice& slice : workspace_->slices()) {
        for (Index t = 0; t < slice.n_live(); ++t) {
            const std::size_t j = unsigned_index(slice.position(t));
            const bool holds = workspace_->variables(slice.p)[slice.position(t)] > 0.0;
            positive[j] += holds ? 1 : 0;
            movable[j] += holds ? 0 : 1;
        }
    }
    for (ComponentSlice& slice : workspace_->slices()) {
        keep_live(slice, !options_.shrink_variables, [&](Index t) {
            const std::size_t j = unsigned_index(slice.position(t));
            const bool has_slack = slack_of(workspace_->sum()[j], workspace_->cap()[j]) > 0.0;
            return movable[j] > 0 || positive[j] + (has_slack ? 1 : 0) > 1;
        });
    }
}

// Makes all variables of the active examples live again, whose scores are current; false if all were live.
template <class T>
bool Descent<T>::release_variables() {
    bool any = false;
    for (ComponentSlice& slice : workspace_->slices()) {
        any = any || !slice.whole;
        slice.whole = true;
        slice.live.clear();
    }
    return any;
}

// Variables and examples that rest (DGI11 6.1).
template <class T>
void Descent<T>::shrink() {
    for (ComponentSlice& slice : workspace_->slices()) {
        keep_live(slice, !options_.shrink_variables, [&](Index t) { return !may_shrink(slice, t); });
    }
    if (machine_.bound == Bound::simplex) release_resting_examples();
    std::vector<Index> keep = workspace_->live_positions();
    if (!options_.shrink_variables) release_variables();
    // Gathering anew pays when enough examples have come to rest.
    if (static_cast<Index>(keep.size()) > (workspace_->size() * 4) / 5) return;
    if (keep.empty() || !options_.shrink_examples) return;
    scatter();
    std::vector<Index> members;
    for (const Index j : keep) members.push_back(workspace_->example(j));
    cache_->restrict_to(problem_.source().template columns<T>(problem_.source_rows(members)), keep);
    workspace_ = std::make_unique<Workspace>(problem_, state_, std::move(members));
    if (tally_.trace.on()) {
        const Census all = census_of(problem_, state_), active = workspace_->census();
        resting_.free = all.free - active.free;
        resting_.bounded = all.bounded - active.bounded;
    }
    state_.scores_current = false;
    tally_.n_active = workspace_->size();
    semi_greedy_.attach(*workspace_, *this);
}

template <class T>
Census Descent<T>::census() {
    Census census = workspace_->census();
    census.variables = 0;
    for (const ComponentSlice& slice : workspace_->slices()) census.variables += slice.n_live();
    census.free += resting_.free;
    census.bounded += resting_.bounded;
    return census;
}

template class Descent<float>;
template class Descent<double>;

}  // namespace multimargin
