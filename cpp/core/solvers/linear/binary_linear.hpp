// Binary machines on a linear kernel, many over the same data: one-vs-one, one-vs-all.
#pragma once

#include <atomic>
#include <deque>
#include <vector>

#include "data/typed_rows.hpp"
#include "solvers/linear/linear_passes.hpp"

namespace multimargin {

// What the problems have in common. With an exact bias, which Newton's method alone knows, the offset counts for
// nothing.
struct LinearSetting {
    Loss loss = Loss::hinge;
    double offset = 0.0;
    bool exact_bias = false;
};

// Solves   max  sum a - 1/2 |w|^2 - penalty(a),   w = sum_i y_i a_i (x_i, sqrt(offset)),   0 <= a_i <= C_i,
//          penalty 0 (hinge) or a_i^2/(4 C_i) (squared hinge, then without upper bound).
// The examples with y = +1 come first. A start may stand in `variables`; it is made feasible.
// Where Newton's method starts, beside the dual variables.
struct NewtonStart {
    double bias = 0.0;            // an exact one
    std::vector<double> weights;  // of a near problem; empty: those of the dual variables
    double width = 1.0;           // see BinaryNewton::run
};

struct LinearBinaryTask {
    std::vector<Index> rows;
    Index n_positive = 0;
    std::vector<double> C;
    std::vector<double> variables;
    std::vector<double> weights;  // (n_features, and 1 with an offset or an exact bias), that one last
    NewtonStart start;
    LinearReport report;
    std::atomic<bool> finished{false};  // then the others may be read from another thread
};

// Each by one thread, the largest first, so that what a task leaves does not depend on the number of threads.
// max_iter, max_passes and max_cost hold for each, max_time for all together. A stop leaves every task feasible, and
// those that had not begun at their start. Returns why it ended: converged also stands for tasks that ended by
// themselves. See HCLKS08 Algorithm 3.
StopReason solve_linear_binary(const DataView& data, std::deque<LinearBinaryTask>& tasks, const LinearSetting& setting,
                               const LinearOptions& options, Watcher* watcher);

// The same by Newton's method (solvers/linear/binary_newton.hpp), which counts its steps as passes; a single task has
// all threads. A task's dual variables meet the constraint of an exact bias about as well as tol says.
StopReason solve_newton_binary(const DataView& data, std::deque<LinearBinaryTask>& tasks, const LinearSetting& setting,
                               const LinearOptions& options, Watcher* watcher);

}  // namespace multimargin
