#include "solvers/multiclass/two_level.hpp"

#include <algorithm>
#include <limits>

#include "base/rng.hpp"

namespace multimargin {

double TwoLevelRules::most_margin(const Machine& machine) {
    double largest = 0.0;
    for (const auto& components : machine.components) {
        for (const Component& c : components) largest = std::max(largest, c.target);
    }
    return near_violation * largest;
}

template <class T>
TwoLevel<T>::TwoLevel(const Problem& problem, FullState& state, const Options& options, bool prefers_active_set,
                      bool may_give_up, Monitor& monitor, Tally& tally, ThreadTeam& team)
    : problem_(problem),
      machine_(problem.machine()),
      options_(options),
      monitor_(monitor),
      tally_(tally),
      block_size_(Rules::block_size<T>(problem)),
      one_block_(problem.size() <= block_size_),
      may_give_up_(may_give_up),
      local_(problem, state, options, monitor, tally, team),
      engine_(local_),
      block_solver_(problem, prefers_active_set || Rules::takes_whole<T>(problem), monitor, tally, team) {}

template <class T>
Outcome TwoLevel<T>::run(double target, Index max_iterations) {
    if (!local_.store_kernel(one_block_)) return Outcome::stopped;
    std::vector<Index> active = members();
    double violation = engine_.summary().violation;
    int idle = 0;  // consecutive rounds without a step: their scores disagree with those of all examples
    while (violation > target && idle < 2) {
        if (monitor_.poll()) return Outcome::stopped;
        const Index iterations = tally_.iterations;
        ++tally_.phases.rounds;
        n_active_ = tally_.n_active = static_cast<Index>(active.size());
        previous_.clear();
        // Where many violate alike (at the start all do) the block must not be one class: positions go by class.
        engine_.begin_round(active, random_permutation(n_active_, 0));
        const double goal = one_block_ ? target : std::max(target, Rules::round_share * violation);
        const Outcome outcome = run_blocks(goal, max_iterations);
        if (!engine_.end_round()) return Outcome::stopped;
        if (outcome != Outcome::satisfied) return outcome;
        idle = tally_.iterations == iterations ? idle + 1 : 0;
        const bool may_change = std::is_same_v<T, float> && options_.precision == Precision::automatic;
        if (may_change && engine_.float32_too_coarse(options_.tol)) return Outcome::imprecise;
        const PhaseTimer timer(tally_.phases.selection);
        tally_.violation = violation = engine_.summary().violation;
        const double margin = std::min(Rules::most_margin(machine_), 0.5 * violation);
        // Support vectors, violators, and examples that may become either before the round ends.
        if (!one_block_) active = engine_.near_active(margin);
    }
    return Outcome::satisfied;
}

template <class T>
Outcome TwoLevel<T>::run_blocks(double target, Index max_iterations) {
    while (true) {
        tally_.violation = engine_.violation();
        if (monitor_.poll()) return Outcome::stopped;
        // Examples outside the round have no variable above zero.
        tally_.record([this] { return engine_.census(); });
        if (tally_.violation <= 0.9 * target) return Outcome::satisfied;
        if (max_iterations >= 0 && tally_.iterations >= max_iterations) return Outcome::out_of_steps;
        const Outcome outcome = solve_block(tally_.violation, target, max_iterations);
        if (outcome != Outcome::satisfied) return outcome;
    }
}

// Satisfied where the block has raised the dual, so that blocks may go on.
template <class T>
Outcome TwoLevel<T>::solve_block(double violation, double target, Index max_iterations) {
    Stopwatch watch;
    const std::vector<Index> positions = choose_block();
    GatheredBlock<T> block = engine_.gather(positions);
    const AlignedVector<double> before = block.workspace.all_variables();
    tally_.phases.selection += watch.lap();
    const double share =
        one_block_ ? 0.0 : (block_solver_.prefers_active_set() ? Rules::exact_share : Rules::block_share);
    const double block_target = std::max(0.45 * target, share * violation);
    const Index left = max_iterations >= 0 ? max_iterations - tally_.iterations : std::numeric_limits<Index>::max();
    const double dual = tally_.dual;
    current_block_ = &block.workspace;
    const bool solved =
        block_solver_.solve(block.workspace, {block.square, positions}, block_target, left, may_give_up_);
    current_block_ = nullptr;
    keep_free(block.workspace, positions);
    if (!engine_.add(block.workspace, before, positions) || monitor_.stopped()) return Outcome::stopped;
    if (max_iterations >= 0 && tally_.iterations >= max_iterations) return Outcome::out_of_steps;
    if (block_solver_.gave_up() || monitor_.work() > most_work_) return Outcome::crawling;
    if (std::is_same_v<T, float> && options_.precision == Precision::automatic) {
        // Steps crawled and the active set did not: in float64 it may have the whole problem.
        const bool better_whole = !one_block_ && block_solver_.prefers_active_set() && Rules::fits_active_set(problem_);
        if (better_whole || !solved) return Outcome::imprecise;
    }
    return tally_.dual > dual ? Outcome::satisfied : Outcome::stuck;
}

// First free examples of the last block, the worst of them; then the worst of all.
template <class T>
std::vector<Index> TwoLevel<T>::choose_block() {
    if (one_block_) return first_indices(n_active_);
    std::vector<Index> chosen;
    const auto take = [&chosen](const std::vector<Candidate>& candidates) {
        for (const Candidate& candidate : candidates) chosen.push_back(candidate.position);
    };
    const double most_carried = Rules::carried_share * static_cast<double>(block_size_);
    take(worst_of(engine_.candidates_at(previous_), static_cast<std::size_t>(most_carried)));
    take(engine_.worst(unsigned_index(block_size_) - chosen.size(), chosen));
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

template <class T>
void TwoLevel<T>::keep_free(const Workspace& block, std::span<const Index> positions) {
    previous_.clear();
    for (Index b = 0; b < block.size(); ++b) {
        bool is_free = false;
        for (Index p = 0; p < machine_.max_components() && !is_free; ++p) {
            const double a = block.variables(p)[b];
            is_free = a > 0.0 && a < block.cap()[b];
        }
        if (is_free) previous_.push_back(positions[unsigned_index(b)]);
    }
}

template class TwoLevel<float>;
template class TwoLevel<double>;

}  // namespace multimargin
