// A block of examples solved on its own kernel matrix, by whichever of two solvers is the cheaper.
#pragma once

#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_team.hpp"
#include "kernel/gram_matrix.hpp"
#include "solvers/multiclass/active_set.hpp"
#include "solvers/multiclass/block_descent.hpp"

namespace multimargin {

// Where the values of a block's kernel matrix may be found instead of being computed.
template <class T>
struct BlockPlace {
    const SquareKernel<T>* square = nullptr;  // or null
    std::span<const Index> positions;         // of the block's examples in it
};

// Steps on whole examples are cheap and suit most blocks; where they crawl (large C, smooth kernels) an active set in
// float64 takes some ten steps, each of which costs the square of the number of free variables. A block starts with
// steps and goes over to the active set when they have cost as much as that probably would, and gives that up when it
// costs far more. Once the active set has won it is tried first. Costs are counted, never timed.
template <class T>
class BlockSolver {
  public:
    BlockSolver(const Problem& problem, bool prefers_active_set, Monitor& monitor, Tally& tally, ThreadTeam& team);

    // Solves the block to the target; false when the steps were used up first. The variables are in the workspace then,
    // its scores are not brought up to date. A block whose steps make little progress is abandoned if the caller has
    // another method.
    bool solve(Workspace& block, const BlockPlace<T>& place, double target, Index max_steps, bool may_give_up = false);
    bool gave_up() const { return gave_up_; }

    bool prefers_active_set() const { return prefers_active_set_; }

  private:
    template <class U>
    struct Matrix {
        RawArray<U> memory;
        const U* values = nullptr;
        Index ld = 0;
        bool filled = false;  // for the block at hand
    };

    template <class U>
    void fill(Matrix<U>& matrix, const BlockPlace<T>& place);
    template <class U>
    void compute(Matrix<U>& matrix);
    Matrix<double>& exact_kernel(const BlockPlace<T>& place);
    bool by_active_set(const BlockPlace<T>& place, double target, Index max_steps, double max_cost);
    bool by_descent(const BlockPlace<T>& place, double target, Index max_steps);
    bool switch_to_active_set(const BlockPlace<T>& place, double target, Index used, Index max_steps);
    bool go_back();
    template <class U>
    void refresh_scores(const Matrix<U>& kernel);
    Index count_free() const;
    double cost_of_step() const;
    double cost_of_face(double n_free) const;
    // How many steps on examples cost as much as the active set probably would.
    Index steps_worth_active_set() const;

    const Problem& problem_;
    const Machine& machine_;
    Monitor& monitor_;
    Tally& tally_;
    ThreadTeam& team_;
    BlockDescent<T> descent_;
    ActiveSet active_set_;
    Matrix<T> kernel_;
    Matrix<double> exact_;  // where T is float
    Workspace* block_ = nullptr;
    AlignedVector<double> entry_;    // the variables that the block came with ...
    double entry_dual_ = 0.0;        // ... and the dual then
    AlignedVector<double> flushed_;  // the variables that the block's scores belong to
    bool prefers_active_set_;
    bool may_give_up_ = false, gave_up_ = false;
};

}  // namespace multimargin
