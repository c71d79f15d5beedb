// The Gram matrix of features, from its definition.
#include "linalg/weighted_gram.hpp"

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Numbers;

// Eighths, of which most are zero: their products and sums are exact in any order.
struct GramCase {
    GramCase(Index n_rows, Index n_columns) : n(n_columns) {
        Numbers numbers(static_cast<std::uint64_t>(n_columns));
        starts.push_back(0);
        for (Index i = 0; i < n_rows; ++i) {
            for (Index j = 0; j < n; ++j) {
                const bool zero = numbers.below(4) != 0;
                dense.push_back(zero ? 0.0F : static_cast<float>(numbers.below(17) - 8) / 8.0F);
                if (dense.back() == 0.0F) continue;
                values.push_back(dense.back());
                places.push_back(static_cast<std::int32_t>(j));
            }
            starts.push_back(static_cast<std::int32_t>(values.size()));
        }
        for (Index k = 0; k < 2 * n_rows; ++k) {
            rows.push_back(numbers.below(n_rows));
            weights.push_back(static_cast<double>(numbers.below(9) - 4) / 8.0);
        }
        for (Index a = 0; a < n; ++a) {
            for (Index b = 0; b < n; ++b) expected.push_back(entry(a, b));
        }
    }

    double entry(Index a, Index b) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < rows.size(); ++k) {
            const float* row = dense.data() + rows[k] * n;
            sum += weights[k] * static_cast<double>(row[a]) * static_cast<double>(row[b]);
        }
        return sum;
    }
    DataView dense_view() const { return DenseView(dense.data(), static_cast<Index>(starts.size()) - 1, n); }
    DataView sparse_view() const {
        return CsrView(values.data(), places.data(), starts.data(), static_cast<Index>(starts.size()) - 1, n);
    }

    Index n;
    std::vector<float> dense, values;
    std::vector<std::int32_t> places, starts;
    std::vector<Index> rows;
    std::vector<double> weights, expected;
};

}  // namespace

TEST(weighted_gram_by_definition) {
    for (const Index n_columns : {1, 3, 15, 16, 17, 40, 100}) {
        const GramCase c(300, n_columns);
        for (const Index n_threads : {1, 3}) {
            for (const DataView& view : {c.dense_view(), c.sparse_view()}) {
                std::vector<double> out(c.expected.size(), -1.0);
                ThreadTeam team(n_threads);
                Monitor monitor(nullptr, infinity);
                CHECK(weighted_gram(view, c.rows, c.weights, out.data(), team, monitor));
                CHECK(out == c.expected);
            }
        }
    }
}

TEST(weighted_gram_of_nothing_is_zero) {
    const GramCase c(10, 5);
    for (const DataView& view : {c.dense_view(), c.sparse_view()}) {
        std::vector<double> out(25, -1.0);
        ThreadTeam team(1);
        Monitor monitor(nullptr, infinity);
        CHECK(weighted_gram(view, {}, {}, out.data(), team, monitor));
        CHECK(out == std::vector<double>(25, 0.0));
    }
}

TEST(weighted_gram_can_be_stopped) {
    const GramCase c(300, 40);
    for (const DataView& view : {c.dense_view(), c.sparse_view()}) {
        std::vector<double> out(c.expected.size());
        ThreadTeam team(1);
        Monitor monitor(nullptr, 0.0);
        CHECK(!weighted_gram(view, c.rows, c.weights, out.data(), team, monitor));
    }
}

}  // namespace multimargin
