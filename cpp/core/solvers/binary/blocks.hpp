// Blocks of variables of a large binary problem: rounds on the active examples, blocks within a round.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "base/memory.hpp"
#include "kernel/round_cache.hpp"
#include "kernel/score_pass.hpp"
#include "problem/binary_problem.hpp"
#include "problem/options.hpp"
#include "problem/report.hpp"
#include "problem/solve_stats.hpp"
#include "solvers/binary/smo.hpp"

namespace multimargin {

template <class T>
class BinaryBlocks {
  public:
    BinaryBlocks(const BinaryProblem& problem, BinaryState& state, const Options& options, Monitor& monitor,
                 Tally& tally, ThreadTeam& team, BinaryMemory& memory);

    Outcome run(double target, Index limit);
    // Scores of the round under way into the state, which is current otherwise; rounds start from it.
    void scatter();
    void reload() { travel_ = 0.0; }
    // What the rounding of the errors since the last look may be, for a kernel with a diagonal of one.
    double rounding() const { return std::numeric_limits<T>::epsilon() * travel_; }

  private:
    struct Member {
        double error;
        Index position;
    };

    Outcome round(double target, Index limit);
    Outcome solve_block(double target, Index limit);
    double gain_of_block(double offset) const;
    bool finish_round(std::span<const double> before);
    BinaryInterval active_interval() const;
    void choose_active(const BinaryInterval& interval);
    void choose_block(const BinaryInterval& interval);
    void keep_from_last_block(Index room);
    void add_violators(const BinaryInterval& interval, Index room);
    void take_first(std::vector<Member>& candidates, Index room, bool smallest);
    Index block_size() const;
    bool is_free(Index e) const;
    Census census() const;

    const BinaryProblem& problem_;
    BinaryState& state_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    ThreadTeam& team_;
    BinaryMemory& memory_;
    std::vector<Index> active_;              // examples, ascending
    std::vector<char> in_block_;             // by position among the active
    std::vector<Index> block_, last_block_;  // positions among the active
    std::vector<double> block_changes_;      // of beta, by the last block
    AlignedVector<double> errors_;           // of the active
    std::unique_ptr<KernelColumns<T>> columns_;
    RawArray<T> kept_rows_;
    BinaryDescent<T> descent_;
    Index counted_ = 0;
    double travel_ = 0.0;  // sum |change of beta| since the last look
    bool in_round_ = false;
};

}  // namespace multimargin
