// Exact steps on whole examples of a block whose kernel matrix is at hand: the inner solver of small C.
#pragma once

#include <optional>
#include <vector>

#include "base/memory.hpp"
#include "base/monitor.hpp"
#include "problem/solve_stats.hpp"
#include "problem/violations.hpp"
#include "problem/workspace.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

// Solves   the dual restricted to the examples of a workspace, all other variables fixed,
// Given    the kernel among its positions in type T,
// Returns  with the variables in the workspace; its scores are NOT brought up to date (the caller adds the changes to
//          all of its examples anyway).
//
// Scores are kept in T as well: a block forgets its rounding when it is merged, and a long descent must be attached
// anew after some two steps an example, to scores that the caller has brought up to date. One scan of the violations
// serves many steps: every example above a share of the largest is visited, and solved if it still is.
template <class T>
class BlockDescent {
  public:
    explicit BlockDescent(const Problem& problem);

    // kernel[i * ld + j] among the block's positions, ld at least the block's size rounded up to 16.
    void attach(Workspace& block, const T* kernel, Index ld);

    // The largest violation of an example.
    double scan();

    // Sweeps until the largest violation is at most target (true) or the steps are used up. Updates the tally.
    bool run(double target, Index max_steps, Monitor& monitor, Tally& tally);

    // Writes the variables back.
    void write_back();

  private:
    struct Sweep {
        Index steps = 0;
        double gain = 0.0;
        bool moved = false;
    };

    Sweep sweep(double threshold, Index max_steps, Monitor& monitor);
    ScoreView<T> view() const;
    double load_example(Index j);
    // Solves the example that was loaded; the gain, or a negative number when nothing moved.
    double step(Index j);
    double take(Index j, const ExampleProblem& example, double length);
    // Adds the row of example j to the score columns, times deltas_.
    void add_to_scores(Index j, AlignedVector<T>& scores);

    // Multiply-adds, for the tally. A scan is followed by a visit to all that violate; some are not solved.
    double cost_of_scan() const { return 6.0 * static_cast<double>(n_ * width_); }
    double cost_of_step() const {
        return step_overhead + 250.0 * static_cast<double>(width_) + 3.0 * static_cast<double>(n_);
    }

    void postpone(Index j);
    void catch_up(Index j);
    void flush();

    // A point on the way, for pattern moves.
    struct Point {
        std::vector<double> variables;
        AlignedVector<T> scores;
    };
    void remember();
    // Runs along the valley that the steps zigzag around; the gain.
    double pattern_move();
    bool find_direction();
    struct Line {
        double room, slope, curvature;
    };
    void examine_along(Index j, Line& line);
    void go_along(double length);
    double overshoot(Index j, std::size_t n) const;
    void set_levels(Index j);
    double* variables_of(Index j) { return variables_.data() + j * width_; }

    const Problem& problem_;
    const Machine& machine_;
    Index width_;  // variables of an example, at most
    Workspace* block_ = nullptr;
    const T* kernel_ = nullptr;
    Index ld_ = 0, n_ = 0, kernel_ld_ = 0;
    std::vector<Index> group_begin_, class_of_;
    AlignedVector<T> scores_, levels_, cap_, sum_, ridge_, violations_;
    std::vector<double> variables_;  // variable p of example j at j * width_ + p
    std::vector<double> gradient_, target_, deltas_;
    std::vector<int> columns_, visits_;
    std::vector<T> factors_;
    bool postpones_;
    Index n_postponed_ = 0;  // steps whose rows the scores have yet to get
    AlignedVector<T> postponed_rows_, postponed_deltas_;
    ExampleScratch scratch_;
    Point before_, last_;               // the points before the last two stretches of steps
    Index since_ = 0;                   // steps of this stretch
    std::vector<double> direction_;     // as the variables
    AlignedVector<T> score_direction_;  // as the scores
    std::optional<ViolationScan<T>> scan_;
    double largest_ = 0.0;
};

}  // namespace multimargin
