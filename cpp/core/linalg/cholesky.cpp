#include "linalg/cholesky.hpp"

#include <algorithm>
#include <cmath>

#include "simd/table.hpp"

namespace multimargin {

void UpdatableCholesky::reserve(Index rows) {
    if (rows <= ld_) return;
    const Index ld = round_up(std::max<Index>(rows, 2 * ld_), 64);
    AlignedVector<double> grown(checked_product(ld, ld));
    for (Index k = 0; k < n_; ++k) std::copy_n(column(k) + k, n_ - k, grown.data() + k * ld + k);
    values_ = std::move(grown);
    ld_ = ld;
}

void UpdatableCholesky::begin(Index n) {
    n_ = 0;  // nothing to move when the memory grows
    reserve(n + 4);
    n_ = n;
}

// Columns begin..end-1, from which all columns before have been subtracted.
void UpdatableCholesky::factorize_panel(Index begin, Index end, double pivot_floor) {
    const simd::Table& table = simd::best_table();
    for (Index k = begin; k < end; ++k) {
        double* c = column(k);
        for (Index j = begin; j < k; ++j) table.axpy_f64(-column(j)[k], column(j) + k, c + k, n_ - k);
        const double pivot = std::sqrt(std::max(c[k], pivot_floor));
        c[k] = pivot;
        for (Index i = k + 1; i < n_; ++i) c[i] /= pivot;
    }
}

// A panel of columns at a time; what it takes off the columns behind it is a matrix product, four columns at once.
bool UpdatableCholesky::factorize(double pivot_floor, const std::function<bool()>& stop) {
    constexpr Index panel = 32;
    for (Index begin = 0; begin < n_; begin += panel) {
        if (stop()) {
            n_ = 0;
            return false;
        }
        const Index end = std::min(begin + panel, n_);
        factorize_panel(begin, end, pivot_floor);
        // Rows above the diagonal are written too, and columns beyond the last: they are not read.
        for (Index j = end; j < n_; j += 4) {
            simd::best_table().subtract_product(
                {column(begin) + j, column(begin) + j, column(j) + j, ld_, n_ - j, end - begin});
        }
    }
    return true;
}

void UpdatableCholesky::append(std::span<double> h, double diagonal, double pivot_floor) {
    reserve(n_ + 1);
    const simd::Table& table = simd::best_table();
    for (Index k = 0; k < n_; ++k) {  // forward substitution: the new row of L
        double* c = column(k);
        const double x = h[unsigned_index(k)] / c[k];
        table.axpy_f64(-x, c + k + 1, h.data() + k + 1, n_ - k - 1);
        c[n_] = x;
        diagonal -= x * x;
    }
    column(n_)[n_] = std::sqrt(std::max(diagonal, pivot_floor));
    ++n_;
}

// Columns begin.. of L^-1 x, up to four of them: what they take off the rest of x is one pass over it.
void UpdatableCholesky::forward(Index begin, Index count, double* x) const {
    for (Index k = begin; k < begin + count; ++k) {
        for (Index m = begin; m < k; ++m) x[k] -= x[m] * column(m)[k];
        x[k] /= column(k)[k];
    }
    const Index rest = begin + count;
    if (count == 4) {
        simd::best_table().subtract_columns(column(begin) + rest, ld_, x + begin, x + rest, n_ - rest);
        return;
    }
    for (Index k = begin; k < rest; ++k) simd::best_table().axpy_f64(-x[k], column(k) + rest, x + rest, n_ - rest);
}

void UpdatableCholesky::append(std::span<std::vector<double>> rows, double pivot_floor) {
    const Index count = static_cast<Index>(rows.size()), n = n_;
    reserve(n + count);
    const simd::Table& table = simd::best_table();
    for (Index k = 0; k < n; k += 4) {  // columns serve all of them while they are at hand
        const Index width = std::min<Index>(4, n - k);
        for (Index j = 0; j < count; ++j) {
            double* h = rows[unsigned_index(j)].data();
            forward(k, width, h);
            for (Index m = k; m < k + width; ++m) column(m)[n + j] = h[m];
        }
    }
    for (Index j = 0; j < count; ++j) {  // among themselves
        double* h = rows[unsigned_index(j)].data();
        for (Index i = 0; i <= j; ++i) {
            double* c = column(n + i);
            const double* earlier = rows[unsigned_index(i)].data();
            const double rest = h[n + i] - table.dot(h, earlier, n + i);
            h[n + i] = i < j ? rest / c[n + i] : std::sqrt(std::max(rest, pivot_floor));
            c[n + j] = h[n + i];
        }
    }
    n_ += count;
}

void UpdatableCholesky::remove(Index m) {
    for (Index k = 0; k < m; ++k) {
        double* c = column(k);
        std::copy(c + m + 1, c + n_, c + m);
    }
    // What follows row m keeps the product of its own part, so the removed column is added back to it.
    carried_.assign(column(m) + m, column(m) + n_);
    const simd::Table& table = simd::best_table();
    for (Index k = m + 1; k < n_; ++k) {
        double* c = column(k);
        double* v = carried_.data() + (k - m);
        const double r = std::hypot(c[k], *v);
        table.rotate(c[k] / r, *v / r, c + k + 1, v + 1, n_ - k - 1);
        c[k] = r;
        std::copy(c + k, c + n_, column(k - 1) + k - 1);
    }
    --n_;
}

void UpdatableCholesky::solve(std::span<double> x) const {
    const simd::Table& table = simd::best_table();
    for (Index k = 0; k < n_; k += 4) forward(k, std::min<Index>(4, n_ - k), x.data());
    for (Index k = n_ - 1; k >= 0; --k) {
        const double* c = column(k);
        const double tail = table.dot(c + k + 1, x.data() + k + 1, n_ - k - 1);
        x[unsigned_index(k)] = (x[unsigned_index(k)] - tail) / c[k];
    }
}

}  // namespace multimargin
