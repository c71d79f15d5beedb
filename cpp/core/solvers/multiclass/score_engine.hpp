// The scores of all examples behind an interface: what the two-level solver asks for, wherever they are held.
#pragma once

#include <span>
#include <vector>

#include "problem/problem.hpp"
#include "problem/workspace.hpp"
#include "solvers/multiclass/block_solver.hpp"

namespace multimargin {

// An example of a round by its position, and how much it violates optimality. Ranks break ties; no two are equal.
struct Candidate {
    Index position;
    double violation;
    Index rank;
};

// The k candidates that violate most. This is a total order, so that the result does not depend on how the examples are
// split: the worst of several lists are the worst of what each list has as its worst.
std::vector<Candidate> worst_of(std::vector<Candidate> candidates, std::size_t k);

// Some examples of a round as a problem of their own, and where their kernel values lie, if they are in memory.
template <class T>
struct GatheredBlock {
    Workspace workspace;
    const SquareKernel<T>* square;
};

// Holds the variables and scores of all examples. A solver works in rounds on the active examples, each of which has a
// position: its place among the active ones, in ascending order. Scores of the other examples wait until the round
// ends. Everything that takes long returns false when the monitor stopped it.
template <class T>
class ScoreEngine {
  public:
    virtual ~ScoreEngine() = default;

    // Objectives and violation of all examples, from the scores as they are.
    virtual Summary summary() const = 0;
    // Computes all scores anew, in float64.
    virtual bool confirm() = 0;
    // Whether float32 kernel values can no longer carry the tolerance.
    virtual bool float32_too_coarse(double tol) const = 0;
    // The examples with a variable above 0 or a gradient above -margin, ascending.
    virtual std::vector<Index> near_active(double margin) const = 0;

    // Starts a round on these examples (ascending); ranks[position] breaks ties.
    virtual void begin_round(std::span<const Index> active, std::span<const Index> ranks) = 0;
    // Brings the scores of all examples up to date with what the round has changed.
    virtual bool end_round() = 0;
    // Brings variables and scores of the round into the full state, and the variables of a block that is being solved.
    virtual void synchronize(const Workspace* block) = 0;
    // The largest violation in the round.
    virtual double violation() const = 0;
    virtual Census census() const = 0;
    virtual std::vector<Candidate> candidates_at(std::span<const Index> positions) const = 0;
    // The k examples of the round that violate most, without those of a list.
    virtual std::vector<Candidate> worst(std::size_t k, std::span<const Index> without) = 0;
    // The examples at some positions (ascending), with their variables and current scores.
    virtual GatheredBlock<T> gather(std::span<const Index> positions) = 0;
    // Takes over the variables of a gathered block, which were `before`, and adds the change to the round's scores.
    virtual bool add(const Workspace& block, const AlignedVector<double>& before, std::span<const Index> positions) = 0;
};

}  // namespace multimargin
