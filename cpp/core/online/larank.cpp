#include "online/larank.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace multimargin {

namespace {

// An operation is drawn with at least this chance, and its rate follows the last one by this share (BBGW07).
constexpr double least_chance = 0.05;
constexpr double share_of_last = 0.05;
// Operations between two new examples, at most, for each unit of `reprocess`; steps of one OPTIMIZE.
constexpr Index most_operations = 10;
constexpr Index optimize_steps = 10;
// Examples whose gains are compared before a step on one of them.
constexpr Index candidates = 5;

std::vector<Index> all_labels(Index n) {
    std::vector<Index> labels(unsigned_index(n));
    std::iota(labels.begin(), labels.end(), 0);
    return labels;
}

}  // namespace

OnlineMachine::OnlineMachine(const Kernel& kernel, Index n_features, Machine machine, const OnlineOptions& options,
                             std::uint64_t seed)
    : machine_(std::move(machine)),
      options_(options),
      kept_(kernel, n_features),
      rows_(
          std::make_unique<MemberRows>(all_labels(machine_.n_classes), static_cast<std::size_t>(options.cache_bytes))),
      variables_(machine_.max_components()),
      coefficients_(machine_.n_scores()),
      scores_(kernel, n_features, machine_.n_scores()),
      rng_(seed) {
    columns_.resize(unsigned_index(coefficients_.ld()));
    change_.resize(unsigned_index(coefficients_.ld()));
    read_.resize(scores_.read_size());
}

OnlineMachine::OnlineMachine(const Kernel& kernel, const MachineState& state, Machine machine,
                             const OnlineOptions& options)
    : OnlineMachine(kernel, state.kept.n_features, std::move(machine), options, state.random) {
    kept_ = KeptExamples(kernel, state.kept);
    const Index n = kept_.n_slots(), n_columns = machine_.n_scores(), width = variables_.width();
    const std::size_t by_column = checked_product(n, n_columns);
    if (state.variables.size() != checked_product(n, width) || state.coefficients.size() != by_column ||
        state.scores.size() != by_column) {
        throw std::invalid_argument("a state needs the variables, coefficients and scores of each slot");
    }
    resize();
    for (Index slot = 0; slot < n; ++slot) {
        if (kept_.label(slot) >= machine_.n_classes) throw std::invalid_argument("a class is not known");
        std::copy_n(state.variables.data() + slot * width, width, variables_.line(slot));
        const double* coefficients = state.coefficients.data() + slot * n_columns;
        for (Index c = 0; c < n_columns; ++c) coefficients_.set(slot, c, coefficients[c]);
        scores_.set(slot, state.scores.data() + slot * n_columns);
    }
    rates_ = state.rates;
}

void OnlineMachine::resize() {
    variables_.resize(kept_.n_slots());
    coefficients_.resize(kept_.n_slots());
    scores_.resize(kept_.n_slots());
}

void OnlineMachine::release_if_idle(Index slot) {
    const double* a = variables_.line(slot);
    if (std::any_of(a, a + variables_.width(), [](double value) { return value != 0.0; })) return;
    gradients(slot);
    if (violation_of(slot) <= options_.tol) empty(slot);
}

// Takes an example out, with what is left of its coefficients.
void OnlineMachine::empty(Index slot) {
    const double* left = coefficients_.line(slot);
    if (std::any_of(left, left + coefficients_.width(), [](double value) { return value != 0.0; })) {
        std::transform(left, left + coefficients_.ld(), change_.begin(), std::negate<>());
        change_scores(slot);
        for (Index c = 0; c < coefficients_.width(); ++c) coefficients_.set(slot, c, 0.0);
    }
    std::fill_n(variables_.line(slot), variables_.ld(), 0.0);
    if (rows_ != nullptr) rows_->forget(slot);
    kept_.release(slot);
}

// A slot for the example whose score columns were computed last.
Index OnlineMachine::take_in(const double* x, Index label, double cap, Index id) {
    const Index slot = kept_.insert(x, label, cap, id);
    if (rows_ != nullptr) {
        rows_->make_ready(kept_);
        rows_->newest_row(kept_, slot);
    }
    resize();
    std::fill_n(variables_.line(slot), variables_.ld(), 0.0);
    scores_.set(slot, columns_.data());
    return slot;
}

Index OnlineMachine::add(const double* x, Index label, double cap, Index id) {
    if (label < 0 || label >= machine_.n_classes) throw std::invalid_argument("a class is not known");
    const std::span<const double> row = kept_.point_row(x);
    const double work_before = work_;
    work_ += static_cast<double>(kept_.n_slots() * (kept_.n_features() + machine_.n_scores()));
    std::fill(columns_.begin(), columns_.end(), 0.0);
    if (!row.empty()) coefficients_.combine(row, columns_.data());
    const Index predicted =
        std::max_element(columns_.begin(), columns_.begin() + machine_.n_classes) - columns_.begin();
    Index slot = kept_.find(id);
    if (slot < 0 && is_violated_at_zero(label)) slot = take_in(x, label, cap, id);
    double gain = 0.0;
    if (slot >= 0) {
        gain = step(slot, choose(slot, false));
        release_if_idle(slot);
    }
    learn_rate(process_new, gain, work_ - work_before);
    reprocess();
    keep_to_budget();
    return predicted;
}

void OnlineMachine::learn_rate(Operation operation, double gain, double work) {
    rates_[operation] += share_of_last * (gain / std::max(work, 1.0) - rates_[operation]);
}

// Chances follow the rates, but none is below the least.
OnlineMachine::Operation OnlineMachine::draw_operation() {
    const double total = rates_[0] + rates_[1] + rates_[2];
    std::array<double, 3> chance{};
    double sum = 0.0;
    for (std::size_t o = 0; o < 3; ++o) {
        chance[o] = std::max(total > 0.0 ? rates_[o] / total : 0.0, least_chance);
        sum += chance[o];
    }
    const double drawn = static_cast<double>(rng_.next() >> 11) * 0x1p-53 * sum;
    if (drawn < chance[0]) return process_new;
    return drawn < chance[0] + chance[1] ? process_old : optimize;
}

// PROCESS OLD and OPTIMIZE until it is time for a new example.
void OnlineMachine::reprocess() {
    for (Index turn = 0; turn < most_operations * options_.reprocess && kept_.size() > 0; ++turn) {
        const Operation operation = draw_operation();
        if (operation == process_new) return;
        const double before = work_;
        const double gain = run(operation);
        learn_rate(operation, gain, work_ - before);
    }
}

double OnlineMachine::run(Operation operation) {
    double gain = 0.0;
    const Index n = operation == optimize ? optimize_steps : 1;
    for (Index k = 0; k < n && kept_.size() > 0; ++k) gain += step_on_drawn(operation == optimize);
    return gain;
}

// BBGW07 draws one example; where gains are compared, the best of some.
double OnlineMachine::step_on_drawn(bool only_nonzero) {
    const Index n = options_.selection == Selection::second_order ? candidates : 1;
    Index chosen = -1;
    Move best;
    for (Index k = 0; k < n; ++k) {
        const Index slot = draw_kept();
        const Move move = choose(slot, only_nonzero);
        if (chosen >= 0 && move.gain <= best.gain) continue;
        chosen = slot;
        best = move;
    }
    const double gain = step(chosen, best);
    release_if_idle(chosen);
    return gain;
}

Index OnlineMachine::draw_kept() {
    Index slot = rng_.below(kept_.n_slots());
    while (!kept_.is_used(slot)) slot = slot + 1 < kept_.n_slots() ? slot + 1 : 0;
    return slot;
}

bool OnlineMachine::forget(Index id) {
    const Index slot = kept_.find(id);
    if (slot < 0) return false;
    empty(slot);
    return true;
}

bool OnlineMachine::improve() {
    bool any = false;
    for (Index slot = 0; slot < kept_.n_slots(); ++slot) {
        if (!kept_.is_used(slot)) continue;
        any = step(slot, choose(slot, false)) > 0.0 || any;
        release_if_idle(slot);
    }
    return any;
}

// |beta|^2 k(x, x): how far the weights move when the example goes.
double OnlineMachine::weight_of(Index slot) const {
    double square = 0.0;
    for (Index c = 0; c < machine_.n_classes; ++c) {
        const double mean = machine_.sum_to_zero ? coefficients_.at(slot, machine_.n_classes) : 0.0;
        square += (coefficients_.at(slot, c) - mean) * (coefficients_.at(slot, c) - mean);
    }
    return square * kept_.diagonal(slot);
}

void OnlineMachine::keep_to_budget() {
    while (options_.budget >= 0 && kept_.size() > options_.budget) {
        Index least = -1;
        double lightest = infinity;
        for (Index slot = 0; slot < kept_.n_slots(); ++slot) {
            if (!kept_.is_used(slot) || (least >= 0 && !(weight_of(slot) < lightest))) continue;
            lightest = weight_of(slot);
            least = slot;
        }
        empty(least);
    }
}

Index OnlineMachine::n_support() const {
    Index n = 0;
    for (Index slot = 0; slot < kept_.n_slots(); ++slot) {
        const double* a = variables_.line(slot);
        n += kept_.is_used(slot) && std::any_of(a, a + variables_.width(), [](double value) { return value > 0.0; });
    }
    return n;
}

MachineState OnlineMachine::state() const {
    MachineState state;
    state.kept = kept_.state();
    state.rates = rates_;
    state.random = rng_.state();
    if (is_broken()) {  // an example that just came may lack its variables
        const Index n_known = std::min(variables_.n_slots(), kept_.n_slots());
        state.variables.resize(checked_product(kept_.n_slots(), variables_.width()), 0.0);
        state.coefficients.resize(checked_product(kept_.n_slots(), coefficients_.width()), 0.0);
        state.scores.resize(state.coefficients.size(), 0.0);
        for (Index slot = 0; slot < n_known; ++slot) {
            std::copy_n(variables_.line(slot), variables_.width(), state.variables.begin() + slot * variables_.width());
        }
        return state;
    }
    for (Index slot = 0; slot < kept_.n_slots(); ++slot) {
        const double* a = variables_.line(slot);
        const double* b = coefficients_.line(slot);
        state.variables.insert(state.variables.end(), a, a + variables_.width());
        state.coefficients.insert(state.coefficients.end(), b, b + coefficients_.width());
    }
    state.scores.resize(state.coefficients.size());
    std::vector<double> columns(scores_.read_size());
    for (Index slot = 0; slot < kept_.n_slots(); ++slot) {
        if (!kept_.is_used(slot)) continue;  // its scores mean nothing
        scores_.read(slot, kept_.example(slot), columns);
        std::copy_n(columns.begin(), coefficients_.width(), state.scores.begin() + slot * coefficients_.width());
    }
    return state;
}

}  // namespace multimargin
