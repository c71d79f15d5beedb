// One-vs-one and one-vs-all online: binary machines over one set of kept examples.
#pragma once

#include <cstdint>
#include <vector>

#include "online_binary.hpp"

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
    };

    void make_machines();
    Index pair_index(Index i, Index j) const;
    const std::vector<Part>& parts_of(Index label) const { return parts_[unsigned_index(label)]; }
    OnlineBinary::World world();
    void scores_at(std::span<const double> row);
    Index decide();
    Index insert(const double* x, Index label, double cap, Index id);
    void settle();
    void keep_to_budget();
    double weight_of(Index slot) const;

    OnlineScheme scheme_;
    Index n_classes_;
    OnlineOptions options_;
    KeptExamples kept_;
    SlotTable table_;  // by slot, its coefficient in the machine against each class, or in each class's
    std::vector<OnlineBinary> machines_;
    std::vector<std::vector<Part>> parts_;  // by class
    std::vector<Index> uses_, left_;        // by slot, machines with the example; slots that machines let go
    std::vector<double> scores_, merits_;
    Rng rng_;
};

}  // namespace multimargin
