#include "solvers/multiclass/working_set.hpp"

#include <algorithm>

#include "subproblem/example_problem.hpp"

namespace multimargin {

namespace {

// The first place of the largest value(t) in a block; scalar, so that ties fall alike on every machine.
template <class Function>
Index argmax(Index n, Function value) {
    Index best = 0;
    double largest = -infinity;
    for (Index t = 0; t < n; ++t) {
        const double v = value(t);
        if (v > largest) {
            largest = v;
            best = t;
        }
    }
    return best;
}

double gain_of(const simd::Table& table, const simd::GainBlock& slice, const float* row) {
    return table.pair_gain_f32(slice, row);
}

double gain_of(const simd::Table& table, const simd::GainBlock& slice, const double* row) {
    return table.pair_gain_f64(slice, row);
}

template <class T>
const T* live_row(const ComponentSlice& slice, const T* row, std::vector<T>& buffer) {
    if (slice.whole) return row + slice.begin;
    buffer.resize(slice.live.size());
    for (std::size_t t = 0; t < slice.live.size(); ++t) buffer[t] = row[slice.begin + slice.live[t]];
    return buffer.data();
}

// The few variables of the largest keys, sorted; of equal ones those seen first.
class Foremost {
  public:
    explicit Foremost(Index most) : most_(unsigned_index(most)) { entries_.reserve(most_ + 1); }

    void see(double key, const Variable& variable) {
        if (entries_.size() == most_ && (most_ == 0 || !(key > entries_.back().first))) return;
        const auto place =
            std::find_if(entries_.begin(), entries_.end(), [key](const Entry& e) { return key > e.first; });
        entries_.insert(place, {key, variable});
        if (entries_.size() > most_) entries_.pop_back();
    }

    using Entry = std::pair<double, Variable>;
    const std::vector<Entry>& entries() const { return entries_; }

  private:
    std::size_t most_;
    std::vector<Entry> entries_;
};

}  // namespace

simd::BoxBlock BoxSelector::box_of(Workspace& workspace, const ComponentSlice& slice) {
    return {workspace.gradient(slice), workspace.live_values(slice, workspace.variables(slice.p), variable_),
            workspace.live_values(slice, workspace.cap(), cap_), slice.n_live()};
}

BoxSelection BoxSelector::most_violating(Workspace& workspace) {
    BoxSelection best;
    const ComponentSlice* where = nullptr;
    for (const ComponentSlice& slice : workspace.slices()) {
        workspace.compute_gradient(slice);
        const double v = simd::best_table().box_violation(box_of(workspace, slice));
        if (v > best.violation) {
            best.violation = v;
            where = &slice;
        }
    }
    if (where != nullptr) {
        const simd::BoxBlock box = box_of(workspace, *where);
        const Index t = argmax(
            box.n, [&](Index i) { return simd::box_violation_of(box.gradient[i], box.variable[i], box.cap[i]); });
        best.variable = {where->position(t), where->p, box.gradient[t]};
    }
    return best;
}

BoxSelection BoxSelector::largest_gain(Workspace& workspace) {
    BoxSelection best;
    const ComponentSlice* where = nullptr;
    double largest = 0.0;
    const simd::Table& table = simd::best_table();
    const auto gain_inputs = [&](const ComponentSlice& slice) {
        return std::pair{workspace.live_values(slice, workspace.diagonal(), diagonal_),
                         workspace.live_values(slice, workspace.ridge(), ridge_)};
    };
    for (const ComponentSlice& slice : workspace.slices()) {
        workspace.compute_gradient(slice);
        const simd::BoxBlock box = box_of(workspace, slice);
        const auto [diagonal, ridge] = gain_inputs(slice);
        best.violation = std::max(best.violation, table.box_violation(box));
        const double gain = table.box_gain(box, diagonal, ridge, machine_.coupling(*slice.component, *slice.component));
        if (gain > largest) {
            largest = gain;
            where = &slice;
        }
    }
    if (where == nullptr && best.violation > 0.0) return most_violating(workspace);  // squares vanish before values do
    if (where != nullptr) {
        const simd::BoxBlock box = box_of(workspace, *where);
        const auto [diagonal, ridge] = gain_inputs(*where);
        const double self = machine_.coupling(*where->component, *where->component);
        const Index t = argmax(box.n, [&, d = diagonal, r = ridge](Index i) {
            const double v = simd::box_violation_of(box.gradient[i], box.variable[i], box.cap[i]);
            return v * v / std::max(self * d[i] + (r != nullptr ? r[i] : 0.0), curvature_floor);
        });
        best.variable = {where->position(t), where->p, box.gradient[t]};
    }
    return best;
}

double BoxSelector::working_set(Workspace& workspace, Index size, std::vector<Variable>& chosen) {
    Foremost calmest_free(size / 2), most_violating(size);
    for (const ComponentSlice& slice : workspace.slices()) {
        workspace.compute_gradient(slice);
        const simd::BoxBlock box = box_of(workspace, slice);
        for (Index t = 0; t < box.n; ++t) {
            const double v = simd::box_violation_of(box.gradient[t], box.variable[t], box.cap[t]);
            const Variable variable{slice.position(t), slice.p, box.gradient[t]};
            if (box.variable[t] > 0.0 && box.variable[t] < box.cap[t]) calmest_free.see(-v, variable);
            most_violating.see(v, variable);
        }
    }
    chosen.clear();
    for (const auto& [key, variable] : calmest_free.entries()) chosen.push_back(variable);
    const std::size_t n_free = chosen.size();
    for (const auto& [key, variable] : most_violating.entries()) {
        if (static_cast<Index>(chosen.size()) == size) break;
        const auto same = [&v = variable](const Variable& other) {
            return other.position == v.position && other.p == v.p;
        };
        if (std::none_of(chosen.begin(), chosen.begin() + static_cast<Index>(n_free), same)) chosen.push_back(variable);
    }
    return most_violating.entries().empty() ? 0.0 : most_violating.entries().front().first;
}

template <class T>
Variable BoxSelector::partner(Workspace& workspace, const Variable& first, double first_curvature, const T* row) {
    const Component& first_component = machine_.of(workspace.class_of(first.position))[unsigned_index(first.p)];
    const auto gain_block = [&](const ComponentSlice& slice) {
        return simd::GainBlock{box_of(workspace, slice),
                               workspace.live_values(slice, workspace.diagonal(), diagonal_),
                               workspace.live_values(slice, workspace.ridge(), ridge_),
                               machine_.coupling(first_component, *slice.component),
                               machine_.coupling(*slice.component, *slice.component),
                               first.gradient,
                               std::max(first_curvature, curvature_floor)};
    };
    std::vector<T>* buffer = nullptr;
    if constexpr (std::is_same_v<T, float>) {
        buffer = &row_f32_;
    } else {
        buffer = &row_f64_;
    }
    double largest = 0.0;
    Variable best;
    for (const ComponentSlice& slice : workspace.slices()) {
        const simd::GainBlock request = gain_block(slice);
        const T* values = live_row(slice, row, *buffer);
        if (!(gain_of(simd::best_table(), request, values) > largest)) continue;
        // The first variable is no partner of itself: the scalar search leaves it out.
        const auto gain = [&](Index t) {
            const bool same = slice.position(t) == first.position && slice.p == first.p;
            return same ? 0.0 : simd::pair_gain_of(request, t, static_cast<double>(values[t]));
        };
        const Index t = argmax(request.box.n, gain);
        const double exact = gain(t);
        if (exact > largest) {
            largest = exact;
            best = {slice.position(t), slice.p, request.box.gradient[t]};
        }
    }
    return best;
}

template Variable BoxSelector::partner(Workspace&, const Variable&, double, const float*);
template Variable BoxSelector::partner(Workspace&, const Variable&, double, const double*);

void ExampleSelector::scan_simplex(Workspace& workspace) {
    const std::size_t n = unsigned_index(workspace.size());
    top_.assign(n, 0.0);
    low_.resize(n);
    for (std::size_t j = 0; j < n; ++j) {
        low_[j] = slack_of(workspace.sum()[j], workspace.cap()[j]) > 0.0 ? 0.0 : infinity;
    }
    for (const ComponentSlice& slice : workspace.slices()) {
        workspace.compute_gradient(slice);
        const double* g = workspace.gradient(slice);
        const double* a = workspace.variables(slice.p);
        if (slice.whole) {
            simd::best_table().simplex_bounds(g, a + slice.begin, top_.data() + slice.begin, low_.data() + slice.begin,
                                              slice.length);
            continue;
        }
        for (Index t = 0; t < slice.n_live(); ++t) {
            const std::size_t j = unsigned_index(slice.position(t));
            top_[j] = std::max(top_[j], g[t]);
            if (a[j] > 0.0) low_[j] = std::min(low_[j], g[t]);
        }
    }
}

// The same two numbers for a box: violation = top - low with low = 0.
void ExampleSelector::scan_box(Workspace& workspace) {
    const std::size_t n = unsigned_index(workspace.size());
    top_.assign(n, 0.0);
    low_.assign(n, 0.0);
    for (const ComponentSlice& slice : workspace.slices()) {
        workspace.compute_gradient(slice);
        const double* g = workspace.gradient(slice);
        const double* a = workspace.variables(slice.p);
        if (slice.whole) {
            simd::best_table().raise_violations({g, a + slice.begin, workspace.cap() + slice.begin, slice.length},
                                                top_.data() + slice.begin);
            continue;
        }
        for (Index t = 0; t < slice.n_live(); ++t) {
            const Index j = slice.position(t);
            double& top = top_[unsigned_index(j)];
            top = std::max(top, simd::box_violation_of(g[t], a[j], workspace.cap()[j]));
        }
    }
}

ExampleSelection ExampleSelector::most_violating(Workspace& workspace) {
    if (machine_.bound == Bound::simplex) {
        scan_simplex(workspace);
    } else {
        scan_box(workspace);
    }
    ExampleSelection best;
    for (Index j = 0; j < workspace.size(); ++j) {
        const double v = top_[unsigned_index(j)] - low_[unsigned_index(j)];
        if (v > best.violation) best = {v, j};
    }
    return best;
}

}  // namespace multimargin
