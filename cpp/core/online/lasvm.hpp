// A binary machine that learns from one example after the other: LASVM. IGEL, BEWB05, GI08
#pragma once

#include <memory>
#include <vector>

#include "base/memory.hpp"
#include "base/rng.hpp"
#include "base/types.hpp"
#include "online/class_rows.hpp"
#include "online/online_learner.hpp"

namespace multimargin {

// Solves   max  sum_s y_s beta_s - 1/2 beta' K beta  with y_s beta_s in [0, C_s] and, with an exact bias,
//          sum_s beta_s = 0, over the examples it has been given, approximately.
// Given    examples one by one; `error` y - f(x) of a kept one is brought up to date by every step.
// Keeps    its members: examples with beta != 0, and those at 0 that still violate optimality. Each has the place of
// its
//          kernel row. At places without a member nothing may move.
// See      BEWB05 section 3 (PROCESS, REPROCESS); GI08 for the choice of the second variable by its gain.
class OnlineBinary {
  public:
    // Whose y is 1, and where the coefficients go: a column of the table for each sign of y. Machines of all classes
    // may share their kernel rows.
    struct Part {
        Index positive_label;
        Index positive_column, negative_column;
    };
    OnlineBinary(const Part& part, std::shared_ptr<MemberRows> rows) : part_(part), rows_(std::move(rows)) {}

    struct Member {
        Index slot;
        double beta, error;
        double low, high;  // bounds of beta
    };

    // What steps need beside the members.
    struct World {
        const KeptExamples& kept;
        SlotTable& table;
        const OnlineOptions& options;
        Rng& rng;
        Index newest = -1;  // the slot of the example whose kernel values were computed last
    };

    Index size() const { return n_members_; }
    // In the order of their places.
    std::vector<Member> members() const;
    Index n_steps() const { return n_steps_; }
    bool has(Index slot) const { return is_member(rows_->place(slot)); }
    MemberRows& rows() { return *rows_; }
    // Slots of members that were let go and not yet settled.
    const std::vector<Index>& left() const { return left_; }
    void clear_left() { left_.clear(); }

    // sum_s beta_s k(x_s, x), given the kernel values of a point with all slots.
    double score(std::span<const double> row) const;
    // Whether an example is worth keeping: it violates optimality, or there are too few to begin with.
    bool wants(double y, double error, const OnlineOptions& options) const;
    // PROCESS: takes in an example and moves it.
    void process(Index slot, double y, double error, const World& world);
    // REPROCESS: one step among the members, then lets go of those that are not needed. False when none violates.
    bool reprocess(const World& world);
    // Takes the example out; with an exact bias what it had goes to others, so that the dual stays the highest.
    void expel(Index slot, const World& world);
    // The members as they were, when a state is restored.
    void restore(const std::vector<Member>& members, const World& world);

    double bias(bool exact) const;
    double dual() const;
    // How far apart the bias would have to be (exact), or the largest projected gradient.
    double violation(bool exact) const;

  private:
    // Two members, one of which rises while the other falls, and their kernel rows where they are known; -1: none.
    struct Pair {
        Index rising = -1, falling = -1;
        const double* rise = nullptr;
        const double* fall = nullptr;
    };

    double& at(AlignedVector<double>& values, Index place) { return values[unsigned_index(place)]; }
    double at(const AlignedVector<double>& values, Index place) const { return values[unsigned_index(place)]; }
    bool is_member(Index place) const {
        return place >= 0 && place < n_places() && (at(up_, place) > 0.0 || at(down_, place) > 0.0);
    }
    double sign(Index place) const { return signs_[unsigned_index(place / simd::panel_width)]; }
    Index slot(Index place) const { return rows_->slot(place); }
    Index n_places() const { return static_cast<Index>(errors_.size()); }
    void cover(const KeptExamples& kept);
    Index take_in(const Member& member, const World& world);
    simd::Members view() { return {errors_.data(), up_.data(), down_.data(), n_places()}; }
    template <class Visit>
    void for_each_member(Visit visit) const;
    // Errors after a step, and their extremes. Call without rows after a change of any other kind.
    void update(double step, const double* rise, const double* fall);
    const double* row(Index place, const World& world) const { return rows_->row(world.kept, place); }
    simd::FirstMember first(Index place, bool rises, const World& world) const;
    Pair pair_of(Index own, const World& world);
    Index drawn_partner(Index first, bool rises, const World& world) const;
    Pair choose_pair(const World& world);
    Index choose_one(const World& world) const;
    Index most_willing(Index own, const double* values) const;
    void move_pair(Pair pair, double most, const World& world);
    void move_one(Index place, double change, const World& world);
    void add_to(Index place, double change, const World& world);
    void let_go(const World& world);
    void erase(Index place);

    Part part_;
    std::shared_ptr<MemberRows> rows_;
    // By place: y - f; how far beta may rise and fall, both 0 where no member is; beta; k(x, x).
    AlignedVector<double> errors_, up_, down_, beta_, diagonals_;
    std::vector<double> signs_;       // by panel, y
    std::vector<Index> idle_, left_;  // places of members at 0; slots of those that were let go
    Index n_members_ = 0, n_positive_ = 0;
    simd::Extremes extremes_;  // the largest error that may rise, the smallest that may fall; the free ones
    Index n_steps_ = 0;
};

}  // namespace multimargin
