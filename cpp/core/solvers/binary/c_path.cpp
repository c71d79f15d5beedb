#include "solvers/binary/c_path.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "solvers/binary/bounded_start.hpp"

namespace multimargin {

namespace {

// What a problem is at one C.
BinaryProblem problem_at(const KernelSource& source, const std::vector<Index>& rows, const BinaryPath& path, double C,
                         Loss loss) {
    std::vector<double> each;
    each.reserve(path.weights.size());
    for (const double weight : path.weights) each.push_back(C * weight);
    return {source, rows, path.n_positive, std::move(each), loss};
}

// The start at a larger C: the variables times the factor between 1 and the ratio of the two C at which the dual is
// largest on that ray. While all are at their bounds that is the ratio (KCSL04 section 3), while none is it is 1. The
// errors follow without kernel values.
void seed(const BinaryProblem& before, const BinaryProblem& now, double ratio, BinaryState& state) {
    double linear = 0.0, quadratic = 0.0;
    for (Index e = 0; e < now.size(); ++e) {
        const double a = state.variables[unsigned_index(e)], y = now.sign(e);
        const double f = state.errors[unsigned_index(e)] + y - before.ridge(e) * y * a;
        linear += a;
        quadratic += a * (y * f + now.ridge(e) * a);
    }
    const double factor = quadratic > 0.0 ? std::clamp(linear / quadratic, 1.0, ratio) : ratio;
    for (Index e = 0; e < now.size(); ++e) {
        double& a = state.variables[unsigned_index(e)];
        double& error = state.errors[unsigned_index(e)];
        const double y = now.sign(e), f = error + y - before.ridge(e) * y * a;
        const double scaled = factor * a;
        a = std::abs(scaled - now.cap(e)) <= 1e-14 * scaled ? now.cap(e) : scaled;  // rounding must not set it free
        error = factor * f - y + now.ridge(e) * y * a;
    }
    state.errors_given = true;
}

// With the hinge loss a solution without a variable at its bound is one for every larger C.
bool nothing_at_bound(const BinaryProblem& problem, const BinaryState& state) {
    for (Index e = 0; e < problem.size(); ++e) {
        if (!(state.variables[unsigned_index(e)] < problem.cap(e))) return false;
    }
    return true;
}

class Paths {
  public:
    Paths(const KernelSource& source, std::deque<BinaryPath>& paths, std::span<const double> Cs, Loss loss,
          const Options& options, PathPool& pool, Watcher* watcher)
        : source_(source),
          paths_(paths),
          Cs_(Cs),
          loss_(loss),
          options_(options),
          pool_(pool),
          team_(options.n_threads),
          monitor_(watcher, options.max_time) {
        monitor_.describe([this] {
            const std::lock_guard lock(mutex_);
            return progress_;
        });
    }

    StopReason run() {
        std::vector<Index> small;
        PathMemory memory = pool_.take();
        for (Index t = 0; t < static_cast<Index>(paths_.size()); ++t) {
            if (by_one_level(options_, size(t))) {
                small.push_back(t);
            } else {
                BinaryPath& path = paths_[unsigned_index(t)];
                if (monitor_.poll()) break;
                // Blocks use few of so many rows: a matrix of its own would cost more than it saves (shuttle: half
                // of a search).
                solve_each(source_, path.rows, path, options_, team_, memory.rows);
            }
        }
        pool_.give_back(std::move(memory));
        Options options = options_;
        options.cache_bytes /= static_cast<double>(team_.n_threads());
        const auto one = [&](Index i) {
            PathMemory own = pool_.take();
            follow(paths_[unsigned_index(small[unsigned_index(i)])], options, own);
            pool_.give_back(std::move(own));
        };
        team_.run(static_cast<Index>(small.size()), one, [this] { monitor_.poll(); });
        return monitor_.stopped() ? monitor_.reason() : StopReason::converged;
    }

  private:
    Index size(Index t) const { return static_cast<Index>(paths_[unsigned_index(t)].rows.size()); }

    void follow(BinaryPath& path, const Options& options, PathMemory& memory) {
        const Index n = static_cast<Index>(path.rows.size());
        if (monitor_.poll()) return;
        ThreadTeam alone(1);
        if (KeptSource::bytes(n) > options.cache_bytes)
            return solve_each(source_, path.rows, path, options, alone, memory.rows);
        const KeptSource kept(source_, path.rows, memory.matrix);
        const std::vector<Index> all = first_indices(n);
        solve_each(kept, all, path, options, alone, memory.rows);
    }

    void solve_each(const KernelSource& source, const std::vector<Index>& rows, BinaryPath& path,
                    const Options& options, ThreadTeam& team, BinaryMemory& memory) {
        path.points.reserve(Cs_.size());
        std::vector<BinaryProblem> problems;  // the last two
        std::vector<BinaryState> state;
        for (std::size_t k = 0; k < Cs_.size(); ++k) {
            if (k > 0 && may_stay(path.points.back().report) && nothing_at_bound(problems.back(), state[0])) {
                path.points.push_back(path.points.back());
                path.points.back().report.iterations = 0;
                path.points.back().report.seconds = 0.0;
                ++path.n_done;
                continue;
            }
            problems.push_back(problem_at(source, rows, path, Cs_[k], loss_));
            if (k == 0) {
                state.emplace_back(problems.back());
                start_at_bounds(problems.back(), state[0]);
            } else {
                if (state[0].errors_current) seed(problems[0], problems[1], Cs_[k] / Cs_[k - 1], state[0]);
                problems.erase(problems.begin());
            }
            const BinaryReport report = solve_binary(problems.back(), state[0], options, monitor_, team, memory);
            if (monitor_.stopped() && report.stop_reason != StopReason::converged) return;
            path.points.push_back({state[0].variables, report});
            account(report);
            ++path.n_done;
        }
    }

    bool may_stay(const BinaryReport& report) const {
        return loss_ == Loss::hinge && report.stop_reason == StopReason::converged && report.verified;
    }

    void account(const BinaryReport& report) {
        const std::lock_guard lock(mutex_);
        progress_.iteration += report.iterations;
        progress_.dual += report.dual;
        progress_.primal = (progress_.primal < infinity ? progress_.primal : 0.0) + report.primal;
        progress_.violation = std::max(progress_.violation < infinity ? progress_.violation : 0.0, report.violation);
        progress_.n_support += report.n_support;
        progress_.kernel_rows += report.kernel_rows;
        progress_.cache_hits += report.cache_hits;
    }

    const KernelSource& source_;
    std::deque<BinaryPath>& paths_;
    std::span<const double> Cs_;
    Loss loss_;
    const Options& options_;
    PathPool& pool_;
    ThreadTeam team_;
    Monitor monitor_;
    std::mutex mutex_;
    Progress progress_;
};

}  // namespace

PathMemory PathPool::take() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return {};
    PathMemory memory = std::move(spare_.back());
    spare_.pop_back();
    return memory;
}

void PathPool::give_back(PathMemory memory) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(memory));
}

StopReason solve_paths(const KernelSource& source, std::deque<BinaryPath>& paths, std::span<const double> Cs, Loss loss,
                       const Options& options, PathPool& pool, Watcher* watcher) {
    return Paths(source, paths, Cs, loss, options, pool, watcher).run();
}

}  // namespace multimargin
