// A kernel source together with the array it reads.
#pragma once

#include <memory>

#include "arrays.hpp"
#include "kernel_source.hpp"

namespace multimargin::bindings {

struct Store {
    Store(const Matrix<float>& data, const Kernel& kernel)
        : owner(nb::cast(data)),
          source(DenseView(data.data(), static_cast<Index>(data.shape(0)), static_cast<Index>(data.shape(1))), kernel) {
    }
    Store(const Matrix<double>& data, const Kernel& kernel)
        : owner(nb::cast(data)),
          source(DenseView(data.data(), static_cast<Index>(data.shape(0)), static_cast<Index>(data.shape(1))), kernel) {
    }

    nb::object owner;  // keeps the memory alive
    DenseSource source;
};

}  // namespace multimargin::bindings
