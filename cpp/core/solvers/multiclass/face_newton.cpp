#include "solvers/multiclass/face_newton.hpp"

#include <algorithm>
#include <cmath>

#include "kernel/score_pass.hpp"

namespace multimargin {

namespace {

constexpr double near_share = 0.5;         // of the violation: gradients at a bound that are watched
constexpr double round_share = 0.3;        // of the violation that a round leaves
constexpr double inner_share = 0.3;        // of that, what Newton's method leaves in the gradients
constexpr double most_bytes = 2e8;         // of the kernel values of a round
constexpr Index most_proximal = 6;         // proximal steps in a round
constexpr Index most_newton = 100;         // steps of Newton's method in each ...
constexpr Index few_newton = 12;           // ... where it took fewer, the next proximal step is longer, ...
constexpr Index many_newton = 30;          // ... where it took more, shorter, ...
constexpr double length_ratio = 3.0;       // ... by this factor
constexpr double usual_newton = 40.0;      // steps in all ...
constexpr double usual_gradients = 100.0;  // ... and of conjugate gradients in each
constexpr int patience = 10;               // rounds until the violation has halved

double inner(const std::vector<double>& x, const std::vector<double>& y) {
    return simd::best_table().dot(x.data(), y.data(), static_cast<Index>(x.size()));
}

}  // namespace

FaceNewton::FaceNewton(const Problem& problem, FullState& state, const Options& options, Monitor& monitor, Tally& tally,
                       ThreadTeam& team)
    : problem_(problem),
      machine_(problem.machine()),
      state_(state),
      options_(options),
      monitor_(monitor),
      tally_(tally),
      team_(team) {}

void FaceNewton::scatter() {
    if (!set_) return;
    for (const VariableSet::Example& e : set_->examples()) {
        for (Index v = e.begin; v < e.end; ++v) state_.variable(set_->variable(v).p, e.example) = a_[unsigned_index(v)];
    }
}

bool FaceNewton::fits(const Problem& problem) {
    if (problem.machine().sum_to_zero) return false;
    for (Index e = 0; e < problem.size(); ++e) {
        if (!(problem.C(e) > 0.0 && problem.C(e) < infinity)) return false;
    }
    return true;
}

double FaceNewton::expected_work(const Problem& problem, const FullState& state) {
    const Machine& machine = problem.machine();
    std::vector<double> touched(unsigned_index(machine.n_classes), 0.0);  // by class: free variables
    double n_free = 0.0, product = 0.0;
    for (Index e = 0; e < problem.size(); ++e) {
        const auto& components = machine.of(problem.class_of(e));
        for (std::size_t p = 0; p < components.size(); ++p) {
            const double a = state.variable(static_cast<Index>(p), e);
            if (a <= 0.0 || a >= problem.cap(e)) continue;
            n_free += 1.0;
            touched[unsigned_index(components[p].class1)] += 1.0;
            if (components[p].class2 >= 0) touched[unsigned_index(components[p].class2)] += 1.0;
        }
    }
    for (const double n : touched) product += n * n;
    return usual_newton * std::min(n_free * n_free * n_free / 24.0, usual_gradients * product);
}

bool FaceNewton::out_of_steps() const { return options_.max_iter >= 0 && tally_.iterations >= options_.max_iter; }

Outcome FaceNewton::run(double target) {
    double least = infinity;
    for (int waited = 0;;) {
        const Summary summary = summarize(problem_, state_);
        tally_.violation = summary.violation;
        tally_.dual = summary.dual;
        tally_.record([this] { return census_of(problem_, state_); });
        if (summary.violation <= target) return Outcome::satisfied;
        if (out_of_steps()) return Outcome::out_of_steps;
        if (monitor_.poll()) return Outcome::stopped;
        waited = summary.violation < 0.5 * least ? 0 : waited + 1;
        if (waited > patience) return Outcome::stuck;
        least = std::min(least, summary.violation);
        set_ = std::make_unique<VariableSet>(problem_, state_, near_share * summary.violation);
        tally_.n_active = static_cast<Index>(set_->examples().size());
        ++tally_.phases.rounds;
        if (set_->bytes() > std::min(options_.cache_bytes, most_bytes)) {
            set_.reset();
            return Outcome::stuck;
        }
        begin_round();  // before anybody asks for the variables
        {
            const PhaseTimer timer(tally_.phases.kernel);
            if (!set_->fill(team_, monitor_)) return Outcome::stopped;
        }
        {
            const PhaseTimer timer(tally_.phases.inner);
            if (!solve_round(std::max(round_share * summary.violation, 0.5 * target))) return Outcome::stopped;
        }
        if (!update_scores()) return Outcome::stopped;
    }
}

void FaceNewton::begin_round() {
    const std::size_t n = unsigned_index(set_->size()), slots = unsigned_index(set_->n_slots());
    for (std::vector<double>* v : {&a_, &gradient_, &free_, &x_, &residual_, &direction_, &curvature_, &z_, &point_,
                                   &solution_, &rest_, &step_, &shift_, &preconditioned_})
        v->assign(n, 0.0);
    full_.assign(set_->examples().size(), 0);
    wanted_.assign(slots, 0);
    scores_.assign(slots, 0.0);
    product_.assign(slots, 0.0);
    changes_.assign(slots, 0.0F);
    set_->gather_scores(state_, scores_.data());
    for (const VariableSet::Example& e : set_->examples()) {
        for (Index v = e.begin; v < e.end; ++v) a_[unsigned_index(v)] = state_.variable(set_->variable(v).p, e.example);
    }
}

bool FaceNewton::solve_round(double target) {
    Index k = 0;
    newtons_ = gradients_ = 0;
    double v = violation();
    const Index most = most_proximal;
    for (; k < most; ++k) {
        if (v <= target) break;
        if (sigma_ == 0.0) sigma_ = 1.0 / v;
        centre_ = a_;
        const Index newtons = newtons_;
        if (!minimize(inner_share * target)) return false;
        v = violation();
        if (newtons_ - newtons < few_newton)
            sigma_ *= length_ratio;
        else if (newtons_ - newtons > many_newton)
            sigma_ /= length_ratio;
    }
    return true;
}

// The proximal step: a <- the maximum of the dual less |a - centre|^2 / (2 sigma C), by Newton's method on its dual.
bool FaceNewton::minimize(double tolerance) {
    point_ = a_;
    const Index most = most_newton;
    for (Index k = 0;; ++k) {
        if (monitor_.poll()) return false;
        if (out_of_steps()) break;
        load_all(point_, scores_, gradient_);
        prox(gradient_, solution_);
        for (std::size_t i = 0; i < residual_.size(); ++i) residual_[i] = solution_[i] - point_[i];
        apply(residual_);
        margins(residual_, curvature_);
        double worst = 0.0;  // what the gradient still changes by on the way to the feasible point
        for (const double c : curvature_) worst = std::max(worst, std::abs(c));
        if (worst <= tolerance || k >= most) break;
        ++newtons_;
        ++tally_.phases.newton_steps;
        ++tally_.iterations;
        find_face(solution_);
        newton_direction();
        line_search();
        if (monitor_.stopped()) return false;
    }
    ascend();
    return true;
}

// From the centre towards the solution, as far as the dual rises.
void FaceNewton::ascend() {
    for (std::size_t i = 0; i < residual_.size(); ++i) direction_[i] = centre_[i] - point_[i];
    apply(direction_);  // back to the centre's scores
    for (std::size_t s = 0; s < scores_.size(); ++s) scores_[s] += product_[s];
    load_all(centre_, scores_, gradient_);
    for (std::size_t i = 0; i < residual_.size(); ++i) direction_[i] = solution_[i] - centre_[i];
    apply(direction_);
    margins(direction_, curvature_);
    const double slope = simd::best_table().dot(gradient_.data(), direction_.data(), set_->size());
    const double curvature = simd::best_table().dot(curvature_.data(), direction_.data(), set_->size());
    const double length = slope <= 0.0 ? 0.0 : (curvature > slope ? slope / curvature : 1.0);
    for (const VariableSet::Example& e : set_->examples()) {
        const double negligible = problem_.negligible(e.example), most = (1.0 - bound_tolerance) * e.cap;
        for (Index v = e.begin; v < e.end; ++v) {
            const std::size_t i = unsigned_index(v);
            const double a = length == 1.0 ? solution_[i] : centre_[i] + length * direction_[i];
            a_[i] = a <= negligible ? 0.0 : (a >= most ? e.cap : a);
        }
    }
    for (std::size_t s = 0; s < scores_.size(); ++s) scores_[s] += length * product_[s];
}

// The gradient of all variables at a point with these scores.
void FaceNewton::load_all(const std::vector<double>& a, const AlignedVector<double>& scores,
                          std::vector<double>& gradient) const {
    const bool simplex = machine_.bound == Bound::simplex;
    for (const VariableSet::Example& e : set_->examples()) {
        double sum = 0.0;
        for (Index v = e.begin; v < e.end; ++v) sum += a[unsigned_index(v)];
        for (Index v = e.begin; v < e.end; ++v) {
            const std::size_t i = unsigned_index(v);
            gradient[i] = set_->variable(v).component->target - set_->margin_of(v, scores.data()) -
                          e.ridge * (simplex ? sum : a[i]);
        }
    }
}

double FaceNewton::violation() {
    load_all(a_, scores_, gradient_);
    double largest = 0.0;
    for (const VariableSet::Example& e : set_->examples()) {
        const std::size_t n = unsigned_index(e.end - e.begin), first = unsigned_index(e.begin);
        largest = std::max(largest, example_violation(machine_.bound, {&gradient_[first], n}, {&a_[first], n}, e.cap));
    }
    monitor_.spend(static_cast<double>(4 * set_->size()));
    return largest;
}

// out <- the feasible point next to centre + sigma C gradient
void FaceNewton::prox(const std::vector<double>& gradient, std::vector<double>& out) const {
    for (const VariableSet::Example& e : set_->examples()) {
        const double factor = sigma_ * e.penalty, most = (1.0 - bound_tolerance) * e.cap;
        double sum = 0.0;
        for (Index v = e.begin; v < e.end; ++v) {
            const std::size_t i = unsigned_index(v);
            const double z = centre_[i] + factor * gradient[i];
            out[i] = z <= 0.0 ? 0.0 : (z >= most ? e.cap : z);
            sum += out[i];
        }
        if (machine_.bound == Bound::box || sum <= e.cap) continue;
        double theta = -infinity;
        for (Index v = e.begin; v < e.end; ++v) {
            const std::size_t i = unsigned_index(v);
            out[i] = centre_[i] + factor * gradient[i];
            theta = std::max(theta, out[i] - e.cap);
        }
        while (true) {  // the threshold, from the left
            double total = 0.0, count = 0.0;
            for (Index v = e.begin; v < e.end; ++v) {
                const double z = out[unsigned_index(v)];
                if (z > theta) total += z, count += 1.0;
            }
            const double next = (total - e.cap) / count;
            if (!(next > theta + 1e-15 * e.cap)) break;
            theta = next;
        }
        for (Index v = e.begin; v < e.end; ++v) {
            double& z = out[unsigned_index(v)];
            z = std::max(0.0, z - theta);
        }
    }
}

// Which variables are inside their bounds.
void FaceNewton::find_face(const std::vector<double>& a) {
    std::fill(wanted_.begin(), wanted_.end(), char(0));
    const auto& examples = set_->examples();
    for (std::size_t k = 0; k < examples.size(); ++k) {
        const VariableSet::Example& e = examples[k];
        double sum = 0.0;
        Index count = 0;
        for (Index v = e.begin; v < e.end; ++v) {
            const double value = a[unsigned_index(v)];
            sum += value;
            const bool inside = value > 0.0 && (machine_.bound == Bound::simplex || value < e.cap);
            free_[unsigned_index(v)] = inside ? 1.0 : 0.0;
            count += inside ? 1 : 0;
        }
        full_[k] = machine_.bound == Bound::simplex && slack_of(sum, e.cap) == 0.0;
        for (Index v = e.begin; v < e.end; ++v) {
            if (full_[k] != 0 && count < 2) free_[unsigned_index(v)] = 0.0;
            if (free_[unsigned_index(v)] == 0.0) continue;
            const VariableSet::Variable& x = set_->variable(v);
            wanted_[unsigned_index(x.slot1)] = 1;
            if (x.slot2 >= 0) wanted_[unsigned_index(x.slot2)] = 1;
        }
    }
}

// Onto the space of the face: bound variables rest, full sums stay.
void FaceNewton::project(std::vector<double>& x) const {
    for (std::size_t v = 0; v < x.size(); ++v) x[v] *= free_[v];
    if (machine_.bound == Bound::box) return;
    const auto& examples = set_->examples();
    for (std::size_t k = 0; k < examples.size(); ++k) {
        if (full_[k] == 0) continue;
        double sum = 0.0, count = 0.0;
        for (Index v = examples[k].begin; v < examples[k].end; ++v) {
            sum += x[unsigned_index(v)];
            count += free_[unsigned_index(v)];
        }
        if (count == 0.0) continue;
        for (Index v = examples[k].begin; v < examples[k].end; ++v)
            x[unsigned_index(v)] -= free_[unsigned_index(v)] * sum / count;
    }
}

// Along the direction to where the slope (H d)'(point + s d - prox(s)) is about 0.
void FaceNewton::line_search() {
    apply(direction_);
    margins(direction_, curvature_);
    const auto slope = [&](double s) {
        for (std::size_t i = 0; i < z_.size(); ++i) z_[i] = gradient_[i] - s * curvature_[i];
        prox(z_, solution_);
        for (std::size_t i = 0; i < z_.size(); ++i) z_[i] = point_[i] + s * direction_[i] - solution_[i];
        return inner(curvature_, z_);
    };
    const double start = slope(0.0);
    double low = 0.0, high = 1.0, s = 1.0;
    double at = slope(1.0);
    double at_low = start, at_high = at;
    for (int k = 0; k < 20 && at < 0.1 * start; ++k) {  // still falling
        low = s, at_low = at;
        s *= 2.0;
        at = slope(s);
        high = s, at_high = at;
    }
    for (int k = 0; k < 20 && std::abs(at) > 0.1 * std::abs(start); ++k) {
        const double guess = low + (high - low) * at_low / (at_low - at_high);
        s = std::clamp(guess, low + 0.1 * (high - low), high - 0.1 * (high - low));
        at = slope(s);
        if (at < 0.0)
            low = s, at_low = at;
        else
            high = s, at_high = at;
    }
    for (std::size_t i = 0; i < z_.size(); ++i) point_[i] += s * direction_[i];
    for (std::size_t i = 0; i < scores_.size(); ++i) scores_[i] += s * product_[i];
}

bool FaceNewton::update_scores() {
    std::vector<Index> examples;
    std::vector<const VariableSet::Example*> entries;
    for (const VariableSet::Example& e : set_->examples()) {
        examples.push_back(e.example);
        entries.push_back(&e);
    }
    Index cursor = 0;
    Index at = -1;
    // changed_coefficients asks for all components in order: those of the set in theirs.
    const Coefficients changes = changed_coefficients(problem_, examples, [&](Index k, Index p) {
        const VariableSet::Example& e = *entries[unsigned_index(k)];
        if (k != at) cursor = e.begin, at = k;
        if (cursor >= e.end || set_->variable(cursor).p != p) return 0.0;
        const double delta = a_[unsigned_index(cursor)] - state_.variable(p, e.example);
        ++cursor;
        return delta;
    });
    scatter();
    set_.reset();
    std::vector<Index> all = first_indices(problem_.size());
    const PassExtras account{nullptr, &tally_.phases, &tally_.cache};
    const bool coarse = float32_too_coarse(problem_, state_, options_.tol);
    if (coarse) {
        const auto columns = problem_.source().columns<double>(problem_.source_rows(all));
        return add_scores(*columns, changes, state_.scores.data(), state_.ld, team_, &monitor_, account);
    }
    const auto columns = problem_.source().columns<float>(problem_.source_rows(all));
    return add_scores(*columns, changes, state_.scores.data(), state_.ld, team_, &monitor_, account);
}

}  // namespace multimargin
