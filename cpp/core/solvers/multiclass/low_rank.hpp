// A kernel matrix as a product of a tall matrix with itself: what smooth kernels of few features come close to.
#pragma once

#include <vector>

#include "base/memory.hpp"
#include "base/monitor.hpp"
#include "base/types.hpp"
#include "problem/problem.hpp"

namespace multimargin {

// K ~ G G' over all examples of a problem, G by a Cholesky decomposition that takes the worst approximated example
// next.
struct LowRankKernel {
    Index rank = 0;
    Index ld = 0;               // of a row of G
    AlignedVector<float> rows;  // G, one row per example, filled up with zeros
    std::vector<float> rest;    // the diagonal of K - G G'

    const float* row(Index example) const { return rows.data() + example * ld; }
};

// Stops as soon as no diagonal entry of K - G G' is above `tolerance`; rank 0 when that takes more than `most_rank`
// columns by all appearances, or the monitor stopped it.
LowRankKernel approximate_kernel(const Problem& problem, double tolerance, Index most_rank, Monitor& monitor);

}  // namespace multimargin
