#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"
#include "data/svmlight_text.hpp"

namespace multimargin::bindings {

namespace {

using namespace nb::literals;

using Rows = std::tuple<NumpyArray<double>, NumpyArray<double>, NumpyArray<std::int64_t>, NumpyArray<std::int64_t>,
                        TextFault, Index, nb::bytes>;

Rows rows_of(const nb::bytes& text, std::int64_t first_index) {
    const std::string_view view(text.c_str(), text.size());
    TextRows rows;
    {
        const ReleasedGil released;  // bytes do not change
        rows = read_rows(view, first_index);
    }
    const std::size_t n_rows = rows.labels.size(), n_values = rows.values.size(), n_starts = rows.starts.size();
    return {to_numpy<double>(std::move(rows.labels), {n_rows}),
            to_numpy<double>(std::move(rows.values), {n_values}),
            to_numpy<std::int64_t>(std::move(rows.indices), {n_values}),
            to_numpy<std::int64_t>(std::move(rows.starts), {n_starts}),
            rows.fault,
            rows.fault_line,
            nb::bytes(rows.fault_token.data(), rows.fault_token.size())};
}

}  // namespace

void bind_text(nb::module_& module) {
    nb::enum_<TextFault>(module, "TextFault")
        .value("none", TextFault::none)
        .value("label", TextFault::label)
        .value("pair", TextFault::pair)
        .value("index", TextFault::index)
        .value("order", TextFault::order)
        .value("value", TextFault::value);
    module.def("read_rows", &rows_of, "text"_a, "first_index"_a,
               "Labels, values, indices, starts of rows, the first fault, its line and its text.");
}

}  // namespace multimargin::bindings
