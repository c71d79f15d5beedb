// Binary machines on a linear kernel without an exact bias, many over the same data: one-vs-one, one-vs-all.
#pragma once

#include <atomic>
#include <deque>
#include <vector>

#include "linear_passes.hpp"
#include "linear_rows.hpp"

namespace multimargin {

// Solves   max  sum a - 1/2 |w|^2 - penalty(a),   w = sum_i y_i a_i (x_i, sqrt(offset)),   0 <= a_i <= C_i,
//          penalty 0 (hinge) or a_i^2/(4 C_i) (squared hinge, then without upper bound).
// The examples with y = +1 come first. A start may stand in `amounts`; it is made feasible.
struct LinearBinaryTask {
    std::vector<Index> rows;
    Index n_positive = 0;
    std::vector<double> C;
    std::vector<double> amounts;
    std::vector<double> weights;  // (n_features, and 1 with an offset), the offset's last
    LinearReport report;
    std::atomic<bool> finished{false};  // then the others may be read from another thread
};

// Each by one thread, the largest first, so that what a task leaves does not depend on the number of threads.
// max_iter, max_passes and max_cost hold for each, max_time for all together. A stop leaves every task feasible, and
// those that had not begun at their start. Returns why it ended: converged also stands for tasks that ended by
// themselves. See HCLKS08 Algorithm 3.
StopReason solve_linear_binary(const DataView& data, std::deque<LinearBinaryTask>& tasks, Loss loss, double offset,
                               const LinearOptions& options, Watcher* watcher);

}  // namespace multimargin
