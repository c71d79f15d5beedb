// A kernel source together with the arrays it reads.
#pragma once

#include <memory>

#include "arrays.hpp"
#include "kernel/gram_source.hpp"
#include "kernel/kernel_source.hpp"
#include "kernel/sparse_source.hpp"

namespace multimargin::bindings {

template <class T>
DenseView view_of(const Matrix<T>& data) {
    return {data.data(), static_cast<Index>(data.shape(0)), static_cast<Index>(data.shape(1))};
}

// The three arrays of compressed sparse rows, read in place.
struct SparseData {
    template <class Value, class Integer>
    SparseData(const Vector1<Value>& values, const Vector1<Integer>& indices, const Vector1<Integer>& starts,
               Index width)
        : owners{nb::cast(values), nb::cast(indices), nb::cast(starts)},
          view(values.data(), indices.data(), starts.data(), static_cast<Index>(starts.shape(0)) - 1, width) {
        if (starts.shape(0) == 0) throw nb::value_error("sparse rows need at least one entry of where they begin");
        view.check(static_cast<Index>(std::min(values.shape(0), indices.shape(0))));
    }

    nb::object owners[3];  // keep the memory alive
    CsrView view;
};

inline void check_indices(const std::vector<Index>& indices, Index size) {
    for (const Index i : indices) {
        if (i < 0 || i >= size) throw nb::index_error("a row index is out of range");
    }
}

struct Store {
    template <class T>
    Store(const Matrix<T>& data, const Kernel& kernel)
        : owner(nb::cast(data)), source(std::make_unique<DenseSource>(view_of(data), kernel)) {}
    Store(const SparseData& data, const Kernel& kernel)
        : owner(nb::find(data)), source(std::make_unique<SparseSource>(data.view, kernel)) {}

    // A kernel matrix that the caller computed.
    template <class T>
    Store(const Matrix<T>& matrix, double offset, int squarings)
        : owner(nb::cast(matrix)), source(std::make_unique<GramSource>(view_of(matrix), offset, squarings)) {}

    nb::object owner;  // keeps the memory alive
    std::unique_ptr<KernelSource> source;
};

}  // namespace multimargin::bindings
