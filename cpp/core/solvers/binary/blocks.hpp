// Blocks of variables of a large binary problem: rounds on the active examples, blocks within a round.
#pragma once

#include <limits>
#include <vector>

#include "problem/binary_problem.hpp"
#include "problem/options.hpp"
#include "problem/report.hpp"
#include "problem/solve_stats.hpp"
#include "solvers/binary/local_engine.hpp"
#include "solvers/binary/smo.hpp"

namespace multimargin {

// What a driver of rounds and blocks goes by.
struct BinaryBlockRules {
    // A round ends when this share of its violation is left; a block, when this share of the round's is.
    static constexpr double round_share = 0.1, block_share = 0.1;
    // Examples that rest further from the interval of the bias than this much of the violation leave the round.
    static constexpr double resting_share = 0.5, resting_least = 0.02;
    // A block is half as large as the number of support vectors, within limits: else each would be visited many times
    // (ijcnn1, 9,000 of them: blocks of 512 took three times as long). Only the rows that steps ask for are computed.
    static constexpr Index least_block = 1024, largest_block = 4096;
    static constexpr Index steps_per_example = 100;
};

template <class T>
class BinaryBlocks {
  public:
    BinaryBlocks(const BinaryProblem& problem, BinaryState& state, const Options& options, Monitor& monitor,
                 Tally& tally, ThreadTeam& team, BinaryMemory& memory);

    Outcome run(double target, Index limit);
    // Errors of the round under way into the state, which is current otherwise; rounds start from it.
    void scatter() { engine_.synchronize(); }
    void reload() { travel_ = 0.0; }
    // What the rounding of the errors since the last check may be, for a kernel with a diagonal of one.
    double rounding() const { return std::numeric_limits<T>::epsilon() * travel_; }

  private:
    Outcome round(double target, Index limit);
    Outcome solve_block(const BinaryInterval& interval, double target, Index limit);
    void choose_block(const BinaryInterval& interval);
    void keep_from_last_block(Index room);
    void add_violators(Direction direction, const BinaryInterval& interval, Index size);
    Index block_size() const;

    using Rules = BinaryBlockRules;

    const BinaryProblem& problem_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    BinaryMemory& memory_;
    LocalBinaryEngine<T> local_;
    BinaryScoreEngine<T>& engine_;
    std::vector<Index> active_;      // examples of the round, ascending
    std::vector<Index> block_;       // positions among the active
    std::vector<Index> last_block_;  // examples of the block before, and their variables
    std::vector<double> last_variables_;
    BinaryDescent<T> descent_;
    Index counted_ = 0;
    double travel_ = 0.0;  // sum |change of beta| since the last check
};

}  // namespace multimargin
