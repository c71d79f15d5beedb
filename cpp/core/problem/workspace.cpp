#include "problem/workspace.hpp"

#include <algorithm>
#include <numeric>

namespace multimargin {

Workspace::Workspace(const Problem& problem, std::vector<Index> members)
    : problem_(&problem),
      members_(std::move(members)),
      ld_(round_up(size() + simd::overrun, simd::panel_width)),
      scores_(checked_product(problem.machine().n_scores(), ld_), 0.0),
      variables_(checked_product(problem.machine().max_components(), ld_), 0.0),
      cap_(unsigned_index(ld_), 0.0),
      ridge_(unsigned_index(ld_), 0.0),
      diagonal_(unsigned_index(ld_), 0.0),
      sum_(unsigned_index(ld_), 0.0),
      group_begin_(unsigned_index(problem.machine().n_classes + 1), 0) {
    for (Index j = 0; j < size(); ++j) {
        cap_[unsigned_index(j)] = problem.cap(example(j));
        ridge_[unsigned_index(j)] = problem.ridge(example(j));
        diagonal_[unsigned_index(j)] = problem.diagonal(example(j));
        ++group_begin_[unsigned_index(class_of(j) + 1)];
    }
    std::partial_sum(group_begin_.begin(), group_begin_.end(), group_begin_.begin());
}

Workspace::Workspace(const Problem& problem, const FullState& state, std::vector<Index> members)
    : Workspace(problem, std::move(members)) {
    const Machine& machine = problem.machine();
    for (Index c = 0; c < machine.n_scores(); ++c) {
        for (Index j = 0; j < size(); ++j) scores(c)[j] = state.score(c, example(j));
    }
    for (Index p = 0; p < machine.max_components(); ++p) {
        for (Index j = 0; j < size(); ++j) {
            variables(p)[j] = state.variable(p, example(j));
            sum_[unsigned_index(j)] += variables(p)[j];
        }
    }
}

namespace {

std::vector<Index> examples_at(const Workspace& workspace, std::span<const Index> positions) {
    std::vector<Index> examples;
    examples.reserve(positions.size());
    for (const Index j : positions) examples.push_back(workspace.example(j));
    return examples;
}

}  // namespace

Workspace::Workspace(Workspace& larger, std::span<const Index> positions)
    : Workspace(*larger.problem_, examples_at(larger, positions)) {
    const Machine& machine = problem_->machine();
    for (Index c = 0; c < machine.n_scores(); ++c) {
        for (std::size_t j = 0; j < positions.size(); ++j) scores(c)[j] = larger.scores(c)[positions[j]];
    }
    for (Index p = 0; p < machine.max_components(); ++p) {
        for (std::size_t j = 0; j < positions.size(); ++j) {
            variables(p)[j] = larger.variables(p)[positions[j]];
            sum_[j] += variables(p)[j];
        }
    }
}

void Workspace::make_slices() {
    const Machine& machine = problem_->machine();
    gradients_.assign(variables_.size(), 0.0);
    for (Index y = 0; y < machine.n_classes; ++y) {
        const Index begin = group_begin_[unsigned_index(y)], end = group_begin_[unsigned_index(y + 1)];
        const auto& components = machine.of(y);
        for (std::size_t p = 0; p < components.size() && end > begin; ++p) {
            slices_.push_back({y, static_cast<Index>(p), &components[p], begin, end - begin, true, {}});
        }
    }
}

ScoreView<double> Workspace::view() const {
    const bool simplex = problem_->machine().bound == Bound::simplex;
    return {group_begin_, ld_, scores_.data(), variables_.data(), cap(), simplex ? sum() : nullptr, ridge()};
}

void Workspace::scatter(FullState& state) const {
    const Machine& machine = problem_->machine();
    for (Index j = 0; j < size(); ++j) {
        const std::size_t e = unsigned_index(example(j));
        for (Index c = 0; c < machine.n_scores(); ++c) {
            state.scores[unsigned_index(c * state.ld) + e] = scores_[unsigned_index(c * ld_ + j)];
        }
        for (Index p = 0; p < machine.max_components(); ++p) {
            state.variables[unsigned_index(p * state.ld) + e] = variables_[unsigned_index(p * ld_ + j)];
        }
    }
}

const double* Workspace::live_values(const ComponentSlice& slice, const double* values,
                                     std::vector<double>& buffer) const {
    if (values == nullptr) return nullptr;
    if (slice.whole) return values + slice.begin;
    buffer.resize(slice.live.size());
    for (std::size_t t = 0; t < slice.live.size(); ++t) buffer[t] = values[slice.begin + slice.live[t]];
    return buffer.data();
}

void Workspace::compute_gradient(const ComponentSlice& slice) {
    const Machine& machine = problem_->machine();
    const Component& c = *slice.component;
    const bool simplex = machine.bound == Bound::simplex;
    const double* penalised = ridge() == nullptr ? nullptr : (simplex ? sum() : variables(slice.p));
    const simd::GradientBlock request{
        c.target,
        c.value1,
        c.value2,
        c.row_sum(),
        live_values(slice, scores(c.class1), buffer1_),
        c.class2 >= 0 ? live_values(slice, scores(c.class2), buffer2_) : nullptr,
        machine.sum_to_zero ? live_values(slice, scores(machine.n_classes), buffer3_) : nullptr,
        live_values(slice, penalised, buffer4_),
        live_values(slice, ridge(), buffer5_),
        slice.n_live()};
    simd::best_table().gradient(request, gradient(slice));
}

void Workspace::gradient_at(Index position, std::span<double> gradient) {
    const Machine& machine = problem_->machine();
    const auto& components = machine.of(class_of(position));
    const double mean = machine.sum_to_zero ? scores(machine.n_classes)[position] : 0.0;
    const bool simplex = machine.bound == Bound::simplex;
    const double ridge = ridge_[unsigned_index(position)];
    for (std::size_t p = 0; p < components.size(); ++p) {
        const Component& c = components[p];
        double margin = c.value1 * scores(c.class1)[position] - c.row_sum() * mean;
        if (c.class2 >= 0) margin += c.value2 * scores(c.class2)[position];
        const double a = simplex ? sum_[unsigned_index(position)] : variables(static_cast<Index>(p))[position];
        gradient[p] = c.target - margin - ridge * a;
    }
}

void Workspace::set_variables(const AlignedVector<double>& values) {
    variables_ = values;
    std::fill(sum_.begin(), sum_.end(), 0.0);
    for (Index p = 0; p < problem_->machine().max_components(); ++p) {
        for (Index j = 0; j < size(); ++j) sum_[unsigned_index(j)] += variables(p)[j];
    }
}

void Workspace::set_variable(Index position, Index p, double value) {
    double& a = variables(p)[position];
    a = value;
    if (problem_->machine().bound == Bound::box) return;  // sums are for the simplex
    double total = 0.0;
    for (Index q = 0; q < n_components(position); ++q) total += variables(q)[position];
    sum_[unsigned_index(position)] = total;
}

std::vector<Index> Workspace::live_positions() const {
    std::vector<char> live(unsigned_index(size()), 0);
    for (const ComponentSlice& slice : slices_) {
        for (Index t = 0; t < slice.n_live(); ++t) live[unsigned_index(slice.position(t))] = 1;
    }
    std::vector<Index> positions;
    for (Index j = 0; j < size(); ++j) {
        if (live[unsigned_index(j)] != 0) positions.push_back(j);
    }
    return positions;
}

Census Workspace::census() const {
    Census census{size(), 0};
    const Machine& machine = problem_->machine();
    for (Index y = 0; y < machine.n_classes; ++y) {
        const Index length = group_begin_[unsigned_index(y + 1)] - group_begin_[unsigned_index(y)];
        census.variables += length * static_cast<Index>(machine.of(y).size());
    }
    for (Index p = 0; p < machine.max_components(); ++p) {
        for (Index j = 0; j < size(); ++j) census.count(variables(p)[j], cap()[j]);
    }
    return census;
}

}  // namespace multimargin
