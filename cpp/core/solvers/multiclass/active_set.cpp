#include "solvers/multiclass/active_set.hpp"

#include <algorithm>
#include <cmath>

#include "subproblem/example_problem.hpp"

namespace multimargin {

namespace {

// Added to the diagonal of the factor, relative to the largest k_ii: it keeps dependent rows apart. It is proximal,
// not a bias: what a full step leaves because of it the next step removes.
constexpr double relative_ridge = 1e-8;
// At most this many variables leave a bound at once.
constexpr Index most_entering = 16;
constexpr Index not_free = -1;

}  // namespace

ActiveSet::ActiveSet(const Problem& problem)
    : problem_(problem),
      machine_(problem.machine()),
      width_(machine_.max_components() + 1),
      component_gradient_(unsigned_index(width_)),
      class_vector_(unsigned_index(machine_.n_classes)) {}

ActiveSetResult ActiveSet::solve(Workspace& workspace, const double* kernel, Index ld, const Limits& limits,
                                 Monitor& monitor, Tally& tally) {
    const auto [tol, max_free, max_steps, max_cost] = limits;
    double cost = 0.0;
    workspace_ = &workspace;
    monitor_ = &monitor;
    kernel_ = kernel;
    ld_ = ld;
    result_ = {};
    if (!load(max_free)) return result_;
    double stationary = infinity;
    Index refinements = 0;
    while (result_.steps < max_steps && cost < max_cost && !monitor.poll()) {
        if (largest_gradient() > 0.5 * tol) {
            const double before = result_.gain;
            if (!step()) break;
            const double square = static_cast<double>(free_.size()) * static_cast<double>(free_.size());
            cost += 2.0 * square;
            monitor.spend(2.0 * step_overhead + 2.0 * square + 3.0 * static_cast<double>(workspace.size()));
            ++tally.iterations;
            tally.dual += result_.gain - before;
            continue;
        }
        flush();
        monitor.spend(cost_of_check());
        refresh_gradients();
        // Rounding of the factor shows only now; a few steps more, as long as they help.
        if (largest_gradient() > 0.5 * tol && refinements < 5) {
            refinements = largest_gradient() < 0.5 * stationary ? 0 : refinements + 1;
            stationary = largest_gradient();
            continue;
        }
        refinements = 0;
        stationary = infinity;
        const double violation = std::max(enter(tol, max_free), largest_gradient());
        if (violation <= tol) {
            result_.success = true;
            return result_;
        }
        if (refused_) break;
    }
    flush();
    return result_;
}

// A flush adds some columns of the kernel for each example that moved; then all gradients are checked.
double ActiveSet::cost_of_check() const {
    const double n = static_cast<double>(workspace_->size()), free = static_cast<double>(free_.size());
    return step_overhead + n * (free + 4.0 * static_cast<double>(width_)) + free * free;
}

// A row more or less of the factor.
double ActiveSet::cost_of_change() const {
    const double free = static_cast<double>(free_.size());
    return step_overhead + 10.0 * free + free * free;
}

double ActiveSet::pivot_floor() const { return 0.5 * relative_ridge * scale_; }

// Faces and factor of the workspace's variables; false when more are free than the factor may hold.
bool ActiveSet::load(Index max_free) {
    const Index n = workspace_->size();
    variables_.assign(unsigned_index(n * width_), 0.0);
    places_.assign(variables_.size(), not_free);
    references_.assign(unsigned_index(n), -1);
    free_.clear();
    gradient_.clear();
    factor_.clear();
    refused_ = false;
    scale_ = curvature_floor;
    Index count = 0;
    for (Index i = 0; i < n; ++i) {
        scale_ = std::max(scale_, workspace_->diagonal()[i]);
        for (Index p = 0; p < n_components(i); ++p) variable(i, p) = workspace_->variables(p)[i];
        if (simplex()) {
            variable(i, n_components(i)) = slack_of(workspace_->sum()[i], workspace_->cap()[i]);
            Index& best = reference(i) = 0;
            for (Index p = 1; p < n_slots(i); ++p) best = variable(i, p) > variable(i, best) ? p : best;
        }
        for (Index p = 0; p < n_slots(i); ++p) {
            count += variable(i, p) > 0.0 && (simplex() ? p != reference(i) : variable(i, p) < workspace_->cap()[i]);
        }
    }
    return count <= max_free && build_factor(count);
}

// The factor of all variables inside their bounds; false when the monitor stopped it.
bool ActiveSet::build_factor(Index count) {
    for (Index i = 0; i < workspace_->size() && count > 0; ++i) {
        gradients_at(i);
        const double base = simplex() ? component_gradient_[unsigned_index(reference(i))] : 0.0;
        for (Index p = 0; p < n_slots(i); ++p) {
            const bool inside = simplex() ? p != reference(i) : variable(i, p) < workspace_->cap()[i];
            if (!(variable(i, p) > 0.0) || !inside) continue;
            place(i, p) = static_cast<Index>(free_.size());
            free_.push_back(describe(i, p));
            gradient_.push_back(component_gradient_[unsigned_index(p)] - base);
        }
    }
    const double size = static_cast<double>(count);
    monitor_->spend(size * size * (size / 24.0 + 2.0));
    factor_.begin(count);
    for (Index k = 0; k < count; ++k) fill_couplings(free_[unsigned_index(k)], k, factor_.column_of_matrix(k));
    return factor_.factorize(pivot_floor(), [this] { return monitor_->poll(); });
}

// Gradient of every component of an example, the slack's last.
void ActiveSet::gradients_at(Index i) {
    workspace_->gradient_at(i, component_gradient_);
    component_gradient_[unsigned_index(n_components(i))] = 0.0;
}

ActiveSet::Free ActiveSet::describe(Index i, Index p) {
    Free f{i, p, 1.0, 0.0, 0, {}, {}};
    const auto& components = machine_.of(workspace_->class_of(i));
    const auto add = [&](Index q, double sign) {
        if (q >= static_cast<Index>(components.size())) return;  // the slack changes no score
        const Component& c = components[unsigned_index(q)];
        f.classes[f.n_entries] = c.class1;
        f.values[f.n_entries++] = sign * c.value1;
        if (c.class2 >= 0) {
            f.classes[f.n_entries] = c.class2;
            f.values[f.n_entries++] = sign * c.value2;
        }
        f.row_sum += sign * c.row_sum();
    };
    add(p, 1.0);
    if (simplex()) add(reference(i), -1.0);
    return f;
}

// H between a variable and the free ones from a place on; its own diagonal entry gets the ridge.
void ActiveSet::fill_couplings(const Free& f, Index first, double* out) {
    std::fill(class_vector_.begin(), class_vector_.end(), 0.0);
    for (Index e = 0; e < f.n_entries; ++e) class_vector_[unsigned_index(f.classes[e])] += f.values[e];
    const double mean = machine_.sum_to_zero ? f.row_sum / static_cast<double>(machine_.n_classes) : 0.0;
    const double ridge = problem_.ridge(workspace_->example(f.position));
    const double* k = kernel_ + f.position * ld_;
    for (std::size_t u = unsigned_index(first); u < free_.size(); ++u) {
        const Free& other = free_[u];
        double m = -mean * other.row_sum;
        for (Index e = 0; e < other.n_entries; ++e) {
            m += other.values[e] * class_vector_[unsigned_index(other.classes[e])];
        }
        out[u] = k[other.position] * m;
        if (other.position != f.position) continue;
        if (simplex()) out[u] += ridge * f.s * other.s;
        if (other.p == f.p) out[u] += relative_ridge * scale_ + (simplex() ? 0.0 : ridge);
    }
}

void ActiveSet::append(Index i, Index p, double gradient) {
    place(i, p) = static_cast<Index>(free_.size());
    free_.push_back(describe(i, p));
    gradient_.push_back(gradient);
    row_.resize(free_.size());
    fill_couplings(free_.back(), 0, row_.data());
    factor_.append(row_, row_.back(), pivot_floor());
    monitor_->spend(cost_of_change());
}

void ActiveSet::remove(Index at) {
    factor_.remove(at);
    monitor_->spend(cost_of_change());
    place(free_[unsigned_index(at)].position, free_[unsigned_index(at)].p) = not_free;
    free_.erase(free_.begin() + at);
    gradient_.erase(gradient_.begin() + at);
    for (std::size_t u = unsigned_index(at); u < free_.size(); ++u) {
        place(free_[u].position, free_[u].p) = static_cast<Index>(u);
    }
}

double ActiveSet::largest_gradient() const {
    double largest = 0.0;
    for (const double g : gradient_) largest = std::max(largest, std::abs(g));
    return largest;
}

void ActiveSet::refresh_gradients() {
    Index last = -1;
    for (std::size_t u = 0; u < free_.size(); ++u) {
        const Index i = free_[u].position;
        if (i != last) gradients_at(i);
        last = i;
        const double base = simplex() ? component_gradient_[unsigned_index(reference(i))] : 0.0;
        gradient_[u] = component_gradient_[unsigned_index(free_[u].p)] - base;
    }
}

// Writes the variables back and adds what has changed to the scores: once per stationary point, not per step.
void ActiveSet::flush() {
    std::vector<double> deltas(unsigned_index(machine_.n_scores()));
    for (Index i = 0; i < workspace_->size(); ++i) {
        std::fill(deltas.begin(), deltas.end(), 0.0);
        bool changed = false;
        const auto& components = machine_.of(workspace_->class_of(i));
        for (Index p = 0; p < n_components(i); ++p) {
            variable(i, p) = std::min(variable(i, p), workspace_->cap()[i]);  // a reference may end a rounding above
            if (variable(i, p) == workspace_->variables(p)[i]) continue;
            changed = true;
            machine_.add_to_coefficients(components[unsigned_index(p)], variable(i, p) - workspace_->variables(p)[i],
                                         deltas.data());
            workspace_->set_variable(i, p, variable(i, p));
        }
        if (!changed) continue;
        for (std::size_t c = 0; c < deltas.size(); ++c) {
            if (deltas[c] == 0.0) continue;
            simd::best_table().axpy_f64(deltas[c], kernel_ + i * ld_, workspace_->scores(static_cast<Index>(c)),
                                        workspace_->size());
        }
    }
}

double ActiveSet::enter(double tol, Index max_free) {
    struct Candidate {
        double violation;
        Index i, p;
        double gradient;
    };
    std::vector<Candidate> candidates;
    double largest = 0.0;
    for (Index i = 0; i < workspace_->size(); ++i) {
        gradients_at(i);
        const double base = simplex() ? component_gradient_[unsigned_index(reference(i))] : 0.0;
        for (Index p = 0; p < n_slots(i); ++p) {
            if (place(i, p) != not_free || (simplex() && p == reference(i))) continue;
            const double g = component_gradient_[unsigned_index(p)] - base;
            const double violation = variable(i, p) > 0.0 ? -g : g;  // at C, or at 0
            if (!(violation > 0.5 * tol)) continue;
            candidates.push_back({violation, i, p, g});
            largest = std::max(largest, violation);
        }
    }
    if (largest <= tol) return largest;
    std::erase_if(candidates, [&](const Candidate& c) { return c.violation < 0.3 * largest; });
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.violation > b.violation; });
    const Index n = static_cast<Index>(free_.size());
    Index count = std::min<Index>({static_cast<Index>(candidates.size()), n / 8 + 4, most_entering, max_free - n});
    refused_ = count < 1;
    std::vector<std::vector<double>> rows;
    for (Index c = 0; c < count; ++c) {
        const Candidate& chosen = candidates[unsigned_index(c)];
        place(chosen.i, chosen.p) = static_cast<Index>(free_.size());
        free_.push_back(describe(chosen.i, chosen.p));
        gradient_.push_back(chosen.gradient);
        rows.emplace_back(free_.size());
        fill_couplings(free_.back(), 0, rows.back().data());
    }
    factor_.append(rows, pivot_floor());
    return largest;
}

// How far a component may go in a direction.
double ActiveSet::room(Index i, Index p, double direction) {
    if (direction < 0.0) return variable(i, p) / -direction;
    if (direction > 0.0 && !simplex()) return (workspace_->cap()[i] - variable(i, p)) / direction;
    return infinity;
}

// False when the direction is not finite: ridges of squared losses with tiny C go beyond what a factor can hold.
bool ActiveSet::step() {
    ++result_.steps;
    direction_ = gradient_;
    factor_.solve(direction_);
    reference_direction_.assign(unsigned_index(workspace_->size()), 0.0);
    double length = 1.0, slope = 0.0, square = 0.0;
    Index blocking = -1, blocking_example = -1;
    for (std::size_t u = 0; u < free_.size(); ++u) {
        slope += gradient_[u] * direction_[u];
        square += direction_[u] * direction_[u];
        const double limit = room(free_[u].position, free_[u].p, direction_[u]);
        if (limit < length) {
            length = limit;
            blocking = static_cast<Index>(u);
        }
        reference_direction_[unsigned_index(free_[u].position)] -= direction_[u];
    }
    for (Index i = 0; simplex() && i < workspace_->size(); ++i) {
        const double limit = room(i, reference(i), reference_direction_[unsigned_index(i)]);
        if (limit < length) {
            length = limit;
            blocking = -1;
            blocking_example = i;
        }
    }
    if (!std::isfinite(slope) || !std::isfinite(square)) return false;
    if (!(length > 0.0)) {
        leave_outward();
        return true;
    }
    // (H + ridge) x = g, so that H x = g - ridge x
    const double ridge = relative_ridge * scale_;
    result_.gain += length * (slope - 0.5 * length * (slope - ridge * square));
    for (std::size_t u = 0; u < free_.size(); ++u) {
        variable(free_[u].position, free_[u].p) += length * direction_[u];
        gradient_[u] += length * (ridge * direction_[u] - gradient_[u]);
    }
    for (Index i = 0; simplex() && i < workspace_->size(); ++i) {
        variable(i, reference(i)) += length * reference_direction_[unsigned_index(i)];
    }
    if (blocking_example >= 0) {
        change_reference(blocking_example);
    } else if (blocking >= 0) {
        const Free f = free_[unsigned_index(blocking)];
        const bool up = direction_[unsigned_index(blocking)] > 0.0;
        variable(f.position, f.p) = up ? workspace_->cap()[f.position] : 0.0;
        remove(blocking);
    }
    return true;
}

// A step of no length: every variable that stands at a bound and points outward leaves the face at once.
// At least one of those that just entered stays, because g'x > 0.
void ActiveSet::leave_outward() {
    for (Index u = static_cast<Index>(free_.size()) - 1; u >= 0; --u) {
        const Free f = free_[unsigned_index(u)];
        if (room(f.position, f.p, direction_[unsigned_index(u)]) > 0.0) continue;
        remove(u);
    }
    for (Index i = 0; simplex() && i < workspace_->size(); ++i) {
        if (!(room(i, reference(i), reference_direction_[unsigned_index(i)]) > 0.0)) change_reference(i);
    }
}

// The reference has come to zero: the largest component takes its part, and the others move against that one.
void ActiveSet::change_reference(Index i) {
    variable(i, reference(i)) = 0.0;
    std::vector<std::pair<Index, double>> others;
    Index best = -1;
    for (Index p = 0; p < n_slots(i); ++p) {
        if (place(i, p) == not_free) continue;
        others.emplace_back(p, gradient_[unsigned_index(place(i, p))]);
        if (best < 0 || variable(i, p) > variable(i, best)) best = p;
    }
    if (best < 0) return;
    const double base = gradient_[unsigned_index(place(i, best))];
    for (const auto& [p, gradient] : others) remove(place(i, p));
    reference(i) = best;
    for (const auto& [p, gradient] : others) {
        if (p != best && variable(i, p) > 0.0) append(i, p, gradient - base);
    }
}

}  // namespace multimargin
