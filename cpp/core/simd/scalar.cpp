// The scalar twin of the vector code: slow, obvious, and the oracle of its tests.
#include <algorithm>
#include <cmath>

#include "scalar_streams.hpp"
#include "table.hpp"

namespace multimargin::simd {

namespace {

template <class T>
T decaying_exponential(T z) {
    return std::exp(z);
}

template <class T>
T hyperbolic_tangent(T z) {
    return std::tanh(z);
}

template <class T>
T integer_power(T base, int degree) {
    return std::pow(base, degree);
}

double transformed(double z, Transform transform, [[maybe_unused]] int degree) {
    using T = double;
    switch (transform) {
#define MM_VALUE(name, value) \
    case Transform::name: return value;
        MM_TRANSFORMS(MM_VALUE)
#undef MM_VALUE
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
            t.out[r * t.ld + j] = static_cast<T>(value_of(e, s));
        }
    }
}

template <class T>
void accumulate(const T* const* rows, const int* positions, const T* values, Size n, double* out) {
    for (Size e = 0; e < n; ++e) {
        const double value = static_cast<double>(values[e]);
        for (Size j = 0; j < panel_width; ++j) out[j] += value * static_cast<double>(rows[positions[e]][j]);
    }
}

template <class T>
void axpy(double factor, const T* row, double* out, Size n) {
    for (Size j = 0; j < n; ++j) out[j] += factor * static_cast<double>(row[j]);
}

double dot_f32(const float* x, const float* y, Size n) {
    double sum = 0.0;
    for (Size k = 0; k < n; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(y[k]);
    return sum;
}

double dot(const double* x, const double* y, Size n) {
    double sum = 0.0;
    for (Size j = 0; j < n; ++j) sum += x[j] * y[j];
    return sum;
}

double dot_mixed(const float* x, const double* y, Size n) {
    double sum = 0.0;
    for (Size j = 0; j < n; ++j) sum += static_cast<double>(x[j]) * y[j];
    return sum;
}

void square_times(double* values, Size n, int times) {
    for (Size j = 0; j < n; ++j) {
        for (int t = 0; t < times; ++t) values[j] *= values[j];
    }
}

void combine_lines(const Lines& x, const double* matrix, Size ld, double* out) {
    std::fill(out, out + ld, 0.0);
    for (Size e = 0; e < x.n; ++e) {
        const double* line = matrix + (x.places != nullptr ? x.places[e] : e) * ld;
        for (Size c = 0; c < ld; ++c) out[c] += x.values[e] * line[c];
    }
}

void spread_lines(const Lines& x, const double* change, double* matrix, Size ld) {
    for (Size e = 0; e < x.n; ++e) {
        double* line = matrix + (x.places != nullptr ? x.places[e] : e) * ld;
        for (Size c = 0; c < ld; ++c) line[c] += x.values[e] * change[c];
    }
}

void rotate(double c, double s, double* x, double* y, Size n) {
    for (Size j = 0; j < n; ++j) {
        const double old = x[j];
        x[j] = c * old + s * y[j];
        y[j] = c * y[j] - s * old;
    }
}

void subtract_product(const Product& p) {
    for (Size c = 0; c < 4; ++c) {
        for (Size r = 0; r < p.n_rows; ++r) {
            for (Size k = 0; k < p.depth; ++k) {
                p.out[c * p.ld + r] -= p.left[k * p.ld + r] * p.right[k * p.ld + c];
            }
        }
    }
}

void subtract_columns(const double* columns, Size ld, const double* factors, double* out, Size n) {
    for (Size j = 0; j < n; ++j) {
        for (Size k = 0; k < 4; ++k) out[j] -= factors[k] * columns[k * ld + j];
    }
}

void multiply(const Multiply& m) {
    for (Size r = 0; r < m.n_rows; ++r) {
        for (Size c = 0; c < m.n_columns; ++c) {
            float sum = 0.0F;
            for (Size k = 0; k < m.depth; ++k) {
                sum += m.left[r * m.left_row + k * m.left_column] * m.right[k * m.right_ld + c];
            }
            m.out[r * m.out_ld + c] += sum;
        }
    }
}

void raise_violations(const BoxBlock& b, double* top) {
    for (Size j = 0; j < b.n; ++j) {
        top[j] = std::max(top[j], box_violation_of(b.gradient[j], b.variable[j], b.cap[j]));
    }
}

void gradient(const GradientBlock& b, double* out) {
    for (Size j = 0; j < b.n; ++j) {
        double g = b.target - b.value1 * b.score1[j];
        if (b.score2 != nullptr) g -= b.value2 * b.score2[j];
        if (b.mean != nullptr) g += b.row_sum * b.mean[j];
        if (b.variable != nullptr) g -= b.ridge[j] * b.variable[j];
        out[j] = g;
    }
}

double box_violation(const BoxBlock& b) {
    double largest = 0.0;
    for (Size j = 0; j < b.n; ++j) {
        largest = std::max(largest, box_violation_of(b.gradient[j], b.variable[j], b.cap[j]));
    }
    return largest;
}

double box_gain(const BoxBlock& b, const double* diagonal, const double* ridge, double self_coupling) {
    double largest = 0.0;
    for (Size j = 0; j < b.n; ++j) {
        const double v = box_violation_of(b.gradient[j], b.variable[j], b.cap[j]);
        const double q = self_coupling * diagonal[j] + (ridge != nullptr ? ridge[j] : 0.0);
        largest = std::max(largest, v * v / std::max(q, 1e-12));  // DGI11 4.2
    }
    return largest;
}

void simplex_bounds(const double* gradient, const double* variable, double* top, double* low, Size n) {
    for (Size j = 0; j < n; ++j) {
        top[j] = std::max(top[j], gradient[j]);
        if (variable[j] > 0.0) low[j] = std::min(low[j], gradient[j]);
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

template <class T>
double scan_gradient(const ScanGroup<T>& g, Size p, Size j) {
    const ScanTerm<T>& t = g.terms[p];
    double value = t.target - t.value * g.scores[t.column + j];
    if (g.shared != nullptr) value -= t.share * g.shared[j];
    if (g.ridge != nullptr) value -= g.ridge[j] * (g.sum != nullptr ? g.sum[j] : g.variables[p * g.ld + j]);
    return value;
}

template <class T>
void scan_box(const ScanGroup<T>& g) {
    for (Size j = 0; j < g.n; ++j) {
        double largest = 0.0;
        for (Size p = 0; p < g.n_terms; ++p) {
            largest = std::max(largest, box_violation_of(scan_gradient(g, p, j), g.variables[p * g.ld + j], g.cap[j]));
        }
        g.violations[j] = static_cast<T>(largest);
    }
}

template <class T>
void scan_simplex(const ScanGroup<T>& g) {
    for (Size j = 0; j < g.n; ++j) {
        double top = 0.0, low = g.sum[j] < g.cap[j] * static_cast<T>(full_share) ? 0.0 : __builtin_inf();
        for (Size p = 0; p < g.n_terms; ++p) {
            const double gradient = scan_gradient(g, p, j);
            top = std::max(top, gradient);
            if (g.variables[p * g.ld + j] > 0) low = std::min(low, gradient);
        }
        g.violations[j] = static_cast<T>(std::max(0.0, top - low));
    }
}

template <class T>
Size collect(const T* values, Size n, T threshold, int* positions) {
    Size count = 0;
    for (Size j = 0; j < n; ++j) {
        if (values[j] >= threshold) positions[count++] = static_cast<int>(j);
    }
    return count;
}

template <class T>
T largest(const T* values, Size n) {
    return n > 0 ? std::max(T(0), *std::max_element(values, values + n)) : T(0);
}

template <class T>
void add_row(const RowUpdate<T>& u) {
    for (Size c = 0; c < u.n_columns; ++c) {
        for (Size j = 0; j < u.n; ++j) u.scores[u.columns[c] * u.ld + j] += u.factors[c] * u.row[j];
    }
}

template <class T>
PairChoice<T> choose_second(const PairScan<T>& s) {
    PairChoice<T> choice{static_cast<T>(-pair_outside), 0};
    T best = 0, best_bend = 1;
    for (Size j = 0; j < s.n; ++j) {
        const T score = s.scores[j] + s.outside_low[j];
        choice.largest = std::max(choice.largest, score);
        const T difference = std::max(score - s.first_score, T(0));
        const T bend = std::max(s.first_curvature + s.diagonal[j] - 2 * s.row[j], static_cast<T>(pair_curvature_floor));
        if (difference * difference * best_bend > best * bend) {
            best = difference * difference;
            best_bend = bend;
            choice.second = j;
        }
    }
    return choice;
}

template <class T>
PairExtreme<T> update_pair(const PairUpdate<T>& u) {
    PairExtreme<T> least{static_cast<T>(pair_outside), 0};
    for (Size j = 0; j < u.n; ++j) {
        u.scores[j] += u.factor * (u.first[j] - u.second[j]);
        const T score = u.scores[j] + u.outside_up[j];
        if (score < least.value) least = {score, j};
    }
    return least;
}

double sparse_term(double x, double z, Form f) {
    if (f != Form::absolute_difference) return x * z;
    return x * z > 0 ? std::min(std::abs(x), std::abs(z)) : 0.0;
}

// Summed in T, like the tiles, so that equal rows have distance 0.
template <class T>
T sparse_norm(Form f, const T* values, Size n) {
    T sum = 0;
    for (Size k = 0; f != Form::dot && k < n; ++k) {
        sum += static_cast<T>(sparse_term(static_cast<double>(values[k]), static_cast<double>(values[k]), f));
    }
    return sum;
}

template <class T>
double sparse_form(const SparseTile<T>& t, Size r, Size j, Form f) {
    T sum = 0;
    for (Size k = t.starts[r]; k < t.starts[r + 1]; ++k) {
        const double z = static_cast<double>(t.panel[t.lines[k] * panel_width + j]);
        sum += static_cast<T>(sparse_term(static_cast<double>(t.values[k]), z, f));
    }
    const double whole = static_cast<double>(sum);
    if (f == Form::dot) return whole;
    const double norms = static_cast<double>(t.row_norms[r]) + static_cast<double>(t.column_norms[j]);
    return std::max(norms - 2.0 * whole, 0.0);
}

template <class T>
void sparse_tile(const SparseTile<T>& t, const Evaluation& e) {
    for (Size r = 0; r < t.n_rows; ++r) {
        for (Size j = 0; j < panel_width; ++j) {
            t.out[r * t.ld + j] = static_cast<T>(value_of(e, sparse_form(t, r, j, e.form)));
        }
    }
}

}  // namespace

double value_of(const Evaluation& e, double form) {
    return transformed(e.scale * form + e.shift, e.transform, e.degree) + e.offset;
}

// DGI11 A.1, twice the gain. A singular pair whose gradient is not orthogonal to the null
// direction has an infinite unconstrained gain; it is ranked by a very large number, so that
// the choice among several of them still follows the gradient.
double pair_gain_of(const GainBlock& b, Size j, double kernel_value) {
    const double gb = b.box.gradient[j];
    if (!(box_violation_of(gb, b.box.variable[j], b.box.cap[j]) > 0)) return 0.0;
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
                             dot_f32,
                             dot_mixed,
                             square_times,
                             combine_lines,
                             spread_lines,
                             rotate,
                             subtract_product,
                             subtract_columns,
                             multiply,
                             gradient,
                             box_violation,
                             raise_violations,
                             box_gain,
                             simplex_bounds,
                             pair_gain<float>,
                             pair_gain<double>,
                             scan_box<float>,
                             scan_box<double>,
                             scan_simplex<float>,
                             scan_simplex<double>,
                             collect<float>,
                             collect<double>,
                             largest<float>,
                             largest<double>,
                             add_row<float>,
                             add_row<double>,
                             choose_second<float>,
                             choose_second<double>,
                             update_pair<float>,
                             update_pair<double>,
                             sparse_tile<float>,
                             sparse_tile<double>,
                             sparse_norm<float>,
                             sparse_norm<double>,
                             scalar_move_members,
                             scalar_best_partner,
                             scalar_best_partners,
                             scalar_members_score};
    return table;
}

}  // namespace multimargin::simd
