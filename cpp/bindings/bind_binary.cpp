#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "binary_batch.hpp"
#include "python_watcher.hpp"
#include "store.hpp"

namespace multimargin::bindings {

namespace {

using namespace nb::literals;

// One binary problem as Python states it: rows of the store with y = +1, those with y = -1, and C of both in this
// order.
struct Statement {
    std::vector<Index> rows;
    Index n_positive;
    std::vector<double> C;
    nb::object start;
};

Statement make_statement(const Vector1<std::int64_t>& positive, const Vector1<std::int64_t>& negative,
                         const Vector1<double>& C, nb::object start) {
    Statement statement{indices_of(positive),
                        static_cast<Index>(positive.shape(0)),
                        {C.data(), C.data() + C.shape(0)},
                        std::move(start)};
    const std::vector<Index> others = indices_of(negative);
    statement.rows.insert(statement.rows.end(), others.begin(), others.end());
    return statement;
}

void load_start(const Statement& statement, BinaryState& state) {
    if (statement.start.is_none()) return;
    const auto amounts = nb::cast<Vector1<double>>(statement.start);
    if (amounts.shape(0) != state.amounts.size()) throw nb::value_error("the start needs one entry per example");
    std::copy_n(amounts.data(), amounts.shape(0), state.amounts.begin());
}

struct BinaryResult {
    nb::object amounts;
    BinaryReport report;
};

nb::object amounts_of(const BinaryTask& task) {
    std::vector<double> copy = task.state.amounts;
    const std::size_t n = copy.size();
    return nb::cast(to_numpy<double>(std::move(copy), {n}));
}

struct BatchResult {
    nb::list results;
    StopReason stop_reason;
    nb::object error;
};

BatchResult solve_statements(const Store& store, const std::vector<const Statement*>& statements, Loss loss,
                             const Options& options, const nb::object& watch) {
    std::deque<BinaryTask> tasks;
    for (const Statement* s : statements) {
        tasks.emplace_back(BinaryProblem(*store.source, s->rows, s->n_positive, s->C, loss));
        load_start(*s, tasks.back().state);
    }
    PythonWatcher watcher(watch, [&tasks] {
        nb::list all;
        for (const BinaryTask& task : tasks) all.append(task.finished ? amounts_of(task) : nb::none());
        return nb::object(all);
    });
    BatchResult result;
    {
        const nb::gil_scoped_release released;
        result.stop_reason = solve_batch(tasks, options, &watcher);
    }
    for (const BinaryTask& task : tasks) result.results.append(BinaryResult{amounts_of(task), task.report});
    result.error = watcher.error;
    return result;
}

}  // namespace

void bind_binary(nb::module_& module) {
    nb::class_<Statement>(module, "BinaryStatement")
        .def(nb::new_(&make_statement), "positive"_a, "negative"_a, "C"_a, "start"_a.none());
    nb::class_<BinaryReport, Report>(module, "BinaryReport").def_ro("bias", &BinaryReport::bias);
    nb::class_<BinaryResult>(module, "BinaryResult")
        .def_ro("amounts", &BinaryResult::amounts)
        .def_ro("report", &BinaryResult::report);
    nb::class_<BatchResult>(module, "BatchResult")
        .def_ro("results", &BatchResult::results)
        .def_ro("stop_reason", &BatchResult::stop_reason)
        .def_ro("error", &BatchResult::error);
    module.def("solve_binary", &solve_statements, "store"_a, "statements"_a, "loss"_a, "options"_a, "watch"_a.none());
}

}  // namespace multimargin::bindings
