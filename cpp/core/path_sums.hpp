// What some rows add to the scores of other rows in several binary problems along C, from one look at their kernel
// values.
#pragma once

#include <vector>

#include "kernel_source.hpp"
#include "monitor.hpp"
#include "parallel.hpp"

namespace multimargin {

// The dual variables of one problem: a line for each C, in which the rows begin at `first`.
struct PathMember {
    const double* amounts;
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

}  // namespace multimargin
