#include "solvers/multiclass/solve.hpp"

#include <algorithm>

#include "base/memory.hpp"
#include "solvers/multiclass/face_newton.hpp"
#include "solvers/multiclass/feature_descent.hpp"
#include "solvers/multiclass/pair_descent.hpp"
#include "solvers/multiclass/two_level.hpp"

namespace multimargin {

namespace {

// The descent aims below tol, so that the float64 check of all examples finds tol met.
constexpr double aim = 0.9;
// Maximum number of failed confirmations before the solve has stalled.
constexpr int usual_patience = 5;
// Rounding of the scores, relative to the sum of magnitudes in them: smaller violations are rounding.
constexpr double score_rounding = 1e-15;

// Where steps on examples crawl, Newton's method takes over at this share of the largest target margin.
constexpr double near_violation = 0.3;

double largest_target(const Machine& machine) {
    double largest = 0.0;
    for (const auto& components : machine.components) {
        for (const Component& c : components) largest = std::max(largest, c.target);
    }
    return largest;
}

bool is_limit(StopReason reason) {
    return reason == StopReason::max_time || reason == StopReason::max_iter || reason == StopReason::stalled;
}

enum class Reached { yes, imprecise, crawling, stalled, out_of_steps, stopped };

class Solve {
  public:
    Solve(const Problem& problem, FullState& state, const Options& options, Watcher* watcher)
        : problem_(problem),
          state_(state),
          options_(options),
          team_(options.n_threads),
          monitor_(watcher, options.max_time),
          float64_rows_(options.precision == Precision::float64 ||
                        (options.precision == Precision::automatic && !problem.source().fits_float32())) {
        monitor_.limit_work(options.max_work);
        monitor_.describe([this] { return progress(); });
        monitor_.synchronize([this] { synchronize_(); });
        if (options.trace) trace();
    }

    Report run() {
        check_solver();
        make_feasible(problem_, state_);
        const StopReason reason = start() ? iterate() : monitor_.reason();
        synchronize_ = [] {};
        if (is_limit(reason)) last_check();
        return report(reason);
    }

  private:
    void trace() {
        const auto primal = [this] {
            synchronize_();
            return summarize(problem_, state_).primal;  // an estimate, as in progress()
        };
        tally_.trace.begin([this] { return monitor_.seconds(); },
                           options_.trace_primal ? primal : std::function<double()>());
    }

    void check_solver() const {
        const SolverKind solver = options_.solver;
        if (solver == SolverKind::working_set && problem_.machine().bound == Bound::simplex) {
            throw std::invalid_argument("working sets are for boxes; a simplex is solved by whole examples");
        }
        if (solver == SolverKind::working_set && options_.working_set_size < 2) {
            throw std::invalid_argument("a working set needs two variables at least");
        }
        if (solver == SolverKind::most_violating_pair || solver == SolverKind::maximum_gain) {
            throw std::invalid_argument("this choice of a pair is for binary problems with an exact bias");
        }
    }

    Progress progress() {
        if (monitor_.wants_detail()) {
            synchronize_();
            // Shrunk examples have the scores of when they were shrunk: an estimate.
            const Summary summary = summarize(problem_, state_);
            tally_.primal = summary.primal;
            tally_.n_support = summary.n_support;
        }
        Progress p;
        p.iteration = tally_.iterations;
        p.violation = tally_.violation;
        p.dual = tally_.dual;
        p.primal = tally_.primal;
        p.n_active = tally_.n_active;
        p.n_support = tally_.n_support;
        p.kernel_rows = tally_.cache.rows_computed;
        p.cache_hits = tally_.cache.hits;
        return p;
    }

    // Scores and objectives of the starting point.
    bool start() {
        const bool zero =
            std::all_of(state_.variables.begin(), state_.variables.end(), [](double a) { return a == 0.0; });
        if (zero) {
            std::fill(state_.scores.begin(), state_.scores.end(), 0.0);
            state_.scores_current = true;
        } else if (!state_.scores_given && !refresh_scores(problem_, state_, team_, &monitor_)) {
            state_.scores_current = false;
            return false;
        }
        note(summarize(problem_, state_));
        return true;
    }

    void note(const Summary& summary) {
        tally_.note(summary);
        keep_time_for_last_check();
    }

    StopReason iterate() {
        Reached reached = Reached::imprecise;
        const bool two_level = options_.solver == SolverKind::two_level;
        if (!float64_rows_) reached = two_level ? by_two_levels<float>() : by_descent<float>();
        if (two_level && reached == Reached::crawling && PairDescent::fits(problem_, options_)) {
            reached = by_faces(reached);
        }
        if (reached == Reached::crawling) reached = by_features();
        if (reached == Reached::imprecise) {
            float64_rows_ = true;
            reached = two_level ? by_two_levels<double>() : by_descent<double>();
        }
        switch (reached) {
            case Reached::yes: return StopReason::converged;
            case Reached::out_of_steps: return StopReason::max_iter;
            case Reached::stopped: return monitor_.reason();
            default: return StopReason::stalled;
        }
    }

    template <class T>
    Reached by_descent() {
        Descent<T> descent(problem_, state_, options_, monitor_, tally_);
        return reach_all(descent);
    }

    template <class T>
    Reached by_two_levels() {
        const bool may_give_up = may_give_up_ && std::is_same_v<T, float>;  // weights of features are float32
        TwoLevel<T> levels(problem_, state_, options_, prefers_active_set_, may_give_up, monitor_, tally_, team_);
        levels.limit_work(most_work_);
        const Reached reached = reach_all(levels);
        // Coefficients that float32 cannot carry come from a large C, where steps on examples crawl.
        prefers_active_set_ = levels.prefers_active_set() || float32_too_coarse(problem_, state_, options_.tol);
        return reached;
    }

    // Many free variables between classes that overlap. Steps between two classes come near the solution, with few free
    // variables. From there steps on examples have as much work as Newton's method probably takes; then it is its turn.
    Reached by_faces(Reached before) {
        if (options_.precision != Precision::automatic || float64_rows_) return before;
        const double near = near_violation * largest_target(problem_.machine());
        if (!approach(near)) return ended(before);
        if (tally_.violation <= options_.tol) return before;
        may_give_up_ = false;
        most_work_ = monitor_.work() + FaceNewton::expected_work(problem_, state_);
        Reached reached = by_two_levels<float>();
        if (reached == Reached::imprecise && monitor_.work() < most_work_) {
            float64_rows_ = true;
            reached = by_two_levels<double>();
        }
        most_work_ = infinity;
        if (reached != Reached::crawling && reached != Reached::imprecise) return reached;
        if (!approach(near)) return ended(before);
        FaceNewton faces(problem_, state_, options_, monitor_, tally_, team_);
        while (true) {
            synchronize_ = [&faces] { faces.scatter(); };
            const Outcome outcome = faces.run(aim * options_.tol);
            faces.scatter();
            synchronize_ = [] {};
            if (outcome == Outcome::stopped || outcome == Outcome::out_of_steps) return ended(before);
            if (!confirm_all()) return Reached::stopped;
            if (tally_.violation <= options_.tol) return options_.extra_tol > 0.0 ? before : Reached::yes;
            if (outcome == Outcome::stuck) return before;
        }
    }

    Reached ended(Reached otherwise) const {
        if (monitor_.stopped()) return Reached::stopped;
        const bool spent = options_.max_iter >= 0 && tally_.iterations >= options_.max_iter;
        return spent ? Reached::out_of_steps : otherwise;
    }

    // Brings the violation below a share of the margins, by steps between two classes.
    bool approach(double violation) {
        synchronize_ = [] {};  // pairs of classes work on the full state
        if (tally_.violation <= violation) return true;
        PairDescent pairs(problem_, state_, options_, monitor_, tally_, team_);
        if (pairs.run(violation) != Outcome::satisfied) return false;
        return confirm_all();
    }

    bool confirm_all() {
        const PhaseTimer timer(tally_.phases.check);
        const double n = static_cast<double>(problem_.size());
        monitor_.spend(n * n * static_cast<double>(problem_.machine().n_scores()));
        if (!refresh_scores(problem_, state_, team_, &monitor_)) return false;
        note(summarize(problem_, state_));
        tally_.record([this] { return census_of(problem_, state_); });
        return true;
    }

    // Many free variables and steps that crawl: in the features of the kernel where it has few; then on as before.
    Reached by_features() {
        may_give_up_ = false;
        const bool automatic = options_.precision == Precision::automatic;
        if (automatic && float32_too_coarse(problem_, state_, options_.tol)) return Reached::imprecise;
        FeatureDescent features(problem_, state_, monitor_, tally_, team_);
        synchronize_ = [&features] { features.scatter(); };
        const Outcome outcome = features.run(options_.tol, options_.max_iter);  // its checks are exact
        synchronize_ = [] {};
        if (outcome == Outcome::stopped) return Reached::stopped;
        if (outcome == Outcome::out_of_steps) return Reached::out_of_steps;
        if (outcome == Outcome::satisfied && !(options_.extra_tol > 0.0)) return Reached::yes;
        return by_two_levels<float>();
    }

    template <class Method>
    Reached reach_all(Method& method) {
        const Reached reached = reach(method, options_.tol, options_.max_iter);
        return reached == Reached::yes && options_.extra_tol > 0.0 ? go_beyond(method) : reached;
    }

    // tol is met; a small problem is taken further, as far as a limited number of steps gets.
    template <class Method>
    Reached go_beyond(Method& descent) {
        Index limit = tally_.iterations + options_.extra_steps;
        if (options_.max_iter >= 0) limit = std::min(limit, options_.max_iter);
        const double floor = score_rounding * coefficient_mass(problem_, state_);
        const FullState met = state_;
        const Reached reached = reach(descent, std::max(options_.extra_tol, floor), limit, 1);
        if (reached == Reached::stopped) {
            if (monitor_.reason() == StopReason::stalled) state_ = met;  // the budget counts for tol only
            return reached;
        }
        if (reached == Reached::out_of_steps && !confirm(descent)) return Reached::stopped;
        return tally_.violation <= options_.tol ? Reached::yes : reach(descent, options_.tol, options_.max_iter);
    }

    // Descends until the float64 check of all examples confirms tol.
    template <class Method>
    Reached reach(Method& descent, double tol, Index limit, int patience = usual_patience) {
        double best_seen = infinity;
        int disappointments = 0;
        synchronize_ = [&descent] { descent.scatter(); };
        while (true) {
            const Outcome outcome = descent.run(aim * tol, limit);
            descent.scatter();
            state_.scores_current = false;
            if (outcome == Outcome::stopped) return Reached::stopped;
            if (outcome == Outcome::out_of_steps) return Reached::out_of_steps;
            if (!confirm(descent)) return Reached::stopped;
            if (tally_.violation <= tol) return Reached::yes;
            if (outcome == Outcome::imprecise) return Reached::imprecise;
            if (outcome == Outcome::crawling) return Reached::crawling;
            if (outcome == Outcome::near || active_violation_ <= tol) continue;  // only shrunk examples violate
            if (!float64_rows_ && options_.precision == Precision::automatic) return Reached::imprecise;
            disappointments = active_violation_ < 0.5 * best_seen ? 0 : disappointments + 1;
            best_seen = std::min(best_seen, active_violation_);
            if (disappointments > patience) return Reached::stalled;
        }
    }

    // All scores anew in float64: brings shrunk examples back and shows the true violation.
    template <class Method>
    bool confirm(Method& descent) {
        const PhaseTimer timer(tally_.phases.check);
        synchronize_ = [] {};  // the full state is current until the descent goes on
        const double n = static_cast<double>(problem_.size());
        monitor_.spend(n * n * static_cast<double>(problem_.machine().n_scores()));
        if (!refresh(descent)) return false;
        note(summarize(problem_, state_));
        tally_.record([this] { return census_of(problem_, state_); });
        active_violation_ = violation_of(descent.members());
        descent.reload();
        synchronize_ = [&descent] { descent.scatter(); };
        return true;
    }

    template <class Method>
    bool refresh(Method& descent) {
        if constexpr (requires { descent.confirm(); }) return descent.confirm();
        return refresh_scores(problem_, state_, team_, &monitor_);
    }

    double violation_of(std::span<const Index> examples) const {
        std::vector<double> gradient(unsigned_index(problem_.machine().max_components())), a(gradient.size());
        double largest = 0.0;
        for (const Index e : examples) {
            const std::size_t n = problem_.machine().of(problem_.class_of(e)).size();
            gradient_of(problem_, state_, e, gradient);
            for (std::size_t p = 0; p < n; ++p) a[p] = state_.variable(static_cast<Index>(p), e);
            largest = std::max(largest, certain_violation(problem_.machine().bound, {gradient.data(), n}, {a.data(), n},
                                                          problem_.cap(e)));
        }
        return largest;
    }

    // Reserves the time of a float64 check at the end, unless that is most of max_time.
    void keep_time_for_last_check() {
        if (!(options_.max_time < infinity)) return;
        const double estimate = seconds_of_check();
        monitor_.reserve(estimate < 0.5 * options_.max_time ? estimate : 0.0);
    }

    double seconds_of_check() {
        std::vector<Index> rows;
        for (Index e = 0; e < std::min<Index>(problem_.size(), 64); ++e) rows.push_back(problem_.source_row(e));
        const auto columns = problem_.source().columns<double>(rows);
        AlignedVector<double> tile(rows.size() * unsigned_index(simd::panel_width));
        const double before = monitor_.seconds();
        columns->fill(rows, tile.data(), simd::panel_width);
        const double panel = monitor_.seconds() - before;
        const double n_panels = static_cast<double>(problem_.size()) / static_cast<double>(simd::panel_width) + 1.0;
        const double n_rows = static_cast<double>(std::max<Index>(tally_.n_support, problem_.size() / 4));
        return 1.5 * panel * n_panels * n_rows / static_cast<double>(rows.size());
    }

    // After max_iter or max_time: the numbers of the iterate reached, in the time kept back.
    void last_check() {
        Monitor short_monitor(nullptr, std::max(0.0, options_.max_time + 0.03 - monitor_.seconds()));
        if (state_.scores_current || refresh_scores(problem_, state_, team_, &short_monitor)) {
            note(summarize(problem_, state_));
        }
    }

    Report report(StopReason reason) {
        Report r;
        // A deadline that passes after tol was met changes nothing.
        const bool met = state_.scores_current && tally_.violation <= options_.tol;
        r.stop_reason = met && is_limit(reason) ? StopReason::converged : reason;
        r.iterations = tally_.iterations;
        r.seconds = monitor_.seconds();
        r.violation = tally_.violation;
        r.dual = tally_.dual;
        r.primal = state_.scores_current ? tally_.primal : infinity;
        r.n_support = tally_.n_support;
        r.kernel_rows = tally_.cache.rows_computed;
        r.cache_hits = tally_.cache.hits;
        r.verified = state_.scores_current;
        r.float64_rows = float64_rows_;
        r.phases = tally_.phases;
        r.phases.work = monitor_.work();
        TracePoint last = tally_.moment(options_.trace ? census_of(problem_, state_) : Census{});
        last.seconds = r.seconds;
        last.primal = r.primal;
        r.trace = tally_.trace.end(last);
        return r;
    }

    const Problem& problem_;
    FullState& state_;
    const Options& options_;
    ThreadTeam team_;
    Monitor monitor_;
    Tally tally_;
    std::function<void()> synchronize_ = [] {};
    bool float64_rows_;
    bool prefers_active_set_ = false;
    bool may_give_up_ = true;
    double most_work_ = infinity;  // of steps on examples
    double active_violation_ = infinity;
};

}  // namespace

Report solve(const Problem& problem, FullState& state, const Options& options, Watcher* watcher) {
    return Solve(problem, state, options, watcher).run();
}

}  // namespace multimargin
