// The transforms of kernel values: k(x, z) = transform(scale * form(x, z) + shift) + offset.
//
// One line for each: its name in Python and its value at z. The line is compiled for float and
// double, as scalar code and for the vectors of each instruction set. It may use +, -, * and /, constants as T(1),
// `degree`, and the functions that scalar.cpp and vector_math.inc both define: decaying_exponential<T>,
// hyperbolic_tangent<T> and integer_power<T>.
//
// Of distances (z between shift and shift + scale times infinity) a transform must fall from its value at 0 without a
// step: it changes by at most 1 for a change of z by 1. Of products it must grow with |z|.
#pragma once

#define MM_TRANSFORMS(TRANSFORM)                       \
    TRANSFORM(identity, z)                             \
    TRANSFORM(exponential, decaying_exponential<T>(z)) \
    TRANSFORM(power, integer_power<T>(z, degree))      \
    TRANSFORM(hyperbolic_tangent, hyperbolic_tangent<T>(z))
