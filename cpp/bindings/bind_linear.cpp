#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "linalg/weighted_gram.hpp"
#include "python_watcher.hpp"
#include "solvers/linear/binary_linear.hpp"
#include "solvers/linear/linear_descent.hpp"
#include "solvers/linear/proximal_passes.hpp"
#include "statement.hpp"
#include "store.hpp"

namespace multimargin::bindings {

namespace {

using namespace nb::literals;

using Array1 = Vector1<double>;
using Array2 = Matrix<double>;

// Dense or sparse rows, read in place.
struct LinearData {
    template <class T>
    explicit LinearData(const Matrix<T>& data) : owner(nb::cast(data)), view(view_of(data)) {}
    explicit LinearData(const SparseData& data) : owner(nb::find(data)), view(data.view) {}

    nb::object owner;  // keeps the memory alive
    DataView view;
};

NumpyArray<double> copy_of(std::vector<double> values, std::initializer_list<std::size_t> shape) {
    return to_numpy<double>(std::move(values), shape);
}

struct LinearResult {
    nb::object variables;
    nb::object weights;
    LinearReport report;
    nb::object error;
};

// What a machine is trained on.
struct LinearStatement {
    LinearStatement(const Machine& of, Loss charge, const Vector1<std::int64_t>& row_list,
                    const Vector1<std::int64_t>& classes, const Array1& bounds, double constant)
        : machine(of),
          loss(charge),
          rows(indices_of(row_list)),
          y(indices_of(classes)),
          C(bounds.data(), bounds.data() + bounds.shape(0)),
          offset(constant) {}

    Machine machine;
    Loss loss;
    std::vector<Index> rows, y;
    std::vector<double> C;
    double offset;
};

LinearResult solve_linear(const LinearData& data, const LinearStatement& s, const LinearOptions& options,
                          const nb::object& start, const nb::object& watch) {
    const LinearProblem problem(data.view, s.machine, s.loss, s.rows, s.y, s.C, s.offset);
    const std::size_t n = s.rows.size(), width = unsigned_index(problem.machine.max_components());
    LinearDescent* running = nullptr;
    PythonWatcher watcher(watch, [&] { return nb::object(nb::cast(copy_of(running->variables(), {n, width}))); });
    LinearDescent descent(problem, options, &watcher);
    running = &descent;
    if (!start.is_none()) {
        const auto given = nb::cast<Array2>(start);
        const bool fits = given.shape(0) == n && given.shape(1) == width;
        if (!fits) throw nb::value_error("the start needs one row per example and one column per component");
        descent.start({given.data(), n * width});
    }
    LinearReport report;
    {
        const ReleasedGil released;
        report = descent.run();
    }
    const std::size_t d = unsigned_index(problem.machine.n_classes);
    std::vector<double> weights = descent.weights();
    const std::size_t n_lines = weights.size() / d;
    return {nb::cast(copy_of(descent.variables(), {n, width})), nb::cast(copy_of(std::move(weights), {n_lines, d})),
            report, watcher.error};
}

struct LinearBinaryResult {
    nb::object variables;
    nb::object weights;
    LinearReport report;
};

struct LinearBatchResult {
    nb::list results;
    StopReason stop_reason;
    nb::object error;
};

nb::object array_of(const std::vector<double>& values) { return nb::cast(copy_of(values, {values.size()})); }

using BinarySolver = StopReason (*)(const DataView&, std::deque<LinearBinaryTask>&, const LinearSetting&,
                                    const LinearOptions&, Watcher*);

std::deque<LinearBinaryTask> tasks_of(const nb::list& statements) {
    std::deque<LinearBinaryTask> tasks;
    for (const Statement* s : objects_in<Statement>(statements)) {
        LinearBinaryTask& task = tasks.emplace_back();
        task.rows = s->rows;
        task.n_positive = s->n_positive;
        task.C = s->C;
        task.variables.assign(s->rows.size(), 0.0);
        if (s->start.is_none()) continue;
        const auto given = nb::cast<Array1>(s->start);
        if (given.shape(0) != s->rows.size()) throw nb::value_error("the start needs one entry per example");
        std::copy_n(given.data(), given.shape(0), task.variables.begin());
    }
    return tasks;
}

LinearBatchResult solve_tasks(BinarySolver solve, const LinearData& data, std::deque<LinearBinaryTask> tasks,
                              const LinearSetting& setting, const LinearOptions& options, const nb::object& watch) {
    PythonWatcher watcher(watch, [&tasks] {
        nb::list all;
        for (const LinearBinaryTask& task : tasks) all.append(task.finished ? array_of(task.variables) : nb::none());
        return nb::object(all);
    });
    LinearBatchResult result;
    {
        const ReleasedGil released;
        result.stop_reason = solve(data.view, tasks, setting, options, &watcher);
    }
    for (const LinearBinaryTask& task : tasks) {
        result.results.append(LinearBinaryResult{array_of(task.variables), array_of(task.weights), task.report});
    }
    result.error = watcher.error;
    return result;
}

LinearBatchResult solve_linear_statements(const LinearData& data, const nb::list& statements,
                                          const LinearSetting& setting, const LinearOptions& options,
                                          const nb::object& watch) {
    return solve_tasks(&solve_linear_binary, data, tasks_of(statements), setting, options, watch);
}

LinearBatchResult solve_newton_statements(const LinearData& data, const nb::list& statements,
                                          const nb::list& given_starts, const LinearSetting& setting,
                                          const LinearOptions& options, const nb::object& watch) {
    std::deque<LinearBinaryTask> tasks = tasks_of(statements);
    const auto starts = objects_in<NewtonStart>(given_starts);
    if (starts.size() != tasks.size()) throw nb::value_error("one start per problem is needed");
    const std::size_t constant = setting.exact_bias || setting.offset > 0.0 ? 1 : 0;
    const std::size_t n_weights = unsigned_index(column_count(data.view)) + constant;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
        const bool fits = starts[t]->weights.empty() || starts[t]->weights.size() == n_weights;
        if (!fits) throw nb::value_error("the weights of a start need one entry per feature, and one for the constant");
        tasks[t].start = *starts[t];
    }
    return solve_tasks(&solve_newton_binary, data, std::move(tasks), setting, options, watch);
}

NewtonStart newton_start(double bias, const nb::object& weights, double width) {
    NewtonStart start{bias, {}, width};
    if (weights.is_none()) return start;
    const auto given = nb::cast<Array1>(weights);
    start.weights.assign(given.data(), given.data() + given.shape(0));
    return start;
}

using Output = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// entries: (n_labels, width, 5) of class1, value1, class2, value2, target.
ProximalPasses make_passes(const nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>& entries,
                           const Vector1<std::int64_t>& counts, Index n_columns,
                           const std::tuple<Bound, bool, Loss>& kind, const Vector1<std::int64_t>& y, const Array1& C) {
    const bool fits = entries.shape(2) == 5 && counts.shape(0) == entries.shape(0);
    if (!fits) throw nb::value_error("components need five numbers each, and a count for each label");
    std::vector<std::vector<Component>> components(entries.shape(0));
    for (std::size_t label = 0; label < components.size(); ++label) {
        for (std::size_t p = 0; p < static_cast<std::size_t>(counts(label)); ++p) {
            Component& component = components[label].emplace_back();
            component.class1 = static_cast<Index>(entries(label, p, 0));
            component.value1 = entries(label, p, 1);
            component.class2 = static_cast<Index>(entries(label, p, 2));
            component.value2 = entries(label, p, 3);
            component.target = entries(label, p, 4);
        }
    }
    const auto& [bound, sum_to_zero, loss] = kind;
    return {
        std::move(components), n_columns, bound, sum_to_zero, loss, indices_of(y), {C.data(), C.data() + C.shape(0)}};
}

void check_lines(const ProximalPasses& passes, std::initializer_list<const Array2*> scores,
                 std::initializer_list<const Array2*> variables) {
    const auto fits = [&](const Array2* a, std::size_t n) { return a->shape(0) == passes.size() && a->shape(1) == n; };
    for (const Array2* a : scores) {
        if (!fits(a, passes.n_columns())) throw nb::value_error("scores need one line per example and a column each");
    }
    for (const Array2* a : variables) {
        if (!fits(a, passes.width())) throw nb::value_error("dual variables need one line per example");
    }
}

nb::tuple take_step(const ProximalPasses& passes, const Array2& scores, const Array2& from, double sigma,
                    Index n_threads) {
    check_lines(passes, {&scores}, {&from});
    std::vector<double> point(passes.size() * passes.width()), coefficients(passes.size() * passes.n_columns());
    double moved = 0.0;
    {
        const ReleasedGil released;
        ThreadTeam team(n_threads);
        moved = passes.step(scores.data(), from.data(), sigma, point.data(), coefficients.data(), team);
    }
    return nb::make_tuple(copy_of(std::move(point), {passes.size(), passes.width()}),
                          copy_of(std::move(coefficients), {passes.size(), passes.n_columns()}), moved);
}

double find_length(ProximalPasses& passes, const std::tuple<Array2, Array2, Array2>& line, double sigma, double linear,
                   double square, Index n_threads) {
    const auto& [scores, change, from] = line;
    check_lines(passes, {&scores, &change}, {&from});
    const ReleasedGil released;
    ThreadTeam team(n_threads);
    return passes.length(scores.data(), change.data(), from.data(), sigma, linear, square, team);
}

void fill_matrix(const ProximalPasses& passes, const LinearData& data, double constant, const Array2& point,
                 double sigma, const Output& out, Index n_threads) {
    check_lines(passes, {}, {&point});
    const std::size_t n = unsigned_index(column_count(data.view)) + (constant > 0.0 ? 1 : 0);
    const std::size_t side = passes.n_columns() * n;
    if (out.shape(0) != side || out.shape(1) != side) throw nb::value_error("out needs a line for each weight");
    SignalWatcher watcher;
    {
        const ReleasedGil released;
        ThreadTeam team(n_threads);
        Monitor monitor(&watcher, infinity);
        passes.matrix(data.view, constant, point.data(), sigma, out.data(), team, monitor);
    }
    if (watcher.pending) throw nb::python_error();
}

void fill_weighted_gram(const LinearData& data, const Vector1<std::int64_t>& rows, const Array1& weights,
                        const Output& out, Index n_threads) {
    const std::size_t n = unsigned_index(column_count(data.view));
    if (out.shape(0) != n || out.shape(1) != n) throw nb::value_error("out needs one row and column per feature");
    const std::vector<Index> row_list = indices_of(rows);
    SignalWatcher watcher;
    {
        const ReleasedGil released;
        ThreadTeam team(n_threads);
        Monitor monitor(&watcher, infinity);
        weighted_gram(data.view, row_list, span_of(weights), out.data(), team, monitor);
    }
    if (watcher.pending) throw nb::python_error();
}

void bind_linear_structs(nb::module_& module) {
    nb::class_<LinearData>(module, "LinearData")
        .def(nb::init<const SparseData&>(), "data"_a)
        .def(nb::init<const Matrix<float>&>(), "data"_a.noconvert())
        .def(nb::init<const Matrix<double>&>(), "data"_a.noconvert());
    nb::class_<LinearStatement>(module, "LinearStatement")
        .def(nb::init<const Machine&, Loss, const Vector1<std::int64_t>&, const Vector1<std::int64_t>&, const Array1&,
                      double>(),
             "machine"_a, "loss"_a, "rows"_a, "y"_a, "C"_a, "offset"_a);
    nb::class_<LinearOptions>(module, "LinearOptions")
        .def(nb::init<>())
        .def_rw("tol", &LinearOptions::tol)
        .def_rw("max_iter", &LinearOptions::max_iter)
        .def_rw("max_passes", &LinearOptions::max_passes)
        .def_rw("max_time", &LinearOptions::max_time)
        .def_rw("max_cost", &LinearOptions::max_cost)
        .def_rw("shrinking", &LinearOptions::shrinking)
        .def_rw("n_threads", &LinearOptions::n_threads)
        .def_rw("seed", &LinearOptions::seed);
    nb::class_<LinearSetting>(module, "LinearSetting")
        .def(nb::init<Loss, double, bool>(), "loss"_a, "offset"_a, "exact_bias"_a);
    nb::class_<NewtonStart>(module, "NewtonStart")
        .def(nb::new_(&newton_start), "bias"_a, "weights"_a.none(), "width"_a);
    nb::class_<LinearReport>(module, "LinearReport")
        .def_ro("stop_reason", &LinearReport::stop_reason)
        .def_ro("iterations", &LinearReport::iterations)
        .def_ro("passes", &LinearReport::passes)
        .def_ro("seconds", &LinearReport::seconds)
        .def_ro("violation", &LinearReport::violation)
        .def_ro("dual", &LinearReport::dual)
        .def_ro("cost", &LinearReport::cost)
        .def_ro("width", &LinearReport::width)
        .def_ro("n_support", &LinearReport::n_support)
        .def_ro("verified", &LinearReport::verified);
}

}  // namespace

void bind_linear(nb::module_& module) {
    bind_linear_structs(module);
    nb::class_<LinearResult>(module, "LinearResult")
        .def_ro("amounts", &LinearResult::variables)
        .def_ro("weights", &LinearResult::weights)
        .def_ro("report", &LinearResult::report)
        .def_ro("error", &LinearResult::error);
    nb::class_<LinearBinaryResult>(module, "LinearBinaryResult")
        .def_ro("amounts", &LinearBinaryResult::variables)
        .def_ro("weights", &LinearBinaryResult::weights)
        .def_ro("report", &LinearBinaryResult::report);
    nb::class_<LinearBatchResult>(module, "LinearBatchResult")
        .def_ro("results", &LinearBatchResult::results)
        .def_ro("stop_reason", &LinearBatchResult::stop_reason)
        .def_ro("error", &LinearBatchResult::error);
    module.def("solve_linear", &solve_linear, "data"_a, "statement"_a, "options"_a, "start"_a.none(), "watch"_a.none());
    module.def("solve_linear_binary", &solve_linear_statements, "data"_a, "statements"_a, "setting"_a, "options"_a,
               "watch"_a.none());
    module.def("solve_newton_binary", &solve_newton_statements, "data"_a, "statements"_a, "starts"_a, "setting"_a,
               "options"_a, "watch"_a.none());
    nb::class_<ProximalPasses>(module, "ProximalPasses")
        .def(nb::new_(&make_passes), "entries"_a, "counts"_a, "n_columns"_a, "kind"_a, "y"_a, "C"_a)
        .def("step", &take_step, "scores"_a, "start"_a, "sigma"_a, "n_threads"_a)
        .def("length", &find_length, "line"_a, "sigma"_a, "linear"_a, "square"_a, "n_threads"_a)
        .def("matrix", &fill_matrix, "data"_a, "constant"_a, "point"_a, "sigma"_a, "out"_a.noconvert(), "n_threads"_a);
    module.def("weighted_gram", &fill_weighted_gram, "data"_a, "rows"_a, "weights"_a, "out"_a.noconvert(),
               "n_threads"_a);
}

}  // namespace multimargin::bindings
