#include "solvers/multiclass/block_descent.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace multimargin {

namespace {

// Steps go this much beyond an example's optimum where its bounds allow: the examples of a block pull on each other,
// and over-relaxation saves a quarter of the steps (satimage, segment).
constexpr double over_relaxation = 1.3;
// A scan serves the examples that violate by this share of the largest violation (0.5: 40 % more steps, as fast).
constexpr double visit_share = 0.7;
// A pattern move after every so many steps, as a share of the block (1/4).
constexpr Index patterns_per_example = 4;
constexpr Index steps_between_polls = 64;
constexpr Index most_postponed = 8;  // steps: each makes loading an example dearer, and the scores are passed once

void add_row(const simd::RowUpdate<float>& update) { simd::best_table().add_row_f32(update); }
void add_row(const simd::RowUpdate<double>& update) { simd::best_table().add_row_f64(update); }
float largest_of(const float* values, Index n) { return simd::best_table().largest_f32(values, n); }
double largest_of(const double* values, Index n) { return simd::best_table().largest_f64(values, n); }
Index collect(const float* values, Index n, double threshold, int* positions) {
    return simd::best_table().collect_f32(values, n, static_cast<float>(threshold), positions);
}
Index collect(const double* values, Index n, double threshold, int* positions) {
    return simd::best_table().collect_f64(values, n, threshold, positions);
}

}  // namespace

template <class T>
BlockDescent<T>::BlockDescent(const Problem& problem)
    : problem_(problem),
      machine_(problem.machine()),
      width_(machine_.max_components()),
      gradient_(unsigned_index(width_)),
      target_(unsigned_index(width_)),
      deltas_(unsigned_index(machine_.n_scores())),
      columns_(deltas_.size()),
      factors_(deltas_.size()),
      postpones_(std::is_same_v<T, float> && machine_.sum_to_zero),
      postponed_deltas_(unsigned_index(most_postponed) * deltas_.size()) {}

template <class T>
void BlockDescent<T>::attach(Workspace& block, const T* kernel, Index ld) {
    block_ = &block;
    before_.variables.clear();
    last_.variables.clear();
    since_ = 0;
    kernel_ = kernel;
    kernel_ld_ = ld;
    n_ = block.size();
    const Index width = round_up(n_ + simd::overrun, simd::overrun);
    if (width != ld_) scan_.emplace(machine_, width);
    ld_ = width;
    scores_.assign(unsigned_index(machine_.n_scores() * ld_), T(0));
    if (postpones_) postponed_rows_.assign(unsigned_index(most_postponed * ld_), T(0));
    levels_.assign(unsigned_index(width_ * ld_), T(0));
    for (AlignedVector<T>* values : {&cap_, &sum_, &ridge_, &violations_}) values->assign(unsigned_index(ld_), T(0));
    variables_.assign(unsigned_index(n_ * width_), 0.0);
    class_of_.resize(unsigned_index(n_));
    group_begin_.assign(unsigned_index(machine_.n_classes + 1), 0);
    // Projected scores are small where raw ones and their mean are large: they lose less in T. The mean starts at 0.
    const double* mean = machine_.sum_to_zero ? block.scores(machine_.n_classes) : nullptr;
    for (Index c = 0; c < machine_.n_scores(); ++c) {
        const double* column = block.scores(c);
        T* scores = scores_.data() + c * ld_;
        for (Index j = 0; j < n_; ++j) scores[j] = static_cast<T>(column[j] - (mean != nullptr ? mean[j] : 0.0));
    }
    for (Index j = 0; j < n_; ++j) {
        const Index y = class_of_[unsigned_index(j)] = block.class_of(j);
        ++group_begin_[unsigned_index(y + 1)];
        for (Index p = 0; p < width_; ++p) variables_of(j)[p] = block.variables(p)[j];
        const bool hinge = problem_.loss() == Loss::hinge;
        cap_[unsigned_index(j)] = hinge ? T(1) : static_cast<T>(infinity);
        if (!hinge) ridge_[unsigned_index(j)] = static_cast<T>(block.ridge()[j]);
        set_levels(j);
    }
    for (std::size_t y = 1; y < group_begin_.size(); ++y) group_begin_[y] += group_begin_[y - 1];
}

// What the scan needs to know of an example's variables: for the hinge whether each is at 0, inside or at its bound
// (0, 1/2, 1), exactly, whatever T; for the squared hinge the variables.
template <class T>
void BlockDescent<T>::set_levels(Index j) {
    const double cap = block_->cap()[j];
    const bool hinge = problem_.loss() == Loss::hinge;
    double sum = 0.0;
    for (Index p = 0; p < width_; ++p) {
        const double a = variables_of(j)[p];
        sum += a;
        const T level = a <= 0.0 ? T(0) : (a >= cap ? T(1) : T(0.5));
        levels_[unsigned_index(p * ld_ + j)] = hinge ? level : static_cast<T>(a);
    }
    sum_[unsigned_index(j)] = hinge ? (slack_of(sum, cap) > 0.0 ? T(0) : T(1)) : static_cast<T>(sum);
}

template <class T>
ScoreView<T> BlockDescent<T>::view() const {
    return {group_begin_,
            ld_,
            scores_.data(),
            levels_.data(),
            cap_.data(),
            machine_.bound == Bound::simplex ? sum_.data() : nullptr,
            problem_.loss() == Loss::hinge ? nullptr : ridge_.data()};
}

template <class T>
double BlockDescent<T>::scan() {
    scan_->scan(view(), 0, n_, violations_.data());
    return largest_ = static_cast<double>(largest_of(violations_.data(), n_));
}

// Gradient and variables of an example from the current scores; its violation.
template <class T>
double BlockDescent<T>::load_example(Index j) {
    const Index y = class_of_[unsigned_index(j)];
    catch_up(j);
    const simd::ScanGroup<T> one = scan_->group(view(), y, j, j + 1, nullptr);
    const std::size_t n = unsigned_index(one.n_terms);
    const double* a = variables_of(j);
    const T shared = one.shared != nullptr ? *one.shared : T(0);
    double sum = 0.0;
    for (std::size_t p = 0; p < n; ++p) {
        const simd::ScanTerm<T>& t = one.terms[p];
        gradient_[p] = static_cast<double>((t.target - t.value * one.scores[t.column]) - t.share * shared);
        sum += target_[p] = a[p];
    }
    if (problem_.loss() == Loss::squared_hinge) {
        const double ridge = block_->ridge()[j];
        for (std::size_t p = 0; p < n; ++p) gradient_[p] -= ridge * (machine_.bound == Bound::simplex ? sum : a[p]);
    }
    return example_violation(machine_.bound, {gradient_.data(), n}, {a, n}, block_->cap()[j]);
}

// How far beyond the optimum of the example the step may go.
template <class T>
double BlockDescent<T>::overshoot(Index j, std::size_t n) const {
    const double* a = variables_.data() + j * width_;
    const double cap = block_->cap()[j];
    double length = over_relaxation, sum = 0.0, rise = 0.0;
    for (std::size_t p = 0; p < n; ++p) {
        const double delta = target_[p] - a[p];
        sum += a[p];
        rise += delta;
        if (delta < 0.0) length = std::min(length, a[p] / -delta);
        if (delta > 0.0 && machine_.bound == Bound::box) length = std::min(length, (cap - a[p]) / delta);
    }
    if (machine_.bound == Bound::simplex && rise > 0.0) length = std::min(length, (cap - sum) / rise);
    return length;
}

template <class T>
double BlockDescent<T>::step(Index j) {
    const std::size_t y = unsigned_index(class_of_[unsigned_index(j)]);
    const std::size_t n = machine_.components[y].size();
    const ExampleTerms& terms = machine_.terms_of(class_of_[unsigned_index(j)]);
    const ExampleProblem example{{gradient_.data(), n},
                                 terms.private_square,
                                 terms.weight,
                                 machine_.sigma[y],
                                 block_->diagonal()[j],
                                 block_->cap()[j],
                                 problem_.loss() == Loss::hinge ? 0.0 : block_->ridge()[j],
                                 terms.uniform};
    const std::span<double> solution(target_.data(), n);
    if (machine_.bound == Bound::box) {
        solve_box_example(example, solution, scratch_);
    } else {
        solve_simplex_example(example, solution, scratch_);
    }
    return take(j, example, overshoot(j, n));
}

// Moves the example towards (and, with a length above 1, beyond) its solution and brings the scores up to date.
template <class T>
double BlockDescent<T>::take(Index j, const ExampleProblem& example, double length) {
    const auto& components = machine_.of(class_of_[unsigned_index(j)]);
    double* a = variables_of(j);
    const double negligible = problem_.negligible(block_->example(j)), full = (1.0 - bound_tolerance) * example.cap;
    std::fill(deltas_.begin(), deltas_.end(), 0.0);
    double linear = 0.0, square = 0.0, shared = 0.0, sum = 0.0, ridge_square = 0.0;
    bool moved = false;
    for (std::size_t p = 0; p < components.size(); ++p) {
        double value = length > 1.0 ? a[p] + length * (target_[p] - a[p]) : target_[p];
        if (value <= negligible) value = 0.0;
        if (value >= full) value = example.cap;
        const double delta = value - a[p];
        if (delta == 0.0 || std::isnan(delta)) continue;  // a step that overflowed is none
        moved = true;
        a[p] = value;
        linear += gradient_[p] * delta;
        square += example.private_square[p] * delta * delta;
        shared += example.weight[p] * delta;
        ridge_square += delta * delta;
        sum += delta;
        machine_.add_to_coefficients(components[p], delta, deltas_.data());
    }
    if (!moved) return -1.0;
    set_levels(j);
    postpones_ ? postpone(j) : add_to_scores(j, scores_);
    const double ridge_part = example.ridge * (machine_.bound == Bound::simplex ? sum * sum : ridge_square);
    const double curvature = example.diagonal * (square + example.sigma * shared * shared) + ridge_part;
    return std::max(0.0, linear - 0.5 * curvature);  // at the optimum it may round below zero
}

template <class T>
void BlockDescent<T>::add_to_scores(Index j, AlignedVector<T>& scores) {
    Index count = 0;
    for (std::size_t c = 0; c < deltas_.size(); ++c) {
        if (deltas_[c] == 0.0) continue;
        columns_[unsigned_index(count)] = static_cast<int>(c);
        factors_[unsigned_index(count++)] = static_cast<T>(deltas_[c]);
    }
    add_row(simd::RowUpdate<T>{kernel_ + j * kernel_ld_, scores.data(), ld_, columns_.data(), factors_.data(), count,
                               round_up(n_, simd::overrun)});
}

// Where a step moves all columns, adding its row is one pass over all scores: steps share it. Keeps a copy of the row.
template <class T>
void BlockDescent<T>::postpone(Index j) {
    const Index k = n_postponed_++;
    std::copy_n(kernel_ + j * kernel_ld_, n_, postponed_rows_.data() + k * ld_);
    T* factors = postponed_deltas_.data() + k * machine_.n_scores();
    for (std::size_t c = 0; c < deltas_.size(); ++c) factors[c] = static_cast<T>(deltas_[c]);
    if (n_postponed_ == most_postponed) flush();
}

// The scores of one example get what was postponed; the rows have nothing left for it then.
template <class T>
void BlockDescent<T>::catch_up(Index j) {
    for (Index k = 0; k < n_postponed_; ++k) {
        T& value = postponed_rows_[unsigned_index(k * ld_ + j)];
        const T* factors = postponed_deltas_.data() + k * machine_.n_scores();
        for (Index c = 0; c < machine_.n_scores(); ++c) scores_[unsigned_index(c * ld_ + j)] += value * factors[c];
        value = T(0);
    }
}

template <class T>
void BlockDescent<T>::flush() {
    if constexpr (std::is_same_v<T, float>) {
        const Index width = machine_.n_scores();
        simd::best_table().multiply({postponed_deltas_.data(), 1, width, postponed_rows_.data(), ld_, scores_.data(),
                                     ld_, width, round_up(n_, simd::overrun), n_postponed_});
    }
    n_postponed_ = 0;
}

template <class T>
typename BlockDescent<T>::Sweep BlockDescent<T>::sweep(double threshold, Index max_steps, Monitor& monitor) {
    Sweep result;
    visits_.resize(unsigned_index(ld_));
    const Index n_visits = collect(violations_.data(), n_, threshold, visits_.data());
    for (Index visit = 0; visit < n_visits; ++visit) {
        const Index j = visits_[unsigned_index(visit)];
        if (load_example(j) < threshold) continue;
        if (result.steps >= max_steps || (result.steps % steps_between_polls == 0 && monitor.poll())) break;
        const double gain = step(j);
        ++result.steps;
        result.moved = result.moved || gain >= 0.0;
        result.gain += std::max(gain, 0.0);
    }
    flush();
    return result;
}

template <class T>
bool BlockDescent<T>::run(double target, Index max_steps, Monitor& monitor, Tally& tally) {
    Index left = max_steps;
    while (scan() > target) {
        if (left <= 0 || monitor.poll()) return false;
        const Sweep result = sweep(visit_share * largest_, left, monitor);
        left -= result.steps;
        tally.iterations += result.steps;
        monitor.spend(cost_of_scan() + static_cast<double>(result.steps) * cost_of_step() +
                      std::exchange(scratch_.work, 0.0));
        tally.dual += result.gain;
        if (!result.moved) return false;
        since_ += result.steps;
        if (patterns_per_example * since_ >= n_) {
            tally.dual += pattern_move();
            monitor.spend(cost_of_scan());
            remember();
        }
    }
    return true;
}

template <class T>
void BlockDescent<T>::write_back() {
    for (Index j = 0; j < n_; ++j) {
        for (Index p = 0; p < block_->n_components(j); ++p) {
            if (block_->variables(p)[j] != variables_of(j)[p]) block_->set_variable(j, p, variables_of(j)[p]);
        }
    }
}

template class BlockDescent<float>;
template class BlockDescent<double>;

}  // namespace multimargin
