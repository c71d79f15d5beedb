#include "solvers/binary/flat_batch.hpp"

#include <algorithm>
#include <stdexcept>

namespace multimargin {

std::array<double, n_report_columns> columns_of(const BinaryReport& report) {
    const Phases& phases = report.phases;
    const auto number = [](auto value) { return static_cast<double>(value); };
    return {number(report.stop_reason),
            number(report.iterations),
            report.seconds,
            report.violation,
            report.dual,
            report.primal,
            number(report.kernel_rows),
            number(report.cache_hits),
            number(report.verified),
            number(report.float64_rows),
            report.bias,
            phases.kernel,
            phases.scores,
            phases.inner,
            phases.selection,
            phases.check,
            phases.work,
            number(phases.rounds),
            number(phases.blocks),
            number(phases.exact_blocks),
            number(phases.feature_sweeps)};
}

FlatBatch::FlatBatch(const FlatProblems& problems, std::span<const double> start, bool trace)
    : variables(problems.rows.size(), 0.0),
      table(problems.n_positive.size() * n_report_columns, 0.0),
      traces(trace ? problems.n_positive.size() : 0),
      problems_(problems),
      start_(start),
      begun_(problems.n_positive.size(), 0),
      finished_(problems.n_positive.size(), 0) {
    const bool fits = problems.starts.size() == problems.n_positive.size() + 1 && problems.starts.front() == 0 &&
                      problems.starts.back() == static_cast<Index>(problems.rows.size()) &&
                      problems.C.size() == problems.rows.size() &&
                      std::is_sorted(problems.starts.begin(), problems.starts.end());
    if (!fits) throw std::invalid_argument("the problems do not cover their examples");
    if (!start.empty() && start.size() != variables.size()) {
        throw std::invalid_argument("the start needs one entry per example");
    }
}

BinaryReport FlatBatch::solve(Index t, const Options& options, Monitor& monitor, ThreadTeam& team,
                              BinaryMemory& memory) {
    // After a stop only the start of a problem is made feasible, which zeros are; there may be very many.
    const bool again = begun_[unsigned_index(t)];
    const bool idle = !again && start_.empty() && traces.empty() && monitor.stopped();
    if (idle) {
        if (std::optional<BinaryReport> known = idle_report()) return *std::move(known);
    }
    const auto first = problems_.rows.begin() + begin(t), last = problems_.rows.begin() + begin(t + 1);
    const auto C = problems_.C.begin() + begin(t);
    const BinaryProblem problem(*problems_.source, {first, last}, problems_.n_positive[unsigned_index(t)],
                                {C, C + size(t)}, problems_.loss);
    BinaryState state(problem);
    const std::span<const double> start = again ? std::span<const double>(variables) : start_;
    if (!start.empty()) std::copy_n(start.begin() + begin(t), size(t), state.variables.begin());
    begun_[unsigned_index(t)] = 1;
    BinaryReport report = solve_binary(problem, state, options, monitor, team, memory);
    std::copy(state.variables.begin(), state.variables.end(), variables.begin() + begin(t));
    if (idle) {
        const std::lock_guard lock(mutex_);
        idle_ = report;
    }
    return report;
}

std::optional<BinaryReport> FlatBatch::idle_report() {
    const std::lock_guard lock(mutex_);
    return idle_;
}

void FlatBatch::finish(Index t, BinaryReport report) {
    const std::array<double, n_report_columns> numbers = columns_of(report);
    std::copy(numbers.begin(), numbers.end(), table.begin() + t * static_cast<Index>(n_report_columns));
    if (!traces.empty()) traces[unsigned_index(t)] = std::move(report.trace);
    const std::lock_guard lock(mutex_);
    finished_[unsigned_index(t)] = 1;
}

std::vector<double> FlatBatch::finished_amounts() {
    std::vector<double> found(variables.size(), 0.0);
    const std::lock_guard lock(mutex_);
    for (Index t = 0; t < count(); ++t) {
        if (finished_[unsigned_index(t)]) std::copy_n(variables.begin() + begin(t), size(t), found.begin() + begin(t));
    }
    return found;
}

}  // namespace multimargin
