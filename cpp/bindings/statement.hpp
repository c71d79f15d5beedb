// One binary problem as Python states it.
#pragma once

#include "arrays.hpp"

namespace multimargin::bindings {

// Rows of the store or of the data, the first n_positive of them with y = +1.
struct Statement {
    std::vector<Index> rows;
    Index n_positive;
    std::vector<double> C;
    nb::object start;
};

inline Statement make_statement(const Vector1<std::int64_t>& rows, Index n_positive, const Vector1<double>& C,
                                nb::object start) {
    return {indices_of(rows), n_positive, {C.data(), C.data() + C.shape(0)}, std::move(start)};
}

}  // namespace multimargin::bindings
