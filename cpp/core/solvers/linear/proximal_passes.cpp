#include "solvers/linear/proximal_passes.hpp"

#include <numeric>

#include "base/unrolled.hpp"
#include "data/typed_rows.hpp"
#include "solvers/linear/linear_examples.hpp"

namespace multimargin {

namespace {

constexpr std::size_t chunk = 1024;  // examples of a task
// With fewer dual variables a second thread takes longer to start than it helps.
constexpr std::size_t variables_worth_threads = 20000;

Index count_chunks(std::size_t n) { return static_cast<Index>((n + chunk - 1) / chunk); }

std::size_t pair_index(std::size_t c, std::size_t e) { return c >= e ? c * (c + 1) / 2 + e : e * (e + 1) / 2 + c; }

}  // namespace

ProximalPasses::ProximalPasses(std::vector<std::vector<Component>> components, Index n_columns, Bound bound,
                               bool sum_to_zero, Loss loss, std::vector<Index> y, std::vector<double> C)
    : components_(std::move(components)),
      n_columns_(unsigned_index(n_columns)),
      bound_(bound),
      sum_to_zero_(sum_to_zero),
      loss_(loss),
      y_(std::move(y)),
      C_(std::move(C)) {
    for (const auto& own : components_) {
        width_ = std::max(width_, own.size());
        for (const Component& p : own) {
            const bool exists = p.class1 >= 0 && p.class1 < n_columns && p.class2 >= -1 && p.class2 < n_columns;
            if (!exists) throw std::invalid_argument("a component names a column that does not exist");
        }
    }
    if (y_.size() != C_.size()) throw std::invalid_argument("labels and bounds must have the same length");
    for (const Index label : y_) {
        const bool exists = label >= 0 && label < static_cast<Index>(components_.size());
        if (!exists) throw std::invalid_argument("a label names no list of components");
    }
}

void ProximalPasses::run(const ThreadTeam::Task& task, ThreadTeam& team) const {
    const Index n_tasks = count_chunks(size());
    if (size() * width_ >= variables_worth_threads) return team.run(n_tasks, task);
    for (Index t = 0; t < n_tasks; ++t) task(t);
}

// v becomes the nearest point within the bounds; the squared hinge takes its charge off.
void ProximalPasses::project(std::size_t i, double sigma, double* v, std::vector<double>& entries) const {
    if (bound_ == Bound::simplex) return project_on_simplex(i, sigma, v, entries);
    const std::size_t n = components(i).size();
    if (loss_ == Loss::hinge) {
        for (std::size_t p = 0; p < n; ++p) v[p] = std::min(std::max(v[p], 0.0), C_[i]);
    } else {
        const double shrink = 1.0 / (1.0 + scale(i, sigma) / (2.0 * C_[i]));
        for (std::size_t p = 0; p < n; ++p) v[p] = std::max(v[p], 0.0) * shrink;
    }
}

// a = max(0, v - tau), HL02 (18) without curvature of its own. Hinge: tau = 0 if the sum is within C, else the sum is
// C, so that tau is not below the largest less C, and only what is above that takes part; squared hinge: tau = sigma
// sum(a) / (2 C). The entries above the last tau give the next, which only rises.
void ProximalPasses::project_on_simplex(std::size_t i, double sigma, double* v, std::vector<double>& entries) const {
    const std::size_t n = components(i).size();
    const bool hinge = loss_ == Loss::hinge;
    const double C = C_[i];
    double sums[n_lanes] = {}, tops[n_lanes] = {};
    by_lanes(n, [&](std::size_t k, std::size_t p) {
        const double value = v[p] > 0.0 ? v[p] : 0.0;
        v[p] = value;
        sums[k] += value;
        tops[k] = value > tops[k] ? value : tops[k];
    });
    const double largest = largest_of(tops);
    if (largest == 0.0 || (hinge && total_of(sums) <= C)) return;
    const double own = hinge ? 0.0 : 2.0 * C / scale(i, sigma), taken = hinge ? C : 0.0;
    double tau = hinge ? std::max(0.0, largest - C) : 0.0;
    entries.resize(n);
    std::size_t n_entries = 0;
    for (std::size_t p = 0; p < n; ++p) {
        entries[n_entries] = v[p];
        n_entries += v[p] > tau ? 1 : 0;
    }
    for (std::size_t count = 0, last = n + 1; count != last;) {
        last = count;
        count = 0;
        double above = -taken;
        for (std::size_t p = 0; p < n_entries; ++p) {
            above += entries[p] > tau ? entries[p] : 0.0;
            count += entries[p] > tau ? 1 : 0;
        }
        if (count > 0) tau = std::max(tau, above / (static_cast<double>(count) + own));
    }
    // With v far beyond C the difference has few digits left, and whether the sum is C decides what is free.
    if (hinge && largest <= tau) {
        const std::size_t top = static_cast<std::size_t>(std::find(v, v + n, largest) - v);
        std::fill(v, v + n, 0.0);
        v[top] = C;
        return;
    }
    double left[n_lanes] = {};
    by_lanes(n, [&](std::size_t k, std::size_t p) {
        const double value = v[p] > tau ? v[p] - tau : 0.0;
        v[p] = value;
        left[k] += value;
    });
    const double factor = hinge ? C / total_of(left) : 1.0;
    for (std::size_t p = 0; p < n; ++p) v[p] *= factor;
}

// `free` becomes the variables whose point moves with its gradient.
ProximalPasses::Slope ProximalPasses::slope(std::size_t i, double sigma, const double* point,
                                            std::vector<std::size_t>& free) const {
    free.clear();
    const std::size_t n = components(i).size();
    const double own = scale(i, sigma);
    const bool hinge = loss_ == Loss::hinge, box = bound_ == Bound::box;
    double sum = 0.0;
    for (std::size_t p = 0; p < n; ++p) {
        if (!(point[p] > 0.0) || (box && hinge && point[p] >= C_[i])) continue;
        free.push_back(p);
        sum += point[p];
    }
    const double count = static_cast<double>(free.size());
    if (box) return {hinge ? own : own / (1.0 + own / (2.0 * C_[i])), 0.0};
    if (!hinge) {
        const double ratio = own / (2.0 * C_[i]);
        return {own, own * ratio / (1.0 + count * ratio)};
    }
    if (sum < C_[i] * (1.0 - bound_tolerance)) return {own, 0.0};
    if (free.size() == 1) free.clear();  // all of C on one component, which has nothing to move against
    return {own, free.empty() ? 0.0 : own / count};
}

double ProximalPasses::step(const double* scores, const double* from, double sigma, double* point, double* coefficients,
                            ThreadTeam& team) const {
    std::vector<double> moved(unsigned_index(count_chunks(size())), 0.0);
    run(
        [&](Index t) {
            const std::size_t begin = unsigned_index(t) * chunk;
            std::vector<double> entries;
            for (std::size_t i = begin; i < std::min(begin + chunk, size()); ++i) {
                const double own = scale(i, sigma);
                const double *f = scores + i * n_columns_, *a = from + i * width_;
                double *v = point + i * width_, *beta = coefficients + i * n_columns_;
                const auto& list = components(i);
                std::fill(v, v + width_, 0.0);
                std::fill(beta, beta + n_columns_, 0.0);
                for (std::size_t p = 0; p < list.size(); ++p) v[p] = a[p] + own * (list[p].target - list[p].margin(f));
                project(i, sigma, v, entries);
                double distance = 0.0, total = 0.0;
                for (std::size_t p = 0; p < list.size(); ++p) {
                    distance += (v[p] - a[p]) * (v[p] - a[p]);
                    if (v[p] == 0.0) continue;
                    beta[list[p].class1] += v[p] * list[p].value1;
                    if (list[p].class2 >= 0) beta[list[p].class2] += v[p] * list[p].value2;
                    total += v[p] * list[p].row_sum();
                }
                moved[unsigned_index(t)] += distance / own;
                if (!sum_to_zero_) continue;
                for (std::size_t c = 0; c < n_columns_; ++c) beta[c] -= total / static_cast<double>(n_columns_);
            }
        },
        team);
    return std::accumulate(moved.begin(), moved.end(), 0.0);
}

SlopeAndCurvature ProximalPasses::along(std::size_t begin, std::size_t end, double t, double sigma) const {
    std::vector<double> v(width_), entries;
    std::vector<std::size_t> free;
    SlopeAndCurvature sums{0.0, 0.0};
    for (std::size_t i = begin; i < end; ++i) {
        const double *from = from_.data() + i * width_, *change = change_.data() + i * width_;
        const std::size_t n = components(i).size();
        const double own = scale(i, sigma);
        const double length = t * own;
        double tops[n_lanes] = {}, products[n_lanes] = {};
        by_lanes(n, [&](std::size_t k, std::size_t p) {
            const double value = from[p] - length * change[p];
            v[p] = value;
            tops[k] = value > tops[k] ? value : tops[k];
        });
        if (largest_of(tops) == 0.0) continue;
        project(i, sigma, v.data(), entries);
        const Slope slopes = slope(i, sigma, v.data(), free);
        by_lanes(n, [&](std::size_t k, std::size_t p) { products[k] += v[p] * change[p]; });
        sums.slope -= total_of(products);
        double squares = 0.0, total = 0.0;
        for (const std::size_t p : free) {
            squares += change[p] * change[p];
            total += change[p];
        }
        sums.curvature += slopes.own * squares - slopes.shared * total * total;
    }
    return sums;
}

double ProximalPasses::length(const double* scores, const double* change, const double* from, double sigma,
                              double linear, double square, ThreadTeam& team) {
    from_.resize(size() * width_);
    change_.resize(size() * width_);
    run(
        [&](Index t) {
            const std::size_t begin = unsigned_index(t) * chunk;
            for (std::size_t i = begin; i < std::min(begin + chunk, size()); ++i) {
                const auto& list = components(i);
                const double own = scale(i, sigma);
                for (std::size_t p = 0; p < list.size(); ++p) {
                    const std::size_t at = i * width_ + p;
                    from_[at] = from[at] + own * (list[p].target - list[p].margin(scores + i * n_columns_));
                    change_[at] = list[p].margin(change + i * n_columns_);
                }
            }
        },
        team);
    std::vector<SlopeAndCurvature> parts(unsigned_index(count_chunks(size())));
    return find_root([&](double t) {
        run(
            [&](Index k) {
                const std::size_t begin = unsigned_index(k) * chunk;
                parts[unsigned_index(k)] = along(begin, std::min(begin + chunk, size()), t, sigma);
            },
            team);
        SlopeAndCurvature sums{linear + t * square, square};
        for (const SlopeAndCurvature& part : parts) {
            sums.slope += part.slope;
            sums.curvature += part.curvature;
        }
        return sums;
    });
}

// Adds what each example has at each pair of columns.
void ProximalPasses::add_derivatives(const double* point, double sigma, std::vector<Weighted>& pairs) const {
    std::vector<std::size_t> free, touched;
    std::vector<double> S(n_columns_ * n_columns_, 0.0), total(n_columns_, 0.0);
    for (std::size_t i = 0; i < size(); ++i) {
        const Slope slopes = slope(i, sigma, point + i * width_, free);
        if (free.empty()) continue;
        const auto& list = components(i);
        touched.clear();
        const auto touch = [&](Index c, double value) {
            if (std::find(touched.begin(), touched.end(), unsigned_index(c)) == touched.end()) {
                touched.push_back(unsigned_index(c));
            }
            total[unsigned_index(c)] += value;
        };
        const auto at = [&](Index c, Index e) -> double& {
            return S[unsigned_index(c) * n_columns_ + unsigned_index(e)];
        };
        for (const std::size_t p : free) {
            const Component& m = list[p];
            touch(m.class1, m.value1);
            at(m.class1, m.class1) += slopes.own * m.value1 * m.value1;
            if (m.class2 < 0) continue;
            touch(m.class2, m.value2);
            at(m.class2, m.class2) += slopes.own * m.value2 * m.value2;
            at(std::max(m.class1, m.class2), std::min(m.class1, m.class2)) += slopes.own * m.value1 * m.value2;
        }
        std::sort(touched.begin(), touched.end());
        for (std::size_t a = 0; a < touched.size(); ++a) {
            for (std::size_t b = 0; b <= a; ++b) {
                const std::size_t c = touched[a], e = touched[b];
                const double weight = S[c * n_columns_ + e] - slopes.shared * total[c] * total[e];
                S[c * n_columns_ + e] = 0.0;
                if (weight == 0.0) continue;
                Weighted& pair = pairs[pair_index(c, e)];
                pair.rows.push_back(static_cast<Index>(i));
                pair.weights.push_back(weight);
            }
        }
        for (const std::size_t c : touched) total[c] = 0.0;
    }
}

bool ProximalPasses::matrix(const DataView& data, double constant, const double* point, double sigma, double* out,
                            ThreadTeam& team, Monitor& monitor) const {
    if (row_count(data) != static_cast<Index>(size())) throw std::invalid_argument("one row per example is needed");
    std::vector<Weighted> pairs(pair_index(n_columns_, 0));
    add_derivatives(point, sigma, pairs);
    const std::size_t n = unsigned_index(column_count(data)) + (constant > 0.0 ? 1 : 0), side = n * n_columns_;
    const auto fill = [&](std::size_t c, std::size_t e) {
        Weighted& pair = pairs[pair_index(c, e)];
        std::vector<double> block(n * n, 0.0);
        if (!pair.rows.empty()) {
            ThreadTeam alone(1);
            const std::vector<double> signs(pair.rows.size(), 1.0);
            const LinearExamples examples(data, std::move(pair.rows), signs, constant, alone);
            if (!examples.gram(pair.weights, block, monitor)) return;
        }
        for (std::size_t r = 0; r < n; ++r) {
            std::copy_n(block.data() + r * n, n, out + (c * n + r) * side + e * n);
            std::copy_n(block.data() + r * n, n, out + (e * n + r) * side + c * n);
        }
    };
    const auto task = [&](Index t) {
        for (std::size_t e = 0; e <= unsigned_index(t) && !monitor.stopped(); ++e) fill(unsigned_index(t), e);
    };
    team.run(static_cast<Index>(n_columns_), task, [&] { monitor.poll(); });
    return !monitor.stopped();
}

}  // namespace multimargin
