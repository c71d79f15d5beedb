// The scalar twin of streams.inc.
#pragma once

#include "table.hpp"

namespace multimargin::simd {

Extremes scalar_move_members(const Members& m, double step, const double* rise, const double* fall);
Partner scalar_best_partner(const Members& m, const double* diagonals, const FirstMember& first);
void scalar_best_partners(const Members& m, const double* diagonals, const FirstMember& rising,
                          const FirstMember& falling, Partner* partners);
double scalar_members_score(const Size* starts, Size n_panels, const double* beta, const double* row);

}  // namespace multimargin::simd
