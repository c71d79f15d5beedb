#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "python_watcher.hpp"
#include "solvers/multiclass/solve.hpp"
#include "store.hpp"
#include "subproblem/example_problem.hpp"
#include "subproblem/two_variables.hpp"
#include "traces.hpp"

namespace multimargin::bindings {

namespace {

using namespace nb::literals;

using Array1 = Vector1<double>;
using Array2 = Matrix<double>;

// a of all examples in the order given, one row per example.
NumpyArray<double> variables_of(const Problem& problem, const FullState& state) {
    const std::size_t n = unsigned_index(problem.size());
    const std::size_t width = unsigned_index(problem.machine().max_components());
    std::vector<double> values(n * width);
    for (Index e = 0; e < problem.size(); ++e) {
        double* row = values.data() + unsigned_index(problem.given_position(e)) * width;
        for (std::size_t p = 0; p < width; ++p) row[p] = state.variable(static_cast<Index>(p), e);
    }
    return to_numpy<double>(std::move(values), {n, width});
}

NumpyArray<double> scores_of(const Problem& problem, const FullState& state) {
    const Machine& machine = problem.machine();
    const std::size_t n = unsigned_index(problem.size()), d = unsigned_index(machine.n_classes);
    std::vector<double> values(n * d);
    for (Index e = 0; e < problem.size(); ++e) {
        const double mean = machine.sum_to_zero ? state.score(machine.n_classes, e) : 0.0;
        double* row = values.data() + unsigned_index(problem.given_position(e)) * d;
        for (std::size_t c = 0; c < d; ++c) row[c] = state.score(static_cast<Index>(c), e) - mean;
    }
    return to_numpy<double>(std::move(values), {n, d});
}

void load_amounts(const Problem& problem, const Array2& variables, FullState& state) {
    const std::size_t width = unsigned_index(problem.machine().max_components());
    const bool fits = static_cast<Index>(variables.shape(0)) == problem.size() && variables.shape(1) == width;
    if (!fits) throw nb::value_error("the start needs one row per example and one column per component");
    for (Index e = 0; e < problem.size(); ++e) {
        const double* row = variables.data() + unsigned_index(problem.given_position(e)) * width;
        for (std::size_t p = 0; p < width; ++p) state.variable(static_cast<Index>(p), e) = row[p];
    }
}

// The mean that a projection takes off is in the scores already: its own column stays 0.
void load_scores(const Problem& problem, const Array2& scores, FullState& state) {
    const std::size_t d = unsigned_index(problem.machine().n_classes);
    const bool fits = static_cast<Index>(scores.shape(0)) == problem.size() && scores.shape(1) == d;
    if (!fits) throw nb::value_error("the scores need one row per example and one column per class");
    for (Index e = 0; e < problem.size(); ++e) {
        const double* row = scores.data() + unsigned_index(problem.given_position(e)) * d;
        for (std::size_t c = 0; c < d; ++c) state.scores[c * unsigned_index(state.ld) + unsigned_index(e)] = row[c];
    }
    state.scores_given = true;
}

struct Result {
    nb::object variables;
    nb::object scores;
    Report report;
    nb::object error;
};

Result run_solve(const Store& store, const Machine& machine, Loss loss, const Vector1<std::int64_t>& rows,
                 const Vector1<std::int64_t>& y, const Array1& C, const Options& options, const nb::object& start,
                 const nb::object& start_scores, const nb::object& watch) {
    const std::vector<Index> row_list = indices_of(rows), classes = indices_of(y);
    const Problem problem(*store.source, machine, loss, row_list, classes, span_of(C));
    FullState state(problem);
    if (!start.is_none()) load_amounts(problem, nb::cast<Array2>(start), state);
    if (!start_scores.is_none()) load_scores(problem, nb::cast<Array2>(start_scores), state);
    PythonWatcher watcher(watch, [&] { return nb::object(nb::cast(variables_of(problem, state))); });
    Report report;
    {
        const ReleasedGil released;
        report = solve(problem, state, options, &watcher);
    }
    return {nb::cast(variables_of(problem, state)), nb::cast(scores_of(problem, state)), report, watcher.error};
}

// The stopping quantity per example, for certificates: the same function that the solvers stop by.
NumpyArray<double> violations(Bound bound, const Array2& gradient, const Array2& variables, const Array1& cap,
                              const Vector1<std::int64_t>& n_components) {
    const std::size_t n = variables.shape(0), width = variables.shape(1);
    const bool fits =
        gradient.shape(0) == n && gradient.shape(1) == width && cap.shape(0) == n && n_components.shape(0) == n;
    if (!fits) throw nb::value_error("gradient, amounts, cap and n_components must agree in shape");
    std::vector<double> result(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t count = static_cast<std::size_t>(n_components.data()[i]);
        if (count > width) throw nb::value_error("an example has more components than columns");
        result[i] = certain_violation(bound, {gradient.data() + i * width, count},
                                      {variables.data() + i * width, count}, cap.data()[i]);
    }
    return to_numpy<double>(std::move(result), {n});
}

// For tests: the exact sub-problems on their own.
std::vector<double> example_step(Bound bound, const std::vector<double>& gradient, std::vector<double> a,
                                 const std::vector<double>& private_square, const std::vector<double>& weight,
                                 const std::vector<double>& scalars) {
    const std::size_t n = a.size();
    const bool fits = gradient.size() == n && private_square.size() == n && weight.size() == n && scalars.size() == 4;
    if (!fits) throw nb::value_error("all lists need one entry per component; scalars are sigma, k, C, ridge");
    const ExampleProblem problem{gradient, private_square, weight, scalars[0], scalars[1], scalars[2], scalars[3]};
    ExampleScratch scratch;
    if (bound == Bound::box) {
        solve_box_example(problem, a, scratch);
    } else {
        solve_simplex_example(problem, a, scratch);
    }
    return a;
}

std::vector<double> pair_step(const std::vector<double>& v) {
    if (v.size() != 9) throw nb::value_error("a pair problem has nine numbers");
    const auto [mu1, mu2] = two_variable_step({v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]});
    return {mu1, mu2};
}

using ClassTable = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// table[y][p] = (class1, value1, class2 or -1, value2, target, private_square, weight)
Machine make_machine(Bound bound, bool sum_to_zero, bool structured, const ClassTable& table,
                     const Vector1<std::int64_t>& n_components, const Array1& sigma) {
    const std::size_t d = table.shape(0), width = table.shape(1);
    const bool fits = table.shape(2) == 7 && n_components.shape(0) == d && sigma.shape(0) == d;
    if (!fits) throw nb::value_error("a machine's arrays must have one row per class and seven entries per component");
    Machine machine{static_cast<Index>(d), bound, sum_to_zero, structured, {}, {sigma.data(), sigma.data() + d}, 0};
    for (std::size_t y = 0; y < d; ++y) {
        const std::size_t count = static_cast<std::size_t>(n_components.data()[y]);
        if (count > width) throw nb::value_error("a class has more components than the table has columns");
        std::vector<Component> components;
        for (std::size_t p = 0; p < count; ++p) {
            const double* e = table.data() + (y * width + p) * 7;
            components.push_back({static_cast<Index>(e[0]), static_cast<Index>(e[2]), e[1], e[3], e[4], e[5], e[6]});
        }
        machine.components.push_back(std::move(components));
    }
    machine.complete();
    return machine;
}

void bind_choices(nb::module_& module) {
    nb::enum_<Bound>(module, "Bound").value("box", Bound::box).value("simplex", Bound::simplex);
    nb::enum_<Loss>(module, "Loss").value("hinge", Loss::hinge).value("squared_hinge", Loss::squared_hinge);
    nb::enum_<SolverKind>(module, "SolverKind")
        .value("smo", SolverKind::smo)
        .value("s2do", SolverKind::s2do)
        .value("whole_example", SolverKind::whole_example)
        .value("semi_greedy", SolverKind::semi_greedy)
        .value("two_level", SolverKind::two_level)
        .value("working_set", SolverKind::working_set)
        .value("most_violating_pair", SolverKind::most_violating_pair)
        .value("maximum_gain", SolverKind::maximum_gain);
    nb::enum_<Precision>(module, "Precision")
        .value("automatic", Precision::automatic)
        .value("float32", Precision::float32)
        .value("float64", Precision::float64);
    nb::enum_<StopReason>(module, "StopReason")
        .value("converged", StopReason::converged)
        .value("max_iter", StopReason::max_iter)
        .value("max_time", StopReason::max_time)
        .value("stalled", StopReason::stalled)
        .value("interrupted", StopReason::interrupted)
        .value("callback", StopReason::callback)
        .value("unfinished", StopReason::unfinished);
}

nb::dict phases_of(const Phases& phases) {
    nb::dict result;
    result["kernel"] = phases.kernel;
    result["scores"] = phases.scores;
    result["inner"] = phases.inner;
    result["selection"] = phases.selection;
    result["check"] = phases.check;
    result["work"] = phases.work;
    result["rounds"] = phases.rounds;
    result["blocks"] = phases.blocks;
    result["exact_blocks"] = phases.exact_blocks;
    result["feature_sweeps"] = phases.feature_sweeps;
    result["pair_visits"] = phases.pair_visits;
    result["newton_steps"] = phases.newton_steps;
    return result;
}

void bind_structs(nb::module_& module) {
    nb::class_<Machine>(module, "Machine");
    module.def("make_machine", &make_machine, "bound"_a, "sum_to_zero"_a, "structured"_a, "table"_a, "n_components"_a,
               "sigma"_a);
    nb::class_<Options>(module, "Options")
        .def(nb::init<>())
        .def_rw("solver", &Options::solver)
        .def_rw("precision", &Options::precision)
        .def_rw("tol", &Options::tol)
        .def_rw("max_iter", &Options::max_iter)
        .def_rw("max_time", &Options::max_time)
        .def_rw("max_work", &Options::max_work)
        .def_rw("shrink_variables", &Options::shrink_variables)
        .def_rw("shrink_examples", &Options::shrink_examples)
        .def_rw("cache_bytes", &Options::cache_bytes)
        .def_rw("n_threads", &Options::n_threads)
        .def_rw("extra_tol", &Options::extra_tol)
        .def_rw("extra_steps", &Options::extra_steps)
        .def_rw("trace", &Options::trace)
        .def_rw("trace_primal", &Options::trace_primal)
        .def_rw("working_set_size", &Options::working_set_size);
    nb::class_<Progress>(module, "Progress")
        .def_ro("iteration", &Progress::iteration)
        .def_ro("seconds", &Progress::seconds)
        .def_ro("violation", &Progress::violation)
        .def_ro("dual", &Progress::dual)
        .def_ro("primal", &Progress::primal)
        .def_ro("n_active", &Progress::n_active)
        .def_ro("n_support", &Progress::n_support)
        .def_ro("kernel_rows", &Progress::kernel_rows)
        .def_ro("cache_hits", &Progress::cache_hits);
}

}  // namespace

void bind_solver(nb::module_& module) {
    bind_choices(module);
    bind_structs(module);
    nb::class_<Report>(module, "Report")
        .def_ro("stop_reason", &Report::stop_reason)
        .def_ro("iterations", &Report::iterations)
        .def_ro("seconds", &Report::seconds)
        .def_ro("violation", &Report::violation)
        .def_ro("dual", &Report::dual)
        .def_ro("primal", &Report::primal)
        .def_ro("n_support", &Report::n_support)
        .def_ro("kernel_rows", &Report::kernel_rows)
        .def_ro("cache_hits", &Report::cache_hits)
        .def_ro("verified", &Report::verified)
        .def_ro("float64_rows", &Report::float64_rows)
        .def_prop_ro("phases", [](const Report& report) { return phases_of(report.phases); })
        .def_prop_ro("trace", [](const Report& report) { return trace_of(report.trace); });
    nb::class_<Result>(module, "Result")
        .def_ro("amounts", &Result::variables)
        .def_ro("scores", &Result::scores)
        .def_ro("report", &Result::report)
        .def_ro("error", &Result::error);
    module.def("solve", &run_solve, "store"_a, "machine"_a, "loss"_a, "rows"_a, "y"_a, "C"_a, "options"_a,
               "start"_a.none(), "start_scores"_a.none(), "watch"_a.none());
    module.def("violations", &violations, "bound"_a, "gradient"_a, "amounts"_a, "cap"_a, "n_components"_a);
    module.def("example_step", &example_step, "bound"_a, "gradient"_a, "a"_a, "private_square"_a, "weight"_a,
               "scalars"_a);
    module.def("pair_step", &pair_step, "numbers"_a);
}

}  // namespace multimargin::bindings
