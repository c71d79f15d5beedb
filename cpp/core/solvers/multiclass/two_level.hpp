// The two-level solver: rounds on the active examples, blocks within a round, an exact solver within a block.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/memory.hpp"
#include "kernel/gram_matrix.hpp"
#include "kernel/round_cache.hpp"
#include "problem/options.hpp"
#include "problem/report.hpp"
#include "solvers/multiclass/block_solver.hpp"
#include "solvers/multiclass/one_level.hpp"

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
    // What solved the blocks before, in another precision, is tried first.
    TwoLevel(const Problem& problem, FullState& state, const Options& options, bool prefers_active_set,
             bool may_give_up, Monitor& monitor, Tally& tally, ThreadTeam& team);

    Outcome run(double target, Index max_iterations);
    // Writes the variables of the round under way into the full state.
    void scatter();
    void reload() {}
    bool prefers_active_set() const { return block_solver_.prefers_active_set(); }
    std::vector<Index> members() const;
    // All examples' kernel columns in float64, where they are at hand; else null.
    const KernelColumns<double>* exact_columns() const;

  private:
    // The active examples of a round and what belongs to them.
    struct Round {
        Workspace workspace;
        std::unique_ptr<SquareKernel<T>> square;  // a part of the whole kernel matrix
        std::unique_ptr<KernelColumns<T>> columns;
        ViolationScan<double> scan;
        AlignedVector<double> violations;  // by position
        std::vector<Index> previous;       // the free examples of the last block
        std::vector<Index> tie_break;      // an order of the positions that mixes the classes
        std::vector<char> taken;           // into the block being chosen
        std::vector<int> found;
        double threshold = 0.0;  // the least violation in the last block
    };

    void store_kernel();
    void choose_columns(std::span<const Index> active);
    const SquareKernel<T>* square() const { return round_->square != nullptr ? round_->square.get() : whole_.get(); }
    void begin_round(std::span<const Index> active);
    // Works on the active examples until their violation is at most target.
    Outcome run_blocks(double target, Index max_iterations);
    std::vector<Index> choose_active(double violation);
    std::vector<Index> choose_block();
    std::vector<Index> violators_above(double threshold);
    double take_worst(std::span<const Index> positions, std::size_t room, std::vector<Index>& chosen) const;
    // Takes the block's variables over into the round and brings its scores and violations up to date.
    bool merge(const Workspace& block, const AlignedVector<double>& before, std::span<const Index> positions);
    // Brings the scores of examples outside the round up to date.
    bool update_rest(std::span<const Index> active, const AlignedVector<double>& before);
    double scan_all();
    double largest_violation() const;

    const Problem& problem_;
    const Machine& machine_;
    FullState& state_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    ThreadTeam& team_;
    Index block_size_;
    bool one_block_;  // that holds all examples
    bool may_give_up_;
    BlockSolver<T> block_solver_;
    RawArray<T> rows_;                        // kernel rows of the round
    std::unique_ptr<SquareKernel<T>> whole_;  // the kernel matrix of all examples, where it fits
    std::unique_ptr<KernelColumns<T>> whole_columns_;
    std::optional<Round> round_;          // while it runs
    Workspace* current_block_ = nullptr;  // while it is being solved
};

}  // namespace multimargin
