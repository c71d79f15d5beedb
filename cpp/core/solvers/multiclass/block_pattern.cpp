// Pattern moves of the block descent: parallel tangents, which turn a zigzag of exact steps into conjugate directions.
#include <algorithm>
#include <cmath>

#include "solvers/multiclass/block_descent.hpp"

namespace multimargin {

namespace {

constexpr Index most_excluded = 4;      // a direction that leaves out one of so many examples is no direction
constexpr double shortest_move = 0.05;  // of the way since the point before: not worth the rounding

}  // namespace

template <class T>
void BlockDescent<T>::remember() {
    std::swap(before_, last_);
    last_.variables = variables_;
    last_.scores = scores_;
    since_ = 0;
}

// From the point before the last two stretches to here; the change of the scores along it is at hand. Variables that
// stand at a bound now take no part, and what they contributed to the scores is taken out.
template <class T>
bool BlockDescent<T>::find_direction() {
    const bool simplex = machine_.bound == Bound::simplex;
    direction_.assign(variables_.size(), 0.0);
    score_direction_.resize(scores_.size());
    for (std::size_t i = 0; i < scores_.size(); ++i) score_direction_[i] = scores_[i] - before_.scores[i];
    Index n_excluded = 0;
    for (Index j = 0; j < n_; ++j) {
        const auto& components = machine_.of(class_of_[unsigned_index(j)]);
        const double* a = variables_of(j);
        const double* old = before_.variables.data() + j * width_;
        double* d = direction_.data() + j * width_;
        const double cap = block_->cap()[j];
        double sum = 0.0, rise = 0.0;
        for (std::size_t p = 0; p < components.size(); ++p) {
            const bool inside = a[p] > 0.0 && (simplex || a[p] < cap);
            d[p] = inside ? a[p] - old[p] : 0.0;
            sum += a[p];
            rise += d[p];
        }
        // An example of a simplex without slack may only exchange.
        if (simplex && slack_of(sum, cap) == 0.0 && rise > 0.0) std::fill_n(d, width_, 0.0);
        std::fill(deltas_.begin(), deltas_.end(), 0.0);
        bool excluded = false;
        for (std::size_t p = 0; p < components.size(); ++p) {
            const double left_out = d[p] - (a[p] - old[p]);
            if (left_out == 0.0) continue;
            excluded = true;
            machine_.add_to_coefficients(components[p], left_out, deltas_.data());
        }
        if (!excluded) continue;
        if (most_excluded * ++n_excluded > n_) return false;
        add_to_scores(j, score_direction_);
    }
    return true;
}

// How far an example lets the move go, and its part of the slope and the curvature along it.
template <class T>
void BlockDescent<T>::examine_along(Index j, Line& line) {
    const bool simplex = machine_.bound == Bound::simplex;
    const double* d = direction_.data() + j * width_;
    if (std::all_of(d, d + width_, [](double v) { return v == 0.0; })) return;
    const double* a = variables_of(j);
    const double cap = block_->cap()[j];
    load_example(j);
    const Index y = class_of_[unsigned_index(j)];
    ScoreView<T> along = view();
    along.scores = score_direction_.data();
    const simd::ScanGroup<T> change = scan_->group(along, y, j, j + 1, nullptr);
    const double shared = change.shared != nullptr ? static_cast<double>(*change.shared) : 0.0;
    const double ridge = problem_.loss() == Loss::hinge ? 0.0 : block_->ridge()[j];
    double sum = 0.0, rise = 0.0;
    for (Index p = 0; p < change.n_terms; ++p) {
        sum += a[p];
        rise += d[p];
    }
    for (Index p = 0; p < change.n_terms; ++p) {
        const simd::ScanTerm<T>& t = change.terms[p];
        const double margin = static_cast<double>(t.value) * static_cast<double>(change.scores[t.column]) +
                              static_cast<double>(t.share) * shared;
        line.slope += gradient_[unsigned_index(p)] * d[p];
        line.curvature += d[p] * (margin + ridge * (simplex ? rise : d[p]));
        if (d[p] < 0.0) line.room = std::min(line.room, a[p] / -d[p]);
        if (d[p] > 0.0 && !simplex) line.room = std::min(line.room, (cap - a[p]) / d[p]);
    }
    if (simplex && rise > 0.0) line.room = std::min(line.room, slack_of(sum, cap) / rise);
}

template <class T>
void BlockDescent<T>::go_along(double length) {
    for (std::size_t i = 0; i < scores_.size(); ++i) scores_[i] += static_cast<T>(length) * score_direction_[i];
    for (Index j = 0; j < n_; ++j) {
        const double full = (1.0 - bound_tolerance) * block_->cap()[j];
        const double negligible = problem_.negligible(block_->example(j));
        for (Index p = 0; p < width_; ++p) {
            double& a = variables_of(j)[p];
            a += length * direction_[unsigned_index(j * width_ + p)];
            if (a <= negligible) a = 0.0;
            if (a >= full) a = block_->cap()[j];
        }
        set_levels(j);
    }
}

template <class T>
double BlockDescent<T>::pattern_move() {
    if (before_.variables.empty() || !find_direction()) return 0.0;
    Line line{infinity, 0.0, 0.0};
    for (Index j = 0; j < n_ && line.room > shortest_move; ++j) examine_along(j, line);
    if (!(line.slope > 0.0) || !(line.curvature > 0.0)) return 0.0;
    const double length = std::min(line.room, line.slope / line.curvature);
    if (!(length > shortest_move)) return 0.0;
    go_along(length);
    return length * (line.slope - 0.5 * length * line.curvature);
}

template void BlockDescent<float>::remember();
template void BlockDescent<double>::remember();
template double BlockDescent<float>::pattern_move();
template double BlockDescent<double>::pattern_move();

}  // namespace multimargin
