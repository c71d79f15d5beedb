// Binary problems along C: each solved for one C after the other, from the solution before, on one kernel matrix.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include "kernel/cached_source.hpp"
#include "problem/options.hpp"
#include "solvers/binary/solve.hpp"

namespace multimargin {

struct PathPoint {
    std::vector<double> variables;
    BinaryReport report;
};

struct BinaryPath {
    std::vector<Index> rows;  // of the source; the first n_positive have y = +1
    Index n_positive;
    std::vector<double> weights;    // C_i = C times this
    std::vector<PathPoint> points;  // one for each C; fewer after a stop
    std::atomic<Index> n_done{0};   // points that may be read from another thread
};

struct PathMemory {
    BinaryMemory rows;
    KeptMemory matrix;
};

// Memory of paths that are done, for those to come: new memory must be cleared page by page.
class PathPool {
  public:
    PathMemory take();
    void give_back(PathMemory memory);

  private:
    std::mutex mutex_;
    std::vector<PathMemory> spare_;
};

// Solves every problem for every C, ascending, each to options.tol with a float64 check (see solvers/binary/solve.hpp).
// The problems are taken in the order given, side by side where they are small; what they leave does not depend on the
// number of threads. The kernel matrix of a small problem that fits its thread's share of options.cache_bytes is
// computed once for all C.
// A stop leaves the points that were finished. options.max_iter holds for each point, options.max_time for all.
StopReason solve_paths(const KernelSource& source, std::deque<BinaryPath>& paths, std::span<const double> Cs, Loss loss,
                       const Options& options, PathPool& pool, Watcher* watcher);

}  // namespace multimargin
