// Kernels by name, as kernels/table.py has them.
#pragma once

#include "kernel/kernel_source.hpp"

namespace multimargin::testing {

inline Kernel linear(double offset = 0.0) {
    return {{simd::Form::dot, simd::Transform::identity, 1.0, 0.0, offset, 0}};
}
inline Kernel rbf(double gamma, double offset = 0.0) {
    return {{simd::Form::squared_difference, simd::Transform::exponential, -gamma, 0.0, offset, 0}};
}
inline Kernel laplacian(double gamma, double offset = 0.0) {
    return {{simd::Form::absolute_difference, simd::Transform::exponential, -gamma, 0.0, offset, 0}};
}
inline Kernel poly(double gamma, double coef0, int degree, double offset = 0.0) {
    return {{simd::Form::dot, simd::Transform::power, gamma, coef0, offset, degree}};
}
inline Kernel sigmoid(double gamma, double coef0, double offset = 0.0) {
    return {{simd::Form::dot, simd::Transform::hyperbolic_tangent, gamma, coef0, offset, 0}};
}

}  // namespace multimargin::testing
