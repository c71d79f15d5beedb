#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "predict/pair_model.hpp"
#include "python_watcher.hpp"
#include "solvers/binary/c_path.hpp"
#include "solvers/binary/flat_batch.hpp"
#include "solvers/binary/path_scores.hpp"
#include "statement.hpp"
#include "store.hpp"
#include "traces.hpp"

namespace multimargin::bindings {

namespace {

using namespace nb::literals;

struct BatchResult {
    nb::list results;
    StopReason stop_reason;
    nb::object error;
};

// Problems as arrays, and what their solves left: a line of numbers for each, and its trace if there is one.
struct FlatResult {
    nb::object variables, table;
    nb::list traces;
    nb::object error;
};

FlatResult solve_flat(const Store& store, const nb::tuple& given, Loss loss, const Options& options,
                      const nb::object& watch) {
    const std::vector<Index> rows = indices_of(nb::cast<Vector1<std::int64_t>>(given[0]));
    const std::vector<Index> starts = indices_of(nb::cast<Vector1<std::int64_t>>(given[1]));
    const std::vector<Index> n_positive = indices_of(nb::cast<Vector1<std::int64_t>>(given[2]));
    const auto C = nb::cast<Vector1<double>>(given[3]);
    std::span<const double> start;
    if (!given[4].is_none()) {
        start = span_of(nb::cast<Vector1<double>>(given[4]));
        if (start.size() != rows.size()) throw nb::value_error("the start needs one entry per example");
    }
    FlatBatch batch({store.source.get(), rows, starts, n_positive, span_of(C), loss}, start, options.trace);
    PythonWatcher watcher(watch, [&batch] {
        std::vector<double> found = batch.finished_amounts();
        const std::size_t n = found.size();
        return nb::cast(to_numpy<double>(std::move(found), {n}));
    });
    {
        const ReleasedGil released;
        solve_batch(batch, options, &watcher);
    }
    FlatResult result;
    const std::size_t n = batch.variables.size(), n_problems = unsigned_index(batch.count());
    result.variables = nb::cast(to_numpy<double>(std::move(batch.variables), {n}));
    result.table = nb::cast(to_numpy<double>(std::move(batch.table), {n_problems, n_report_columns}));
    for (const std::vector<TracePoint>& trace : batch.traces) result.traces.append(trace_of(trace));
    result.error = watcher.error;
    return result;
}

// One problem in the general form, from zero or the first feasible point: (variables a = |b|, report, bias).
nb::tuple solve_general(const Store& store, const nb::tuple& given, double sum, const Options& options,
                        const nb::object& watch) {
    const std::vector<Index> rows = indices_of(nb::cast<Vector1<std::int64_t>>(given[0]));
    const auto C = nb::cast<Vector1<double>>(given[2]), targets = nb::cast<Vector1<double>>(given[3]);
    const BinaryProblem problem(*store.source, rows, nb::cast<Index>(given[1]), {C.data(), C.data() + C.shape(0)},
                                Loss::hinge, {targets.data(), targets.data() + targets.shape(0)}, sum);
    BinaryState state(problem);
    PythonWatcher watcher(watch, [&state] {
        std::vector<double> a = state.variables;
        const std::size_t n = a.size();
        return nb::cast(to_numpy<double>(std::move(a), {n}));
    });
    BinaryReport report;
    {
        const ReleasedGil released;
        Monitor monitor(&watcher, options.max_time);
        ThreadTeam team(options.n_threads);
        BinaryMemory memory;
        report = solve_binary(problem, state, options, monitor, team, memory);
    }
    const std::size_t n = state.variables.size();
    return nb::make_tuple(to_numpy<double>(std::move(state.variables), {n}), static_cast<const Report&>(report),
                          report.bias, watcher.error);
}

// The points of one problem along C, as arrays over these.
struct PathResult {
    nb::object variables, bias, iterations, seconds, violation, n_support, converged;
};

template <class T, class Value>
nb::object along(const BinaryPath& path, Value value) {
    std::vector<T> values;
    for (const PathPoint& point : path.points) values.push_back(static_cast<T>(value(point.report)));
    const std::size_t n = values.size();
    return nb::cast(to_numpy<T>(std::move(values), {n}));
}

PathResult result_of(const BinaryPath& path) {
    std::vector<double> variables;
    variables.reserve(path.points.size() * path.rows.size());
    for (const PathPoint& point : path.points) {
        variables.insert(variables.end(), point.variables.begin(), point.variables.end());
    }
    return {nb::cast(to_numpy<double>(std::move(variables), {path.points.size(), path.rows.size()})),
            along<double>(path, [](const BinaryReport& r) { return r.bias; }),
            along<std::int64_t>(path, [](const BinaryReport& r) { return r.iterations; }),
            along<double>(path, [](const BinaryReport& r) { return r.seconds; }),
            along<double>(path, [](const BinaryReport& r) { return r.violation; }),
            along<std::int64_t>(path, [](const BinaryReport& r) { return r.n_support; }),
            along<std::int64_t>(path, [](const BinaryReport& r) { return r.stop_reason == StopReason::converged; })};
}

BatchResult solve_path_statements(const Store& store, const nb::list& statements, const Vector1<double>& Cs, Loss loss,
                                  const Options& options, PathPool& pool, const nb::object& watch) {
    std::deque<BinaryPath> paths;
    for (const Statement* s : objects_in<Statement>(statements)) {
        BinaryPath& path = paths.emplace_back();
        path.rows = s->rows;
        path.n_positive = s->n_positive;
        path.weights = s->C;
    }
    PythonWatcher watcher(watch, [&paths] {
        Index n_done = 0;
        for (const BinaryPath& path : paths) n_done += path.n_done;
        return nb::object(nb::int_(n_done));
    });
    BatchResult result;
    {
        const ReleasedGil released;
        result.stop_reason = solve_paths(*store.source, paths, span_of(Cs), loss, options, pool, &watcher);
    }
    for (const BinaryPath& path : paths) result.results.append(result_of(path));
    result.error = watcher.error;
    return result;
}

// (rows, columns, members), a member (variables, first, sign) with a line of variables for each C.
PathShare share_from(const nb::tuple& given, Index n_source, std::vector<Matrix<double>>& kept) {
    PathShare share;
    share.rows = indices_of(nb::cast<Vector1<std::int64_t>>(given[0]));
    share.columns = indices_of(nb::cast<Vector1<std::int64_t>>(given[1]));
    check_indices(share.rows, n_source);
    check_indices(share.columns, n_source);
    share.n_costs = -1;
    for (const nb::handle each : nb::list(given[2])) {
        const nb::tuple member = nb::cast<nb::tuple>(each);
        const auto variables = nb::cast<Matrix<double>>(member[0]);
        const Index n_costs = static_cast<Index>(variables.shape(0)), width = static_cast<Index>(variables.shape(1));
        const Index first = nb::cast<Index>(member[1]);
        if (share.n_costs < 0) share.n_costs = n_costs;
        const bool fits = first >= 0 && first + static_cast<Index>(share.rows.size()) <= width;
        if (!fits || n_costs != share.n_costs) throw nb::value_error("a member has other rows or costs than its share");
        share.members.push_back({variables.data(), width, first, nb::cast<double>(member[2])});
        kept.push_back(variables);
    }
    if (share.members.empty()) throw nb::value_error("a share needs members");
    return share;
}

// A list of (sums, n_support) for each share; see solvers/binary/path_scores.hpp.
nb::list sum_path_shares(const Store& store, const nb::list& given, Index n_threads) {
    std::vector<PathShare> shares;
    std::vector<Matrix<double>> kept;  // what the shares point into
    for (const nb::handle each : given) {
        shares.push_back(share_from(nb::cast<nb::tuple>(each), store.source->size(), kept));
    }
    SignalWatcher watcher;
    {
        const ReleasedGil released;
        ThreadTeam team(n_threads);
        Monitor monitor(&watcher, infinity);
        sum_paths(*store.source, shares, team, monitor);
    }
    if (watcher.pending) throw nb::python_error();
    nb::list found;
    for (PathShare& share : shares) {
        const std::size_t n_costs = unsigned_index(share.n_costs);
        std::vector<std::int64_t> n_support(share.n_support.begin(), share.n_support.end());
        found.append(nb::make_tuple(
            to_numpy<double>(std::move(share.sums), {share.members.size(), n_costs, share.columns.size()}),
            to_numpy<std::int64_t>(std::move(n_support), {n_costs})));
    }
    return found;
}

// The classes that one-vs-one machines choose, costs x points; see solvers/binary/path_scores.hpp.
NumpyArray<std::int64_t> vote_path_sums(const nb::list& sums, const Matrix<double>& biases, Index n_threads) {
    using Sums = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
    PathVotes votes{{}, biases.data(), static_cast<Index>(biases.shape(1)), 0};
    const std::size_t n_classes = sums.size();
    std::vector<Sums> kept;  // what the votes point into
    for (const nb::handle each : sums) {
        kept.push_back(nb::cast<Sums>(each));
        const Sums& own = kept.back();
        const bool fits =
            own.shape(0) + 1 == n_classes && own.shape(1) == biases.shape(1) && own.shape(2) == kept.front().shape(2);
        if (!fits) throw nb::value_error("the sums of a class have another shape than its pairs");
        votes.sums.push_back(own.data());
    }
    if (n_classes < 2 || biases.shape(0) != n_classes * (n_classes - 1) / 2) {
        throw nb::value_error("biases need one line for each pair of classes");
    }
    votes.n_points = static_cast<Index>(kept.front().shape(2));
    std::vector<std::int64_t> winners;
    {
        const ReleasedGil released;
        ThreadTeam team(n_threads);
        winners = vote_paths(votes, team);
    }
    return to_numpy<std::int64_t>(std::move(winners), {biases.shape(1), unsigned_index(votes.n_points)});
}

// A one-vs-one model over the support vectors of a store.
class PairPredictor {
  public:
    PairPredictor(nb::object store, const Vector1<std::int64_t>& n_support, const Matrix<double>& dual_coef,
                  const Vector1<double>& intercept)
        : owner_(std::move(store)),
          model_(*nb::cast<const Store&>(owner_).source, indices_of(n_support),
                 {dual_coef.data(), dual_coef.shape(0) * dual_coef.shape(1)},
                 {intercept.data(), intercept.data() + intercept.shape(0)}) {}

    NumpyArray<double> scores(const DataView& points, Index n_threads) const {
        const std::size_t n = count(points), n_pairs = unsigned_index(model_.n_pairs());
        std::vector<double> result(n * n_pairs);
        run(n_threads,
            [&](ThreadTeam& team, Monitor& monitor) { model_.scores(points, team, monitor, result.data()); });
        return to_numpy<double>(std::move(result), {n, n_pairs});
    }

    NumpyArray<std::int64_t> classes(const DataView& points, bool dag, Index n_threads) const {
        const std::size_t n = count(points);
        std::vector<std::int64_t> result(n);
        run(n_threads, [&](ThreadTeam& team, Monitor& monitor) {
            dag ? model_.walk(points, team, monitor, result.data()) : model_.vote(points, team, monitor, result.data());
        });
        return to_numpy<std::int64_t>(std::move(result), {n});
    }

  private:
    static std::size_t count(const DataView& points) {
        return unsigned_index(std::visit([](const auto& view) { return view.rows(); }, points));
    }

    template <class Work>
    static void run(Index n_threads, Work work) {
        SignalWatcher watcher;
        {
            const ReleasedGil released;
            ThreadTeam team(n_threads);
            Monitor monitor(&watcher, infinity);
            work(team, monitor);
        }
        if (watcher.pending) throw nb::python_error();
    }

    nb::object owner_;
    PairModel model_;
};

template <class T>
NumpyArray<double> dense_pair_scores(const PairPredictor& predictor, const Matrix<T>& points, Index n_threads) {
    return predictor.scores(view_of(points), n_threads);
}

template <class T>
NumpyArray<std::int64_t> dense_classes(const PairPredictor& predictor, const Matrix<T>& points, bool dag,
                                       Index n_threads) {
    return predictor.classes(view_of(points), dag, n_threads);
}

NumpyArray<double> sparse_pair_scores(const PairPredictor& predictor, const SparseData& points, Index n_threads) {
    return predictor.scores(points.view, n_threads);
}

NumpyArray<std::int64_t> sparse_classes(const PairPredictor& predictor, const SparseData& points, bool dag,
                                        Index n_threads) {
    return predictor.classes(points.view, dag, n_threads);
}

}  // namespace

void bind_binary(nb::module_& module) {
    nb::class_<Statement>(module, "BinaryStatement")
        .def(nb::new_(&make_statement), "rows"_a, "n_positive"_a, "C"_a, "start"_a.none());
    nb::class_<FlatResult>(module, "FlatResult")
        .def_ro("amounts", &FlatResult::variables)
        .def_ro("table", &FlatResult::table)
        .def_ro("traces", &FlatResult::traces)
        .def_ro("error", &FlatResult::error);
    module.def("report_columns", [] { return std::vector<std::string>(report_columns.begin(), report_columns.end()); });
    nb::class_<PathPool>(module, "PathPool").def(nb::init<>());
    module.def("solve_binary_general", &solve_general, "store"_a, "problem"_a, "total"_a, "options"_a,
               "watch"_a.none());
    nb::class_<PathResult>(module, "PathResult")
        .def_ro("amounts", &PathResult::variables)
        .def_ro("bias", &PathResult::bias)
        .def_ro("iterations", &PathResult::iterations)
        .def_ro("seconds", &PathResult::seconds)
        .def_ro("violation", &PathResult::violation)
        .def_ro("n_support", &PathResult::n_support)
        .def_ro("converged", &PathResult::converged);
    nb::class_<BatchResult>(module, "BatchResult")
        .def_ro("results", &BatchResult::results)
        .def_ro("stop_reason", &BatchResult::stop_reason)
        .def_ro("error", &BatchResult::error);
    nb::class_<PairPredictor>(module, "PairPredictor")
        .def(nb::init<nb::object, const Vector1<std::int64_t>&, const Matrix<double>&, const Vector1<double>&>(),
             "store"_a, "n_support"_a, "dual_coef"_a, "intercept"_a)
        .def("scores", &dense_pair_scores<float>, "points"_a.noconvert(), "n_threads"_a)
        .def("scores", &dense_pair_scores<double>, "points"_a.noconvert(), "n_threads"_a)
        .def("scores", &sparse_pair_scores, "points"_a, "n_threads"_a)
        .def("classes", &dense_classes<float>, "points"_a.noconvert(), "dag"_a, "n_threads"_a)
        .def("classes", &dense_classes<double>, "points"_a.noconvert(), "dag"_a, "n_threads"_a)
        .def("classes", &sparse_classes, "points"_a, "dag"_a, "n_threads"_a);
    module.def("solve_binary", &solve_flat, "store"_a, "problems"_a, "loss"_a, "options"_a, "watch"_a.none());
    module.def("solve_binary_paths", &solve_path_statements, "store"_a, "statements"_a, "Cs"_a, "loss"_a, "options"_a,
               "pool"_a, "watch"_a.none());
    module.def("sum_paths", &sum_path_shares, "store"_a, "shares"_a, "n_threads"_a);
    module.def("vote_paths", &vote_path_sums, "sums"_a, "biases"_a, "n_threads"_a);
}

}  // namespace multimargin::bindings
