// sum_i v_i x_i x_i': the Gram matrix of the features over some examples.
#pragma once

#include <span>

#include "base/monitor.hpp"
#include "base/thread_team.hpp"
#include "data/data_view.hpp"

namespace multimargin {

// out (n_features x n_features, row-major) = sum_k weights[k] x_k x_k' over x_k = data[rows[k]], summed in double in
// the order of the rows, whatever the number of threads. False when the monitor stopped it; then out holds anything.
bool weighted_gram(const DataView& data, std::span<const Index> rows, std::span<const double> weights, double* out,
                   ThreadTeam& team, Monitor& monitor);

}  // namespace multimargin
