// A proximal Newton method on the variables that may move: for many free variables that steps on examples move slowly,
// because classes overlap or C is large.
#pragma once

#include <vector>

#include "base/memory.hpp"
#include "base/thread_team.hpp"
#include "linalg/cholesky.hpp"
#include "problem/options.hpp"
#include "problem/report.hpp"
#include "problem/solve_stats.hpp"
#include "solvers/multiclass/variable_set.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

// Solves   the dual of all examples, for machines without projected scores,
// Given    a state whose score columns are current,
// By       rounds on the variables that may move (VariableSet), whose kernel matrices are small. In a round each point
//          of the proximal point method on the dual is found by semismooth Newton steps: conjugate gradients on the
//          free variables, preconditioned by their Cholesky factor where counted work says that it is cheaper. The
//          length of the proximal term is kept from round to round and grows.
// Returns  satisfied, out_of_steps, stopped, or stuck when a round did not raise the dual.
class FaceNewton {
  public:
    FaceNewton(const Problem& problem, FullState& state, const Options& options, Monitor& monitor, Tally& tally,
               ThreadTeam& team);

    static bool fits(const Problem& problem);
    // Multiply-adds that it takes from such a state, if the free variables are nearly the right ones.
    static double expected_work(const Problem& problem, const FullState& state);

    Outcome run(double target);
    // The variables reached, into the state.
    void scatter();

  private:
    bool solve_round(double target);
    void begin_round();
    bool out_of_steps() const;
    bool minimize(double tolerance);
    void load_all(const std::vector<double>& a, const AlignedVector<double>& scores,
                  std::vector<double>& gradient) const;
    double violation();
    void prox(const std::vector<double>& gradient, std::vector<double>& out) const;
    void find_face(const std::vector<double>& a);
    void project(std::vector<double>& x) const;
    void apply(const std::vector<double>& y);
    void margins(const std::vector<double>& y, std::vector<double>& x) const;
    void newton_direction();
    bool factorize();
    void precondition(const std::vector<double>& r, std::vector<double>& z);
    void conjugate_gradients();
    void line_search();
    void ascend();
    bool update_scores();

    const Problem& problem_;
    const Machine& machine_;
    FullState& state_;
    const Options& options_;
    Monitor& monitor_;
    Tally& tally_;
    ThreadTeam& team_;
    std::unique_ptr<VariableSet> set_;
    std::vector<double> a_, gradient_, free_;  // by variable; free_ is 0 or 1
    std::vector<char> full_;                   // by example: the sum stays
    std::vector<char> wanted_;                 // by slot: of a free variable
    AlignedVector<double> scores_, product_;   // by slot
    AlignedVector<float> changes_;             // by slot
    std::vector<double> x_, residual_, direction_, curvature_, z_, centre_, point_, solution_, rest_, step_, shift_;
    double sigma_ = 0.0;
    Index newtons_ = 0, gradients_ = 0, last_steps_ = 0;
    std::vector<double> preconditioned_, packed_;
    std::vector<Index> face_, place_;
    UpdatableCholesky factor_;
    bool factorized_ = false;
    bool exact_scores_ = false;
};

}  // namespace multimargin
