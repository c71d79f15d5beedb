// What some rows add to the scores of other rows in several binary problems along C, from one pass over their kernel
// values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/monitor.hpp"
#include "base/thread_team.hpp"
#include "kernel/kernel_source.hpp"

namespace multimargin {

// The dual variables of one problem: a line for each C, in which the rows begin at `first`.
struct PathMember {
    const double* variables;
    Index stride;
    Index first;
    double sign;  // of y
};

struct PathShare {
    std::vector<Index> rows, columns;  // of the source
    std::vector<PathMember> members;
    Index n_costs;
    std::vector<double> sums;      // members x costs x columns: sum over rows of sign a k(row, column)
    std::vector<Index> n_support;  // by cost: rows with a variable above zero in some member
};

// Fills in all sums, the shares side by side; what a share gets does not depend on the others. False when the monitor
// stopped it.
bool sum_paths(const KernelSource& source, std::vector<PathShare>& shares, ThreadTeam& team, Monitor& monitor);

// The points of one-vs-one machines along C. The pairs are (0, 1), (0, 2), ..., (1, 2), ...
struct PathVotes {
    std::vector<const double*> sums;  // by class: others x costs x points, what it adds to its pairs
    const double* biases;             // pairs x costs
    Index n_costs, n_points;
};

// The class with most votes, costs x points; the first wins a tie, and a score of 0 speaks for the second of a pair
// (HL02, LIBSVM).
std::vector<std::int64_t> vote_paths(const PathVotes& votes, ThreadTeam& team);

}  // namespace multimargin
