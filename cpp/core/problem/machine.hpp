// A machine as data: margin components per class, target margins, the kind of bound. design: docs/notation.md
#pragma once

#include <vector>

#include "base/types.hpp"

namespace multimargin {

// m(f) = value1 f_class1 + value2 f_class2, should be at least target.
struct Component {
    Index class1 = 0;
    Index class2 = -1;  // none
    double value1 = 0.0;
    double value2 = 0.0;
    double target = 0.0;
    // Within one example M = diag(private_square) + sigma w w'.
    double private_square = 0.0;
    double weight = 0.0;

    double row_sum() const { return value1 + (class2 >= 0 ? value2 : 0.0); }
    double entry(Index c) const { return (class1 == c ? value1 : 0.0) + (class2 == c ? value2 : 0.0); }
    double margin(const double* scores) const {
        return value1 * scores[class1] + (class2 >= 0 ? value2 * scores[class2] : 0.0);
    }
};

// M of one class's components as arrays, for the problem of one example.
struct ExampleTerms {
    std::vector<double> private_square, weight;
    bool uniform = true;  // both the same for all components
};

struct Machine {
    Index n_classes = 0;
    Bound bound = Bound::box;
    bool sum_to_zero = false;
    bool structured = true;                          // the example Hessian has the form above
    std::vector<std::vector<Component>> components;  // by class
    std::vector<double> sigma;                       // by class

    const std::vector<Component>& of(Index y) const { return components[unsigned_index(y)]; }
    const ExampleTerms& terms_of(Index y) const { return terms_[unsigned_index(y)]; }
    Index max_components() const { return most_components_; }

    // nu_p Pi nu_q', the class coupling of two components of any classes.
    double coupling(const Component& p, const Component& q) const;

    // Score columns: one per class and, for projected scores, the mean.
    Index n_scores() const { return n_classes + (sum_to_zero ? 1 : 0); }

    // Adds delta times component p to the raw score columns u: f_c = u_c - mean.
    void add_to_coefficients(const Component& p, double delta, double* columns) const {
        columns[p.class1] += delta * p.value1;
        if (p.class2 >= 0) columns[p.class2] += delta * p.value2;
        if (sum_to_zero) columns[n_classes] += delta * p.row_sum() / static_cast<double>(n_classes);
    }

    // Call when all fields are set. Throws std::invalid_argument when an entry is out of range.
    void complete();

    Index most_components_ = 0;
    std::vector<ExampleTerms> terms_ = {};  // by class
};

}  // namespace multimargin
