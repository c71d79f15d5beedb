#include "solvers/linear/linear_examples.hpp"

#include <algorithm>
#include <cmath>

#include "data/typed_rows.hpp"
#include "linalg/weighted_gram.hpp"

namespace multimargin {

namespace {

constexpr std::size_t chunk = 4096;  // examples of a task
// With fewer multiply-adds a second thread takes longer to start than it helps.
constexpr double cost_worth_threads = 4e5;
constexpr double pivot_floor = 1e-14;  // of a matrix with a unit diagonal

Index count_chunks(std::size_t n) { return static_cast<Index>((n + chunk - 1) / chunk); }

}  // namespace

LinearExamples::LinearExamples(const DataView& data, std::vector<Index> rows, std::vector<double> signs,
                               double constant, ThreadTeam& team)
    : data_(data),
      rows_(std::move(rows)),
      signs_(std::move(signs)),
      constant_(constant),
      team_(team),
      n_features_(unsigned_index(column_count(data))),
      n_weights_(n_features_ + (constant > 0.0 ? 1 : 0)) {
    with_rows(data, [&](const auto& typed) {
        for (const Index i : rows_) {
            cost_ += static_cast<double>(typed.length(typed.row(i)));
            largest_square_ = std::max(largest_square_, typed.squared_norm(typed.row(i)));
        }
    });
}

LinearExamples LinearExamples::part(const std::vector<std::size_t>& positions) const {
    std::vector<Index> rows;
    std::vector<double> signs;
    for (const std::size_t i : positions) {
        rows.push_back(rows_[i]);
        signs.push_back(signs_[i]);
    }
    return {data_, std::move(rows), std::move(signs), constant_, team_};
}

void LinearExamples::run(Index n_tasks, const ThreadTeam::Task& task) const {
    if (cost_ >= cost_worth_threads) return team_.run(n_tasks, task);
    for (Index t = 0; t < n_tasks; ++t) task(t);
}

void LinearExamples::margins(std::span<const double> w, std::vector<double>& out) const {
    out.resize(size());
    const double own = constant_ > 0.0 ? constant_ * w[n_features_] : 0.0;
    with_rows(data_, [&](const auto& typed) {
        run(count_chunks(size()), [&](Index t) {
            const std::size_t begin = unsigned_index(t) * chunk;
            for (std::size_t i = begin; i < std::min(begin + chunk, size()); ++i) {
                out[i] = signs_[i] * (typed.dot(typed.row(rows_[i]), w.data()) + own);
            }
        });
    });
}

void LinearExamples::gather(std::span<const double> factors, std::vector<double>& out) const {
    const Index n_chunks = count_chunks(size());
    const std::size_t ld = unsigned_index(round_up(static_cast<Index>(n_weights_), 8));
    std::vector<double> sums(unsigned_index(n_chunks) * ld, 0.0);
    with_rows(data_, [&](const auto& typed) {
        run(n_chunks, [&](Index t) {
            const std::size_t begin = unsigned_index(t) * chunk;
            double* own = sums.data() + unsigned_index(t) * ld;
            double total = 0.0;
            for (std::size_t i = begin; i < std::min(begin + chunk, size()); ++i) {
                if (factors[i] == 0.0) continue;
                const double factor = signs_[i] * factors[i];
                typed.add(factor, typed.row(rows_[i]), own);
                total += factor;
            }
            if (constant_ > 0.0) own[n_features_] = constant_ * total;
        });
    });
    out.assign(n_weights_, 0.0);
    for (Index t = 0; t < n_chunks; ++t) {
        for (std::size_t k = 0; k < n_weights_; ++k) out[k] += sums[unsigned_index(t) * ld + k];
    }
}

bool LinearExamples::gram(std::span<const double> weights, std::vector<double>& out, Monitor& monitor) const {
    std::vector<Index> rows;
    std::vector<double> used, with_constant(size(), 0.0);
    double total = 0.0;
    for (std::size_t i = 0; i < size(); ++i) {
        if (weights[i] == 0.0) continue;
        rows.push_back(rows_[i]);
        used.push_back(weights[i]);
        total += weights[i];
        with_constant[i] = signs_[i] * weights[i];
    }
    const std::size_t n = n_features_;
    std::vector<double> features(n * n);
    if (!weighted_gram(data_, rows, used, features.data(), team_, monitor)) return false;
    if (n_weights_ == n) {
        out = std::move(features);
        return true;
    }
    std::vector<double> last;
    gather(with_constant, last);
    out.resize(n_weights_ * n_weights_);
    for (std::size_t k = 0; k < n; ++k) {
        std::copy_n(features.data() + k * n, n, out.data() + k * n_weights_);
        out[k * n_weights_ + n] = out[n * n_weights_ + k] = constant_ * last[k];
    }
    out.back() = constant_ * constant_ * total;
    return true;
}

bool WeightEquations::factorize(std::vector<double>& gram, std::span<const double> regularization, double damping,
                                std::span<const double> metric, Monitor& monitor) {
    const std::size_t n = regularization.size();
    if (damping > 0.0) {
        for (std::size_t k = 0; k < gram.size(); ++k) gram[k] += damping * metric[k];
    }
    scale_.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
        gram[k * n + k] += regularization[k];
        scale_[k] = 1.0 / std::sqrt(gram[k * n + k]);
    }
    factor_.begin(static_cast<Index>(n));
    for (std::size_t k = 0; k < n; ++k) {
        double* column = factor_.column_of_matrix(static_cast<Index>(k));
        for (std::size_t r = k; r < n; ++r) column[r] = gram[k * n + r] * scale_[r] * scale_[k];
    }
    return factor_.factorize(pivot_floor, [&] { return monitor.poll(); });
}

void WeightEquations::solve(std::vector<double>& x) const {
    for (std::size_t k = 0; k < x.size(); ++k) x[k] *= scale_[k];
    factor_.solve(x);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] *= scale_[k];
}

}  // namespace multimargin
