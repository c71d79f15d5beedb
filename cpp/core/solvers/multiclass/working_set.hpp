// Which variables to work on: second-order selection for box machines, the most violating example otherwise.
#pragma once

#include <vector>

#include "kernel/row_cache.hpp"
#include "problem/workspace.hpp"

namespace multimargin {

struct Variable {
    Index position = -1;  // in the workspace
    Index p = -1;
    double gradient = 0.0;
    bool exists() const { return position >= 0; }
};

struct BoxSelection {
    double violation = 0.0;
    Variable variable;
};

// Scans gradients and violations; keeps the gradients for the choice of a partner.
class BoxSelector {
  public:
    explicit BoxSelector(const Machine& machine) : machine_(machine) {}

    // The variable with the largest violation (S2DO, DGI11 4.3).
    BoxSelection most_violating(Workspace& workspace);

    // The variable with the largest gain of a step of its own (SMO, DGI11 4.2).
    BoxSelection largest_gain(Workspace& workspace);

    // At most `size` variables: half of them free ones that violate least, the others those that violate most (HL02
    // section III, with v = -violation). Returns the largest violation.
    double working_set(Workspace& workspace, Index size, std::vector<Variable>& chosen);

    // The partner with the largest joint gain, among the violating ones. Needs the gradients of the scan before.
    template <class T>
    Variable partner(Workspace& workspace, const Variable& first, double first_curvature, const T* row);

  private:
    simd::BoxBlock box_of(Workspace& workspace, const ComponentSlice& slice);

    const Machine& machine_;
    std::vector<double> variable_, cap_, diagonal_, ridge_;
    std::vector<float> row_f32_;
    std::vector<double> row_f64_;
};

struct ExampleSelection {
    double violation = 0.0;
    Index position = -1;
};

// The example with the largest violation: HL02 (20).
class ExampleSelector {
  public:
    explicit ExampleSelector(const Machine& machine) : machine_(machine) {}
    ExampleSelection most_violating(Workspace& workspace);
    // By position, after a scan of a simplex machine: the largest gradient, and the smallest that may fall.
    const std::vector<double>& top() const { return top_; }
    const std::vector<double>& low() const { return low_; }

  private:
    void scan_simplex(Workspace& workspace);
    void scan_box(Workspace& workspace);

    const Machine& machine_;
    std::vector<double> top_, low_;
};

}  // namespace multimargin
