// Distances of two sparse rows from the differences of their entries: slow, and exact to the last digits.
#pragma once

#include "data/data_view.hpp"
#include "simd/table.hpp"

namespace multimargin {

// |x_i - z_j|^2 or |x_i - z_j|_1 in float64, in ascending order of the features, so that the two may change places.
double distance_by_differences(simd::Form form, const CsrView& x, Index i, const CsrView& z, Index j);

}  // namespace multimargin
