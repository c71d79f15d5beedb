#include "linalg/weighted_gram.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/memory.hpp"
#include "data/typed_rows.hpp"

namespace multimargin {

namespace {

constexpr Index strip = 16;                 // columns of a task
constexpr Index depth = 128;                // examples summed at a time: a strip of them stays in the first cache
constexpr double packed_numbers = 1 << 20;  // of the examples that are made ready at a time
// With fewer multiply-adds a second thread takes longer to start than it helps.
constexpr double cost_worth_threads = 2e6;

// Dense rows, packed in double: left holds x, right -v x, both one example after the other.
template <class Rows>
class DenseGram {
  public:
    DenseGram(const Rows& data, Index n, std::span<const Index> rows, std::span<const double> weights)
        : data_(data), rows_(rows), weights_(weights), n_(n), ld_(round_up(n, strip)) {}

    bool run(double* out, ThreadTeam& team, Monitor& monitor) {
        const Index most = static_cast<Index>(packed_numbers) / ld_ / depth * depth,
                    total = static_cast<Index>(rows_.size());
        const Index chunk = std::min(std::max(most, depth), total);
        left_.resize(checked_product(chunk, ld_));
        right_.resize(left_.size());
        gram_.assign(checked_product(ld_, ld_), 0.0);
        for (Index begin = 0; begin < total; begin += chunk) {
            const Index count = std::min(chunk, total - begin);
            pack(begin, count);
            team.run(
                ld_ / strip, [&](Index task) { add_strip(task * strip, count, monitor); }, [&] { monitor.poll(); });
            if (monitor.stopped()) return false;
        }
        for (Index c = 0; c < n_; ++c) {
            for (Index r = c; r < n_; ++r) out[c * n_ + r] = out[r * n_ + c] = gram_[unsigned_index(c * ld_ + r)];
        }
        return true;
    }

  private:
    void pack(Index begin, Index count) {
        for (Index k = 0; k < count; ++k) {
            const std::size_t i = unsigned_index(begin + k);
            double* left = left_.data() + k * ld_;
            double* right = right_.data() + k * ld_;
            const auto* row = data_.row(rows_[i]);
            for (Index j = 0; j < n_; ++j) left[j] = static_cast<double>(row[j]);
            std::fill(left + n_, left + ld_, 0.0);
            for (Index j = 0; j < ld_; ++j) right[j] = -weights_[i] * left[j];
        }
    }

    // Columns from c on, from the diagonal down.
    void add_strip(Index c, Index count, Monitor& monitor) {
        for (Index k = 0; k < count; k += depth) {
            if (monitor.poll()) return;
            for (Index column = c; column < c + strip; column += 4) {
                simd::best_table().subtract_product({left_.data() + k * ld_ + c, right_.data() + k * ld_ + column,
                                                     gram_.data() + column * ld_ + c, ld_, ld_ - c,
                                                     std::min(depth, count - k)});
            }
        }
    }

    const Rows& data_;
    std::span<const Index> rows_;
    std::span<const double> weights_;
    Index n_, ld_;
    AlignedVector<double> left_, right_, gram_;
};

// Sparse rows: which examples have a feature is known first; then each line of the result is one sum over them.
template <class Rows>
class SparseGram {
  public:
    SparseGram(const Rows& data, Index n, std::span<const Index> rows, std::span<const double> weights)
        : data_(data), n_(n), begins_(unsigned_index(n + 1), 0) {
        for (const Index i : rows) {
            const auto row = data.row(i);
            for (Index k = 0; k < row.n; ++k) ++begins_[unsigned_index(static_cast<Index>(row.places[k]) + 1)];
        }
        std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
        std::vector<Index> next(begins_.begin(), begins_.end() - 1);
        entries_.resize(unsigned_index(begins_.back()));
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto row = data.row(rows[i]);
            for (Index k = 0; k < row.n; ++k) {
                const Index place = next[unsigned_index(static_cast<Index>(row.places[k]))]++;
                entries_[unsigned_index(place)] = {rows[i], weights[i] * static_cast<double>(row.values[k])};
            }
        }
    }

    bool run(double* out, ThreadTeam& team, Monitor& monitor) const {
        const auto task = [&](Index t) {
            for (Index j = t * strip; j < std::min(n_, (t + 1) * strip); ++j) {
                if (monitor.poll()) return;
                fill_line(j, out + j * n_);
            }
        };
        team.run((n_ + strip - 1) / strip, task, [&] { monitor.poll(); });
        if (monitor.stopped()) return false;
        for (Index j = 0; j < n_; ++j) {
            for (Index c = 0; c < j; ++c) out[c * n_ + j] = out[j * n_ + c];
        }
        return true;
    }

  private:
    struct Entry {
        Index row;
        double value;  // of the feature, times the weight of the example
    };

    // Features up to j only, with which the entries of a row begin: the rest is symmetric.
    void fill_line(Index j, double* line) const {
        std::fill(line, line + n_, 0.0);
        for (Index at = begins_[unsigned_index(j)]; at < begins_[unsigned_index(j + 1)]; ++at) {
            const Entry& entry = entries_[unsigned_index(at)];
            const auto row = data_.row(entry.row);
            for (Index k = 0; k < row.n && static_cast<Index>(row.places[k]) <= j; ++k) {
                line[row.places[k]] += entry.value * static_cast<double>(row.values[k]);
            }
        }
    }

    const Rows& data_;
    Index n_;
    std::vector<Index> begins_;  // of a feature's entries
    std::vector<Entry> entries_;
};

}  // namespace

bool weighted_gram(const DataView& data, std::span<const Index> rows, std::span<const double> weights, double* out,
                   ThreadTeam& team, Monitor& monitor) {
    if (rows.size() != weights.size()) throw std::invalid_argument("rows and weights must have the same length");
    for (const Index i : rows) {
        if (i < 0 || i >= row_count(data)) throw std::invalid_argument("a row does not exist in the data");
    }
    const Index n = column_count(data);
    if (n == 0) return true;
    return with_rows(data, [&]<class Rows>(const Rows& typed) {
        double cost = 0.0;
        for (const Index i : rows) {
            const double length = static_cast<double>(typed.length(typed.row(i)));
            cost += 0.5 * length * length;
        }
        ThreadTeam alone(1);
        ThreadTeam& chosen = cost < cost_worth_threads ? alone : team;
        if constexpr (Rows::is_dense) {
            return DenseGram<Rows>(typed, n, rows, weights).run(out, chosen, monitor);
        } else {
            return SparseGram<Rows>(typed, n, rows, weights).run(out, chosen, monitor);
        }
    });
}

}  // namespace multimargin
