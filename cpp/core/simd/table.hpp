// The vector code behind plain functions: one table per instruction set, the best one chosen at run time.
// Nothing here includes a standard template, so that code compiled for a newer
// instruction set can never be merged by the linker into code for an older one.
#pragma once

#include "transforms.hpp"

namespace multimargin::simd {

using Size = long long;

// Columns are packed in panels of this many, feature by feature, for every instruction set.
inline constexpr Size panel_width = 64;

enum class Form { dot, squared_difference, absolute_difference };

enum class Transform {
#define MM_NAME(name, value) name,
    MM_TRANSFORMS(MM_NAME)
#undef MM_NAME
};

// value = transform(scale * form(x, z) + shift) + offset
struct Evaluation {
    Form form = Form::dot;
    Transform transform = Transform::identity;
    double scale = 1.0;
    double shift = 0.0;
    double offset = 0.0;
    int degree = 0;
};

// The value in plain C++, for form(x, z).
double value_of(const Evaluation&, double form);

template <class T>
struct Tile {
    const T* rows;  // n_rows x n_features, row-major
    Size n_rows;
    Size n_features;
    const T* panel;  // n_features x panel_width
    T* out;          // n_rows x panel_width, leading dimension ld
    Size ld;
    // The columns needed of a single row; others of the panel may be computed or not.
    Size first = 0, last = panel_width;
};

// Sparse rows against a panel that is dense over the lines the rows may name: sum_k x_k z_k for the dot product and
//     |x - z|^2   = |x|^2 + |z|^2 - 2 sum_k x_k z_k
//     |x - z|_1   = |x|_1 + |z|_1 - 2 sum_k (min(|x_k|, |z_k|) where the signs agree, else 0).
// A term with a zero is exactly 0, so that a sum over any lines that hold all common entries has the same bits.
// Equal rows have distance 0 exactly, when their norms come from sparse_norm.
template <class T>
struct SparseTile {
    const Size* starts;  // n_rows + 1: where a row's entries begin
    const Size* lines;   // of the entries, ascending within a row
    const T* values;
    const T* row_norms;  // |x|^2 or |x|_1
    Size n_rows;
    const T* panel;         // lines x panel_width
    const T* column_norms;  // of the panel's columns
    T* out;                 // n_rows x panel_width, leading dimension ld
    Size ld;
};

// One margin component of one class over a range of examples: what its gradient needs.
struct GradientBlock {
    double target;
    double value1, value2, row_sum;
    const double* score1;
    const double* score2;    // null when the component has one class only
    const double* mean;      // null when scores are not projected
    const double* variable;  // a, or its sum over the example, for the squared hinge; null for the hinge
    const double* ridge;     // 1/(2 C_i), with variable
    Size n;
};

struct BoxBlock {
    const double* gradient;
    const double* variable;
    const double* cap;
    Size n;
};

// The gradient of one margin component over the examples of a class: target - value u[column] - share of a score that
// all components of the class share (that of the class itself, or the mean).
template <class T>
struct ScanTerm {
    T target, value, share;
    Size column;  // offset of the score column from the first one
};

// All components of one class over a range of examples, and where the violation of each example goes.
// Vectors are read and written beyond n: every array goes on for `overrun` values, whatever they are.
template <class T>
struct ScanGroup {
    const ScanTerm<T>* terms;
    Size n_terms;
    const T* scores;
    const T* shared;     // the shared score; null when there is none
    const T* variables;  // of component p at p * ld
    Size ld;
    const T* cap;    // a variable (box) or the sum (simplex) below it may rise
    const T* sum;    // of the variables; simplex only
    const T* ridge;  // 1/(2 C_i) for the squared hinge, else null
    T* violations;
    Size n;
};
inline constexpr Size overrun = 16;

// Columns that a row is added to: scores[columns[k] * ld + j] += factors[k] * row[j].
template <class T>
struct RowUpdate {
    const T* row;
    T* scores;
    Size ld;
    const int* columns;
    const T* factors;
    Size n_columns;
    Size n;  // a multiple of 16
};

// Second-order gain of a pair (first variable fixed) over a block. DGI11 A.1
struct GainBlock {
    BoxBlock box;
    const double* diagonal;  // k_jj
    const double* ridge;     // 1/(2 C_j), or null
    double coupling;         // M between the first variable's component and this block's
    double self_coupling;    // M of this block's component with itself
    double first_gradient;
    double first_curvature;
};

// Four columns of a product: out[c * ld + r] -= sum_k left[k * ld + r] * right[k * ld + c].
struct Product {
    const double* left;
    const double* right;
    double* out;
    Size ld;
    Size n_rows;
    Size depth;
};

// A product of matrices in float32: out[r * out_ld + c] += sum_k left(r, k) * right[k * right_ld + c], where
// left(r, k) = left[r * left_row + k * left_column]. n_columns is a multiple of 16.
struct Multiply {
    const float* left;
    Size left_row, left_column;
    const float* right;
    Size right_ld;
    float* out;
    Size out_ld;
    Size n_rows, n_columns, depth;
};

// One example's features against a matrix of weights with a line for each feature; ld is a multiple of 4.
struct Lines {
    const double* values;
    const int* places;  // the line of each value; null: one after the other
    Size n;
};

// The binary machine with a bias, IGEL: scores E = f - y of examples that may go up (beta_i may grow) or low. Arrays
// are padded to a multiple of 32 with entries that belong to neither set. A score that is not a number is never chosen.
inline constexpr double pair_outside = __builtin_inf();  // added to a score, it takes the example out of a set
inline constexpr double pair_curvature_floor = 1e-12;

template <class T>
struct PairExtreme {
    T value;  // pair_outside where the set has no finite score; the place then means nothing
    Size place;
};

// The second variable: of those that go down, the one with the largest gain together with the first.
template <class T>
struct PairScan {
    const T* scores;
    const T* outside_low;  // 0, or -pair_outside for those not in the set
    const T* row;          // kernel values of the first variable
    const T* diagonal;     // k_jj, with the squared hinge's ridge
    T first_score;
    T first_curvature;
    Size n;
};
template <class T>
struct PairChoice {
    T largest;    // score in the low set, -pair_outside where it has none
    Size second;  // of the low set, unless products of huge numbers have overflown: to be checked
};

// scores += factor (first - second); then the smallest score in the up set.
template <class T>
struct PairUpdate {
    T* scores;
    const T* first;
    const T* second;
    T factor;
    const T* outside_up;  // 0, or pair_outside
    Size n;
};

// The members of an online binary machine by place; n is a multiple of 64, and so many values has a kernel row. A
// member may rise where up > 0 and fall where down > 0; at other places nothing moves.
struct Members {
    double* errors;
    const double* up;
    const double* down;
    Size n;
};

// The largest error that may rise and the smallest that may fall, with the first place that has it (-1: none); of those
// that may do both the sum and the number.
struct Extremes {
    double highest = 0.0, lowest = 0.0;
    Size top = -1, bottom = -1;
    double free_errors = 0.0;
    Size n_free = 0;
};

// A member that moves against another one: how far it may, and its kernel values.
struct FirstMember {
    double error;
    double room;
    double diagonal;
    double tol;  // slopes up to it do not count
    bool rises;  // else it falls
    const double* row;
};
struct Partner {
    double merit;
    Size place;  // -1: none
};

struct Table {
    const char* name;
    void (*tile_f32)(const Tile<float>&, const Evaluation&);
    void (*tile_f64)(const Tile<double>&, const Evaluation&);
    // out[0..64) += sum_e values[e] * rows[positions[e]][0..64)
    void (*accumulate_f32)(const float* const* rows, const int* positions, const float* values, Size n, double* out);
    void (*accumulate_f64)(const double* const* rows, const int* positions, const double* values, Size n, double* out);
    void (*axpy_f32)(double factor, const float* row, double* out, Size n);
    void (*axpy_f64)(double factor, const double* row, double* out, Size n);
    double (*dot)(const double* x, const double* y, Size n);
    // Products of 256 terms at a time are summed in float32, these sums in float64.
    double (*dot_f32)(const float* x, const float* y, Size n);
    double (*dot_mixed)(const float* x, const double* y, Size n);
    // values[j] becomes its square, so many times
    void (*square_times)(double* values, Size n, int times);
    // out[c] = sum_e values[e] * matrix[places[e] * ld + c]
    void (*combine_lines)(const Lines&, const double* matrix, Size ld, double* out);
    // matrix[places[e] * ld + c] += values[e] * change[c]
    void (*spread_lines)(const Lines&, const double* change, double* matrix, Size ld);
    // (x, y) <- (c x + s y, c y - s x)
    void (*rotate)(double c, double s, double* x, double* y, Size n);
    void (*subtract_product)(const Product&);
    // out[j] -= sum over four columns, ld apart, of factors[k] * columns[k * ld + j]
    void (*subtract_columns)(const double* columns, Size ld, const double* factors, double* out, Size n);
    void (*multiply)(const Multiply&);
    void (*gradient)(const GradientBlock&, double* out);
    double (*box_violation)(const BoxBlock&);  // the largest one, at least 0
    // top = max(top, violation), element by element
    void (*raise_violations)(const BoxBlock&, double* top);
    double (*box_gain)(const BoxBlock&, const double* diagonal, const double* ridge, double self_coupling);
    // top = max(top, g);  low = min(low, g) where a > 0. HL02 (19)
    void (*simplex_bounds)(const double* gradient, const double* variable, double* top, double* low, Size n);
    double (*pair_gain_f32)(const GainBlock&, const float* row);
    double (*pair_gain_f64)(const GainBlock&, const double* row);
    // The KKT violation of every example of a group.
    void (*scan_box_f32)(const ScanGroup<float>&);
    void (*scan_box_f64)(const ScanGroup<double>&);
    void (*scan_simplex_f32)(const ScanGroup<float>&);
    void (*scan_simplex_f64)(const ScanGroup<double>&);
    // The positions of values that are at least threshold, in order; how many.
    Size (*collect_f32)(const float* values, Size n, float threshold, int* positions);
    Size (*collect_f64)(const double* values, Size n, double threshold, int* positions);
    float (*largest_f32)(const float* values, Size n);  // at least 0
    double (*largest_f64)(const double* values, Size n);
    void (*add_row_f32)(const RowUpdate<float>&);
    void (*add_row_f64)(const RowUpdate<double>&);
    PairChoice<float> (*choose_second_f32)(const PairScan<float>&);
    PairChoice<double> (*choose_second_f64)(const PairScan<double>&);
    PairExtreme<float> (*update_pair_f32)(const PairUpdate<float>&);
    PairExtreme<double> (*update_pair_f64)(const PairUpdate<double>&);
    void (*sparse_tile_f32)(const SparseTile<float>&, const Evaluation&);
    void (*sparse_tile_f64)(const SparseTile<double>&, const Evaluation&);
    // |x|^2 or |x|_1, summed as sparse_tile sums; 0 for the dot product
    float (*sparse_norm_f32)(Form, const float* values, Size n);
    double (*sparse_norm_f64)(Form, const double* values, Size n);
    // errors -= step (rise - fall), then their extremes; fall may be null, and both, when nothing moves
    Extremes (*move_members)(const Members&, double step, const double* rise, const double* fall);
    // Twice the gain of a step on both; the first place that has the largest. diagonals: k(x, x) by place.
    Partner (*best_partner)(const Members&, const double* diagonals, const FirstMember& first);
    // The same for one that rises and one that falls.
    void (*best_partners)(const Members&, const double* diagonals, const FirstMember& rising,
                          const FirstMember& falling, Partner* partners);
    // sum over all places of beta times the row's value; the row has those of panel p from starts[p] on
    double (*members_score)(const Size* starts, Size n_panels, const double* beta, const double* row);
};

const Table& scalar_table();
// The newest instruction set of this machine, or the one that the environment variable MULTIMARGIN_SIMD names, which is
// read once: std::invalid_argument if there is none of that name.
const Table& best_table();
// The tables this machine can run up to that one, scalar first; null beyond the last.
const Table* available_table(int i);

// Scalar forms of the two selection rules; the blocks above take their maximum.
inline double box_violation_of(double g, double a, double cap) {
    const double rise = a < cap && g > 0 ? g : 0.0;
    const double fall = a > 0 && g < 0 ? -g : 0.0;
    return rise > fall ? rise : fall;
}

// A sum of variables from this share of the cap on leaves no slack: what is missing is rounding.
inline constexpr double full_share = 1.0 - 1e-12;

double pair_gain_of(const GainBlock& block, Size j, double kernel_value);

}  // namespace multimargin::simd
