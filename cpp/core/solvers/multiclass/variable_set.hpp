// Some variables of a problem, with the kernel values that their gradients depend on: one small matrix per class.
#pragma once

#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/monitor.hpp"
#include "base/thread_team.hpp"
#include "problem/problem.hpp"

namespace multimargin {

// The dual restricted to the variables that may move: those inside their bounds, and those at a bound whose gradient
// nearly leads away from it. All others stay, so that a class's scores matter only at the examples that have a variable
// of the set which touches the class: changes of these scores need the kernel matrix of those examples alone.
class VariableSet {
  public:
    // An example's variables: positions begin to end.
    struct Example {
        Index example;
        Index begin, end;
        double cap, ridge;
        double penalty;  // C_i
    };
    // A variable: its component, and the slots of the two scores that it changes (the second may be missing).
    struct Variable {
        const Component* component;
        Index p;
        Index slot1, slot2;
    };

    // For machines without projected scores; `state` has current columns. Gradients above -margin nearly lead away.
    VariableSet(const Problem& problem, const FullState& state, double margin);

    // Multiply-adds of one product with the Hessian.
    double cost_of_product() const { return cost_; }
    // Bytes of the kernel values.
    double bytes() const;
    // Computes these; false when the monitor stopped it.
    bool fill(ThreadTeam& team, Monitor& monitor);

    Index size() const { return static_cast<Index>(variables_.size()); }
    Index n_slots() const { return n_slots_; }
    const std::vector<Example>& examples() const { return examples_; }
    const Variable& variable(Index v) const { return variables_[unsigned_index(v)]; }

    // The scores at the slots, as the state has them.
    void gather_scores(const FullState& state, double* scores) const;
    // changes[slot] = sum over variables of value * x
    void spread(const double* x, float* changes) const;
    // out[slot] = sum over the class's slots of K * changes, where wanted[slot]
    void multiply(const float* changes, const char* wanted, double* out) const;
    // The Hessian of the kernel among variables: out[k] = H(variables[0], variables[k]).
    void hessian_column(std::span<const Index> variables, double* out) const;
    // value1 s[slot1] + value2 s[slot2]
    double margin_of(Index v, const double* s) const {
        const Variable& x = variables_[unsigned_index(v)];
        return x.component->value1 * s[x.slot1] + (x.slot2 >= 0 ? x.component->value2 * s[x.slot2] : 0.0);
    }

  private:
    struct ClassPart {
        std::vector<Index> examples;  // of the problem
        Index first = 0;              // slot
        Index ld = 0;
        std::size_t offset = 0;  // of its kernel values
    };

    void choose(const FullState& state, double margin);
    void assign_slots();

    const Problem& problem_;
    std::vector<Example> examples_;
    std::vector<Variable> variables_;
    std::vector<ClassPart> classes_;
    RawArray<float> kernel_;
    Index n_slots_ = 0;
    double cost_ = 0.0;
};

}  // namespace multimargin
