#include "solvers/multiclass/variable_set.hpp"

#include <algorithm>

#include "kernel/kernel_source.hpp"
#include "simd/table.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

namespace {

using simd::panel_width;

// Of an example's components: which may move, by the gradient g.
void choose_box(std::span<const double> g, std::span<const double> a, double cap, double margin,
                std::vector<char>& live) {
    for (std::size_t p = 0; p < g.size(); ++p) {
        const bool low = a[p] <= 0.0, high = a[p] >= cap;
        live[p] = (!low && !high) || (low && g[p] > -margin) || (high && g[p] < margin);
    }
}

// In a simplex what rises takes from what falls; the slack is one of them, of gradient 0. One alone cannot move.
void choose_simplex(std::span<const double> g, std::span<const double> a, double cap, double margin,
                    std::vector<char>& live) {
    double low = infinity, sum = 0.0;
    for (std::size_t p = 0; p < g.size(); ++p) {
        sum += a[p];
        if (a[p] > 0.0) low = std::min(low, g[p]);
    }
    const bool slack = slack_of(sum, cap) > 0.0;
    if (slack) low = std::min(low, 0.0);
    int count = slack || 0.0 > low - margin ? 1 : 0;
    for (std::size_t p = 0; p < g.size(); ++p) {
        live[p] = a[p] > 0.0 || g[p] > low - margin;
        count += live[p];
    }
    if (count < 2) std::fill(live.begin(), live.end(), char(0));
}

}  // namespace

VariableSet::VariableSet(const Problem& problem, const FullState& state, double margin) : problem_(problem) {
    choose(state, margin);
    assign_slots();
}

void VariableSet::choose(const FullState& state, double margin) {
    const Machine& machine = problem_.machine();
    const std::size_t most = unsigned_index(machine.max_components());
    std::vector<double> gradient(most), a(most);
    std::vector<char> live(most);
    for (Index e = 0; e < problem_.size(); ++e) {
        const auto& components = machine.of(problem_.class_of(e));
        const std::size_t n = components.size();
        gradient_of(problem_, state, e, gradient);
        for (std::size_t p = 0; p < n; ++p) a[p] = state.variable(static_cast<Index>(p), e);
        const auto choose_of = machine.bound == Bound::box ? choose_box : choose_simplex;
        choose_of({gradient.data(), n}, {a.data(), n}, problem_.cap(e), margin, live);
        const Index begin = size();
        for (std::size_t p = 0; p < n; ++p) {
            if (live[p] == 0) continue;
            variables_.push_back({&components[p], static_cast<Index>(p), 0, -1});
        }
        if (size() == begin) continue;
        const double ridge = problem_.loss() == Loss::hinge ? 0.0 : problem_.ridge(e);
        examples_.push_back({e, begin, size(), problem_.cap(e), ridge, problem_.C(e)});
    }
}

// The slots of a class are the examples that touch it, in order; the next class begins at a multiple of a vector.
void VariableSet::assign_slots() {
    const Index n_classes = problem_.machine().n_classes;
    classes_.resize(unsigned_index(n_classes));
    const auto position = [&](Index c, Index e) {
        std::vector<Index>& list = classes_[unsigned_index(c)].examples;
        if (list.empty() || list.back() != e) list.push_back(e);
        return static_cast<Index>(list.size()) - 1;
    };
    for (const Example& e : examples_) {
        for (Index v = e.begin; v < e.end; ++v) {
            Variable& x = variables_[unsigned_index(v)];
            x.slot1 = position(x.component->class1, e.example);
            if (x.component->class2 >= 0) x.slot2 = position(x.component->class2, e.example);
        }
    }
    std::size_t offset = 0;
    for (Index c = 0; c < n_classes; ++c) {
        ClassPart& part = classes_[unsigned_index(c)];
        const Index count = static_cast<Index>(part.examples.size());
        part.first = n_slots_;
        part.ld = round_up(count, panel_width);
        part.offset = offset;
        offset += checked_product(count, part.ld);
        n_slots_ += round_up(count, simd::overrun);
        cost_ += static_cast<double>(count) * static_cast<double>(count);
    }
    for (Variable& x : variables_) {
        x.slot1 += classes_[unsigned_index(x.component->class1)].first;
        if (x.slot2 >= 0) x.slot2 += classes_[unsigned_index(x.component->class2)].first;
    }
}

double VariableSet::bytes() const {
    double values = 0.0;
    for (const ClassPart& part : classes_) {
        values += static_cast<double>(part.examples.size()) * static_cast<double>(part.ld);
    }
    return values * sizeof(float);
}

bool VariableSet::fill(ThreadTeam& team, Monitor& monitor) {
    if (classes_.empty()) return true;
    const ClassPart& last = classes_.back();
    kernel_.reserve(last.offset + last.examples.size() * unsigned_index(last.ld));
    for (const ClassPart& part : classes_) {
        if (part.examples.empty()) continue;
        const std::vector<Index> rows = problem_.source_rows(part.examples);
        const auto columns = problem_.source().columns<float>(rows);
        const auto prepared = columns->prepare(rows);
        team.run(columns->n_panels(), [&](Index panel) {
            if (monitor.poll()) return;
            columns->fill_panel(*prepared, 0, columns->size(), panel,
                                kernel_.data() + part.offset + panel * panel_width, part.ld);
        });
        if (monitor.stopped()) return false;
    }
    return true;
}

void VariableSet::gather_scores(const FullState& state, double* scores) const {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
        double* out = scores + classes_[c].first;
        for (const Index e : classes_[c].examples) *out++ = state.score(static_cast<Index>(c), e);
    }
}

void VariableSet::spread(const double* x, float* changes) const {
    std::fill_n(changes, n_slots_, 0.0F);
    for (Index v = 0; v < size(); ++v) {
        if (x[v] == 0.0) continue;
        const Variable& variable = variables_[unsigned_index(v)];
        changes[variable.slot1] += static_cast<float>(variable.component->value1 * x[v]);
        if (variable.slot2 >= 0) changes[variable.slot2] += static_cast<float>(variable.component->value2 * x[v]);
    }
}

void VariableSet::multiply(const float* changes, const char* wanted, double* out) const {
    const simd::Table& table = simd::best_table();
    for (const ClassPart& part : classes_) {
        const Index n = static_cast<Index>(part.examples.size());
        const float* row = kernel_.data() + part.offset;
        for (Index i = 0; i < n; ++i, row += part.ld) {
            if (wanted == nullptr || wanted[part.first + i] != 0) {
                out[part.first + i] = table.dot_f32(row, changes + part.first, n);
            }
        }
    }
}

void VariableSet::hessian_column(std::span<const Index> variables, double* out) const {
    const Variable& x = variables_[unsigned_index(variables[0])];
    const auto row_of = [&](Index c, Index slot) {
        const ClassPart& part = classes_[unsigned_index(c)];
        return kernel_.data() + part.offset + (slot - part.first) * part.ld;
    };
    const Component& own = *x.component;
    const float* row1 = row_of(own.class1, x.slot1);
    const float* row2 = own.class2 >= 0 ? row_of(own.class2, x.slot2) : nullptr;
    for (std::size_t k = 0; k < variables.size(); ++k) {
        const Variable& z = variables_[unsigned_index(variables[k])];
        double sum = 0.0;
        const auto add = [&](Index c, Index slot, double value) {
            const Index i = slot - classes_[unsigned_index(c)].first;
            if (c == own.class1) sum += own.value1 * value * static_cast<double>(row1[i]);
            if (c == own.class2) sum += own.value2 * value * static_cast<double>(row2[i]);
        };
        add(z.component->class1, z.slot1, z.component->value1);
        if (z.component->class2 >= 0) add(z.component->class2, z.slot2, z.component->value2);
        out[k] = sum;
    }
}

}  // namespace multimargin
