// A machine that sees all classes, learning from one example after the other: LaRank. BBGW07, DGI11
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.hpp"
#include "online/class_rows.hpp"
#include "online/deferred_scores.hpp"
#include "online/online_learner.hpp"
#include "online/slot_coefficients.hpp"
#include "problem/machine.hpp"

namespace multimargin {

// Everything that the next example's fate depends on.
struct MachineState {
    KeptState kept;
    std::vector<double> variables, coefficients, scores;  // by slot: components, score columns, score columns
    std::array<double, 3> rates{};
    std::uint64_t random = 0;
};

// Solves   max  sum t a - 1/2 sum_c beta_c' K beta_c over the examples it has been given, approximately, under the
//          machine's bounds (Problem in problem/problem.hpp), without a bias or with one in the kernel.
// Given    examples one by one.
// Keeps    those with a dual variable above 0, and some at 0 that violated optimality when they were last checked.
// See      BBGW07: PROCESS NEW steps on the new example; PROCESS OLD on any pair of variables of one that is kept;
//          OPTIMIZE on a pair of variables that are not at 0. Which comes next is drawn with chances that follow the
//          gain of late in the dual for each unit of work: kernel values and score entries, never seconds.
class OnlineMachine final : public OnlineLearner {
  public:
    OnlineMachine(const Kernel& kernel, Index n_features, Machine machine, const OnlineOptions& options,
                  std::uint64_t seed);
    OnlineMachine(const Kernel& kernel, const MachineState& state, Machine machine, const OnlineOptions& options);

    Index add(const double* x, Index label, double cap, Index id) override;
    bool forget(Index id) override;
    // PROCESS OLD on every kept example.
    bool improve() override;

    const KeptExamples& kept() const override { return kept_; }
    const Machine& machine() const { return machine_; }
    Index n_steps() const override { return n_steps_; }
    Index n_support() const override;
    double variable(Index slot, Index p) const { return variables_.at(slot, p); }
    double dual() override;
    double violation() override;
    // With zeros for coefficients and scores where these are not whole.
    MachineState state() const;
    void work_with(QuickTeam* team) override { team_ = team; }

  private:
    enum Operation { process_new, process_old, optimize };
    // Two variables of an example, and how far they move; component -1: none, or the slack of a simplex.
    struct Move {
        Index first = -1, second = -1;
        double by_first = 0.0, by_second = 0.0;
        double gain = 0.0;
    };

    template <class Column>
    void gradients_at(Index label, Column column);
    void gradients(Index slot, bool only_nonzero = false);
    void consider(Index slot, bool only_nonzero);
    bool is_violated_at_zero(Index label);
    Index take_in(const double* x, Index label, double cap, Index id);
    double violation_of(Index slot) const;
    double hessian(Index slot, Index p, Index q) const;
    bool stays_at_zero(Index slot, Index first, Index q) const;
    Move box_move(Index slot);
    Index box_second(Index slot, Index first);
    Move simplex_move(Index slot);
    Move box_step(Index slot, Index first, Index second) const;
    Move choose(Index slot, bool only_nonzero);
    double step(Index slot, const Move& move);
    void apply(Index slot, const Move& move);
    void change_scores(Index slot);
    bool rows_pay() const;
    void empty(Index slot);
    void release_if_idle(Index slot);
    Index draw_kept();
    double step_on_drawn(bool only_nonzero);
    void reprocess();
    double run(Operation operation);
    void learn_rate(Operation operation, double gain, double work);
    Operation draw_operation();
    void resize();
    void keep_to_budget();
    double weight_of(Index slot) const;
    bool at_bound(double amount, double cap) const { return amount >= cap * (1.0 - bound_tolerance); }

    Machine machine_;
    OnlineOptions options_;
    KeptExamples kept_;
    std::unique_ptr<MemberRows> rows_;  // of all classes, so that places are slots; null: none is kept
    SlotTable variables_;
    SlotCoefficients coefficients_;
    SlotScores scores_;
    std::vector<double> gradient_, change_, columns_, read_;
    std::vector<Index> considered_;  // components that a step may move
    QuickTeam* team_ = nullptr;
    std::array<double, 3> rates_{1.0, 1.0, 1.0};
    double work_ = 0.0;  // kernel values and score entries so far
    Index n_steps_ = 0;
    Rng rng_;
};

}  // namespace multimargin
