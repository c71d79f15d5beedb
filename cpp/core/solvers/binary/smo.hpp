// Pairs of variables of the binary machine, on contiguous arrays in one precision. IGEL, algorithm "SMO"
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "base/memory.hpp"
#include "base/monitor.hpp"
#include "kernel/pair_row_cache.hpp"
#include "problem/binary_problem.hpp"
#include "problem/report.hpp"

namespace multimargin {

// Some examples of a problem: their variables, errors, and which may rise or fall.
template <class T>
class BinaryDescent {
  public:
    // The second variable of a pair: the one with which the first gains most, or the most violating one (IGEL).
    explicit BinaryDescent(bool most_violating = false) : most_violating_(most_violating) {}

    // Takes some examples with their variables and errors, in the same order.
    void load(const BinaryProblem& problem, std::span<const Index> examples, std::span<const double> variables,
              std::span<const double> errors);

    Index size() const { return n_; }
    double variable(Index k) const { return variables_[unsigned_index(k)]; }
    double error(Index k) const { return static_cast<double>(errors_[unsigned_index(k)]); }
    double violation() const { return violation_; }
    Index steps() const { return steps_; }
    // What the steps have added to the dual since load.
    double gain() const { return gain_; }
    // How far beta of the first has moved in all steps since load, which bounds the rounding of the errors.
    double travel() const { return travel_; }

    // Called before every step, for a trace; empty by default.
    void observe(std::function<void()> observer) { observer_ = std::move(observer); }

    // Steps until the violation is at most target; `steps` counts on from the last load.
    template <class Rows>
    Outcome run(Rows& rows, double target, Index max_steps, Monitor& monitor);

  private:
    // Marks which variables may rise and which may fall, from begin to end.
    void mark(Index begin, Index end);
    // Whether any example may rise; where none of these has a finite error, the errors have overflown.
    bool anybody_rises() const;
    // -1 where no variable gains together with the first.
    Index second_of(const simd::PairChoice<T>& choice, Index first) const;
    bool step(Index first, Index second, double kernel_value);

    static constexpr Index steps_between_polls = 32;

    bool most_violating_;
    Index n_ = 0, n_positive_ = 0, padded_ = 0;
    AlignedVector<double> variables_, caps_, ridges_, diagonals_;
    AlignedVector<T> errors_, outside_up_, outside_low_, bends_;
    double violation_ = infinity, gain_ = 0.0, travel_ = 0.0;
    double moved_ = 0.0;  // what beta of the first gained and that of the second lost in the last step
    Index steps_ = 0;
    std::function<void()> observer_;
};

}  // namespace multimargin
