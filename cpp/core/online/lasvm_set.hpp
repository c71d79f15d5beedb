// One-vs-one and one-vs-all online: binary machines over one set of kept examples.
#pragma once

#include <cstdint>
#include <vector>

#include "online/lasvm.hpp"

namespace multimargin {

enum class OnlineScheme { ovo, dag, ova };

// Everything that the next example's fate depends on.
struct BinariesState {
    KeptState kept;
    // Of all machines, one after the other: how many members, their slots, coefficients and errors.
    std::vector<Index> counts, slots;
    std::vector<double> beta, errors;
    std::uint64_t random = 0;
};

// Machines of pairs (0, 1), (0, 2), ..., (1, 2), ... with y = +1 for the first class, or of classes against the rest.
class OnlineBinaries final : public OnlineLearner {
  public:
    OnlineBinaries(const Kernel& kernel, Index n_features, OnlineScheme scheme, Index n_classes,
                   const OnlineOptions& options, std::uint64_t seed);
    OnlineBinaries(const Kernel& kernel, const BinariesState& state, OnlineScheme scheme, Index n_classes,
                   const OnlineOptions& options);

    void work_with(QuickTeam* team) override { team_ = team; }
    // Predicts, then learns: PROCESS and REPROCESS in every machine that has a part for the class.
    Index add(const double* x, Index label, double cap, Index id) override;
    bool forget(Index id) override;
    // One step in every machine.
    bool improve() override;

    const KeptExamples& kept() const override { return kept_; }
    Index n_machines() const { return static_cast<Index>(machines_.size()); }
    const OnlineBinary& machine(Index m) const { return machines_[unsigned_index(m)]; }
    double bias(Index m) const { return machine(m).bias(options_.exact_bias); }
    Index n_steps() const override;
    Index n_support() const override;
    double dual() override;
    double violation() override;
    BinariesState state() const;

  private:
    struct Part {
        Index machine;
        double y;
        bool wanted = false;  // by the machine, for the example that is being learnt
    };
    // Of one class, those that share kernel rows.
    using Group = std::vector<Part>;

    void make_machines();
    Index pair_index(Index i, Index j) const;
    std::vector<Group>& groups_of(Index label) { return groups_[unsigned_index(label)]; }
    OnlineBinary& machine_of(const Part& part) { return machines_[unsigned_index(part.machine)]; }
    OnlineBinary::World world() { return {kept_, table_, options_, rng_}; }
    template <class Task>
    void run(Index n_tasks, Index work, const Task& task);
    void evaluate_kernel(const double* x);
    void score_for(Index label);
    void score_all();
    bool wins_all(Index label) const;
    Index decide(Index label);
    bool mark_wanted(std::vector<Group>& groups, Index slot);
    Index insert(const double* x, Index label, double cap, Index id);
    void learn(Group& group, Index slot, Index newest);
    void settle(const Group& group);
    void keep_to_budget();
    double weight_of(Index slot) const;

    OnlineScheme scheme_;
    Index n_classes_;
    OnlineOptions options_;
    KeptExamples kept_;
    SlotTable table_;  // by slot, its coefficient in the machine against each class, or in each class's
    std::vector<OnlineBinary> machines_;
    std::vector<std::vector<Group>> groups_;  // by class
    std::vector<Index> uses_;                 // by slot, machines with the example
    std::vector<double> scores_, merits_;
    Rng rng_;
    QuickTeam* team_ = nullptr;
};

}  // namespace multimargin
