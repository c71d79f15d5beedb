#include "problem/machine.hpp"

#include <algorithm>
#include <cmath>

namespace multimargin {

double Machine::coupling(const Component& p, const Component& q) const {
    double dot = p.value1 * q.entry(p.class1);
    if (p.class2 >= 0) dot += p.value2 * q.entry(p.class2);
    if (sum_to_zero) dot -= p.row_sum() * q.row_sum() / static_cast<double>(n_classes);
    return dot;
}

void Machine::complete() {
    const bool sizes = n_classes >= 1 && static_cast<Index>(components.size()) == n_classes &&
                       static_cast<Index>(sigma.size()) == n_classes;
    if (!sizes) throw std::invalid_argument("a machine needs one list of components per class");
    for (const auto& list : components) {
        if (list.empty()) throw std::invalid_argument("every class needs at least one component");
        for (const Component& p : list) {
            const bool classes =
                p.class1 >= 0 && p.class1 < n_classes && p.class2 >= -1 && p.class2 < n_classes && p.class1 != p.class2;
            if (!classes) throw std::invalid_argument("a component names a class that does not exist");
            if (!std::isfinite(p.value1) || !std::isfinite(p.value2) || !std::isfinite(p.target)) {
                throw std::invalid_argument("a component has an entry that is not finite");
            }
        }
    }
    most_components_ = 0;
    terms_.assign(components.size(), {});
    for (std::size_t y = 0; y < components.size(); ++y) {
        most_components_ = std::max(most_components_, static_cast<Index>(components[y].size()));
        ExampleTerms& terms = terms_[y];
        for (const Component& p : components[y]) {
            terms.private_square.push_back(p.private_square);
            terms.weight.push_back(p.weight);
            terms.uniform = terms.uniform && p.private_square == terms.private_square[0] && p.weight == terms.weight[0];
        }
    }
}

}  // namespace multimargin
