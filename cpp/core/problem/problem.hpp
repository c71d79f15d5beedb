// The dual quadratic program as a value, and its full state, with the examples grouped by class.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "base/trace.hpp"
#include "base/types.hpp"
#include "kernel/kernel_source.hpp"
#include "kernel/score_pass.hpp"
#include "problem/machine.hpp"

namespace multimargin {

// Solves   max  sum t a - 1/2 sum_c beta_c' K beta_c - penalty(a),   a >= 0,
//          a_ip <= C_i (box) or sum_p a_ip <= C_i (simplex), beta_i = Pi nu' a_i,
//          penalty 0 (hinge) or a_ip^2/(4 C_i), (sum_p a_ip)^2/(4 C_i) (squared hinge, then without upper bound).
//          C_i infinite is the hard margin; the caller has made sure that a solution exists.
// Examples are held in the order of their classes, so that every loop over "one component of one class"
// runs over contiguous memory and needs no branch on the machine.
class Problem {
  public:
    Problem(const KernelSource& source, Machine machine, Loss loss, std::span<const Index> rows,
            std::span<const Index> y, std::span<const double> C);

    const KernelSource& source() const { return *source_; }
    const Machine& machine() const { return machine_; }
    Loss loss() const { return loss_; }
    Index size() const { return static_cast<Index>(order_.size()); }
    Index group_begin(Index y) const { return group_begin_[unsigned_index(y)]; }
    Index class_of(Index example) const { return class_of_[unsigned_index(example)]; }
    Index source_row(Index example) const { return source_row_[unsigned_index(example)]; }
    Index given_position(Index example) const { return order_[unsigned_index(example)]; }
    double cap(Index example) const { return cap_[unsigned_index(example)]; }
    double ridge(Index example) const { return ridge_[unsigned_index(example)]; }
    double diagonal(Index example) const { return diagonal_[unsigned_index(example)]; }
    // The bound C_i as given, also where the squared hinge lifts it.
    double C(Index example) const { return C_[unsigned_index(example)]; }
    // Dual variables up to this size count as zero; the hard margin has no C to measure them by.
    double negligible(Index example) const { return C(example) < infinity ? bound_tolerance * C(example) : 0.0; }
    std::vector<Index> source_rows(std::span<const Index> examples) const;

  private:
    const KernelSource* source_;
    Machine machine_;
    Loss loss_;
    std::vector<Index> order_, class_of_, source_row_, group_begin_;
    std::vector<double> cap_, ridge_, diagonal_, C_;
};

// Variables and raw score columns of all examples: variables[p * ld + e], columns[c * ld + e].
struct FullState {
    explicit FullState(const Problem& problem);

    Index ld;
    AlignedVector<double> variables;
    AlignedVector<double> scores;
    bool scores_current = true;
    bool scores_given = false;  // the caller supplied scores for the start

    double& variable(Index p, Index e) { return variables[unsigned_index(p * ld + e)]; }
    double variable(Index p, Index e) const { return variables[unsigned_index(p * ld + e)]; }
    double score(Index c, Index e) const { return scores[unsigned_index(c * ld + e)]; }
};

// Objectives and violation of a full state.
struct Summary {
    double violation = 0.0;
    double dual = 0.0;
    double primal = 0.0;
    Index n_support = 0;
};

// The gradient t - m(F_i) (less the squared hinge's term) of one example's components.
void gradient_of(const Problem& problem, const FullState& state, Index example, std::span<double> gradient);

// The KKT violation of one example: THE stopping quantity, for every solver and every certificate.
// Box: the largest projected gradient (DGI11). Simplex: the largest gradient that may rise less the smallest
// that may fall, the slack counted as a component of gradient 0 (HL02 (21)).
double example_violation(Bound bound, std::span<const double> gradient, std::span<const double> a, double cap);

// The same for certificates: infinite where a gradient or a variable is not finite. Comparisons pass over what is not a
// number, and over an infinite gradient that pushes to a bound; such a point is no solution.
double certain_violation(Bound bound, std::span<const double> gradient, std::span<const double> a, double cap);

Summary summarize(const Problem& problem, const FullState& state);

// All examples and variables counted as active.
Census census_of(const Problem& problem, const FullState& state);

// Makes a state feasible: clips to the box, scales down to the simplex.
void make_feasible(const Problem& problem, FullState& state);

// max_c sum_i |beta_ic|: how much an error of the kernel is multiplied by.
double coefficient_mass(const Problem& problem, const FullState& state);

// Whether float32 kernel values can no longer carry the tolerance. Their errors (1e-7 each) have either sign, so that
// scores err by about a tenth of the sum of magnitudes (measured: satimage 7e-9, vehicle 1e-8 per unit); a quarter
// of tol is allowed. The float64 check at the end decides; this only saves the work of a descent that would fail the
// check.
bool float32_too_coarse(const Problem& problem, const FullState& state, double tol);

// The changes of the coefficients beta that follow from changes of the variables, for the score pass: delta(k, p) is
// the change of variable p of examples[k]. Examples without a change are left out; rows are positions in the source.
template <class Delta>
Coefficients changed_coefficients(const Problem& problem, std::span<const Index> examples, Delta delta) {
    const Machine& machine = problem.machine();
    Coefficients coefficients(machine.n_scores());
    std::vector<double> changes(unsigned_index(machine.n_scores()));
    for (std::size_t k = 0; k < examples.size(); ++k) {
        const auto& components = machine.of(problem.class_of(examples[k]));
        bool any = false;
        for (std::size_t p = 0; p < components.size(); ++p) {
            const double d = delta(static_cast<Index>(k), static_cast<Index>(p));
            if (d == 0.0) continue;
            if (!any) std::fill(changes.begin(), changes.end(), 0.0);
            any = true;
            machine.add_to_coefficients(components[p], d, changes.data());
        }
        if (any) coefficients.add_row(problem.source_row(examples[k]), changes);
    }
    return coefficients;
}

// The columns anew from the variables, in float64; `columns` may hold all examples' kernel columns, else they are made.
// False when the monitor stopped it; then nothing changes.
bool refresh_scores(const Problem& problem, FullState& state, ThreadTeam& team, Monitor* monitor,
                    const KernelColumns<double>* columns = nullptr);

// The same from given coefficients beta, which may be those of other examples, too.
bool refresh_scores(const Problem& problem, FullState& state, const Coefficients& beta, ThreadTeam& team,
                    Monitor* monitor, const KernelColumns<double>* columns = nullptr);

}  // namespace multimargin
