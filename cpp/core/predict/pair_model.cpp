#include "predict/pair_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace multimargin {

namespace {

// Points whose pair scores are held at a time; a multiple of the panel's width.
constexpr Index chunk_points = 1024;
// Up to so many points are rows against the support vectors as columns: a panel of 64 points would be mostly empty.
constexpr Index few_points = 16;
// A multiple of what dot products take at a time, whatever the instruction set.
constexpr Index few_padding = 64;
// Points that walk the DAG together: many, so that there are some at every node, but work for every thread.
constexpr Index least_walk = 512, largest_walk = 4096;

// What rounding to float32 does to a kernel value, with the same sign where all values are near 1, and what a vote may
// err by: large coefficients need float64.
constexpr double value_error = 6e-8, score_error = 1e-3;

double dot_of(const float* x, const float* y, Index n) { return simd::best_table().dot_f32(x, y, n); }
double dot_of(const double* x, const double* y, Index n) { return simd::best_table().dot(x, y, n); }

Index count_points(const DataView& points) {
    return std::visit([](const auto& view) { return view.rows(); }, points);
}

template <class T>
std::unique_ptr<KernelColumns<T>> columns_of(const KernelSource& source, const DataView& points,
                                             std::span<const Index> rows) {
    if constexpr (std::is_same_v<T, float>) {
        return source.foreign_columns_f32(points, rows);
    } else {
        return source.foreign_columns(points, rows);
    }
}

std::vector<Index> range(Index begin, Index end) {
    std::vector<Index> indices(unsigned_index(end - begin));
    std::iota(indices.begin(), indices.end(), begin);
    return indices;
}

}  // namespace

PairModel::PairModel(const KernelSource& support_vectors, std::vector<Index> n_support,
                     std::span<const double> dual_coef, std::vector<double> intercept)
    : source_(support_vectors),
      n_support_(std::move(n_support)),
      begin_(n_support_.size() + 1, 0),
      intercept_(std::move(intercept)),
      all_(0) {
    const Index d = n_classes();
    std::partial_sum(n_support_.begin(), n_support_.end(), begin_.begin() + 1);
    const Index n = begin_.back();
    const bool fits = d >= 2 && n == source_.size() && n_pairs() == d * (d - 1) / 2 &&
                      static_cast<Index>(dual_coef.size()) == (d - 1) * n;
    if (!fits) throw std::invalid_argument("the arrays of a one-vs-one model do not fit together");
    const std::vector<Index> rows = range(0, n);
    all_ = Coefficients(rows, n_pairs());
    for (Index i = 0; i < d; ++i) {
        for (Index j = i + 1; j < d; ++j) pairs_.push_back({i, j});
    }
    double largest_mass = 0.0;
    for (Index p = 0; p < n_pairs(); ++p) {
        const Pair pair = pairs_[unsigned_index(p)];
        by_pair_.emplace_back(1);
        double mass = 0.0;
        for (const auto& [own, other] : {std::pair{pair.first, pair.second - 1}, std::pair{pair.second, pair.first}}) {
            for (Index s = begin_[unsigned_index(own)]; s < begin_[unsigned_index(own) + 1]; ++s) {
                const double value = dual_coef[unsigned_index(other * n + s)];
                if (value == 0.0) continue;
                mass += std::abs(value);
                all_.add(p, s, value);
                by_pair_.back().add_row(s, {&value, 1});
            }
        }
        largest_mass = std::max(largest_mass, mass);
    }
    single_ = source_.accurate_in_float32() && source_.fits_float32() && value_error * largest_mass <= score_error;
    few_f64_ = make_few<double>(dual_coef);
    if (single_) few_f32_ = make_few<float>(dual_coef);
}

template <class T>
PairModel::FewPoints<T> PairModel::make_few(std::span<const double> dual_coef) const {
    FewPoints<T> few;
    const Index n = source_.size();
    few.columns = source_.columns<T>(range(0, n));
    Index size = 0;
    for (const Index count : n_support_) {
        few.begin.push_back(size);
        few.width.push_back(round_up(count, few_padding));
        size += few.width.back() * (n_classes() - 1);
    }
    few.coef.assign(unsigned_index(size), T(0));
    for (std::size_t c = 0; c < n_support_.size(); ++c) {
        for (Index m = 0; m + 1 < n_classes(); ++m) {
            for (Index s = 0; s < n_support_[c]; ++s) {
                few.coef[unsigned_index(few.begin[c] + m * few.width[c] + s)] =
                    static_cast<T>(dual_coef[unsigned_index(m * n + begin_[c] + s)]);
            }
        }
    }
    return few;
}

// One row of kernel values serves all pairs.
template <class T, class Use>
void PairModel::for_few(const FewPoints<T>& few, const DataView& points, Use use) const {
    const KernelColumns<T>& support = *few.columns;
    // Values beyond a class meet coefficients of zero; they must be numbers all the same.
    const Index ld = support.n_panels() * simd::panel_width + few_padding, n_points = count_points(points);
    const auto rows = support.prepare_points(points);
    AlignedVector<T> values(unsigned_index(n_points * ld), T(0));
    for (Index panel = 0; panel < support.n_panels(); ++panel) {
        support.fill_panel(*rows, 0, n_points, panel, values.data() + panel * simd::panel_width, ld);
    }
    for (Index k = 0; k < n_points; ++k) use(k, values.data() + k * ld);
}

template <class T>
double PairModel::few_score(const FewPoints<T>& few, const T* values, Index pair) const {
    const auto [i, j] = pairs_[unsigned_index(pair)];
    const auto sum = [&](Index own, Index other) {
        const std::size_t c = unsigned_index(own);
        return dot_of(few.coef.data() + few.begin[c] + other * few.width[c], values + begin_[c], few.width[c]);
    };
    return sum(i, j - 1) + sum(j, i) + intercept_[unsigned_index(pair)];
}

template <class T>
void PairModel::few_scores(const FewPoints<T>& few, const DataView& points, double* scores) const {
    for_few(few, points, [&](Index k, const T* values) {
        for (Index p = 0; p < n_pairs(); ++p) scores[k * n_pairs() + p] = few_score(few, values, p);
    });
}

template <class T>
void PairModel::few_walks(const FewPoints<T>& few, const DataView& points, std::int64_t* classes) const {
    for_few(few, points, [&](Index k, const T* values) {
        Index first = 0, last = n_classes() - 1;
        while (first < last) few_score(few, values, pair_of(first, last)) > 0.0 ? --last : ++first;
        classes[k] = first;
    });
}

// The class with the most votes, without asking every pair: the class that can still get the most votes (the smaller
// of two) is asked for its next pair, and wins when none of its pairs is left. Where a class beats all others, one pair
// for each of them settles the vote.
template <class T>
void PairModel::few_votes(const FewPoints<T>& few, const DataView& points, std::int64_t* classes) const {
    const Index d = n_classes();
    std::vector<Index> losses(unsigned_index(d));
    std::vector<char> asked(unsigned_index(n_pairs()));
    for_few(few, points, [&](Index k, const T* values) {
        std::fill(losses.begin(), losses.end(), 0);
        std::fill(asked.begin(), asked.end(), 0);
        Index leader = 0, other = 0;
        while (other < d) {
            const Index i = std::min(leader, other), j = std::max(leader, other);
            const Index pair = i < j ? pair_of(i, j) : -1;
            if (pair < 0 || asked[unsigned_index(pair)]) {
                ++other;
                continue;
            }
            asked[unsigned_index(pair)] = 1;
            const Index loser = few_score(few, values, pair) > 0.0 ? j : i;
            ++losses[unsigned_index(loser)];
            if (loser != leader) continue;
            leader = std::min_element(losses.begin(), losses.end()) - losses.begin();
            other = 0;
        }
        classes[k] = leader;
    });
}

// Scores of a chunk, one line per pair; then `use(first point, number of points, scores, ld)`.
template <class Use>
bool PairModel::for_each_chunk(const DataView& points, bool single, ThreadTeam& team, Monitor& monitor, Use use) const {
    const Index n = count_points(points);
    AlignedVector<double> scores;
    for (Index begin = 0; begin < n; begin += chunk_points) {
        const Index end = std::min(n, begin + chunk_points);
        const std::vector<Index> rows = range(begin, end);
        const Index ld = round_up(end - begin, simd::panel_width);
        scores.resize(checked_product(n_pairs(), ld));
        for (Index p = 0; p < n_pairs(); ++p) {
            std::fill_n(scores.begin() + p * ld, ld, intercept_[unsigned_index(p)]);
        }
        const bool done =
            single ? add_scores(*columns_of<float>(source_, points, rows), all_, scores.data(), ld, team, &monitor)
                   : add_scores(*columns_of<double>(source_, points, rows), all_, scores.data(), ld, team, &monitor);
        if (!done) return false;
        use(begin, end - begin, scores.data(), ld);
    }
    return true;
}

bool PairModel::scores(const DataView& points, ThreadTeam& team, Monitor& monitor, double* out) const {
    const bool dense = std::holds_alternative<DenseView>(points);
    if (count_points(points) <= few_points && dense) {
        few_scores(few_f64_, points, out);
        return true;
    }
    return for_each_chunk(points, false, team, monitor, [&](Index begin, Index count, const double* scores, Index ld) {
        for (Index k = 0; k < count; ++k) {
            for (Index p = 0; p < n_pairs(); ++p) out[(begin + k) * n_pairs() + p] = scores[p * ld + k];
        }
    });
}

std::int64_t PairModel::winner_of(const double* scores, Index stride, std::vector<int>& votes) const {
    votes.assign(unsigned_index(n_classes()), 0);
    for (Index p = 0; p < n_pairs(); ++p) {
        const auto [i, j] = pairs_[unsigned_index(p)];
        ++votes[unsigned_index(scores[p * stride] > 0.0 ? i : j)];
    }
    return std::max_element(votes.begin(), votes.end()) - votes.begin();
}

bool PairModel::vote(const DataView& points, ThreadTeam& team, Monitor& monitor, std::int64_t* classes) const {
    const Index n = count_points(points);
    if (n <= few_points && std::holds_alternative<DenseView>(points)) {
        single_ ? few_votes(few_f32_, points, classes) : few_votes(few_f64_, points, classes);
        return true;
    }
    return for_each_chunk(points, single_, team, monitor,
                          [&](Index begin, Index count, const double* scores, Index ld) {
                              std::vector<int> votes;
                              for (Index k = 0; k < count; ++k) classes[begin + k] = winner_of(scores + k, ld, votes);
                          });
}

template <class T>
void PairModel::walk_pair(Index pair, const DataView& points, std::span<const Index> rows, std::vector<double>& scores,
                          Monitor& monitor) const {
    const auto columns = columns_of<T>(source_, points, rows);
    const Index ld = columns->n_panels() * simd::panel_width;
    AlignedVector<double> sums(unsigned_index(ld), intercept_[unsigned_index(pair)]);
    ThreadTeam alone(1);
    add_scores(*columns, by_pair_[unsigned_index(pair)], sums.data(), ld, alone, &monitor);
    scores.assign(sums.begin(), sums.begin() + static_cast<Index>(rows.size()));
}

// Points at the same node (first, last) of the DAG are taken together; nodes in the order of their depth.
template <class T>
void PairModel::walk_block(const DataView& points, Index begin, Index end, std::int64_t* classes,
                           Monitor& monitor) const {
    const Index d = n_classes();
    std::vector<std::vector<Index>> here(unsigned_index(d)),
        next(unsigned_index(d));  // points by the node's first class
    here[0] = range(begin, end);
    std::vector<double> scores;
    for (Index depth = 0; depth + 1 < d; ++depth) {
        for (Index first = 0; first <= depth; ++first) {
            std::vector<Index>& waiting = here[unsigned_index(first)];
            if (waiting.empty()) continue;
            if (monitor.poll()) return;
            const Index last = first + d - 1 - depth;
            walk_pair<T>(pair_of(first, last), points, waiting, scores, monitor);
            for (std::size_t k = 0; k < waiting.size(); ++k) {
                next[unsigned_index(scores[k] > 0.0 ? first : first + 1)].push_back(waiting[k]);
            }
            waiting.clear();
        }
        std::swap(here, next);
    }
    for (Index c = 0; c < d; ++c) {
        for (const Index point : here[unsigned_index(c)]) classes[point] = c;
    }
}

bool PairModel::walk(const DataView& points, ThreadTeam& team, Monitor& monitor, std::int64_t* classes) const {
    const Index n = count_points(points);
    if (n <= few_points && std::holds_alternative<DenseView>(points)) {
        single_ ? few_walks(few_f32_, points, classes) : few_walks(few_f64_, points, classes);
        return true;
    }
    const Index together = std::clamp(n / team.n_threads() + 1, least_walk, largest_walk);
    const auto task = [&](Index block) {
        const Index begin = block * together, end = std::min(n, begin + together);
        single_ ? walk_block<float>(points, begin, end, classes, monitor)
                : walk_block<double>(points, begin, end, classes, monitor);
    };
    team.run((n + together - 1) / together, task, [&] { monitor.poll(); });
    return !monitor.stopped();
}

}  // namespace multimargin
