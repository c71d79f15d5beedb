// Arrays across the bridge: views in, owned numpy arrays out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "gil.hpp"

namespace multimargin::bindings {

namespace nb = nanobind;

template <class T>
using Vector1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using NumpyArray = nb::ndarray<nb::numpy, T, nb::c_contig>;

template <class T>
std::span<const T> span_of(const Vector1<T>& array) {
    return {array.data(), array.shape(0)};
}

inline std::vector<Index> indices_of(const Vector1<std::int64_t>& array) {
    return {array.data(), array.data() + array.shape(0)};
}

// What a list of our own objects points to. Not by the binding library's conversion to a vector, which ends the process
// where memory is short: it may not throw.
template <class T>
std::vector<const T*> objects_in(const nb::list& items) {
    std::vector<const T*> found;
    found.reserve(nb::len(items));
    for (const nb::handle item : items) found.push_back(&nb::cast<const T&>(item));
    return found;
}

// Hands a vector over to numpy without copying it.
template <class T, class V>
NumpyArray<T> to_numpy(V&& values, std::initializer_list<std::size_t> shape) {
    auto owned = std::make_unique<std::decay_t<V>>(std::forward<V>(values));
    T* data = owned->data();
    nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::decay_t<V>*>(p); });
    return NumpyArray<T>(data, shape, owner);
}

void bind_binary(nb::module_& module);
void bind_binary_shards(nb::module_& module);
void bind_kernels(nb::module_& module);
void bind_linear(nb::module_& module);
void bind_online(nb::module_& module);
void bind_shards(nb::module_& module);
void bind_solver(nb::module_& module);
void bind_text(nb::module_& module);

}  // namespace multimargin::bindings
