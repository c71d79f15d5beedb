// A Cholesky factor that grows by a row and shrinks by a row.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/types.hpp"

namespace multimargin {

// L L' = H. Column k of L is contiguous from row k on, so that every operation runs at unit stride.
class UpdatableCholesky {
  public:
    Index size() const { return n_; }
    void clear() { n_ = 0; }

    // A factor from nothing: call begin(n), set rows k..n-1 of every column k of H, then factorize.
    // That may be broken off by `stop`; then there is no factor (false).
    void begin(Index n);
    double* column_of_matrix(Index k) { return column(k); }
    bool factorize(double pivot_floor, const std::function<bool()>& stop);

    // Appends a row: h holds H against the rows present (overwritten), diagonal its own entry.
    // A pivot below the floor is raised to it: a dependent row then takes part with a huge step along
    // the null direction, which the caller's ratio test cuts off.
    void append(std::span<double> h, double diagonal, double pivot_floor);

    // Appends several rows at once, which reads the factor once instead of each time: rows[j] holds H against the rows
    // present, the ones before it and itself (overwritten).
    void append(std::span<std::vector<double>> rows, double pivot_floor);

    // Removes row and column m: a rank-one update of what follows. n^2 operations.
    void remove(Index m);

    // x <- H^-1 x
    void solve(std::span<double> x) const;

  private:
    double* column(Index k) { return values_.data() + k * ld_; }
    const double* column(Index k) const { return values_.data() + k * ld_; }
    void reserve(Index rows);
    void forward(Index begin, Index count, double* x) const;
    void factorize_panel(Index begin, Index end, double pivot_floor);

    Index n_ = 0;
    Index ld_ = 0;
    AlignedVector<double> values_;
    AlignedVector<double> carried_;
};

}  // namespace multimargin
