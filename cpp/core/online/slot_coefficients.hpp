// The coefficients of an online machine's examples, one for each slot and score column.
#pragma once

#include <span>
#include <vector>

#include "online/example_store.hpp"

namespace multimargin {

// A table, and for each column the list of its slots that are not 0: an example has variables above 0 for a few classes
// only, so that the scores of a point need a few numbers of each line. Lists ascend, so that a sum does not depend on
// the way that led to the coefficients. Few columns have no lists: their lines are short.
class SlotCoefficients {
  public:
    explicit SlotCoefficients(Index n_columns) : table_(n_columns), lists_(unsigned_index(n_columns)) {}
    Index width() const { return table_.width(); }
    Index ld() const { return table_.ld(); }
    void resize(Index n_slots) { table_.resize(n_slots); }
    double at(Index slot, Index column) const { return table_.at(slot, column); }
    const double* line(Index slot) const { return table_.line(slot); }
    void set(Index slot, Index column, double value);
    // out[c] = sum over the slots of weights[slot] times entry c; out has ld() entries.
    void combine(std::span<const double> weights, double* out) const;

  private:
    struct List {
        std::vector<int> slots;
        std::vector<double> values;
    };

    bool few_columns() const { return width() <= 8; }

    SlotTable table_;
    std::vector<List> lists_;
    Index n_nonzero_ = 0;
};

}  // namespace multimargin
