// The vector code, compiled once per instruction set (MULTIMARGIN_SIMD_TARGET names it).
// Written with the compilers' vector types, so that one source serves SSE2, AVX2, AVX-512 and NEON.
// No standard header: see table.hpp. Those of the instructions define nothing that the linker could mix up.
#include "table.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define MM_CONCAT_(a, b) a##b
#define MM_CONCAT(a, b) MM_CONCAT_(a, b)
#define MM_STRING_(a) #a
#define MM_STRING(a) MM_STRING_(a)

namespace multimargin::simd {

namespace {

#include "vector_math.inc"

// value = transform(scale * form + shift) + offset, its constants spread over vectors once per tile.
template <class T, Transform transform>
struct Finish {
    Vec<T> scale, shift, offset;
    int degree;

    explicit Finish(const Evaluation& e)
        : scale(broadcast(static_cast<T>(e.scale))),
          shift(broadcast(static_cast<T>(e.shift))),
          offset(broadcast(static_cast<T>(e.offset))),
          degree(e.degree) {}

    Vec<T> operator()(Vec<T> s) const { return transformed(s * scale + shift) + offset; }

    Vec<T> transformed(Vec<T> z) const {
#define MM_VALUE(name, value) \
    if constexpr (transform == Transform::name) return value;
        MM_TRANSFORMS(MM_VALUE)
#undef MM_VALUE
    }
};

template <class T, Form form>
inline Vec<T> term(Vec<T> x, Vec<T> z) {
    if constexpr (form == Form::dot) return x * z;
    const Vec<T> d = x - z;
    if constexpr (form == Form::squared_difference) return d * d;
    return maximum<T>(d, -d);
}

// As many registers as a panel needs, but no more than eight at once.
template <class T>
inline constexpr int panel_registers =
    panel_width / Vector<T>::lanes < 8 ? static_cast<int>(panel_width / Vector<T>::lanes) : 8;

// R rows against W vectors of columns; the accumulators stay in registers.
template <class T, Form form, int R, int W, class Finisher>
__attribute__((noinline)) void rows_against_strip(const Tile<T>& t, const Finisher& finish, Size first_row,
                                                  Size strip) {
    constexpr int lanes = Vector<T>::lanes;
    Vec<T> sum[R][W];
    // One by one: for the array as a whole the compiler would call the string instructions.
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
        for (int w = 0; w < W; ++w) sum[r][w] = Vec<T>{};
    }
    const Size n_features = t.n_features;
    const T* rows = t.rows + first_row * n_features;
    const T* column = t.panel + strip;
    for (Size k = 0; k < n_features; ++k, column += panel_width) {
        Vec<T> z[W];
        for (int w = 0; w < W; ++w) z[w] = load(column + w * lanes);
        for (int r = 0; r < R; ++r) {
            const Vec<T> x = broadcast(rows[r * n_features + k]);
            for (int w = 0; w < W; ++w) sum[r][w] = sum[r][w] + term<T, form>(x, z[w]);
        }
    }
    for (int r = 0; r < R; ++r) {
        T* out = t.out + (first_row + r) * t.ld + strip;
        for (int w = 0; w < W; ++w) store(out + w * lanes, finish(sum[r][w]));
    }
}

template <class T, Form form, Transform transform>
void tile_of(const Tile<T>& t, const Evaluation& e) {
    constexpr int width = MULTIMARGIN_SIMD_STRIP, height = MULTIMARGIN_SIMD_ROWS;
    constexpr Size step = width * Vector<T>::lanes;
    const Finish<T, transform> finish(e);
    const Size paired = t.n_rows / 2 * 2;
    for (Size strip = 0; strip < panel_width; strip += step) {
        Size r = 0;
        for (; r + height <= paired; r += height) rows_against_strip<T, form, height, width>(t, finish, r, strip);
        for (; r < paired; r += 2) rows_against_strip<T, form, 2, width>(t, finish, r, strip);
    }
    if (paired == t.n_rows) return;
    // A last row alone: as many columns at once as registers hold, else every addition would wait for the last one.
    constexpr int wide = panel_registers<T>, narrow = 2;
    constexpr Size lanes = Vector<T>::lanes;
    if (t.last - t.first <= narrow * lanes) {
        for (Size strip = t.first / (narrow * lanes) * (narrow * lanes); strip < t.last; strip += narrow * lanes) {
            rows_against_strip<T, form, 1, narrow>(t, finish, paired, strip);
        }
        return;
    }
    for (Size strip = 0; strip < panel_width; strip += wide * lanes) {
        rows_against_strip<T, form, 1, wide>(t, finish, paired, strip);
    }
}

template <class T, Form form>
void tile_of_form(const Tile<T>& t, const Evaluation& e) {
    switch (e.transform) {
#define MM_TILE(name, value) \
    case Transform::name: return tile_of<T, form, Transform::name>(t, e);
        MM_TRANSFORMS(MM_TILE)
#undef MM_TILE
    }
}

template <class T>
void tile(const Tile<T>& t, const Evaluation& e) {
    switch (e.form) {
        case Form::dot: return tile_of_form<T, Form::dot>(t, e);
        case Form::squared_difference: return tile_of_form<T, Form::squared_difference>(t, e);
        case Form::absolute_difference: return tile_of_form<T, Form::absolute_difference>(t, e);
    }
}

// As many doubles as fit in a vector, from doubles or from floats.
inline Vec<double> load_as_double(const double* p) { return load(p); }

inline Vec<double> load_as_double(const float* p) {
    typedef float Half __attribute__((vector_size(vector_bytes / 2)));
    Half half;
    __builtin_memcpy(&half, p, sizeof half);
    return __builtin_convertvector(half, Vec<double>);
}

// R registers of sum_e values[e] * rows[positions[e]], from a column on.
template <class T, int R>
inline void sum_rows(const T* const* rows, Size column, const int* positions, const T* values, Size n, Vec<T>* held) {
    for (Size e = 0; e < n; ++e) {
        const T* row = rows[positions[e]] + column;
        const Vec<T> value = broadcast(values[e]);
        for (int r = 0; r < R; ++r) held[r] = held[r] + value * load(row + r * Vector<T>::lanes);
    }
}

inline void add_widened(double* out, Vec<float> sum) {
    alignas(vector_bytes) float values[Vector<float>::lanes];
    store(values, sum);
    for (int half = 0; half < 2; ++half) {
        double* place = out + half * Vector<double>::lanes;
        store(place, load(place) + load_as_double(values + half * Vector<double>::lanes));
    }
}

// Sums up to 32 terms in float32 before adding them in float64: longer float sums lose digits.
void accumulate_f32(const float* const* rows, const int* positions, const float* values, Size n, double* out) {
    constexpr Size terms = 32;
    constexpr int registers = panel_registers<float>, lanes = Vector<float>::lanes;
    for (Size begin = 0; begin < n; begin += terms) {
        const Size count = begin + terms < n ? terms : n - begin;
        for (Size strip = 0; strip < panel_width; strip += registers * lanes) {
            Vec<float> held[registers] = {};
            sum_rows<float, registers>(rows, strip, positions + begin, values + begin, count, held);
            for (int r = 0; r < registers; ++r) add_widened(out + strip + r * lanes, held[r]);
        }
    }
}

void accumulate_f64(const double* const* rows, const int* positions, const double* values, Size n, double* out) {
    constexpr int registers = panel_registers<double>, lanes = Vector<double>::lanes;
    for (Size strip = 0; strip < panel_width; strip += registers * lanes) {
        Vec<double> held[registers];
        for (int r = 0; r < registers; ++r) held[r] = load(out + strip + r * lanes);
        sum_rows<double, registers>(rows, strip, positions, values, n, held);
        for (int r = 0; r < registers; ++r) store(out + strip + r * lanes, held[r]);
    }
}

template <class T>
void axpy(double factor, const T* row, double* out, Size n) {
    constexpr Size lanes = Vector<double>::lanes;
    const Vec<double> f = broadcast(factor);
    Size j = 0;
    for (; j + 2 * lanes <= n; j += 2 * lanes) {
        store(out + j, load(out + j) + f * load_as_double(row + j));
        store(out + j + lanes, load(out + j + lanes) + f * load_as_double(row + j + lanes));
    }
    for (; j + lanes <= n; j += lanes) store(out + j, load(out + j) + f * load_as_double(row + j));
    for (; j < n; ++j) out[j] += factor * static_cast<double>(row[j]);
}

template <class Value, class Single>
inline void for_each_value(Size n, double* out, Value value, Single single) {
    Size j = 0;
    for (; j + Vector<double>::lanes <= n; j += Vector<double>::lanes) store(out + j, value(j));
    for (; j < n; ++j) out[j] = single(j);
}

void gradient(const GradientBlock& b, double* out) {
    const double zero_rule = b.score2 != nullptr ? b.value2 : 0.0;
    const double* second = b.score2 != nullptr ? b.score2 : b.score1;
    for_each_value(
        b.n, out, [&](Size j) { return b.target - b.value1 * load(b.score1 + j) - zero_rule * load(second + j); },
        [&](Size j) { return b.target - b.value1 * b.score1[j] - zero_rule * second[j]; });
    if (b.mean != nullptr && b.row_sum != 0.0) axpy<double>(b.row_sum, b.mean, out, b.n);
    if (b.variable != nullptr) {
        for_each_value(
            b.n, out, [&](Size j) { return load(out + j) - load(b.ridge + j) * load(b.variable + j); },
            [&](Size j) { return out[j] - b.ridge[j] * b.variable[j]; });
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
        b.n, [&](Size j) { return violation(load(b.gradient + j), load(b.variable + j), load(b.cap + j)); },
        [&](Size j) { return box_violation_of(b.gradient[j], b.variable[j], b.cap[j]); });
}

void raise_violations(const BoxBlock& b, double* top) {
    Size j = 0;
    for (; j + double_lanes <= b.n; j += double_lanes) {
        const Doubles v = violation(load(b.gradient + j), load(b.variable + j), load(b.cap + j));
        store(top + j, maximum<double>(v, load(top + j)));
    }
    for (; j < b.n; ++j) {
        const double v = box_violation_of(b.gradient[j], b.variable[j], b.cap[j]);
        top[j] = v > top[j] ? v : top[j];
    }
}

double box_gain(const BoxBlock& b, const double* diagonal, const double* ridge, double self_coupling) {
    const auto vectored = [&](Size j) {
        const Doubles v = violation(load(b.gradient + j), load(b.variable + j), load(b.cap + j));
        Doubles q = load(diagonal + j) * self_coupling;
        if (ridge != nullptr) q = q + load(ridge + j);
        return v * v / maximum<double>(q, broadcast(1e-12));
    };
    const auto single = [&](Size j) {
        const double v = box_violation_of(b.gradient[j], b.variable[j], b.cap[j]);
        const double q = self_coupling * diagonal[j] + (ridge != nullptr ? ridge[j] : 0.0);
        return v * v / (q > 1e-12 ? q : 1e-12);
    };
    return largest_over(b.n, vectored, single);
}

void simplex_bounds(const double* gradient, const double* variable, double* top, double* low, Size n) {
    Size j = 0;
    for (; j + double_lanes <= n; j += double_lanes) {
        const Doubles g = load(gradient + j), l = load(low + j);
        store(top + j, maximum<double>(g, load(top + j)));
        const Doubles lower = g < l ? g : l;
        store(low + j, load(variable + j) > Doubles{} ? lower : l);
    }
    for (; j < n; ++j) {
        top[j] = gradient[j] > top[j] ? gradient[j] : top[j];
        low[j] = variable[j] > 0.0 && gradient[j] < low[j] ? gradient[j] : low[j];
    }
}

template <class T>
double pair_gain(const GainBlock& b, const T* row) {
    const double ga = b.first_gradient, qaa = b.first_curvature, separate = ga * ga / qaa;
    const auto vectored = [&](Size j) {
        const Doubles gb = load(b.box.gradient + j);
        const Doubles v = violation(gb, load(b.box.variable + j), load(b.box.cap + j));
        Doubles qbb = load(b.diagonal + j) * b.self_coupling;
        if (b.ridge != nullptr) qbb = qbb + load(b.ridge + j);
        qbb = maximum<double>(qbb, broadcast(1e-12));
        const Doubles qab = load_as_double(row + j) * b.coupling;
        const Doubles numerator = (ga * ga) * qbb - (2.0 * ga) * gb * qab + gb * gb * qaa;
        const Doubles det = maximum<double>(qaa * qbb - qab * qab, (1e-12 * qaa) * qbb);
        const Doubles gain = maximum<double>(numerator / det, broadcast(separate));
        return v > Doubles{} ? gain : Doubles{};
    };
    return largest_over(b.box.n, vectored, [&](Size j) { return pair_gain_of(b, j, static_cast<double>(row[j])); });
}

#include "factor.inc"
#include "lines.inc"
#include "pairs.inc"
#include "scan.inc"
#include "sparse.inc"
#include "streams.inc"

}  // namespace

const Table& MM_CONCAT(MULTIMARGIN_SIMD_TARGET, _table)() {
    static const Table table{MM_STRING(MULTIMARGIN_SIMD_TARGET),
                             tile<float>,
                             tile<double>,
                             accumulate_f32,
                             accumulate_f64,
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
                             move_members,
                             best_partner,
                             best_partners,
                             members_score};
    return table;
}

}  // namespace multimargin::simd
