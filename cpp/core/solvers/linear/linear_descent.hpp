// Any machine on a linear kernel: weights by feature and class instead of kernel rows.
#pragma once

#include <span>
#include <vector>

#include "base/memory.hpp"
#include "data/typed_rows.hpp"
#include "problem/machine.hpp"
#include "solvers/linear/linear_passes.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

// The dual of problem/problem.hpp with k(x, z) = x'z + offset, examples in the order given.
struct LinearProblem {
    LinearProblem(DataView data, Machine machine, Loss loss, std::vector<Index> rows, std::vector<Index> y,
                  std::vector<double> C, double offset);

    Index size() const { return static_cast<Index>(rows.size()); }
    double cap(std::size_t e) const { return loss == Loss::hinge ? C[e] : infinity; }
    double ridge(std::size_t e) const { return loss == Loss::hinge ? 0.0 : 0.5 / C[e]; }

    DataView data;
    Machine machine;
    Loss loss;
    std::vector<Index> rows, y;
    std::vector<double> C;
    double offset;
};

// Solves   the dual of a LinearProblem,
// Given    any variables, made feasible first,
// By       exact steps on all variables of one example at a time: its scores are f = W'x, and a step adds x dbeta' to
// W.
//          The offset is one more feature of value sqrt(offset), the last line of W.
// Returns  feasible variables and their W, whatever ended it.
// See      HCLKS08 and KSCHL08 for binary machines and cs; the steps are those of subproblem/example_problem.hpp.
class LinearDescent {
  public:
    LinearDescent(const LinearProblem& problem, const LinearOptions& options, Watcher* watcher);

    // One row per example, one column per component.
    void start(std::span<const double> variables);
    LinearReport run();
    const std::vector<double>& variables() const { return variables_; }
    // (n_features, and 1 with an offset) x n_classes
    std::vector<double> weights() const;

    // What LinearPasses asks for. Passing over small violations halves the time of the machines most of whose examples
    // have free variables (satimage, C = 1: llw 1.5 s to 0.8, rm 1.3 to 0.6), and costs the others nothing.
    static constexpr double passed_over = 0.05;
    Visit visit(Index e, double step_above);
    double cost() const { return cost_; }
    void fetch_example(Index) const {}
    void fetch_row(Index) const {}
    double drift(Index n_steps) const;
    void refresh();
    double rounding() const;

  private:
    // m(f) = value1 f[class1] + value2 f[class2], without a branch on how many classes there are.
    struct Term {
        double target, value1, value2;
        std::size_t class1, class2;
    };

    void make_feasible();
    std::span<double> variables_of(std::size_t e);
    void score(const simd::Lines& x);
    // The coefficients of the changes of an example's variables; adds x times them.
    void gather(std::size_t y, std::span<const double> changes);
    void add_to_weights(const simd::Lines& x, std::size_t y, std::span<const double> changes);
    void gradient_of(std::size_t e, std::span<const double> a);
    Visit judge(std::size_t e, std::span<const double> a) const;
    bool rests_in_box(std::span<const double> a, double cap) const;
    bool rests_in_simplex(std::span<const double> a, double cap) const;
    void step(std::size_t e, std::span<double> a);
    double weight_norm() const;
    double dual() const;
    Index n_support() const;
    Progress progress() const;

    const LinearProblem& problem_;
    const Machine& machine_;
    const LinearOptions& options_;
    Monitor monitor_;
    const simd::Table& table_;
    LineReader reader_;
    std::size_t width_;                     // components of an example, filled up
    Index ld_;                              // classes, filled up
    double root_;                           // of the offset
    bool plain_;                            // margins are differences of two scores, with one target
    std::vector<std::vector<Term>> terms_;  // by class
    std::vector<double> diagonal_;          // k_ii
    std::vector<double> variables_;
    AlignedVector<double> weights_;
    AlignedVector<double> scores_, change_;            // of one example, by class
    std::vector<double> gradient_, before_, changes_;  // by component
    ExampleScratch scratch_;
    double cost_ = 0.0;
    LinearPasses<LinearDescent> passes_;
};

}  // namespace multimargin
