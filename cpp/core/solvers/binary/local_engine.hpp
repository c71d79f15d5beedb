// A score engine of a binary problem in the memory of this process; also one shard of a larger engine.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "kernel/round_cache.hpp"
#include "kernel/score_pass.hpp"
#include "problem/options.hpp"
#include "problem/solve_stats.hpp"
#include "solvers/binary/score_engine.hpp"

namespace multimargin {

template <class T>
class LocalBinaryEngine final : public BinaryScoreEngine<T> {
  public:
    LocalBinaryEngine(const BinaryProblem& problem, BinaryState& state, const Options& options, Monitor& monitor,
                      Tally& tally, ThreadTeam& team);

    BinaryInterval interval() const override { return interval_of(problem_, state_); }
    bool float32_too_coarse(double tol) const override {
        return multimargin::float32_too_coarse(problem_, state_, tol);
    }
    std::vector<Index> begin_round(const BinaryInterval& interval, double slack) override;
    bool end_round() override { return end_round(round_changes()); }
    void synchronize() override;
    BinaryInterval round_interval() const override;
    Index n_support() const override;
    Census census() const override;
    std::vector<BinaryCandidate> worst(Direction direction, const BinaryInterval& interval, Index k,
                                       std::span<const Index> without) override {
        return worst_of(violators(direction, interval, without), direction, k);
    }
    BinaryValues gather(std::span<const Index> positions) const override;
    bool add(std::span<const Index> positions, std::span<const double> variables,
             std::span<const double> changes) override;

    // The parts of worst(), add() and end_round(), for shards. All that violate in one direction, without a list.
    std::vector<BinaryCandidate> violators(Direction direction, const BinaryInterval& interval,
                                           std::span<const Index> without);
    // Sets the variable at a position; `change` is that of beta.
    void set_variable(Index position, double variable, double change);
    // Adds changes of beta to the round's errors.
    bool add(const Coefficients& changes);
    // What the round has changed so far in its examples' beta.
    Coefficients round_changes() const;
    // Ends the round; `changes` are those of all shards.
    bool end_round(const Coefficients& changes);

  private:
    const BinaryProblem& problem_;
    BinaryState& state_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    ThreadTeam& team_;
    std::vector<Index> active_;     // examples, ascending
    std::vector<double> before_;    // variables of all examples when the round began
    AlignedVector<double> errors_;  // of the active
    std::vector<char> in_block_;    // by position: worst() passes over it
    std::unique_ptr<KernelColumns<T>> columns_;
    RawArray<T> kept_rows_;
    bool in_round_ = false;
};

}  // namespace multimargin
