// The course of a solve as arrays.
#pragma once

#include "arrays.hpp"
#include "base/trace.hpp"

namespace multimargin::bindings {

// One array for each number of a point; nothing when no trace was asked for.
inline nb::dict trace_of(const std::vector<TracePoint>& points) {
    nb::dict result;
    if (points.empty()) return result;
    const auto add = [&]<class T>(const char* name, T, auto value) {
        std::vector<T> values;
        for (const TracePoint& point : points) values.push_back(static_cast<T>(value(point)));
        result[name] = nb::cast(to_numpy<T>(std::move(values), {points.size()}));
    };
    constexpr double real = 0.0;
    constexpr std::int64_t count = 0;
    add("seconds", real, [](const TracePoint& p) { return p.seconds; });
    add("iterations", count, [](const TracePoint& p) { return p.iterations; });
    add("kernel_rows", count, [](const TracePoint& p) { return p.kernel_rows; });
    add("violation", real, [](const TracePoint& p) { return p.violation; });
    add("dual", real, [](const TracePoint& p) { return p.dual; });
    add("primal", real, [](const TracePoint& p) { return p.primal; });
    add("n_active", count, [](const TracePoint& p) { return p.census.examples; });
    add("n_variables", count, [](const TracePoint& p) { return p.census.variables; });
    add("n_free", count, [](const TracePoint& p) { return p.census.free; });
    add("n_bounded", count, [](const TracePoint& p) { return p.census.bounded; });
    return result;
}

}  // namespace multimargin::bindings
