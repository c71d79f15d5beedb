#include "solvers/binary/free_system.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/memory.hpp"
#include "linalg/cholesky.hpp"

namespace multimargin {

namespace {

// Faces solved at most, each with fewer variables than the one before.
constexpr int most_faces = 50;
constexpr double pivot_floor = 1e-12;
// A step whose curvature may be wrong by more than this share of its slope leads anywhere where no bound holds it.
constexpr double most_rounding = 0.01;

class Face {
  public:
    Face(const BinaryProblem& problem, BinaryState& state) : problem_(problem), state_(state) {
        for (Index e = 0; e < problem.size(); ++e) {
            if (is_free(e)) examples_.push_back(e);
        }
    }

    bool is_worth_it() const { return examples_.size() >= 2 && size() <= polish_most_free; }

    void compute_kernel() {
        std::vector<Index> rows;
        for (const Index e : examples_) rows.push_back(problem_.row(e));
        const auto columns = problem_.source().columns<double>(rows);
        ld_ = columns->n_panels() * simd::panel_width;
        kernel_.resize(unsigned_index(ld_ * size()));
        columns->fill(rows, kernel_.data(), ld_);
        for (Index k = 0; k < size(); ++k)
            kernel_[unsigned_index(k * ld_ + k)] += problem_.ridge(examples_[unsigned_index(k)]);
        for (const Index e : examples_) errors_.push_back(state_.errors[unsigned_index(e)]);
        present_ = std::vector<Index>(examples_.size());
        std::iota(present_.begin(), present_.end(), Index{0});
    }

    // The factor of the kernel among all variables of the face; false when the monitor stopped it.
    bool factorize(Monitor& monitor) {
        factor_.begin(size());
        double largest = 0.0;
        for (Index k = 0; k < size(); ++k) {
            double* column = factor_.column_of_matrix(k);
            for (Index i = k; i < size(); ++i) column[i] = entry(i, k);
            largest = std::max(largest, column[k]);
        }
        return factor_.factorize(pivot_floor * largest, [&] { return monitor.poll(); });
    }

    // One step towards the optimum of the face. True when a variable stopped it, so that a smaller face is left.
    bool step() {
        const std::size_t n = present_.size();
        if (n < 2) return false;
        // K d + b 1 = -E, 1'd = 0
        std::vector<double> ones(n, 1.0), errors(n);
        for (std::size_t k = 0; k < n; ++k) errors[k] = errors_[unsigned_index(present_[k])];
        factor_.solve(ones);
        factor_.solve(errors);
        const double b =
            -std::accumulate(errors.begin(), errors.end(), 0.0) / std::accumulate(ones.begin(), ones.end(), 0.0);
        std::vector<double> change(n);
        for (std::size_t k = 0; k < n; ++k) change[k] = -errors[k] - b * ones[k];
        return move(change);
    }

  private:
    Index size() const { return static_cast<Index>(examples_.size()); }
    double entry(Index i, Index j) const { return kernel_[unsigned_index(i * ld_ + j)]; }
    bool is_free(Index e) const {
        const double a = state_.variables[unsigned_index(e)];
        return a > 0.0 && a < problem_.cap(e);
    }

    // As far as the dual rises and the box allows. A nearly singular face gives directions that are all rounding; what
    // does not rise is not taken.
    bool move(std::vector<double>& change) {
        const double excess = std::accumulate(change.begin(), change.end(), 0.0) / static_cast<double>(change.size());
        for (double& each : change) each -= excess;  // rounding: the equality holds exactly
        const std::vector<double> effect = times_kernel(change);
        double slope = 0.0, curvature = 0.0, size = 0.0, largest = 0.0;
        for (std::size_t k = 0; k < change.size(); ++k) {
            size += std::abs(change[k]);
            largest = std::max(largest, entry(present_[k], present_[k]));
            slope -= change[k] * errors_[unsigned_index(present_[k])];
            curvature += change[k] * effect[unsigned_index(present_[k])];
        }
        if (!(slope > 0.0) || !(curvature < infinity)) return false;
        const double rounding = std::numeric_limits<double>::epsilon() * size * size * largest;
        if (problem_.loss() == Loss::squared_hinge && rounding > most_rounding * slope) return false;
        double share = slope < curvature ? slope / curvature : 1.0;
        std::size_t stopped_by = change.size();
        for (std::size_t k = 0; k < change.size(); ++k) {
            const Index e = examples_[unsigned_index(present_[k])];
            const double a = state_.variables[unsigned_index(e)], up = problem_.sign(e) * change[k];
            const double room = up > 0.0 ? problem_.cap(e) - a : a;
            if (std::abs(up) * share > room) {
                share = room / std::abs(up);
                stopped_by = k;
            }
        }
        apply(change, effect, share, stopped_by);
        if (stopped_by == change.size()) return false;
        present_.erase(present_.begin() + static_cast<Index>(stopped_by));
        factor_.remove(static_cast<Index>(stopped_by));
        return true;
    }

    // K d over all variables of the face, those that have left it too.
    std::vector<double> times_kernel(const std::vector<double>& change) const {
        std::vector<double> effect(examples_.size(), 0.0);
        for (std::size_t k = 0; k < change.size(); ++k) {
            for (Index i = 0; i < size(); ++i) effect[unsigned_index(i)] += change[k] * entry(present_[k], i);
        }
        return effect;
    }

    void apply(const std::vector<double>& change, const std::vector<double>& effect, double share,
               std::size_t stopped_by) {
        for (std::size_t k = 0; k < change.size(); ++k) {
            const Index e = examples_[unsigned_index(present_[k])];
            const double up = problem_.sign(e) * share * change[k];
            double& a = state_.variables[unsigned_index(e)];
            a = k == stopped_by ? (up > 0.0 ? problem_.cap(e) : 0.0) : std::clamp(a + up, 0.0, problem_.cap(e));
        }
        for (std::size_t i = 0; i < errors_.size(); ++i) errors_[i] += share * effect[i];
    }

    const BinaryProblem& problem_;
    BinaryState& state_;
    std::vector<Index> examples_, present_;
    AlignedVector<double> kernel_;
    std::vector<double> errors_;
    UpdatableCholesky factor_;
    Index ld_ = 0;
};

}  // namespace

bool polish(const BinaryProblem& problem, BinaryState& state, Monitor& monitor) {
    Face face(problem, state);
    if (!face.is_worth_it()) return false;
    face.compute_kernel();
    if (!face.factorize(monitor)) return false;
    for (int i = 0; i < most_faces && face.step(); ++i) {
    }
    return true;
}

double polish_cost(double n_free, double n, double kernel_cost) {
    const double overhead = kernel_cost > 0.0 ? 20.0 : 4.0;  // of a kernel value; of one that is in memory already
    // A step passes twice over n examples, with twice as many numbers in a vector as the factor has.
    return 2.0 * (n_free * n_free * n_free / 3.0 + n_free * n_free * (kernel_cost + overhead)) / (4.0 * n);
}

}  // namespace multimargin
