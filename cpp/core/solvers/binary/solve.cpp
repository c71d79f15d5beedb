#include "solvers/binary/solve.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "solvers/binary/blocks.hpp"
#include "solvers/binary/free_system.hpp"
#include "solvers/binary/one_level.hpp"

namespace multimargin {

namespace {

// The descent aims below tol, so that the float64 check finds tol met.
constexpr double aim = 0.9;
// Maximum number of failed confirmations before the solve has stalled.
constexpr int patience = 5;
// Scores in float32 cannot distinguish smaller violations from rounding.
constexpr double float32_tol = 5e-5;
// What a stretch of so many steps must add to the dual, as a share of it, to count as going on.
constexpr double least_gain = 1e-13;

enum class Reached { yes, imprecise, stalled, out_of_steps, stopped };

class BinarySolve {
  public:
    BinarySolve(const BinaryProblem& problem, BinaryState& state, const Options& options, Monitor& monitor,
                ThreadTeam& team, BinaryMemory& memory)
        : problem_(problem), state_(state), options_(options), monitor_(monitor), team_(team), memory_(memory) {}

    BinaryReport run() {
        const double begin = monitor_.seconds();
        if (options_.trace) trace(begin);
        const bool changed = make_feasible(problem_, state_);
        // Errors of the start are used only if the caller supplied them for this solve.
        state_.errors_current = std::exchange(state_.errors_given, false) && !changed;
        const StopReason reason = start() ? iterate() : monitor_.reason();
        if (reason == StopReason::max_iter) check_all();
        if (reason == StopReason::stalled) leave_what_is_worse_than_zero();
        BinaryReport report = describe(reason);
        report.seconds = monitor_.seconds() - begin;
        report.trace = end_of_trace(report);
        return report;
    }

  private:
    void trace(double begin) {
        const auto primal = [this] {
            synchronize_();
            return summarize(problem_, state_).primal;  // an estimate: some errors are in float32, some at rest
        };
        tally_.trace.begin([this, begin] { return monitor_.seconds() - begin; },
                           options_.trace_primal ? primal : std::function<double()>());
    }

    std::vector<TracePoint> end_of_trace(const BinaryReport& report) {
        if (!options_.trace) return {};
        tally_.violation = report.violation;
        tally_.dual = report.dual;
        TracePoint last = tally_.moment(census_of(problem_, state_));
        last.seconds = report.seconds;
        last.primal = report.primal;
        return tally_.trace.end(last);
    }

    bool start() {
        const bool zero =
            std::all_of(state_.variables.begin(), state_.variables.end(), [](double a) { return a == 0.0; });
        if (!state_.errors_current && !zero) return check_all();
        if (!state_.errors_current) {
            for (Index e = 0; e < problem_.size(); ++e) state_.errors[unsigned_index(e)] = -problem_.target(e);
        }
        // The objectives of a start matter where it is the end already.
        summary_.violation = interval_of(problem_, state_).violation();
        if (summary_.violation <= options_.tol || tally_.trace.on()) return summarize_all();
        state_.errors_current = true;
        exact_.remember(problem_, state_);
        return true;
    }

    bool summarize_all() {
        state_.errors_current = true;
        exact_.remember(problem_, state_);
        summary_ = summarize(problem_, state_);
        tally_.violation = summary_.violation;
        tally_.dual = summary_.dual;
        return true;
    }

    StopReason iterate() {
        Reached reached = Reached::imprecise;
        const bool coarse = options_.precision == Precision::float64 ||
                            (options_.precision == Precision::automatic &&
                             (options_.tol < float32_tol || float32_too_coarse(problem_, state_, options_.tol)));
        if (summary_.violation <= options_.tol) reached = Reached::yes;  // of a start, by its exact errors
        if (reached != Reached::yes && !coarse) reached = by_method<float>();
        if (reached == Reached::imprecise) {
            float64_rows_ = true;
            leave_what_is_worse_than_zero();
            reached = by_method<double>();
        }
        if (reached == Reached::yes && options_.extra_tol > 0.0) reached = go_beyond();
        switch (reached) {
            case Reached::yes: return StopReason::converged;
            case Reached::out_of_steps: return StopReason::max_iter;
            case Reached::stopped: return monitor_.reason();
            default: return StopReason::stalled;
        }
    }

    // Zero is feasible and has a dual of 0: where rounding has led to less, or to no number, that is the better point.
    void leave_what_is_worse_than_zero() {
        if (!state_.errors_current || summary_.dual >= 0.0 || problem_.sum() != 0.0) return;
        std::fill(state_.variables.begin(), state_.variables.end(), 0.0);
        for (Index e = 0; e < problem_.size(); ++e) state_.errors[unsigned_index(e)] = -problem_.target(e);
        summarize_all();
    }

    template <class T>
    Reached by_method() {
        if (by_one_level(options_, problem_.size())) {
            OneLevel<T> method(problem_, state_, options_, monitor_, tally_, memory_);
            return reach(method);
        }
        BinaryBlocks<T> method(problem_, state_, options_, monitor_, tally_, team_, memory_);
        return reach(method);
    }

    // tol is met; a small problem is taken further, by the linear system of its free variables and some pairs between.
    Reached go_beyond() {
        constexpr int most_rounds = 4;
        const double floor = 1e-15 * coefficient_mass(state_) * problem_.largest_diagonal();
        const double target = std::max(options_.extra_tol, floor);
        for (int i = 0; i < most_rounds && summary_.violation > target; ++i) {
            const BinaryState before = state_;
            const BinarySummary reached = summary_;
            if (options_.solver == SolverKind::two_level) {  // else the kernel may not be positive semi-definite
                const bool moved = polish(problem_, state_, monitor_);
                tally_.phases.exact_blocks += moved ? 1 : 0;
                if (!moved || !check_all() || (summary_.violation > options_.tol && i + 1 == most_rounds)) {
                    if (monitor_.stopped()) return Reached::stopped;
                    state_ = before;
                    summary_ = reached;
                    break;
                }
                if (summary_.violation <= target) break;
            }
            OneLevel<double> pairs(problem_, state_, options_, monitor_, tally_, memory_);
            const Outcome outcome = descend(pairs, target, options_.extra_steps);
            if (outcome == Outcome::stopped || !check_all()) return Reached::stopped;
        }
        return summary_.violation <= options_.tol ? Reached::yes : Reached::stalled;
    }

    template <class Method>
    Outcome descend(Method& method, double target, Index limit) {
        synchronize_ = [&method] { method.scatter(); };
        const Outcome outcome = method.run(target, limit);
        method.scatter();
        synchronize_ = [] {};  // the state is current until the next descent
        return outcome;
    }

    // Descends until the float64 check confirms tol.
    template <class Method>
    Reached reach(Method& method) {
        double best_seen = infinity, best_dual = -infinity;
        int disappointments = 0;
        while (true) {
            const Outcome outcome = descend(method, aim * options_.tol, options_.max_iter);
            state_.errors_current = false;
            if (outcome == Outcome::stopped) return Reached::stopped;
            if (outcome == Outcome::out_of_steps) return Reached::out_of_steps;
            if (!confirm(method.rounding())) return Reached::stopped;
            if (summary_.violation <= options_.tol) return Reached::yes;
            const double n = static_cast<double>(problem_.size());
            tally_.phases.work += step_overhead + n * n;  // of the check
            if (tally_.phases.work > options_.max_work) {
                out_of_work_ = true;
                return Reached::stalled;
            }
            const bool may_change = !float64_rows_ && options_.precision == Precision::automatic;
            if (may_change && float32_too_coarse(problem_, state_, options_.tol)) return Reached::imprecise;
            method.reload();
            // Steps that gain nothing go round in circles: the rounding of the errors is larger than tol.
            const double dual = balanced_dual();
            const bool gained = dual > best_dual + least_gain * std::abs(best_dual);
            best_dual = std::max(best_dual, dual);
            if (outcome == Outcome::near && gained) {
                disappointments = 0;
                continue;
            }
            if (may_change) return Reached::imprecise;
            disappointments = summary_.violation < 0.5 * best_seen ? 0 : disappointments + 1;
            best_seen = std::min(best_seen, summary_.violation);
            if (disappointments > patience) return Reached::stalled;
        }
    }

    // The dual without what rounding has added to sum y a: millions of steps would hide their gain behind that.
    double balanced_dual() const {
        double sum = 0.0;
        for (Index e = 0; e < problem_.size(); ++e) sum += problem_.sign(e) * state_.variables[unsigned_index(e)];
        return summary_.dual - summary_.bias * (sum - problem_.sum());
    }

    // The errors anew in float64, where they can matter: see may_matter.
    bool confirm(double rounding) {
        const PhaseTimer timer(tally_.phases.check);
        if (exact_.update(problem_, state_)) return summarize_all();
        if (problem_.source().cost() == 0.0) return check_all();  // in the order in which they lie
        std::vector<Index> examples;
        const BinaryInterval interval = interval_of(problem_, state_);
        const double error = std::max(1e-6 * coefficient_mass(state_), rounding) * problem_.largest_diagonal();
        const double margin = 10.0 * options_.tol + error;
        for (Index e = 0; e < problem_.size(); ++e) {
            if (may_matter(e, interval, margin)) examples.push_back(e);
        }
        return check_examples(examples);
    }

    // An example without a coefficient that lies well inside its half space neither violates nor is charged; the
    // the errors at hand are ten times more accurate than the margin used here.
    bool may_matter(Index e, const BinaryInterval& interval, double margin) const {
        const double error = state_.errors[unsigned_index(e)];
        if (state_.variables[unsigned_index(e)] > 0.0) return true;
        const bool inside = problem_.sign(e) > 0.0
                                ? error >= std::max(interval.largest_low, interval.lowest_up) + margin
                                : error <= std::min(interval.lowest_up, interval.largest_low) - margin;
        return !inside;  // what is not a number matters
    }

    bool check_all() { return check_examples(first_indices(problem_.size())); }

    bool check_examples(std::span<const Index> examples) {
        if (!refresh_errors(problem_, state_, examples, team_, monitor_)) return false;
        summarize_all();
        tally_.record([this] { return census_of(problem_, state_); });
        return true;
    }

    // After a stop: exact errors for some free support vectors, which is all that the bias needs.
    void find_bias() {
        constexpr std::size_t enough = 64;
        std::vector<Index> chosen;
        for (Index e = 0; e < problem_.size() && chosen.size() < enough; ++e) {
            const double a = state_.variables[unsigned_index(e)];
            if (a > 0.0 && a < problem_.cap(e)) chosen.push_back(e);
        }
        if (chosen.empty()) return;
        Monitor unwatched(nullptr, infinity);
        ThreadTeam alone(1);
        refresh_errors(problem_, state_, chosen, alone, unwatched);
        double sum = 0.0;
        for (const Index e : chosen) sum += state_.errors[unsigned_index(e)];
        summary_.bias = -sum / static_cast<double>(chosen.size());
    }

    BinaryReport describe(StopReason reason) {
        if (!state_.errors_current) {
            summary_ = summarize(problem_, state_);
            find_bias();
        }
        BinaryReport r;
        const bool met = state_.errors_current && summary_.violation <= options_.tol;
        r.stop_reason = met && reason == StopReason::max_iter ? StopReason::converged : reason;
        r.iterations = tally_.iterations;
        r.violation = summary_.violation;
        r.dual = summary_.dual;
        r.primal = state_.errors_current ? summary_.primal : infinity;
        r.n_support = summary_.n_support;
        r.kernel_rows = tally_.cache.rows_computed;
        r.cache_hits = tally_.cache.hits;
        r.verified = state_.errors_current;
        r.float64_rows = float64_rows_;
        r.phases = tally_.phases;
        r.bias = summary_.bias;
        r.out_of_work = out_of_work_;
        return r;
    }

    const BinaryProblem& problem_;
    BinaryState& state_;
    const Options& options_;
    Monitor& monitor_;
    ThreadTeam& team_;
    BinaryMemory& memory_;
    Tally tally_;
    BinarySummary summary_;
    ExactPoint exact_;
    bool float64_rows_ = false, out_of_work_ = false;
    std::function<void()> synchronize_ = [] {};  // brings the state up to date
};

}  // namespace

BinaryReport solve_binary(const BinaryProblem& problem, BinaryState& state, const Options& options, Monitor& monitor,
                          ThreadTeam& team, BinaryMemory& memory) {
    return BinarySolve(problem, state, options, monitor, team, memory).run();
}

}  // namespace multimargin
