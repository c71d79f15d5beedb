// The scores of an online machine at the examples that it keeps.
#pragma once

#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/spin_team.hpp"
#include "online/example_store.hpp"

namespace multimargin {

// Score columns of all slots. A step adds its example's kernel row to some of them: at once where the row is known,
// else later, together with those of other steps. Then the rows of many steps are computed at once while a panel's
// examples and scores are at hand, and no row is kept. A slot that is read before gets its part of the waiting
// steps at once. Additions have one order wherever they are made, and a kernel value one set of bits, so that the
// scores do not depend on when that was.
class SlotScores {
  public:
    // Steps that wait at most: as many as are processed together, in whole blocks of the rows that tiles are made of.
    static constexpr Index most_waiting = 60;

    SlotScores(const Kernel& kernel, Index n_features, Index n_columns);
    SlotScores(SlotScores&&) = default;
    SlotScores& operator=(SlotScores&&) = default;

    void resize(Index n_slots);
    Index n_waiting() const { return n_waiting_; }

    // The score columns of a slot's example, which hold all steps up to now.
    void set(Index slot, const double* columns);
    // The same, given the example's features; `columns` is of that size.
    void read(Index slot, const double* x, std::span<double> columns) const;
    std::size_t read_size() const { return unsigned_index(n_strips_ * simd::panel_width); }

    // All scores change by k(x, .) times an entry for each column, now: given these kernel values, and if nothing
    // waits.
    void add_row(const double* row, std::span<const double> change);
    // The same later, if not is_full().
    void add_step(const double* x, std::span<const double> change);
    bool is_full() const { return n_waiting_ == most_waiting; }
    // Brings all slots up to date; with a team where that is worth waking it.
    void catch_up(const KeptExamples& kept, QuickTeam* team);

  private:
    // The steps that change one column.
    struct ColumnSteps {
        std::vector<int> steps;
        std::vector<double> changes;
    };

    void catch_up_panel(Index panel, const double* examples);

    simd::Evaluation evaluation_;
    Index n_features_, n_columns_, n_strips_;    // strips: of as many columns as a panel is wide
    std::vector<AlignedVector<double>> scores_;  // by panel; in it column by column
    std::vector<Index> since_;                   // by slot: the first waiting step that its scores lack
    Index n_waiting_ = 0;
    AlignedVector<double> rows_, panel_;       // examples of the waiting steps: row by row, and feature by feature
    AlignedVector<double> changes_;            // by strip and step
    std::vector<const double*> change_lines_;  // of changes_
    std::vector<ColumnSteps> by_column_;
    std::vector<int> changed_;  // columns, and by how much, of the row that is added
    std::vector<double> factors_;
};

}  // namespace multimargin
