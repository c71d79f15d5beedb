// What the tests of the binary machine share: two classes of points, and a check of a solution in plain loops.
#pragma once

#include <algorithm>
#include <cmath>

#include "check.hpp"
#include "problem/binary_problem.hpp"
#include "problems.hpp"

namespace multimargin::testing {

// Two overlapping clouds, some labels wrong. Examples are rows of the data from the last to the sixth, so that nothing
// may take an example for a row.
struct TwoClouds {
    TwoClouds(Index positive, Index negative, Index n_features, std::uint64_t seed, double gamma_ = 0.8)
        : n_positive(positive), width(n_features), gamma(gamma_), C(unsigned_index(positive + negative), 1.0) {
        Numbers numbers(seed);
        const Index n = positive + negative;
        X = numbers.many<double>((n + unused) * width, -1.0, 1.0);
        for (Index e = 0; e < n; ++e) {
            rows.push_back(n + unused - 1 - e);
            const bool first = (e < positive) != (numbers.uniform(0.0, 1.0) < 0.1);
            for (Index k = 0; k < width && first; k += 2) X[unsigned_index(rows.back() * width + k)] += 0.6;
        }
    }

    Index size() const { return static_cast<Index>(rows.size()); }
    DenseView view() const { return {X.data(), size() + unused, width}; }
    DenseSource source() const { return {view(), rbf(gamma)}; }
    BinaryProblem problem(const KernelSource& of, Loss loss = Loss::hinge) const {
        return {of, rows, n_positive, C, loss};
    }
    // k(example i, example j), from its definition.
    double kernel(Index i, Index j) const {
        const double* x = X.data() + rows[unsigned_index(i)] * width;
        const double* z = X.data() + rows[unsigned_index(j)] * width;
        double sum = 0.0;
        for (Index k = 0; k < width; ++k) sum += (x[k] - z[k]) * (x[k] - z[k]);
        return std::exp(-gamma * sum);
    }

    static constexpr Index unused = 5;
    Index n_positive, width;
    double gamma;
    AlignedVector<double> X;
    std::vector<Index> rows;
    std::vector<double> C;
};

// A solution seen without any code of the core: f without the bias, then everything that follows from it.
struct PlainCheck {
    PlainCheck(const TwoClouds& clouds, Loss loss, const std::vector<double>& a) : f(a.size(), 0.0), E(a.size()) {
        const bool squared = loss == Loss::squared_hinge;
        for (Index e = 0; e < clouds.size(); ++e) add_example(clouds, e, a[unsigned_index(e)]);
        double free = 0.0, norm = 0.0, ridges = 0.0;
        Index n_free = 0;
        for (std::size_t e = 0; e < a.size(); ++e) {
            const bool positive = static_cast<Index>(e) < clouds.n_positive;
            const double y = positive ? 1.0 : -1.0, cap = squared ? infinity : clouds.C[e];
            const double ridge = squared ? 1.0 / (2.0 * clouds.C[e]) : 0.0;
            E[e] = f[e] - y + ridge * y * a[e];
            const bool above = a[e] > 0.0, below = a[e] < cap;
            if (positive ? below : above) lowest_up = std::min(lowest_up, E[e]);
            if (positive ? above : below) largest_low = std::max(largest_low, E[e]);
            in_box = in_box && a[e] >= 0.0 && a[e] <= cap;
            sum += y * a[e];
            mass += a[e];
            n_support += above ? 1 : 0;
            norm += y * a[e] * f[e];
            ridges += 0.5 * ridge * a[e] * a[e];
            if (above && below) free += E[e], ++n_free;
        }
        violation = std::max(0.0, largest_low - lowest_up);
        bias = -(n_free > 0 ? free / static_cast<double>(n_free) : 0.5 * (lowest_up + largest_low));
        dual = mass - 0.5 * norm - ridges;
        primal = 0.5 * norm;
        for (std::size_t e = 0; e < a.size(); ++e) {
            const double y = static_cast<Index>(e) < clouds.n_positive ? 1.0 : -1.0;
            const double short_of = std::max(0.0, 1.0 - y * (f[e] + bias));
            primal += clouds.C[e] * (squared ? short_of * short_of : short_of);
        }
    }

    void add_example(const TwoClouds& clouds, Index j, double a) {
        const double beta = j < clouds.n_positive ? a : -a;
        for (Index i = 0; i < clouds.size() && a != 0.0; ++i) f[unsigned_index(i)] += beta * clouds.kernel(i, j);
    }
    bool feasible() const { return in_box && std::abs(sum) <= 1e-9 * mass; }

    std::vector<double> f, E;
    double lowest_up = infinity, largest_low = -infinity;
    double violation = 0.0, dual = 0.0, primal = 0.0, bias = 0.0;
    double sum = 0.0, mass = 0.0;  // of y a, of a
    Index n_support = 0;
    bool in_box = true;
};

// A point whose violation is at most `violation`: then so is, in its own unit, the duality gap. Each example adds to it
// (C - a) g or -a g, with |g| at most the violation; with the squared hinge at most 3 C g^2.
inline void check_optimal(const TwoClouds& clouds, Loss loss, const PlainCheck& exact, double violation) {
    CHECK(exact.feasible());
    CHECK(exact.violation <= violation);
    double total = 0.0;
    for (const double C : clouds.C) total += C;
    const double allowed = loss == Loss::hinge ? total * violation : 3.0 * total * violation * violation;
    CHECK(exact.primal - exact.dual <= allowed + 1e-10 * exact.primal);
    CHECK(exact.dual <= exact.primal * (1.0 + 1e-12));
}

}  // namespace multimargin::testing
