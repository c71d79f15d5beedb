// A binary machine that learns from one example after the other: LASVM. IGEL, BEWB05, GI08
#pragma once

#include <vector>

#include "online_learner.hpp"
#include "rng.hpp"
#include "types.hpp"

namespace multimargin {

// Solves   max  sum_s y_s beta_s - 1/2 beta' K beta  with y_s beta_s in [0, C_s] and, with an exact bias,
//          sum_s beta_s = 0, over the examples it has been given, approximately.
// Given    examples one by one; `error` y - f(x) of a kept one is brought up to date by every step.
// Keeps    its members: examples with beta != 0, and those at 0 that still violate optimality.
// See      BEWB05 section 3 (PROCESS, REPROCESS); GI08 for the choice of the second variable by its gain.
class OnlineBinary {
  public:
    // Coefficients are written through to the table, in a column for each sign of y. Kernel values are asked for
    // among all examples, or for a pair of classes: the negative examples are of class positive_column, and conversely.
    OnlineBinary(Index positive_column, Index negative_column, bool pair)
        : positive_column_(positive_column), negative_column_(negative_column), pair_(pair) {}

    struct Member {
        Index slot;
        double beta, error;
        double low, high;  // bounds of beta
    };

    // What steps need beside the members.
    struct World {
        KeptExamples& kept;
        SlotTable& table;
        const OnlineOptions& options;
        Rng& rng;
        std::vector<Index>& left;  // slots of members that were let go
    };

    Index size() const { return static_cast<Index>(members_.size()); }
    const std::vector<Member>& members() const { return members_; }
    Index n_steps() const { return n_steps_; }
    Index find(Index slot) const;

    // Whether an example is worth keeping: it violates optimality, or there are too few to begin with.
    bool wants(double y, double error, const OnlineOptions& options) const;
    // PROCESS: takes in an example and moves it.
    void process(Index slot, double y, double error, const World& world);
    // REPROCESS: one step among the members, then lets go of those that are not needed. False when none violates.
    bool reprocess(const World& world);
    // Takes the example out; with an exact bias what it had goes to others, so that the dual stays the highest.
    void expel(Index slot, const World& world);
    // The members as they were, when a state is restored.
    void restore(std::vector<Member> members, const World& world);

    double bias(bool exact) const;
    double dual() const;
    // How far apart the bias would have to be (exact), or the largest projected gradient.
    double violation(bool exact) const;

  private:
    static bool may_rise(const Member& m) { return m.beta < m.high; }
    static bool may_fall(const Member& m) { return m.beta > m.low; }
    Member make_member(Index slot, double y, double error, const World& world) const;
    // Call after every change.
    void find_extremes();
    const double* row(Index slot, const World& world) const {
        return pair_ ? world.kept.row(slot, positive_column_, negative_column_) : world.kept.row(slot);
    }
    // Where a member's best partner is, and how good.
    struct Choice {
        Index index = -1;
        double merit = 0.0;
    };
    Choice partner(Index first, bool rises, const World& world) const;
    std::pair<Index, Index> choose_pair(const World& world) const;
    Index choose_one(const World& world) const;
    void move_pair(Index up, Index down, double most, const World& world);
    void move_one(Index index, double change, const World& world);
    void add_to(Index index, double change, const World& world);
    void let_go(const World& world);
    void erase(Index index, const World& world);

    Index positive_column_, negative_column_;
    bool pair_;
    std::vector<Member> members_;
    Index top_ = -1, bottom_ = -1;  // the largest error that may rise, the smallest that may fall
    double free_errors_ = 0.0;      // their sum over the members between their bounds
    Index n_free_ = 0;
    Index n_steps_ = 0;
};

}  // namespace multimargin
