#include "kernel/sparse_differences.hpp"

#include <cmath>

namespace multimargin {

double distance_by_differences(simd::Form form, const CsrView& x, Index i, const CsrView& z, Index j) {
    const bool squared = form == simd::Form::squared_difference;
    Index e = x.begin(i), f = z.begin(j);
    const Index last_e = x.begin(i + 1), last_f = z.begin(j + 1);
    double sum = 0.0;
    while (e < last_e || f < last_f) {
        const bool from_x = f == last_f || (e < last_e && x.column(e) <= z.column(f));
        const bool from_z = e == last_e || (f < last_f && z.column(f) <= x.column(e));
        const double difference = (from_x ? x.value(e) : 0.0) - (from_z ? z.value(f) : 0.0);
        sum += squared ? difference * difference : std::abs(difference);
        e += from_x ? 1 : 0;
        f += from_z ? 1 : 0;
    }
    return sum;
}

}  // namespace multimargin
