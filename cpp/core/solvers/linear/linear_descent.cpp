#include "solvers/linear/linear_descent.hpp"

#include <cmath>

#include "base/unrolled.hpp"
#include "problem/problem.hpp"
#include "solvers/linear/example_general.hpp"

namespace multimargin {

namespace {

// What a visit costs beside its multiply-adds, in units of them.
constexpr double visit_cost = 16.0;

// A step is made as if the curvature were smaller by this factor; below 2 the dual still rises. Of 1.0, 1.3,
// 1.5 and 1.7 tried, multiply-adds beside 1.0: mostly 10 to 30 % fewer (letter, satimage, documents; C from 0.1 to 10),
// but a quarter more for cs at C = 0.1 and mmr at C = 1 on satimage.
constexpr double over_relaxation = 1.5;

// Whether every margin is f_y - f_p with one target, p ascending (ww, cs).
bool has_plain_differences(const Machine& machine) {
    for (Index y = 0; y < machine.n_classes; ++y) {
        const auto& components = machine.of(y);
        if (static_cast<Index>(components.size()) != machine.n_classes - 1) return false;
        for (Index p = 0; p < machine.n_classes - 1; ++p) {
            const Component& c = components[unsigned_index(p)];
            const bool plain = c.class1 == y && c.value1 == 1.0 && c.class2 == p + (p >= y ? 1 : 0) && c.value2 == -1.0;
            if (!plain || c.target != components[0].target) return false;
        }
    }
    return !machine.sum_to_zero;
}

}  // namespace

LinearProblem::LinearProblem(DataView given, Machine of, Loss charge, std::vector<Index> row_list,
                             std::vector<Index> classes, std::vector<double> bounds, double constant)
    : data(given),
      machine(std::move(of)),
      loss(charge),
      rows(std::move(row_list)),
      y(std::move(classes)),
      C(std::move(bounds)),
      offset(constant) {
    machine.complete();
    if (rows.size() != y.size() || rows.size() != C.size()) {
        throw std::invalid_argument("rows, classes and bounds must have the same length");
    }
    if (!(offset >= 0.0 && offset < infinity)) throw std::invalid_argument("the offset must be a number >= 0");
    for (std::size_t e = 0; e < rows.size(); ++e) {
        if (rows[e] < 0 || rows[e] >= row_count(data)) throw std::invalid_argument("a row does not exist in the data");
        if (y[e] < 0 || y[e] >= machine.n_classes) throw std::invalid_argument("a class code is out of range");
        if (!(C[e] > 0.0)) throw std::invalid_argument("every bound C must be positive");
    }
}

LinearDescent::LinearDescent(const LinearProblem& problem, const LinearOptions& options, Watcher* watcher)
    : problem_(problem),
      machine_(problem.machine),
      options_(options),
      monitor_(watcher, options.max_time),
      table_(simd::best_table()),
      reader_(problem.data),
      width_(unsigned_index(machine_.max_components())),
      ld_(round_up(machine_.n_classes, machine_.n_classes <= 4 ? 4 : 8)),
      root_(std::sqrt(problem.offset)),
      plain_(has_plain_differences(machine_)),
      variables_(checked_product(problem.size(), machine_.max_components()), 0.0),
      weights_(checked_product(column_count(problem.data) + (root_ > 0.0 ? 1 : 0), ld_), 0.0),
      scores_(unsigned_index(ld_), 0.0),
      change_(unsigned_index(ld_), 0.0),
      gradient_(width_),
      before_(width_),
      changes_(width_),
      passes_(*this, problem.size(), options, monitor_) {
    for (const auto& components : machine_.components) {
        std::vector<Term> list;
        for (const Component& c : components) {
            const std::size_t first = unsigned_index(c.class1);
            list.push_back({c.target, c.value1, c.class2 >= 0 ? c.value2 : 0.0, first,
                            c.class2 >= 0 ? unsigned_index(c.class2) : first});
        }
        terms_.push_back(std::move(list));
    }
    const std::vector<double> norms = squared_norms(problem.data, problem.rows);
    for (const Index row : problem.rows) diagonal_.push_back(norms[unsigned_index(row)] + problem.offset);
    monitor_.describe([this] { return progress(); });
}

std::span<double> LinearDescent::variables_of(std::size_t e) {
    return {variables_.data() + e * width_, terms_[unsigned_index(problem_.y[e])].size()};
}

void LinearDescent::start(std::span<const double> variables) {
    if (variables.size() != variables_.size()) throw std::invalid_argument("the start has another size");
    std::copy(variables.begin(), variables.end(), variables_.begin());
    make_feasible();
    refresh();
}

// Clips to the box, scales down to the simplex.
void LinearDescent::make_feasible() {
    for (std::size_t e = 0; e < problem_.rows.size(); ++e) {
        const std::span<double> a = variables_of(e);
        const double cap = problem_.cap(e);
        const double negligible = problem_.C[e] < infinity ? bound_tolerance * problem_.C[e] : 0.0;
        std::fill(variables_.begin() + static_cast<Index>(e * width_ + a.size()),
                  variables_.begin() + static_cast<Index>((e + 1) * width_), 0.0);
        double sum = 0.0;
        for (double& value : a) {
            if (!(value > negligible)) value = 0.0;
            if (value >= (1.0 - bound_tolerance) * cap) value = cap;
            sum += value;
        }
        if (machine_.bound == Bound::box || !(sum > cap)) continue;
        for (double& value : a) value *= cap / sum;
    }
}

LinearReport LinearDescent::run() {
    const bool warm = std::any_of(variables_.begin(), variables_.end(), [](double a) { return a > 0.0; });
    LinearReport report;
    report.stop_reason = passes_.run(warm);
    report.iterations = passes_.iterations();
    report.passes = passes_.passes();
    report.seconds = monitor_.seconds();
    report.violation = passes_.full_violation();
    report.dual = dual();
    report.cost = cost_;
    report.n_support = n_support();
    report.verified = passes_.verified();
    return report;
}

std::vector<double> LinearDescent::weights() const {
    const std::size_t n_lines = weights_.size() / unsigned_index(ld_);
    std::vector<double> compact;
    compact.reserve(n_lines * unsigned_index(machine_.n_classes));
    for (std::size_t k = 0; k < n_lines; ++k) {
        const double* line = weights_.data() + k * unsigned_index(ld_);
        compact.insert(compact.end(), line, line + machine_.n_classes);
    }
    return compact;
}

Visit LinearDescent::visit(Index example, double step_above) {
    const std::size_t e = unsigned_index(example);
    const simd::Lines x = reader_.row(problem_.rows[e]);
    const double pass_cost = static_cast<double>(x.n * machine_.n_classes);
    cost_ += pass_cost + visit_cost;
    score(x);
    const std::span<double> a = variables_of(e);
    gradient_of(e, a);
    Visit visit = judge(e, a);
    if (visit.rests || !(visit.violation > step_above)) return visit;
    std::copy(a.begin(), a.end(), before_.begin());
    step(e, a);
    for (std::size_t p = 0; p < a.size(); ++p) {
        changes_[p] = a[p] - before_[p];
        visit.stepped = visit.stepped || changes_[p] != 0.0;
    }
    if (!visit.stepped) return visit;
    add_to_weights(x, unsigned_index(problem_.y[e]), {changes_.data(), a.size()});
    cost_ += pass_cost;
    return visit;
}

void LinearDescent::score(const simd::Lines& x) {
    table_.combine_lines(x, weights_.data(), ld_, scores_.data());
    if (!(root_ > 0.0)) return;
    const double* last = weights_.data() + weights_.size() - unsigned_index(ld_);
    for (std::size_t c = 0; c < scores_.size(); ++c) scores_[c] += root_ * last[c];
}

void LinearDescent::add_to_weights(const simd::Lines& x, std::size_t y, std::span<const double> changes) {
    gather(y, changes);
    table_.spread_lines(x, change_.data(), weights_.data(), ld_);
    if (!(root_ > 0.0)) return;
    double* last = weights_.data() + weights_.size() - unsigned_index(ld_);
    for (std::size_t c = 0; c < unsigned_index(machine_.n_classes); ++c) last[c] += root_ * change_[c];
}

// change_ = Pi nu' changes.
void LinearDescent::gather(std::size_t y, std::span<const double> changes) {
    const std::size_t d = unsigned_index(machine_.n_classes);
    if (plain_) {
        for (std::size_t p = 0; p < y; ++p) change_[p] = -changes[p];
        for (std::size_t p = y; p < changes.size(); ++p) change_[p + 1] = -changes[p];
        change_[y] = sum_of(changes);
        return;
    }
    std::fill(change_.begin(), change_.end(), 0.0);
    double total = 0.0;
    for (std::size_t p = 0; p < changes.size(); ++p) {
        const Term& t = terms_[y][p];
        change_[t.class1] += changes[p] * t.value1;
        change_[t.class2] += changes[p] * t.value2;
        total += changes[p] * (t.value1 + t.value2);
    }
    if (!machine_.sum_to_zero) return;
    for (std::size_t c = 0; c < d; ++c) change_[c] -= total / static_cast<double>(d);
}

// t - m(f), less the squared hinge's term. The weights of a projected machine sum to zero, and so do its scores.
void LinearDescent::gradient_of(std::size_t e, std::span<const double> a) {
    const std::size_t y = unsigned_index(problem_.y[e]);
    const std::vector<Term>& terms = terms_[y];
    if (plain_) {
        const double base = terms[0].target - scores_[y];
        for (std::size_t p = 0; p < y; ++p) gradient_[p] = base + scores_[p];
        for (std::size_t p = y; p < a.size(); ++p) gradient_[p] = base + scores_[p + 1];
    } else {
        for (std::size_t p = 0; p < a.size(); ++p) {
            const Term& t = terms[p];
            gradient_[p] = t.target - t.value1 * scores_[t.class1] - t.value2 * scores_[t.class2];
        }
    }
    const double ridge = problem_.ridge(e);
    if (!(ridge > 0.0)) return;
    const bool simplex = machine_.bound == Bound::simplex;
    const double sum = std::accumulate(a.begin(), a.end(), 0.0);
    for (std::size_t p = 0; p < a.size(); ++p) gradient_[p] -= ridge * (simplex ? sum : a[p]);
}

Visit LinearDescent::judge(std::size_t e, std::span<const double> a) const {
    const double cap = problem_.cap(e);
    Visit visit;
    visit.violation = example_violation(machine_.bound, {gradient_.data(), a.size()}, a, cap);
    if (visit.violation > 0.0) return visit;
    visit.rests = machine_.bound == Bound::box ? rests_in_box(a, cap) : rests_in_simplex(a, cap);
    return visit;
}

bool LinearDescent::rests_in_box(std::span<const double> a, double cap) const {
    for (std::size_t p = 0; p < a.size(); ++p) {
        const double g = gradient_[p];
        if (!((a[p] == 0.0 && g < 0.0) || (a[p] >= cap && g > 0.0))) return false;
    }
    return true;
}

// At a vertex the best variable (or the slack) holds all, and rests if the next best is behind.
bool LinearDescent::rests_in_simplex(std::span<const double> a, double cap) const {
    const double sum = sum_of(a);
    double held = sum > 0.0 ? infinity : 0.0, next = sum > 0.0 ? 0.0 : -infinity;
    Index holders = slack_of(sum, cap) > 0.0 ? 1 : 0;
    for (std::size_t p = 0; p < a.size(); ++p) {
        if (a[p] > 0.0) {
            ++holders;
            held = gradient_[p];
        } else {
            next = std::max(next, gradient_[p]);
        }
    }
    return holders == 1 && held > next;
}

void LinearDescent::step(std::size_t e, std::span<double> a) {
    const Index y = problem_.y[e];
    const std::span<const double> gradient(gradient_.data(), a.size());
    if (!machine_.structured) {
        const GeneralExample general{{gradient_.data(), a.size()}, diagonal_[e], problem_.cap(e), problem_.ridge(e)};
        improve_example(machine_, y, general, a);
        return;
    }
    const ExampleTerms& terms = machine_.terms_of(y);
    const ExampleProblem example{gradient,
                                 terms.private_square,
                                 terms.weight,
                                 machine_.sigma[unsigned_index(y)],
                                 diagonal_[e] / over_relaxation,
                                 problem_.cap(e),
                                 problem_.ridge(e),
                                 terms.uniform};
    machine_.bound == Bound::simplex ? solve_simplex_example(example, a, scratch_)
                                     : solve_box_example(example, a, scratch_);
}

double LinearDescent::weight_norm() const {
    return std::sqrt(table_.dot(weights_.data(), weights_.data(), static_cast<Index>(weights_.size())));
}

// A step rounds every weight it touches, with either sign.
double LinearDescent::drift(Index n_steps) const {
    const double longest = diagonal_.empty() ? 0.0 : *std::max_element(diagonal_.begin(), diagonal_.end());
    return 1e-16 * std::sqrt(static_cast<double>(n_steps)) * std::sqrt(longest) * weight_norm();
}

// W = sum_i x_i beta_i' anew.
void LinearDescent::refresh() {
    std::fill(weights_.begin(), weights_.end(), 0.0);
    for (std::size_t e = 0; e < problem_.rows.size(); ++e) {
        const std::span<const double> a = variables_of(e);
        if (std::all_of(a.begin(), a.end(), [](double value) { return value == 0.0; })) continue;
        const simd::Lines x = reader_.row(problem_.rows[e]);
        add_to_weights(x, unsigned_index(problem_.y[e]), a);
        cost_ += static_cast<double>(x.n * machine_.n_classes);
    }
}

// Steps leave out shares of 1e-12 of a bound, and scores are sums of rounded products.
double LinearDescent::rounding() const {
    double largest = 0.0, longest = 0.0;
    for (std::size_t e = 0; e < diagonal_.size(); ++e) {
        const double* a = variables_.data() + e * width_;
        largest = std::max(largest, diagonal_[e] * *std::max_element(a, a + width_));
        longest = std::max(longest, diagonal_[e]);
    }
    return bound_tolerance * largest + 1e-14 * std::sqrt(longest) * weight_norm();
}

double LinearDescent::dual() const {
    const double norm = weight_norm();
    double value = -0.5 * norm * norm;
    for (std::size_t e = 0; e < problem_.rows.size(); ++e) {
        const std::vector<Term>& terms = terms_[unsigned_index(problem_.y[e])];
        const double* a = variables_.data() + e * width_;
        double sum = 0.0, squares = 0.0;
        for (std::size_t p = 0; p < terms.size(); ++p) {
            value += terms[p].target * a[p];
            sum += a[p];
            squares += a[p] * a[p];
        }
        value -= 0.5 * problem_.ridge(e) * (machine_.bound == Bound::simplex ? sum * sum : squares);
    }
    return value;
}

Index LinearDescent::n_support() const {
    Index count = 0;
    for (std::size_t e = 0; e < problem_.rows.size(); ++e) {
        const double* a = variables_.data() + e * width_;
        if (std::any_of(a, a + width_, [](double value) { return value > 0.0; })) ++count;
    }
    return count;
}

Progress LinearDescent::progress() const {
    Progress moment;
    moment.iteration = passes_.iterations();
    moment.violation = passes_.violation();
    moment.n_active = passes_.active();
    if (!monitor_.wants_detail()) return moment;
    moment.dual = dual();
    moment.n_support = n_support();
    return moment;
}

}  // namespace multimargin
