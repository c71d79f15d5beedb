// A score engine in the memory of this process; also one shard of a larger engine.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "kernel/gram_matrix.hpp"
#include "kernel/round_cache.hpp"
#include "problem/options.hpp"
#include "problem/solve_stats.hpp"
#include "problem/violations.hpp"
#include "solvers/multiclass/score_engine.hpp"

namespace multimargin {

// Keeps the state of a problem's examples. With `holds_matrix` the kernel matrix among all of them is kept where it
// fits and a value is expensive; else the kernel rows that a round has used.
// As a shard it is made for the problem of its own examples, and gets the changes of all shards by add() and
// end_round(changes): rows of the source need not belong to its examples.
template <class T>
class LocalEngine final : public ScoreEngine<T> {
  public:
    LocalEngine(const Problem& problem, FullState& state, const Options& options, Monitor& monitor, Tally& tally,
                ThreadTeam& team);

    // Computes the kernel matrix of all examples, if it fits; for a solver that takes all of them as one block, always
    // row by row. False when the monitor stopped it.
    bool store_kernel(bool one_block);

    Summary summary() const override { return summarize(problem_, state_); }
    bool confirm() override;
    bool float32_too_coarse(double tol) const override {
        return multimargin::float32_too_coarse(problem_, state_, tol);
    }
    std::vector<Index> near_active(double margin) const override;
    void begin_round(std::span<const Index> active, std::span<const Index> ranks) override;
    bool end_round() override;
    void synchronize(const Workspace* block) override;
    double violation() const override;
    Census census() const override { return round_->workspace.census(); }
    std::vector<Candidate> candidates_at(std::span<const Index> positions) const override;
    std::vector<Candidate> worst(std::size_t k, std::span<const Index> without) override;
    GatheredBlock<T> gather(std::span<const Index> positions) override;
    bool add(const Workspace& block, const AlignedVector<double>& before, std::span<const Index> positions) override;

    // The parts of gather(), add() and end_round(), for shards. The scores of one example of the round.
    void scores_at(Index position, std::span<double> scores) const {
        for (std::size_t c = 0; c < scores.size(); ++c) {
            scores[c] = round_->workspace.scores(static_cast<Index>(c))[position];
        }
    }
    // Sets the variables of one example of the round.
    void set_variables(Index position, std::span<const double> variables);
    // Adds changes of coefficients to the scores of the round's examples.
    bool add(const Coefficients& changes);
    // What the round has changed so far in the coefficients of its examples.
    Coefficients round_changes() const;
    // Ends the round; `changes` are those of all shards.
    bool end_round(const Coefficients& changes);

  private:
    // The active examples of a round and what belongs to them.
    struct Round {
        Workspace workspace;
        std::vector<Index> ranks;
        AlignedVector<double> before;             // the variables of all examples at its beginning
        std::unique_ptr<SquareKernel<T>> square;  // a part of the whole kernel matrix
        std::unique_ptr<KernelColumns<T>> columns;
        ViolationScan<double> scan;
        AlignedVector<double> violations;  // by position
        std::vector<char> taken;           // positions that worst() passes over
        std::vector<int> found;
        double threshold = 0.0;  // the least violation that worst() returned last
    };

    void choose_columns(std::span<const Index> active);
    const SquareKernel<T>* square() const { return round_->square != nullptr ? round_->square.get() : whole_.get(); }
    bool all_active() const { return round_->workspace.size() == problem_.size(); }
    double violation_at(Index position) const;
    std::vector<Candidate> violators_above(double threshold);

    const Problem& problem_;
    const Machine& machine_;
    FullState& state_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    ThreadTeam& team_;
    RawArray<T> rows_;                        // kernel rows of the round
    std::unique_ptr<SquareKernel<T>> whole_;  // the kernel matrix of all examples, where it fits
    std::unique_ptr<KernelColumns<T>> whole_columns_;
    std::optional<Round> round_;  // while it runs
};

}  // namespace multimargin
