// The vector code, compiled once per instruction set (MULTIMARGIN_SIMD_TARGET names it).
// Written with the compilers' vector types, so that one source serves SSE2, AVX2, AVX-512 and NEON.
// No standard header: see table.hpp.
#include "table.hpp"

#define MM_CONCAT_(a, b) a##b
#define MM_CONCAT(a, b) MM_CONCAT_(a, b)
#define MM_STRING_(a) #a
#define MM_STRING(a) MM_STRING_(a)

namespace multimargin::simd {

namespace {

inline constexpr int vector_bytes = MULTIMARGIN_SIMD_BYTES;

template <class T>
struct Lane;
template <>
struct Lane<float> {
    using Integer = unsigned;
    static constexpr float log2e = 1.44269504f;
    static constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    static constexpr float lowest = -87.0f, highest = 88.0f;
    static constexpr int mantissa = 23, exponent_bias = 127;
};
template <>
struct Lane<double> {
    using Integer = unsigned long long;
    static constexpr double log2e = 1.4426950408889634;
    static constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double lowest = -708.0, highest = 709.0;
    static constexpr int mantissa = 52, exponent_bias = 1023;
};

template <class T>
struct Vector {
    typedef T type __attribute__((vector_size(vector_bytes)));
    typedef typename Lane<T>::Integer integer __attribute__((vector_size(vector_bytes)));
    static constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));
};
template <class T>
using Vec = typename Vector<T>::type;

template <class T>
inline Vec<T> load(const T* p) {
    Vec<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
inline void store(T* p, const Vec<T>& v) {
    __builtin_memcpy(p, &v, sizeof v);
}

template <class T>
inline Vec<T> broadcast(T x) {
    return Vec<T>{} + x;
}

template <class T>
inline Vec<T> maximum(Vec<T> a, Vec<T> b) {
    return a > b ? a : b;
}

// 2^r on [-1/2, 1/2]: float by a minimax polynomial, double by the Taylor series of exp(r ln 2).
inline Vec<float> exp2_fraction(Vec<float> r) {
    Vec<float> p = broadcast(1.5353362e-4f);
    p = p * r + 0.0013398874f;
    p = p * r + 0.0096184374f;
    p = p * r + 0.055503325f;
    p = p * r + 0.24022648f;
    p = p * r + 0.69314720f;
    return p * r + 1.0f;
}

inline Vec<double> exp_small(Vec<double> r) {
    Vec<double> p = broadcast(1.0 / 6227020800.0);
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    return p * r + 1.0;
}

template <class T>
inline Vec<T> scale_by_power_of_two(Vec<T> p, Vec<T> shifted) {
    using Integers = typename Vector<T>::integer;
    Integers n;
    __builtin_memcpy(&n, &shifted, sizeof n);
    // The low bits of x + magic hold round(x); what is left of magic falls off at the top.
    n = (n + Lane<T>::exponent_bias) << Lane<T>::mantissa;
    Vec<T> factor;
    __builtin_memcpy(&factor, &n, sizeof factor);
    return p * factor;
}

inline Vec<float> fraction_power(Vec<float> x, Vec<float> n) { return exp2_fraction(x * Lane<float>::log2e - n); }

inline Vec<double> fraction_power(Vec<double> x, Vec<double> n) {
    // ln 2 in two parts, so that the reduction loses nothing.
    return exp_small((x - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6);
}

template <class T>
inline Vec<T> exponential(Vec<T> x) {
    using L = Lane<T>;
    const Vec<T> clamped = maximum<T>(x, broadcast(L::lowest));
    const Vec<T> bounded = clamped < L::highest ? clamped : broadcast(L::highest);
    const Vec<T> shifted = bounded * L::log2e + L::magic;
    const Vec<T> value = scale_by_power_of_two<T>(fraction_power(bounded, shifted - L::magic), shifted);
    return x < L::lowest ? Vec<T>{} : value;
}

template <class T>
inline Vec<T> transformed(Vec<T> s, const Evaluation& e) {
    const Vec<T> z = s * static_cast<T>(e.scale) + static_cast<T>(e.shift);
    Vec<T> value = z;
    if (e.transform == Transform::exponential) {
        value = exponential<T>(z);
    } else if (e.transform == Transform::power) {
        value = broadcast(static_cast<T>(1));
        for (int i = 0; i < e.degree; ++i) value = value * z;
    } else if (e.transform == Transform::hyperbolic_tangent) {
        value = static_cast<T>(1) - static_cast<T>(2) / (exponential<T>(z + z) + static_cast<T>(1));
    }
    return value + static_cast<T>(e.offset);
}

template <class T, Form form>
inline Vec<T> term(Vec<T> x, Vec<T> z) {
    if constexpr (form == Form::dot) return x * z;
    const Vec<T> d = x - z;
    if constexpr (form == Form::squared_difference) return d * d;
    return maximum<T>(d, -d);
}

// R rows against W vectors of columns; the accumulators stay in registers.
template <class T, Form form, int R, int W>
inline void rows_against_strip(const Tile<T>& t, const Evaluation& e, Size first_row, Size strip) {
    constexpr int lanes = Vector<T>::lanes;
    Vec<T> sum[R][W] = {};
    const T* rows = t.rows + first_row * t.n_features;
    const T* column = t.panel + strip;
    for (Size k = 0; k < t.n_features; ++k, column += panel_width) {
        Vec<T> z[W];
        for (int w = 0; w < W; ++w) z[w] = load(column + w * lanes);
        for (int r = 0; r < R; ++r) {
            const Vec<T> x = broadcast(rows[r * t.n_features + k]);
            for (int w = 0; w < W; ++w) sum[r][w] = sum[r][w] + term<T, form>(x, z[w]);
        }
    }
    for (int r = 0; r < R; ++r) {
        T* out = t.out + (first_row + r) * t.ld + strip;
        for (int w = 0; w < W; ++w) store(out + w * lanes, transformed<T>(sum[r][w], e));
    }
}

template <class T, Form form>
void tile_of_form(const Tile<T>& t, const Evaluation& e) {
    constexpr int width = MULTIMARGIN_SIMD_STRIP;
    constexpr Size step = width * Vector<T>::lanes;
    for (Size strip = 0; strip < panel_width; strip += step) {
        Size r = 0;
        for (; r + 4 <= t.n_rows; r += 4) rows_against_strip<T, form, 4, width>(t, e, r, strip);
        for (; r < t.n_rows; ++r) rows_against_strip<T, form, 1, width>(t, e, r, strip);
    }
}

template <class T>
void tile(const Tile<T>& t, const Evaluation& e) {
    switch (e.form) {
        case Form::dot: tile_of_form<T, Form::dot>(t, e); break;
        case Form::squared_difference: tile_of_form<T, Form::squared_difference>(t, e); break;
        case Form::absolute_difference: tile_of_form<T, Form::absolute_difference>(t, e); break;
    }
}

// Sums up to 32 terms in float32 before adding them in float64: longer float sums lose digits.
void accumulate_f32(const float* tile, Size ld, const int* positions, const double* values, Size n, double* out) {
    constexpr Size terms = 32;
    for (Size begin = 0; begin < n; begin += terms) {
        const Size end = begin + terms < n ? begin + terms : n;
        float sum[panel_width] = {};
        for (Size e = begin; e < end; ++e) {
            const float* row = tile + positions[e] * ld;
            const float value = static_cast<float>(values[e]);
            for (Size j = 0; j < panel_width; ++j) sum[j] += value * row[j];
        }
        for (Size j = 0; j < panel_width; ++j) out[j] += static_cast<double>(sum[j]);
    }
}

void accumulate_f64(const double* tile, Size ld, const int* positions, const double* values, Size n, double* out) {
    double sum[panel_width];
    for (Size j = 0; j < panel_width; ++j) sum[j] = out[j];
    for (Size e = 0; e < n; ++e) {
        const double* row = tile + positions[e] * ld;
        for (Size j = 0; j < panel_width; ++j) sum[j] += values[e] * row[j];
    }
    for (Size j = 0; j < panel_width; ++j) out[j] = sum[j];
}

template <class T>
void axpy(double factor, const T* row, double* out, Size n) {
#pragma GCC ivdep
    for (Size j = 0; j < n; ++j) out[j] += factor * static_cast<double>(row[j]);
}

void gradient(const GradientBlock& b, double* out) {
#pragma GCC ivdep
    for (Size j = 0; j < b.n; ++j) out[j] = b.target - b.value1 * b.score1[j];
    if (b.score2 != nullptr) axpy<double>(-b.value2, b.score2, out, b.n);
    if (b.mean != nullptr && b.row_sum != 0.0) axpy<double>(b.row_sum, b.mean, out, b.n);
    if (b.amount != nullptr) {
#pragma GCC ivdep
        for (Size j = 0; j < b.n; ++j) out[j] -= b.ridge[j] * b.amount[j];
    }
}

using Doubles = Vec<double>;
inline constexpr int double_lanes = Vector<double>::lanes;

inline Doubles violation(Doubles g, Doubles a, Doubles cap) {
    const Doubles zero{};
    const Doubles rise = a < cap ? g : zero;
    const Doubles fall = a > zero ? -g : zero;
    return maximum<double>(maximum<double>(rise, fall), zero);
}

// The largest lane and, beyond the last full vector, the scalar rule.
template <class Vectored, class Single>
inline double largest_over(Size n, Vectored vectored, Single single) {
    Doubles best{};
    Size j = 0;
    for (; j + double_lanes <= n; j += double_lanes) best = maximum<double>(best, vectored(j));
    double result = 0.0;
    for (int i = 0; i < double_lanes; ++i) result = best[i] > result ? best[i] : result;
    for (; j < n; ++j) {
        const double v = single(j);
        result = v > result ? v : result;
    }
    return result;
}

double box_violation(const BoxBlock& b) {
    return largest_over(
        b.n, [&](Size j) { return violation(load(b.gradient + j), load(b.amount + j), load(b.cap + j)); },
        [&](Size j) { return box_violation_of(b.gradient[j], b.amount[j], b.cap[j]); });
}

double box_gain(const BoxBlock& b, const double* diagonal, const double* ridge, double self_coupling) {
    const auto vectored = [&](Size j) {
        const Doubles v = violation(load(b.gradient + j), load(b.amount + j), load(b.cap + j));
        Doubles q = load(diagonal + j) * self_coupling;
        if (ridge != nullptr) q = q + load(ridge + j);
        return v * v / maximum<double>(q, broadcast(1e-12));
    };
    const auto single = [&](Size j) {
        const double v = box_violation_of(b.gradient[j], b.amount[j], b.cap[j]);
        const double q = self_coupling * diagonal[j] + (ridge != nullptr ? ridge[j] : 0.0);
        return v * v / (q > 1e-12 ? q : 1e-12);
    };
    return largest_over(b.n, vectored, single);
}

void simplex_bounds(const double* gradient, const double* amount, double* top, double* low, Size n) {
#pragma GCC ivdep
    for (Size j = 0; j < n; ++j) {
        const double g = gradient[j];
        const double lower = g < low[j] ? g : low[j];
        top[j] = g > top[j] ? g : top[j];
        low[j] = amount[j] > 0.0 ? lower : low[j];
    }
}

template <class T>
inline Doubles load_as_double(const T* p) {
    Doubles v;
    for (int i = 0; i < double_lanes; ++i) v[i] = static_cast<double>(p[i]);
    return v;
}

template <class T>
double pair_gain(const GainBlock& b, const T* row) {
    const double ga = b.first_gradient, qaa = b.first_curvature, separate = ga * ga / qaa;
    const auto vectored = [&](Size j) {
        const Doubles gb = load(b.box.gradient + j);
        const Doubles v = violation(gb, load(b.box.amount + j), load(b.box.cap + j));
        Doubles qbb = load(b.diagonal + j) * b.self_coupling;
        if (b.ridge != nullptr) qbb = qbb + load(b.ridge + j);
        qbb = maximum<double>(qbb, broadcast(1e-12));
        const Doubles qab = load_as_double(row + j) * b.coupling;
        const Doubles numerator = (ga * ga) * qbb - (2.0 * ga) * gb * qab + gb * gb * qaa;
        const Doubles det = maximum<double>(qaa * qbb - qab * qab, (1e-12 * qaa) * qbb);
        const Doubles gain = maximum<double>(numerator / det, broadcast(separate));
        return v > Doubles{} ? gain : Doubles{};
    };
    return largest_over(b.box.n, vectored,
                        [&](Size j) { return pair_gain_of(b, j, static_cast<double>(row[j])); });
}

}  // namespace

const Table& MM_CONCAT(MULTIMARGIN_SIMD_TARGET, _table)() {
    static const Table table{MM_STRING(MULTIMARGIN_SIMD_TARGET),
                             tile<float>,
                             tile<double>,
                             accumulate_f32,
                             accumulate_f64,
                             axpy<float>,
                             axpy<double>,
                             gradient,
                             box_violation,
                             box_gain,
                             simplex_bounds,
                             pair_gain<float>,
                             pair_gain<double>};
    return table;
}

}  // namespace multimargin::simd
