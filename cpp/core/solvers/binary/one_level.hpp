// Pairs of variables of all examples of a binary problem, and linear systems of the free ones where pairs take long.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "problem/options.hpp"
#include "problem/report.hpp"
#include "problem/solve_stats.hpp"
#include "solvers/binary/free_system.hpp"
#include "solvers/binary/smo.hpp"

namespace multimargin {

// Steps between two float64 checks of the errors, per example: rounding of the errors adds up meanwhile.
inline constexpr Index steps_per_example = 100;

// Multiply-adds of a step on a pair: two passes over the examples, and what does not grow with them.
inline double pair_step_cost(Index n) { return 2.0 * static_cast<double>(n) + 0.25 * step_overhead; }

// All examples in one workspace, rows from a cache.
template <class T>
class OneLevel {
  public:
    OneLevel(const BinaryProblem& problem, BinaryState& state, const Options& options, Monitor& monitor, Tally& tally,
             BinaryMemory& memory)
        : problem_(problem),
          state_(state),
          monitor_(monitor),
          tally_(tally),
          all_(first_indices(problem.size())),
          rows_(problem.source(), problem.rows(), options.cache_bytes, tally.cache, memory.of<T>()),
          descent_(options.solver == SolverKind::most_violating_pair),
          may_polish_(options.solver == SolverKind::two_level),
          least_stretch_(problem.source().cost() > 0.0 ? 200 : 60) {
        reload();
        if (tally.trace.on()) descent_.observe([this] { record(); });
    }

    // Pairs of variables; where they take long, the free variables are solved for at once, when the pairs have cost
    // as much as that will.
    Outcome run(double target, Index limit) {
        const Index chunk = steps_per_example * problem_.size() + 1000;
        Index left = limit < 0 ? std::numeric_limits<Index>::max() : std::max<Index>(0, limit - counted_);
        for (Index since_check = 0; since_check < chunk;) {
            const Index stretch = std::min({left, chunk - since_check, steps_until_polish()});
            const Index before = descent_.steps();
            const Outcome outcome = descent_.run(rows_, target, before + stretch, monitor_);
            const Index done = descent_.steps() - before;
            counted_ += done;
            since_check += done;
            since_polish_ += done;
            left -= done;
            account();
            if (outcome != Outcome::out_of_steps || left == 0) return outcome;
            if (steps_until_polish() == 0 && !solve_free()) return Outcome::stopped;
        }
        return Outcome::near;
    }

    void scatter() {
        for (Index e = 0; e < problem_.size(); ++e) {
            state_.variables[unsigned_index(e)] = descent_.variable(e);
            state_.errors[unsigned_index(e)] = descent_.error(e);
        }
    }

    // Bounds the rounding of the errors since the last check, for a kernel with a diagonal of one.
    double rounding() const { return std::numeric_limits<T>::epsilon() * (travel_ + descent_.travel()); }

    void reload() {
        travel_ = 0.0;
        load();
    }

  private:
    void load() {
        descent_.load(problem_, all_, state_.variables, state_.errors);
        steps_told_ = 0;
        gain_told_ = 0.0;
    }

    // Brings the tally up to the steps that were taken.
    void account() {
        const Index steps = descent_.steps() - std::exchange(steps_told_, descent_.steps());
        tally_.iterations += steps;
        tally_.phases.work += static_cast<double>(steps) * step_cost();
        tally_.dual += descent_.gain() - std::exchange(gain_told_, descent_.gain());
        tally_.violation = descent_.violation();
    }

    double step_cost() const { return pair_step_cost(problem_.size()); }

    void record() {
        account();
        tally_.record([this] {
            Census census{problem_.size(), problem_.size()};
            for (Index e = 0; e < problem_.size(); ++e) census.count(descent_.variable(e), problem_.cap(e));
            return census;
        });
    }

    Index n_free() const {
        Index n = 0;
        for (Index e = 0; e < problem_.size(); ++e) {
            n += (descent_.variable(e) > 0.0) & (descent_.variable(e) < problem_.cap(e)) ? 1 : 0;
        }
        return n;
    }

    // In steps on a pair.
    double cost_of_polish(Index n_free) const {
        return polish_cost(static_cast<double>(n_free), static_cast<double>(problem_.size()), problem_.source().cost());
    }

    Index steps_until_polish() const {
        const Index n = n_free();
        if (!may_polish_ || n > polish_most_free) return std::max<Index>(least_stretch_, problem_.size());
        return std::max<Index>(0, std::max(least_stretch_, static_cast<Index>(cost_of_polish(n))) - since_polish_);
    }

    bool solve_free() {
        tally_.phases.work += cost_of_polish(n_free()) * step_cost();
        scatter();
        const std::vector<double> before = state_.variables, errors_before = state_.errors;
        tally_.phases.exact_blocks += polish(problem_, state_, monitor_) ? 1 : 0;
        if (monitor_.stopped()) return false;
        for (Index e = 0; e < problem_.size(); ++e) {
            const double change = state_.variables[unsigned_index(e)] - before[unsigned_index(e)];
            if (change == 0.0) continue;
            travel_ += std::abs(change);
            add_row(problem_.sign(e) * change, rows_.row(e), state_.errors.data(), problem_.size());
            state_.errors[unsigned_index(e)] += problem_.ridge(e) * problem_.sign(e) * change;
        }
        // A factor that rounding rules may lead anywhere where no bound holds it: pairs alone then.
        if (problem_.loss() == Loss::squared_hinge && !no_loss(before, errors_before)) {
            state_.variables = before;
            state_.errors = errors_before;
            may_polish_ = false;
        }
        travel_ += descent_.travel();
        load();
        if (tally_.trace.on()) tally_.dual = summarize(problem_, state_).dual;
        since_polish_ = 0;
        return true;
    }

    // Whether the dual is as large as before, but for rounding.
    bool no_loss(const std::vector<double>& variables, const std::vector<double>& errors) const {
        constexpr double rounding = 1e-6;
        double change = 0.0, size = 0.0;
        for (std::size_t e = 0; e < variables.size(); ++e) {
            // of p'b - 1/2 b'f, where f is the error and its target
            const double y = problem_.sign(static_cast<Index>(e)), p = y * problem_.target(static_cast<Index>(e));
            const double now = state_.variables[e] * (p - 0.5 * (y * state_.errors[e] + p));
            const double then = variables[e] * (p - 0.5 * (y * errors[e] + p));
            change += now - then;
            size += std::abs(now) + std::abs(then);
        }
        return change >= -rounding * size;
    }

    const BinaryProblem& problem_;
    BinaryState& state_;
    Monitor& monitor_;
    Tally& tally_;
    std::vector<Index> all_;
    SlotRows<T> rows_;
    BinaryDescent<T> descent_;
    bool may_polish_;
    Index least_stretch_;  // pairs before the free variables are solved for: fewer (vehicle: a fifth) from memory
    double travel_ = 0.0;  // of the descents before the last load, and of the polishes
    Index counted_ = 0, since_polish_ = 0;
    Index steps_told_ = 0;    // to the tally, of those since the last reload ...
    double gain_told_ = 0.0;  // ... and what they gained
};

}  // namespace multimargin
