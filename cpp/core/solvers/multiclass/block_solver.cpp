#include "solvers/multiclass/block_solver.hpp"

#include <algorithm>
#include <cmath>

namespace multimargin {

namespace {

using simd::panel_width;

constexpr Index steps_per_example = 40;     // a block that needs more is ill-conditioned ...
constexpr double fair_share = 0.25;         // ... unless its steps bring it this far in each such turn
constexpr Index most_free = 1500;           // of the active set: its factor costs the square of this per step
constexpr Index crawling_steps = 6;         // per example, of a block that may be given up
constexpr Index many_free = 6000;           // of all examples, by what the block shows: beyond any factor
constexpr Index most_free_at_entry = 400;   // of a block that goes back to where it came from
constexpr double patience = 20.0;           // with an active set that started from few free variables
constexpr double cost_worth_threads = 4e6;  // multiply-adds: below, waking a thread takes as long
constexpr double usual_faces = 20.0;        // steps that the active set takes on problems that suit it

}  // namespace

template <class T>
BlockSolver<T>::BlockSolver(const Problem& problem, bool prefers_active_set, Monitor& monitor, Tally& tally,
                            ThreadTeam& team)
    : problem_(problem),
      machine_(problem.machine()),
      monitor_(monitor),
      tally_(tally),
      team_(team),
      descent_(problem),
      active_set_(problem),
      prefers_active_set_(prefers_active_set) {}

template <class T>
bool BlockSolver<T>::solve(Workspace& block, const BlockPlace<T>& place, double target, Index max_steps,
                           bool may_give_up) {
    may_give_up_ = may_give_up;
    gave_up_ = false;
    ++tally_.phases.blocks;
    Stopwatch watch;
    const double kernel_before = tally_.phases.kernel;
    block_ = &block;
    entry_ = flushed_ = block.all_variables();
    entry_dual_ = tally_.dual;
    kernel_.filled = exact_.filled = false;
    const Index before = tally_.iterations;
    const double most = patience * cost_of_step() * static_cast<double>(steps_per_example * block.size());
    const bool solved =
        (prefers_active_set_ && count_free() <= most_free && by_active_set(place, target, max_steps, most)) ||
        by_descent(place, target, max_steps - (tally_.iterations - before));
    tally_.phases.inner += watch.lap() - (tally_.phases.kernel - kernel_before);
    return solved;
}

// Steps on whole examples, as long as they get anywhere and the active set would not be cheaper.
template <class T>
bool BlockSolver<T>::by_descent(const BlockPlace<T>& place, double target, Index max_steps) {
    if (!kernel_.filled) fill(kernel_, place);
    const Index size = block_->size();
    const Index begin = tally_.iterations;
    Index used = 0, next_judgement = steps_per_example * size;
    bool may_switch = !prefers_active_set_;
    descent_.attach(*block_, kernel_.values, kernel_.ld);
    const double start = descent_.scan();
    while (used < max_steps) {
        const Index turn = std::min(2 * size, max_steps - used), before = tally_.iterations;
        const bool solved = descent_.run(target, turn, monitor_, tally_);
        descent_.write_back();
        if (solved || monitor_.stopped()) return true;
        used = tally_.iterations - begin;
        const bool judge = used >= next_judgement;
        gave_up_ = may_give_up_ && used >= crawling_steps * size && count_free() * problem_.size() > many_free * size;
        if (gave_up_) return false;
        // The scan may find a violation, by rounding in T, that the example alone does not have: no step would be
        // taken.
        const bool at_rest = tally_.iterations == before;
        if (may_switch && (at_rest || judge || used >= steps_worth_active_set())) {
            may_switch = false;
            if (switch_to_active_set(place, target, used, max_steps - used)) return prefers_active_set_ = true;
            used = tally_.iterations - begin;
        }
        if (at_rest) return false;
        // What the scores have lost in the block's own precision is brought back before it adds up.
        refresh_scores(kernel_);
        descent_.attach(*block_, kernel_.values, kernel_.ld);
        if (!judge) continue;
        next_judgement += steps_per_example * size;
        // Steps are continued while each turn brings a fair share of the remaining way.
        const double share = std::log(start / descent_.scan()) / std::log(start / target);
        const double turns = static_cast<double>(used) / static_cast<double>(steps_per_example * size);
        if (share < fair_share * turns) return false;
    }
    return false;
}

// A failed attempt may cost as much as the steps did, so that the block costs at most twice as much. From few free
// variables the active set can go all the way, which takes longer and is allowed more.
template <class T>
bool BlockSolver<T>::switch_to_active_set(const BlockPlace<T>& place, double target, Index used, Index max_steps) {
    const double spent = static_cast<double>(used) * cost_of_step();
    const bool many = count_free() > most_free;
    if (many && !go_back()) return false;
    return by_active_set(place, target, max_steps, many ? patience * spent : spent);
}

template <class T>
bool BlockSolver<T>::by_active_set(const BlockPlace<T>& place, double target, Index max_steps, double max_cost) {
    Matrix<double>& kernel = exact_kernel(place);
    refresh_scores(kernel);
    const ActiveSet::Limits limits{target, most_free, max_steps, max_cost};
    const ActiveSetResult result = active_set_.solve(*block_, kernel.values, kernel.ld, limits, monitor_, tally_);
    flushed_ = block_->all_variables();
    if (result.success) ++tally_.phases.exact_blocks;
    return result.success || monitor_.stopped();
}

// Slow steps leave nearly every variable inside its bounds, which is no face to start from. The block as it came
// is one, unless it has many free variables itself.
template <class T>
bool BlockSolver<T>::go_back() {
    const AlignedVector<double> reached = block_->all_variables();
    block_->set_variables(entry_);
    if (count_free() > most_free_at_entry) {
        block_->set_variables(reached);
        return false;
    }
    tally_.dual = entry_dual_;
    return true;
}

template <class T>
typename BlockSolver<T>::template Matrix<double>& BlockSolver<T>::exact_kernel(const BlockPlace<T>& place) {
    Matrix<double>* matrix = nullptr;
    if constexpr (std::is_same_v<T, double>) {
        matrix = &kernel_;
    } else {
        matrix = &exact_;
    }
    if (!matrix->filled) fill(*matrix, place);
    return *matrix;
}

// Brings the block's scores to its variables, which the descent has moved without them.
template <class T>
template <class U>
void BlockSolver<T>::refresh_scores(const Matrix<U>& kernel) {
    std::vector<double> deltas(unsigned_index(machine_.n_scores()));
    for (Index i = 0; i < block_->size(); ++i) {
        const auto& components = machine_.of(block_->class_of(i));
        std::fill(deltas.begin(), deltas.end(), 0.0);
        for (Index p = 0; p < block_->n_components(i); ++p) {
            const double delta = block_->variables(p)[i] - flushed_[unsigned_index(p * block_->ld() + i)];
            if (delta != 0.0) machine_.add_to_coefficients(components[unsigned_index(p)], delta, deltas.data());
        }
        for (std::size_t c = 0; c < deltas.size(); ++c) {
            if (deltas[c] == 0.0) continue;
            add_row(deltas[c], kernel.values + i * kernel.ld, block_->scores(static_cast<Index>(c)), block_->size());
            monitor_.spend(static_cast<double>(block_->size()));
        }
    }
    flushed_ = block_->all_variables();
}

template <class T>
Index BlockSolver<T>::count_free() const {
    Index count = 0;
    for (Index i = 0; i < block_->size(); ++i) {
        const double cap = block_->cap()[i];
        Index inside = 0;
        for (Index p = 0; p < block_->n_components(i); ++p) {
            const double a = block_->variables(p)[i];
            inside += a > 0.0 && (a < cap || machine_.bound == Bound::simplex) ? 1 : 0;
        }
        // One positive component of a simplex, the slack among them, is what the others move against.
        const bool full = machine_.bound == Bound::simplex && slack_of(block_->sum()[i], cap) == 0.0;
        count += full ? inside - 1 : inside;
    }
    return count;
}

// Multiply-adds: a step adds some three columns and takes its share of a scan.
template <class T>
double BlockSolver<T>::cost_of_step() const {
    return static_cast<double>(block_->size()) * (3.0 + 0.25 * static_cast<double>(machine_.max_components()));
}

// The active set solves with its factor on each face and checks the whole block.
template <class T>
double BlockSolver<T>::cost_of_face(double n_free) const {
    return 2.0 * n_free * n_free + 4.0 * static_cast<double>(block_->size() * machine_.max_components());
}

template <class T>
Index BlockSolver<T>::steps_worth_active_set() const {
    const Index free = count_free();
    const double n = static_cast<double>(std::min(free, most_free));
    // The factor is a matrix product, at four times the speed of the rest.
    const double cost = n * n * n / 24.0 + usual_faces * cost_of_face(n);
    const Index steps = static_cast<Index>(cost / cost_of_step()), most = steps_per_example * block_->size();
    return free > most_free ? std::min(steps, most) : steps;
}

template <class T>
template <class U>
void BlockSolver<T>::fill(Matrix<U>& matrix, const BlockPlace<T>& place) {
    const PhaseTimer timer(tally_.phases.kernel);
    const Index n = block_->size();
    matrix.filled = true;
    if constexpr (std::is_same_v<T, U>) {
        if (place.square != nullptr && place.square->layout() == Layout::rows && n == place.square->size()) {
            matrix.values = place.square->panel_row(0, 0);
            matrix.ld = place.square->ld();
            tally_.cache.hits += n;
            return;
        }
    }
    // Not a power of two: rows that far apart would map to the same lines of the cache.
    matrix.ld = round_up(n, panel_width) + simd::overrun;
    matrix.memory.reserve(checked_product(matrix.ld, matrix.ld));
    matrix.values = matrix.memory.data();
    if constexpr (std::is_same_v<T, U>) {
        if (place.square != nullptr) {
            place.square->gather(place.positions, matrix.memory.data(), matrix.ld, team_);
            tally_.cache.hits += n;
            return;
        }
    }
    compute(matrix);
    tally_.cache.rows_computed += n;
}

// The part below the panels on the diagonal, and its mirror image.
template <class T>
template <class U>
void BlockSolver<T>::compute(Matrix<U>& matrix) {
    const std::vector<Index> rows = problem_.source_rows(block_->members());
    const auto columns = problem_.source().template columns<U>(rows);
    const auto prepared = columns->prepare(rows);
    const Index n = columns->size(), ld = matrix.ld;
    U* K = matrix.memory.data();
    const double cost = 0.5 * static_cast<double>(n) * static_cast<double>(n) * problem_.source().cost();
    ThreadTeam alone(1);
    (cost < cost_worth_threads ? alone : team_).run(columns->n_panels(), [&](Index panel) {
        const Index first = panel * panel_width, last = std::min<Index>(first + panel_width, n);
        columns->fill_panel(*prepared, first, n - first, panel, K + first * ld + first, ld);
        for (Index i = last; i < n; ++i) {
            for (Index j = first; j < last; ++j) K[j * ld + i] = K[i * ld + j];
        }
    });
}

template class BlockSolver<float>;
template class BlockSolver<double>;

}  // namespace multimargin
