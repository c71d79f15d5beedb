// Prediction of one-vs-one machines: scores of all pairs of classes, votes, and the decision DAG. HL02
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/monitor.hpp"
#include "base/thread_team.hpp"
#include "kernel/kernel_source.hpp"
#include "kernel/score_pass.hpp"

namespace multimargin {

// Support vectors grouped by class, each once, with coefficients in LIBSVM's layout: for a support vector of class i,
// coefficient j - 1 is that of the pair (i, j) with j > i, coefficient j that of (j, i) with j < i.
// A score > 0 of a pair (i, j), i < j, speaks for i. The source must outlive the model.
class PairModel {
  public:
    PairModel(const KernelSource& support_vectors, std::vector<Index> n_support, std::span<const double> dual_coef,
              std::vector<double> intercept);

    Index n_classes() const { return static_cast<Index>(n_support_.size()); }
    Index n_pairs() const { return static_cast<Index>(intercept_.size()); }

    // scores[point * n_pairs + pair]. All return false when the monitor stopped them.
    bool scores(const DataView& points, ThreadTeam& team, Monitor& monitor, double* scores) const;
    // The class with most votes; of equally many the first.
    bool vote(const DataView& points, ThreadTeam& team, Monitor& monitor, std::int64_t* classes) const;
    // First against last of the list of classes, the loser is dropped; only the support vectors of pairs on a point's
    // path are computed.
    bool walk(const DataView& points, ThreadTeam& team, Monitor& monitor, std::int64_t* classes) const;

  private:
    struct Pair {
        Index first, second;
    };

    // For a few points at a time: all support vectors as columns; coefficients class by class, each row of LIBSVM's
    // layout filled up with zeros, so that dot products have no rest.
    template <class T>
    struct FewPoints {
        std::unique_ptr<KernelColumns<T>> columns;
        AlignedVector<T> coef;
        std::vector<Index> begin, width;  // by class
    };

    template <class Use>
    bool for_each_chunk(const DataView& points, bool single, ThreadTeam& team, Monitor& monitor, Use use) const;
    template <class T>
    FewPoints<T> make_few(std::span<const double> dual_coef) const;
    // use(point, its kernel values with all support vectors)
    template <class T, class Use>
    void for_few(const FewPoints<T>& few, const DataView& points, Use use) const;
    template <class T>
    double few_score(const FewPoints<T>& few, const T* values, Index pair) const;
    template <class T>
    void few_scores(const FewPoints<T>& few, const DataView& points, double* scores) const;
    template <class T>
    void few_walks(const FewPoints<T>& few, const DataView& points, std::int64_t* classes) const;
    template <class T>
    void few_votes(const FewPoints<T>& few, const DataView& points, std::int64_t* classes) const;
    Index pair_of(Index first, Index second) const {
        return first * (2 * n_classes() - first - 1) / 2 + second - first - 1;
    }
    template <class T>
    void walk_block(const DataView& points, Index begin, Index end, std::int64_t* classes, Monitor& monitor) const;
    template <class T>
    void walk_pair(Index pair, const DataView& points, std::span<const Index> rows, std::vector<double>& scores,
                   Monitor& monitor) const;
    std::int64_t winner_of(const double* scores, Index stride, std::vector<int>& votes) const;

    const KernelSource& source_;
    std::vector<Index> n_support_, begin_;  // support vectors of class c: begin_[c] .. begin_[c + 1]
    std::vector<double> intercept_;
    std::vector<Pair> pairs_;
    std::vector<Coefficients> by_pair_;  // for the DAG: the support vectors of one pair
    Coefficients all_;
    bool single_;  // kernel values in float32 are exact enough to vote; scores are float64 throughout
    FewPoints<float> few_f32_;
    FewPoints<double> few_f64_;
};

}  // namespace multimargin
