#include "online/deferred_scores.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace multimargin {

using simd::panel_width;

namespace {

// The numbers of the waiting steps, for functions that take positions.
constexpr auto step_numbers = [] {
    std::array<int, SlotScores::most_waiting> numbers{};
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}();

// Panels of one task, and the multiply-adds below which waking threads costs more than it saves.
constexpr Index task_panels = 4;
constexpr double worth_waking = 1e6;

}  // namespace

static_assert(SlotScores::most_waiting <= panel_width);

SlotScores::SlotScores(const Kernel& kernel, Index n_features, Index n_columns)
    : evaluation_(kernel),
      n_features_(n_features),
      n_columns_(n_columns),
      n_strips_(round_up(n_columns, panel_width) / panel_width),
      rows_(checked_product(most_waiting, n_features)),
      panel_(checked_product(panel_width, n_features)),
      changes_(checked_product(n_strips_ * most_waiting, panel_width)),
      by_column_(unsigned_index(n_columns)) {
    for (Index line = 0; line < n_strips_ * most_waiting; ++line) {
        change_lines_.push_back(changes_.data() + line * panel_width);
    }
}

void SlotScores::resize(Index n_slots) {
    while (static_cast<Index>(scores_.size()) * panel_width < n_slots) {
        scores_.emplace_back(checked_product(n_columns_, panel_width), 0.0);
    }
    since_.resize(unsigned_index(n_slots), 0);
}

void SlotScores::set(Index slot, const double* columns) {
    double* scores = scores_[unsigned_index(slot / panel_width)].data() + slot % panel_width;
    for (Index c = 0; c < n_columns_; ++c) scores[c * panel_width] = columns[c];
    since_[unsigned_index(slot)] = n_waiting_;
}

void SlotScores::read(Index slot, const double* x, std::span<double> columns) const {
    const double* scores = scores_[unsigned_index(slot / panel_width)].data() + slot % panel_width;
    for (Index c = 0; c < n_columns_; ++c) columns[unsigned_index(c)] = scores[c * panel_width];
    const Index since = since_[unsigned_index(slot)];
    if (since == n_waiting_) return;
    const simd::Table& table = simd::best_table();
    alignas(alignment) std::array<double, panel_width> values;
    table.tile_f64({x, 1, n_features_, panel_.data(), values.data(), panel_width}, evaluation_);
    for (Index strip = 0; strip < n_strips_; ++strip) {
        table.accumulate_f64(change_lines_.data() + strip * most_waiting, step_numbers.data() + since,
                             values.data() + since, n_waiting_ - since, columns.data() + strip * panel_width);
    }
}

void SlotScores::add_row(const double* row, std::span<const double> change) {
    if (n_waiting_ > 0) throw std::logic_error("steps come in their order");
    changed_.clear();
    factors_.clear();
    for (Index c = 0; c < n_columns_; ++c) {
        if (change[unsigned_index(c)] == 0.0) continue;
        changed_.push_back(static_cast<int>(c));
        factors_.push_back(change[unsigned_index(c)]);
    }
    for (AlignedVector<double>& scores : scores_) {
        simd::best_table().add_row_f64({row, scores.data(), panel_width, changed_.data(), factors_.data(),
                                        static_cast<simd::Size>(changed_.size()), panel_width});
        row += panel_width;
    }
}

void SlotScores::add_step(const double* x, std::span<const double> change) {
    if (is_full()) throw std::logic_error("too many steps wait");
    const Index step = n_waiting_++;
    std::copy_n(x, n_features_, rows_.begin() + step * n_features_);
    for (Index k = 0; k < n_features_; ++k) panel_[unsigned_index(k * panel_width + step)] = x[k];
    for (Index c = 0; c < n_columns_; ++c) {
        const double by = change[unsigned_index(c)];
        const Index line = c / panel_width * most_waiting + step;
        changes_[unsigned_index(line * panel_width + c % panel_width)] = by;
        if (by == 0.0) continue;
        by_column_[unsigned_index(c)].steps.push_back(static_cast<int>(step));
        by_column_[unsigned_index(c)].changes.push_back(by);
    }
}

void SlotScores::catch_up_panel(Index panel, const double* examples) {
    const simd::Table& table = simd::best_table();
    alignas(alignment) std::array<double, most_waiting * panel_width> values;
    std::array<const double*, most_waiting> lines;
    for (std::size_t s = 0; s < lines.size(); ++s) lines[s] = values.data() + s * unsigned_index(panel_width);
    table.tile_f64({rows_.data(), n_waiting_, n_features_, examples, values.data(), panel_width}, evaluation_);
    for (Index place = 0; place < panel_width; ++place) {
        Index& since = since_[unsigned_index(panel * panel_width + place)];
        for (Index step = 0; step < since; ++step) values[unsigned_index(step * panel_width + place)] = 0.0;
        since = 0;
    }
    double* scores = scores_[unsigned_index(panel)].data();
    for (const ColumnSteps& column : by_column_) {
        table.accumulate_f64(lines.data(), column.steps.data(), column.changes.data(),
                             static_cast<simd::Size>(column.steps.size()), scores);
        scores += panel_width;
    }
}

void SlotScores::catch_up(const KeptExamples& kept, QuickTeam* team) {
    if (n_waiting_ == 0) return;
    const Index n_panels = static_cast<Index>(scores_.size());
    const QuickTeam::Task task = [&](Index number) {
        const Index end = std::min(n_panels, (number + 1) * task_panels);
        for (Index panel = number * task_panels; panel < end; ++panel) catch_up_panel(panel, kept.panel_data(panel));
    };
    const Index n_tasks = round_up(n_panels, task_panels) / task_panels;
    const double work = static_cast<double>(n_panels * panel_width) * static_cast<double>(n_waiting_ * n_features_);
    if (team != nullptr && work > worth_waking) {
        team->run(n_tasks, task);
    } else {
        for (Index number = 0; number < n_tasks; ++number) task(number);
    }
    n_waiting_ = 0;
    for (ColumnSteps& column : by_column_) {
        column.steps.clear();
        column.changes.clear();
    }
}

}  // namespace multimargin
