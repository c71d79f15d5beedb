// Scores F = K beta over any set of columns: the pass that training, checking and prediction share.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/monitor.hpp"
#include "base/thread_team.hpp"
#include "base/timers.hpp"
#include "base/types.hpp"
#include "kernel/kernel_source.hpp"

namespace multimargin {

// The rows of a coefficient matrix that are not zero, listed by score column, ordered by row.
class Coefficients {
  public:
    explicit Coefficients(Index n_scores) : Coefficients({}, n_scores) {}
    Coefficients(std::vector<Index> rows, Index n_scores);

    // Values of one score column must be given in ascending order of position.
    void add(Index score, Index position, double value);
    // One more row and its value for every score.
    void add_row(Index row, std::span<const double> values);

    std::span<const Index> rows() const { return rows_; }
    Index n_scores() const { return static_cast<Index>(positions_.size()); }
    const std::vector<int>& positions(Index score) const { return positions_[unsigned_index(score)]; }
    const std::vector<double>& values(Index score) const { return values_[unsigned_index(score)]; }

  private:
    std::vector<Index> rows_;
    std::vector<std::vector<int>> positions_;
    std::vector<std::vector<double>> values_;
};

struct PassExtras {
    // Called for every panel of 64 columns as soon as its scores are current, by the thread that made them so.
    std::function<void(Index panel)> finished = nullptr;
    Phases* phases = nullptr;        // time spent, split into kernel and scores
    CacheCounters* cache = nullptr;  // counts of the rows
};

// scores[c * ld + j] += sum over rows of coefficient_c * k(row, column j). ld must be a multiple of 64 and
// at least columns.size(). False when the monitor stopped it; then the scores are not to be used.
template <class T>
bool add_scores(const KernelColumns<T>& columns, const Coefficients& coefficients, double* scores, Index ld,
                ThreadTeam& team, Monitor* monitor, const PassExtras& extras = {});

}  // namespace multimargin
