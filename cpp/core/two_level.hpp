// The two-level solver: rounds on the active examples, blocks within a round, an exact solver within a block.
#pragma once

#include <memory>
#include <vector>

#include "active_set.hpp"
#include "descent.hpp"
#include "semi_greedy.hpp"
#include "stored_source.hpp"

namespace multimargin {

// Solves   the whole dual, with kernel values of type T,
// Given    a state whose score columns are current,
// Returns  when no example violates by more than the target, as far as T can tell.
//
// A round works on the support vectors and near violators until a tenth of the violation is left, and then brings the
// scores of the rest up to date in one pass. Within a round a block holds the worst violators and half of the last
// block's free examples; it is solved on its own kernel matrix, by semi-greedy steps on whole examples or, where
// those crawl, by an active set. Which one is decided by the steps that a block took, never by a clock.
template <class T>
class TwoLevel final {
  public:
    TwoLevel(const Problem& problem, FullState& state, const Options& options, Monitor& monitor, Tally& tally,
             ThreadTeam& team);

    Outcome run(double target, Index max_iterations);
    // Writes the variables of the round under way into the full state.
    void scatter() {
        if (current_ != nullptr) current_->scatter(state_);
        if (current_block_ != nullptr) current_block_->scatter(state_);
    }
    void reload() {}
    std::vector<Index> members() const;

  private:
    class DenseRows final : public RowProvider<T> {
      public:
        AlignedVector<T> values;
        Index ld = 0;
        const T* row(Index position) override { return values.data() + position * ld; }
    };

    void store_kernel();
    const KernelSource& source() const;
    // Works on the active examples until their violation is at most target.
    Outcome run_blocks(Workspace& active, double target, Index max_iterations);
    std::vector<Index> choose_active(double violation);
    std::vector<Index> choose_block(Workspace& active);
    bool is_free(Workspace& workspace, Index position) const;
    // Solves the block; false when the steps were used up first.
    bool solve_block(Workspace& block, double target, Index max_steps);
    bool solve_by_active_set(Workspace& block, double target, Index max_steps);
    // Takes the block's variables over into the larger workspace and brings its scores up to date.
    bool merge(Workspace& active, Workspace& block, std::span<const Index> positions);
    // Brings the scores of examples outside the round up to date.
    bool update_rest(std::span<const Index> active, const AlignedVector<double>& before);
    Coefficients changes(std::span<const Index> examples, const AlignedVector<double>& before) const;
    double scan(Workspace& workspace);

    const Problem& problem_;
    const Machine& machine_;
    FullState& state_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    ThreadTeam& team_;
    SemiGreedy<T> semi_greedy_;
    ActiveSet active_set_;
    ExampleSelector selector_;
    std::unique_ptr<StoredSource<T>> stored_;
    DenseRows kernel_;
    Workspace* current_ = nullptr;               // the round's active examples, while it runs
    Workspace* current_block_ = nullptr;         // and the block that is being solved
    std::unique_ptr<KernelColumns<T>> columns_;  // of the round's active examples
    std::vector<Index> previous_;                // the last block, as positions of the round
    std::vector<Index> tie_break_;               // an order of the round's positions that mixes the classes
    Index block_size_;
    bool prefers_active_set_;
};

}  // namespace multimargin
