// The errors f - y of all examples of a large binary problem behind an interface: what its block solver asks for.
#pragma once

#include <span>
#include <vector>

#include "problem/binary_problem.hpp"

namespace multimargin {

// An example of a round by its position, and its error.
struct BinaryCandidate {
    Index position;
    double error;
};

// Whether beta should rise (its error is low) or fall.
enum class Direction { rise, fall };

// Whether all have the same error.
bool are_alike(std::span<const BinaryCandidate> candidates);

// At most k of the candidates (by ascending position): those with the most extreme errors, equal ones by position.
// Where all are alike, as at the start, every so-many-th.
std::vector<BinaryCandidate> worst_of(std::vector<BinaryCandidate> candidates, Direction direction, Index k);

// Of some examples, in the order in which they were asked for.
struct BinaryValues {
    std::vector<double> variables, errors;
};

// Holds the variables and errors of all examples. The solver works in rounds on the active examples, each of which has
// a position: its place among the active ones, in ascending order. Errors of the other examples wait until the round
// ends. What takes long returns false when the monitor stopped it.
template <class T>
class BinaryScoreEngine {
  public:
    virtual ~BinaryScoreEngine() = default;

    // The interval of the bias by all examples.
    virtual BinaryInterval interval() const = 0;
    // Whether float32 kernel values can no longer carry the tolerance.
    virtual bool float32_too_coarse(double tol) const = 0;
    // Starts a round on the examples whose errors lie within `slack` of the interval, or on all. Returns them,
    // ascending.
    virtual std::vector<Index> begin_round(const BinaryInterval& interval, double slack) = 0;
    // Brings the errors of all examples up to date with what the round has changed.
    virtual bool end_round() = 0;
    // Brings the errors of the round into the full state.
    virtual void synchronize() = 0;
    virtual BinaryInterval round_interval() const = 0;
    virtual Index n_support() const = 0;  // in the round
    virtual Census census() const = 0;
    // At most k examples of the round that violate most in one direction, without those of a list.
    virtual std::vector<BinaryCandidate> worst(Direction direction, const BinaryInterval& interval, Index k,
                                               std::span<const Index> without) = 0;
    virtual BinaryValues gather(std::span<const Index> positions) const = 0;
    // Sets the variables at some positions and adds changes[k] of beta to the round's errors.
    virtual bool add(std::span<const Index> positions, std::span<const double> variables,
                     std::span<const double> changes) = 0;
};

}  // namespace multimargin
