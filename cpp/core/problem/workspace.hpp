// The examples a solver currently works on, gathered into contiguous arrays, grouped by class.
// Examples outside it are shrunk: their scores are not kept up to date. Within it single variables
// may be shrunk too: then a block lists the ones that are still live (DGI11 6.1).
#pragma once

#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/trace.hpp"
#include "base/types.hpp"
#include "problem/problem.hpp"
#include "problem/violations.hpp"

namespace multimargin {

// The variables of one component of one class: contiguous, or the live ones of a list.
struct ComponentSlice {
    Index y = 0;
    Index p = 0;
    const Component* component = nullptr;
    Index begin = 0;   // first position of the class in the workspace
    Index length = 0;  // examples of the class
    bool whole = true;
    std::vector<int> live;  // positions relative to begin, when not whole

    Index n_live() const { return whole ? length : static_cast<Index>(live.size()); }
    Index position(Index t) const { return begin + (whole ? t : live[unsigned_index(t)]); }
};

class Workspace {
  public:
    Workspace(const Problem& problem, const FullState& state, std::vector<Index> members);

    // Some positions of another workspace, in ascending order.
    Workspace(Workspace& larger, std::span<const Index> positions);

    void scatter(FullState& state) const;

    Index size() const { return static_cast<Index>(members_.size()); }
    std::span<const Index> members() const { return members_; }
    Index example(Index position) const { return members_[unsigned_index(position)]; }
    Index class_of(Index position) const { return problem_->class_of(example(position)); }

    double* scores(Index c) { return scores_.data() + c * ld_; }
    double* variables(Index p) { return variables_.data() + p * ld_; }
    const double* scores(Index c) const { return scores_.data() + c * ld_; }
    const double* variables(Index p) const { return variables_.data() + p * ld_; }
    // Of component p at p * ld().
    const AlignedVector<double>& all_variables() const { return variables_; }
    void set_variables(const AlignedVector<double>& variables);
    double* gradient(const ComponentSlice& slice) { return gradients_.data() + slice.p * ld_ + slice.begin; }
    const double* cap() const { return cap_.data(); }
    const double* ridge() const { return problem_->loss() == Loss::hinge ? nullptr : ridge_.data(); }
    const double* diagonal() const { return diagonal_.data(); }
    double* sum() { return sum_.data(); }
    const double* sum() const { return sum_.data(); }

    // Class y holds the positions from group_begin()[y] to group_begin()[y + 1].
    std::span<const Index> group_begin() const { return group_begin_; }
    ScoreView<double> view() const;

    // One slice per class and component, made at first use.
    std::vector<ComponentSlice>& slices() {
        if (slices_.empty()) make_slices();
        return slices_;
    }

    // The gradient of the block's live variables, compact, into gradient(block).
    void compute_gradient(const ComponentSlice& slice);

    // The same variables' values of a per-position array: in place when whole, else gathered.
    const double* live_values(const ComponentSlice& slice, const double* values, std::vector<double>& buffer) const;

    // Variables of one example, and setting them.
    Index n_components(Index position) const {
        return static_cast<Index>(problem_->machine().of(class_of(position)).size());
    }
    void gradient_at(Index position, std::span<double> gradient);
    void set_variable(Index position, Index p, double value);

    // Which positions still have a live variable.
    std::vector<Index> live_positions() const;

    Index ld() const { return ld_; }

    // Of its own examples.
    Census census() const;

  private:
    Workspace(const Problem& problem, std::vector<Index> members);
    void make_slices();

    const Problem* problem_;
    std::vector<Index> members_;
    Index ld_;
    AlignedVector<double> scores_, variables_, gradients_, cap_, ridge_, diagonal_, sum_;
    std::vector<ComponentSlice> slices_;
    std::vector<Index> group_begin_;
    std::vector<double> buffer1_, buffer2_, buffer3_, buffer4_, buffer5_;
};

}  // namespace multimargin
