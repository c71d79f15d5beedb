// The dual of a block solved by a primal active set: for the ill-conditioned regime (large C, smooth kernel), where
// it replaces millions of small steps by some thousand steps on a face.
#pragma once

#include <span>
#include <vector>

#include "base/monitor.hpp"
#include "linalg/cholesky.hpp"
#include "problem/solve_stats.hpp"
#include "problem/workspace.hpp"

namespace multimargin {

struct ActiveSetResult {
    bool success = false;  // the block meets the tolerance; else too many variables are free, or steps ran out
    Index steps = 0;
    double gain = 0.0;
};

// Solves   the dual restricted to the examples of a workspace, all other variables fixed,
// Given    the kernel among its positions in float64,
// Returns  with feasible variables and current scores in the workspace, whatever the outcome.
//
// Box: a variable is at 0, at C, or free. Simplex: the slack is one more component, one positive component of every
// example is its reference, and a free component moves against it.
class ActiveSet {
  public:
    explicit ActiveSet(const Problem& problem);

    struct Limits {
        double tol;
        Index max_free;
        Index max_steps;
        double max_cost = infinity;  // in multiply-adds of the solves, twice the square of the free variables each
    };

    ActiveSetResult solve(Workspace& workspace, const double* kernel, Index ld, const Limits& limits, Monitor& monitor,
                          Tally& tally);

  private:
    struct Free {
        Index position, p;
        double s;  // change of the example's sum per unit
        double row_sum;
        Index n_entries;
        Index classes[4];
        double values[4];
    };

    bool simplex() const { return machine_.bound == Bound::simplex; }
    Index n_components(Index i) const { return workspace_->n_components(i); }
    Index n_slots(Index i) const { return n_components(i) + (simplex() ? 1 : 0); }
    double& variable(Index i, Index p) { return variables_[unsigned_index(i * width_ + p)]; }
    Index& place(Index i, Index p) { return places_[unsigned_index(i * width_ + p)]; }
    Index& reference(Index i) { return references_[unsigned_index(i)]; }

    bool load(Index max_free);
    bool build_factor(Index count);
    void fill_couplings(const Free& f, Index first, double* out);
    double pivot_floor() const;
    double cost_of_check() const;
    double cost_of_change() const;
    Free describe(Index i, Index p);
    void append(Index i, Index p, double gradient);
    void remove(Index place);
    void flush();
    void gradients_at(Index i);
    void refresh_gradients();
    double largest_gradient() const;
    // Lets the worst violators at bounds move; what the largest violation was.
    double enter(double tol, Index max_free);
    // One step along the face's Newton direction, up to the first bound.
    bool step();
    void leave_outward();
    void change_reference(Index i);
    double room(Index i, Index p, double direction);

    const Problem& problem_;
    const Machine& machine_;
    Workspace* workspace_ = nullptr;
    Monitor* monitor_ = nullptr;
    const double* kernel_ = nullptr;
    Index ld_ = 0;
    Index width_ = 0;
    double scale_ = 1.0;  // the largest k_ii
    UpdatableCholesky factor_;
    std::vector<Free> free_;
    std::vector<double> gradient_, direction_, variables_, component_gradient_, class_vector_, row_;
    std::vector<double> reference_direction_;
    std::vector<Index> places_, references_;
    ActiveSetResult result_;
    bool refused_ = false;
};

}  // namespace multimargin
