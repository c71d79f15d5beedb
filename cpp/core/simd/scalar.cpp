// The scalar twin of the vector code: slow, obvious, and the oracle of its tests.
#include <algorithm>
#include <cmath>

#include "table.hpp"

namespace multimargin::simd {

namespace {

double power(double base, int degree) {
    double result = 1.0;
    for (int i = 0; i < degree; ++i) result *= base;
    return result;
}

double transformed(double s, const Evaluation& e) {
    const double z = e.scale * s + e.shift;
    switch (e.transform) {
        case Transform::identity: return z + e.offset;
        case Transform::exponential: return std::exp(z) + e.offset;
        case Transform::power: return power(z, e.degree) + e.offset;
        case Transform::hyperbolic_tangent: return std::tanh(z) + e.offset;
    }
    return 0.0;
}

double form(double x, double z, Form f) {
    switch (f) {
        case Form::dot: return x * z;
        case Form::squared_difference: return (x - z) * (x - z);
        case Form::absolute_difference: return std::abs(x - z);
    }
    return 0.0;
}

template <class T>
void tile(const Tile<T>& t, const Evaluation& e) {
    for (Size r = 0; r < t.n_rows; ++r) {
        for (Size j = 0; j < panel_width; ++j) {
            double s = 0.0;
            for (Size k = 0; k < t.n_features; ++k) {
                s += form(static_cast<double>(t.rows[r * t.n_features + k]),
                          static_cast<double>(t.panel[k * panel_width + j]), e.form);
            }
            t.out[r * t.ld + j] = static_cast<T>(transformed(s, e));
        }
    }
}

template <class T>
void accumulate(const T* tile, Size ld, const int* positions, const double* values, Size n, double* out) {
    for (Size e = 0; e < n; ++e) {
        for (Size j = 0; j < panel_width; ++j) out[j] += values[e] * static_cast<double>(tile[positions[e] * ld + j]);
    }
}

template <class T>
void axpy(double factor, const T* row, double* out, Size n) {
    for (Size j = 0; j < n; ++j) out[j] += factor * static_cast<double>(row[j]);
}

double dot(const double* x, const double* y, Size n) {
    double sum = 0.0;
    for (Size j = 0; j < n; ++j) sum += x[j] * y[j];
    return sum;
}

void rotate(double c, double s, double* x, double* y, Size n) {
    for (Size j = 0; j < n; ++j) {
        const double old = x[j];
        x[j] = c * old + s * y[j];
        y[j] = c * y[j] - s * old;
    }
}

void raise_violations(const BoxBlock& b, double* top) {
    for (Size j = 0; j < b.n; ++j) {
        top[j] = std::max(top[j], box_violation_of(b.gradient[j], b.amount[j], b.cap[j]));
    }
}

void gradient(const GradientBlock& b, double* out) {
    for (Size j = 0; j < b.n; ++j) {
        double g = b.target - b.value1 * b.score1[j];
        if (b.score2 != nullptr) g -= b.value2 * b.score2[j];
        if (b.mean != nullptr) g += b.row_sum * b.mean[j];
        if (b.amount != nullptr) g -= b.ridge[j] * b.amount[j];
        out[j] = g;
    }
}

double box_violation(const BoxBlock& b) {
    double largest = 0.0;
    for (Size j = 0; j < b.n; ++j) {
        largest = std::max(largest, box_violation_of(b.gradient[j], b.amount[j], b.cap[j]));
    }
    return largest;
}

double box_gain(const BoxBlock& b, const double* diagonal, const double* ridge, double self_coupling) {
    double largest = 0.0;
    for (Size j = 0; j < b.n; ++j) {
        const double v = box_violation_of(b.gradient[j], b.amount[j], b.cap[j]);
        const double q = self_coupling * diagonal[j] + (ridge != nullptr ? ridge[j] : 0.0);
        largest = std::max(largest, v * v / std::max(q, 1e-12));  // DGI11 4.2
    }
    return largest;
}

void simplex_bounds(const double* gradient, const double* amount, double* top, double* low, Size n) {
    for (Size j = 0; j < n; ++j) {
        top[j] = std::max(top[j], gradient[j]);
        if (amount[j] > 0.0) low[j] = std::min(low[j], gradient[j]);
    }
}

template <class T>
double pair_gain(const GainBlock& b, const T* row) {
    double largest = 0.0;
    for (Size j = 0; j < b.box.n; ++j) {
        largest = std::max(largest, pair_gain_of(b, j, static_cast<double>(row[j])));
    }
    return largest;
}

}  // namespace

// DGI11 A.1, twice the gain. A singular pair whose gradient is not orthogonal to the null
// direction has an infinite unconstrained gain; it is ranked by a very large number, so that
// the choice among several of them still follows the gradient.
double pair_gain_of(const GainBlock& b, Size j, double kernel_value) {
    const double gb = b.box.gradient[j];
    if (!(box_violation_of(gb, b.box.amount[j], b.box.cap[j]) > 0)) return 0.0;
    const double ga = b.first_gradient;
    const double qaa = b.first_curvature;
    const double ridge = b.ridge != nullptr ? b.ridge[j] : 0.0;
    const double raw = b.self_coupling * b.diagonal[j] + ridge;
    const double qbb = raw > 1e-12 ? raw : 1e-12;
    const double qab = b.coupling * kernel_value;
    const double numerator = ga * ga * qbb - 2.0 * ga * gb * qab + gb * gb * qaa;
    const double det = qaa * qbb - qab * qab;
    const double floor = 1e-12 * qaa * qbb;
    const double separate = ga * ga / qaa;  // what the first variable gains alone: a lower bound
    const double joint = numerator / (det > floor ? det : floor);
    return joint > separate ? joint : separate;
}

const Table& scalar_table() {
    static const Table table{"scalar",
                             tile<float>,
                             tile<double>,
                             accumulate<float>,
                             accumulate<double>,
                             axpy<float>,
                             axpy<double>,
                             dot,
                             rotate,
                             gradient,
                             box_violation,
                             raise_violations,
                             box_gain,
                             simplex_bounds,
                             pair_gain<float>,
                             pair_gain<double>};
    return table;
}

}  // namespace multimargin::simd
