// The whole solve of one binary problem: pairs or blocks, a float64 check, more where that finds a violation.
#pragma once

#include "kernel/pair_row_cache.hpp"
#include "problem/binary_problem.hpp"
#include "problem/options.hpp"
#include "problem/report.hpp"
#include "problem/solve_stats.hpp"

namespace multimargin {

struct BinaryReport : Report {
    double bias = 0.0;
    bool out_of_work = false;  // options.max_work was used up, so that a further solve may go on
};

// Beyond this many examples blocks of variables beat single pairs.
inline constexpr Index binary_one_level_max = 4096;

// Whether a problem is solved by single pairs: a small one, or where the choice of pairs was named.
inline bool by_one_level(const Options& options, Index size) {
    return size <= binary_one_level_max || options.solver == SolverKind::most_violating_pair ||
           options.solver == SolverKind::maximum_gain;
}

// Starts from the state (made feasible first) and leaves the solution in it. Other threads than the monitor's own may
// call this, each with its own problem and team.
BinaryReport solve_binary(const BinaryProblem& problem, BinaryState& state, const Options& options, Monitor& monitor,
                          ThreadTeam& team, BinaryMemory& memory);

}  // namespace multimargin
