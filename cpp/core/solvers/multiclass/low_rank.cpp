#include "solvers/multiclass/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace multimargin {

namespace {

constexpr Index rank_padding = 16;
constexpr Index tile = 64;
constexpr Index least_rank = 32;      // before the pace is judged
constexpr Index columns_a_poll = 16;  // subtracted from a new one

// The columns found so far, one after the other, in float64: each new one is what they leave of a kernel column.
class PivotedCholesky {
  public:
    explicit PivotedCholesky(const Problem& problem)
        : problem_(problem), n_(problem.size()), ld_(round_up(n_, simd::panel_width)), rest_(unsigned_index(n_)) {
        const std::vector<Index> all = first_indices(n_);
        kernel_ = problem.source().columns<double>(problem.source_rows(all));
        for (Index e = 0; e < n_; ++e) rest_[unsigned_index(e)] = problem.diagonal(e);
    }

    Index worst() const { return std::max_element(rest_.begin(), rest_.end()) - rest_.begin(); }
    double rest(Index e) const { return rest_[unsigned_index(e)]; }
    Index rank() const { return static_cast<Index>(columns_.size()); }

    // False when the monitor stopped it.
    bool take(Index pivot, Monitor& monitor) {
        AlignedVector<double> column(unsigned_index(ld_));
        const Index row = problem_.source_row(pivot);
        kernel_->fill({&row, 1}, column.data(), ld_);
        for (Index k = 0; k < rank(); ++k) {
            if (k % columns_a_poll == 0 && monitor.poll()) return false;
            const AlignedVector<double>& earlier = columns_[unsigned_index(k)];
            add_row(-earlier[unsigned_index(pivot)], earlier.data(), column.data(), n_);
        }
        const double scale = 1.0 / std::sqrt(rest(pivot));
        for (Index e = 0; e < n_; ++e) {
            double& value = column[unsigned_index(e)];
            value *= scale;
            rest_[unsigned_index(e)] = std::max(0.0, rest(e) - value * value);
        }
        rest_[unsigned_index(pivot)] = 0.0;
        columns_.push_back(std::move(column));
        return true;
    }

    LowRankKernel result() const {
        LowRankKernel kernel{rank(), round_up(rank(), rank_padding), {}, {rest_.begin(), rest_.end()}};
        kernel.rows.assign(checked_product(n_, kernel.ld), 0.0F);
        for (Index first = 0; first < n_; first += tile) {  // the rows of a tile stay in the cache
            const Index last = std::min(first + tile, n_);
            for (Index k = 0; k < kernel.rank; ++k) {
                const double* column = columns_[unsigned_index(k)].data();
                for (Index e = first; e < last; ++e)
                    kernel.rows[unsigned_index(e * kernel.ld + k)] = static_cast<float>(column[e]);
            }
        }
        return kernel;
    }

  private:
    const Problem& problem_;
    Index n_, ld_;
    std::vector<double> rest_;  // the diagonal of K - G G'
    std::unique_ptr<KernelColumns<double>> kernel_;
    std::vector<AlignedVector<double>> columns_;
};

}  // namespace

LowRankKernel approximate_kernel(const Problem& problem, double tolerance, Index most_rank, Monitor& monitor) {
    PivotedCholesky factor(problem);
    Index pivot = factor.worst();
    const double start = factor.rest(pivot);
    for (; factor.rest(pivot) > tolerance; pivot = factor.worst()) {
        // Half of the needed rate is enough, because the rest falls faster later; at less it would not be reached.
        const double share = static_cast<double>(factor.rank()) / static_cast<double>(most_rank);
        const bool slow =
            factor.rank() >= least_rank && factor.rest(pivot) > start * std::pow(tolerance / start, 0.5 * share);
        if (slow || factor.rank() == most_rank || monitor.poll() || !factor.take(pivot, monitor)) return {};
    }
    return factor.result();
}

}  // namespace multimargin
