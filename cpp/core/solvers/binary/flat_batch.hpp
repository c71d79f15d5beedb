// Very many binary problems as arrays: each exists only while it is solved, and leaves numbers in shared arrays.
#pragma once

#include <array>
#include <mutex>
#include <optional>

#include "problem/options.hpp"
#include "solvers/binary/batch.hpp"

namespace multimargin {

// Problem t has the examples starts[t] to starts[t + 1] of `rows` and `C`, the first n_positive[t] with y = +1.
struct FlatProblems {
    const KernelSource* source;
    std::span<const Index> rows, starts, n_positive;
    std::span<const double> C;
    Loss loss;
};

// The numbers of a report in a row of a table, in this order; see columns_of.
inline constexpr std::size_t n_report_columns = 21;
inline constexpr std::array<const char*, n_report_columns> report_columns{
    "stop_reason", "iterations", "seconds",      "violation", "dual",   "primal",       "kernel_rows",
    "cache_hits",  "verified",   "float64_rows", "bias",      "kernel", "scores",       "inner",
    "selection",   "check",      "work",         "rounds",    "blocks", "exact_blocks", "feature_sweeps"};
std::array<double, n_report_columns> columns_of(const BinaryReport& report);

class FlatBatch final : public BatchWork {
  public:
    // `start` has the dual variables to begin with, or nothing for zeros.
    FlatBatch(const FlatProblems& problems, std::span<const double> start, bool trace);

    Index count() const override { return static_cast<Index>(problems_.n_positive.size()); }
    Index size(Index t) const override { return begin(t + 1) - begin(t); }
    BinaryReport solve(Index t, const Options& options, Monitor& monitor, ThreadTeam& team,
                       BinaryMemory& memory) override;
    void finish(Index t, BinaryReport report) override;

    // The dual variables of the problems that are solved, zeros for the others; for the thread that solves, too.
    std::vector<double> finished_amounts();

    std::vector<double> variables;
    std::vector<double> table;                    // a row of report_columns for each problem
    std::vector<std::vector<TracePoint>> traces;  // one for each problem, or none

  private:
    Index begin(Index t) const { return problems_.starts[unsigned_index(t)]; }
    std::optional<BinaryReport> idle_report();

    FlatProblems problems_;
    std::span<const double> start_;
    std::mutex mutex_;
    std::optional<BinaryReport> idle_;  // of a problem that was not begun: the same for all that are at zero
    std::vector<char> begun_, finished_;
};

}  // namespace multimargin
