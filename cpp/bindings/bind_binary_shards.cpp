// One shard of the errors of a large binary problem, and the solver of its blocks, for drivers written in Python
// (solvers/sharded_binary.py).
#include <limits>
#include <variant>

#include "arrays.hpp"
#include "solvers/binary/blocks.hpp"
#include "store.hpp"

namespace multimargin::bindings {

namespace {

using namespace nb::literals;

using Integers = Vector1<std::int64_t>;
using Reals = Vector1<double>;

template <class T>
NumpyArray<T> array_of(std::vector<T> values) {
    const std::size_t n = values.size();
    return to_numpy<T>(std::move(values), {n});
}

NumpyArray<std::int64_t> integers(const std::vector<Index>& values) {
    return array_of(std::vector<std::int64_t>(values.begin(), values.end()));
}

// (rows, changes of beta)
nb::tuple to_python(const Coefficients& coefficients) {
    return nb::make_tuple(integers({coefficients.rows().begin(), coefficients.rows().end()}),
                          array_of(coefficients.values(0)));
}

Coefficients coefficients_from(const Integers& rows, const Reals& values, const KernelSource& source) {
    const std::vector<Index> list = indices_of(rows);
    check_indices(list, source.size());
    if (values.shape(0) != list.size()) throw nb::value_error("every row needs a coefficient");
    Coefficients coefficients(1);
    for (std::size_t k = 0; k < list.size(); ++k) coefficients.add_row(list[k], {values.data() + k, 1});
    return coefficients;
}

class BinaryShard {
  public:
    BinaryShard(const Store& store, const Integers& rows, Index n_positive, const Reals& C, Loss loss,
                const Options& options, const Integers& examples)
        : problem_(BinaryProblem(*store.source, indices_of(rows), n_positive, {C.data(), C.data() + C.shape(0)}, loss)
                       .part(indices_of(examples))),
          state_(problem_),
          options_(options),
          monitor_(nullptr, infinity),
          team_(options.n_threads) {
        for (Index e = 0; e < problem_.size(); ++e) state_.errors[unsigned_index(e)] = -problem_.target(e);
        use_precision(false);
    }

    BinaryShard(const BinaryShard&) = delete;

    void use_precision(bool float64) {
        if (float64) {
            engine_.emplace<LocalBinaryEngine<double>>(problem_, state_, options_, monitor_, tally_, team_);
        } else {
            engine_.emplace<LocalBinaryEngine<float>>(problem_, state_, options_, monitor_, tally_, team_);
        }
    }

    NumpyArray<std::int64_t> begin_round(double lowest_up, double largest_low, double slack) {
        std::vector<Index> active;
        visit([&](auto& engine) { active = engine.begin_round({lowest_up, largest_low}, slack); });
        n_active_ = static_cast<Index>(active.size());
        return integers(active);
    }

    void end_round(const Integers& rows, const Reals& changes) {
        const Coefficients added = coefficients_from(rows, changes, problem_.source());
        visit([&](auto& engine) { engine.end_round(added); });
        n_active_ = 0;
    }

    nb::tuple round_interval() {
        BinaryInterval interval;
        visit([&](auto& engine) { interval = engine.round_interval(); });
        return nb::make_tuple(interval.lowest_up, interval.largest_low);
    }

    // The k worst; all where they are alike, because what is taken of them depends on those of the other shards.
    nb::tuple violators(bool rise, double lowest_up, double largest_low, Index k, const Integers& without) {
        const std::vector<Index> left_out = active_from(without);
        const Direction direction = rise ? Direction::rise : Direction::fall;
        std::vector<BinaryCandidate> found;
        visit([&](auto& engine) {
            found = engine.violators(direction, {lowest_up, largest_low}, left_out);
            if (!are_alike(found)) found = worst_of(std::move(found), direction, k);
        });
        std::vector<Index> positions;
        std::vector<double> errors;
        for (const BinaryCandidate& candidate : found) {
            positions.push_back(candidate.position);
            errors.push_back(candidate.error);
        }
        return nb::make_tuple(integers(positions), array_of(std::move(errors)));
    }

    NumpyArray<double> gather(const Integers& positions) {
        const std::vector<Index> places = active_from(positions);
        BinaryValues values;
        visit([&](auto& engine) { values = engine.gather(places); });
        return array_of(std::move(values.errors));
    }

    void add(const Integers& positions, const Reals& variables, const Reals& changes, const Integers& rows,
             const Reals& coefficients) {
        const std::vector<Index> places = active_from(positions);
        if (variables.shape(0) != places.size() || changes.shape(0) != places.size()) {
            throw nb::value_error("every position needs a variable and a change");
        }
        const Coefficients added = coefficients_from(rows, coefficients, problem_.source());
        visit([&](auto& engine) {
            for (std::size_t k = 0; k < places.size(); ++k) {
                engine.set_variable(places[k], variables.data()[k], changes.data()[k]);
            }
            engine.add(added);
        });
    }

    void confirm(const Integers& examples, const Integers& rows, const Reals& beta) {
        const std::vector<Index> chosen = indices_of(examples);
        check_indices(chosen, problem_.size());
        const Coefficients coefficients = coefficients_from(rows, beta, problem_.source());
        const ReleasedGil released;
        refresh_errors(problem_, state_, chosen, coefficients, team_, monitor_);
    }

    // Of all examples; up to date between rounds.
    NumpyArray<double> errors() const { return array_of(state_.errors); }

  private:
    template <class Function>
    void visit(const Function& function) {
        const ReleasedGil released;
        if (auto* engine = std::get_if<LocalBinaryEngine<float>>(&engine_)) function(*engine);
        if (auto* engine = std::get_if<LocalBinaryEngine<double>>(&engine_)) function(*engine);
    }

    std::vector<Index> active_from(const Integers& positions) const {
        std::vector<Index> places = indices_of(positions);
        check_indices(places, n_active_);
        return places;
    }

    BinaryProblem problem_;
    BinaryState state_;
    Options options_;
    Monitor monitor_;
    Tally tally_;
    ThreadTeam team_;
    std::variant<std::monostate, LocalBinaryEngine<float>, LocalBinaryEngine<double>> engine_;
    Index n_active_ = 0;
};

// Holds the variables of all examples, and solves blocks of them whose errors the caller has gathered from shards.
class BinaryBlockSolver {
  public:
    BinaryBlockSolver(const Store& store, const Integers& rows, Index n_positive, const Reals& C, Loss loss,
                      const Options& options)
        : problem_(*store.source, indices_of(rows), n_positive, {C.data(), C.data() + C.shape(0)}, loss),
          state_(problem_),
          before_(state_.variables),
          options_(options) {}

    BinaryBlockSolver(const BinaryBlockSolver&) = delete;

    double coefficient_mass() const { return multimargin::coefficient_mass(state_); }
    double largest_diagonal() const { return problem_.largest_diagonal(); }
    bool float32_too_coarse() const { return multimargin::float32_too_coarse(problem_, state_, options_.tol); }
    Index iterations() const { return iterations_; }
    NumpyArray<double> variables() const { return array_of(state_.variables); }

    // (violation, dual, primal, bias, lowest_up, largest_low) from the errors of all examples.
    nb::tuple summarize(const Reals& errors) {
        if (errors.shape(0) != state_.errors.size()) throw nb::value_error("every example needs an error");
        state_.errors.assign(errors.data(), errors.data() + errors.shape(0));
        const BinarySummary s = multimargin::summarize(problem_, state_);
        const BinaryInterval interval = interval_of(problem_, state_);
        return nb::make_tuple(s.violation, s.dual, s.primal, s.bias, interval.lowest_up, interval.largest_low);
    }

    void begin_round() { before_ = state_.variables; }
    nb::tuple round_changes() const { return changes_from(before_); }
    nb::tuple coefficients() const { return changes_from(std::vector<double>(before_.size(), 0.0)); }

    // (variables, changes of beta), in the order of the examples.
    nb::tuple solve(const Integers& chosen, const Reals& errors, double target, bool float64) {
        const std::vector<Index> examples = indices_of(chosen);
        check_indices(examples, problem_.size());
        if (errors.shape(0) != examples.size()) throw nb::value_error("every example needs an error");
        std::vector<double> variables, changes;
        for (const Index e : examples) variables.push_back(state_.variables[unsigned_index(e)]);
        const std::vector<double> before = variables;
        {
            const ReleasedGil released;
            float64 ? run(f64_, examples, span_of(errors), target, variables)
                    : run(f32_, examples, span_of(errors), target, variables);
        }
        for (std::size_t k = 0; k < examples.size(); ++k) {
            changes.push_back(problem_.sign(examples[k]) * (variables[k] - before[k]));
            state_.variables[unsigned_index(examples[k])] = variables[k];
        }
        return nb::make_tuple(array_of(std::move(variables)), array_of(std::move(changes)));
    }

  private:
    template <class T>
    void run(BinaryDescent<T>& descent, const std::vector<Index>& examples, std::span<const double> errors,
             double target, std::vector<double>& variables) {
        std::vector<Index> rows;
        for (const Index e : examples) rows.push_back(problem_.row(e));
        CacheCounters counters;
        Monitor monitor(nullptr, infinity);
        descent.load(problem_, examples, variables, errors);
        SlotRows<T> slots(problem_.source(), rows, options_.cache_bytes, counters, memory_.of<T>());
        descent.run(slots, target, BinaryBlockRules::steps_per_example * descent.size(), monitor);
        iterations_ += descent.steps();
        for (std::size_t k = 0; k < variables.size(); ++k) variables[k] = descent.variable(static_cast<Index>(k));
    }

    nb::tuple changes_from(const std::vector<double>& before) const {
        Coefficients changes(1);
        for (Index e = 0; e < problem_.size(); ++e) {
            const std::size_t i = unsigned_index(e);
            const double change = problem_.sign(e) * (state_.variables[i] - before[i]);
            if (change != 0.0) changes.add_row(problem_.row(e), {&change, 1});
        }
        return to_python(changes);
    }

    BinaryProblem problem_;
    BinaryState state_;
    std::vector<double> before_;  // variables when the round began
    Options options_;
    BinaryDescent<float> f32_;
    BinaryDescent<double> f64_;
    BinaryMemory memory_;
    Index iterations_ = 0;
};

}  // namespace

void bind_binary_shards(nb::module_& module) {
    nb::class_<BinaryShard>(module, "BinaryShard")
        .def(nb::init<const Store&, const Integers&, Index, const Reals&, Loss, const Options&, const Integers&>(),
             "store"_a, "rows"_a, "n_positive"_a, "C"_a, "loss"_a, "options"_a, "examples"_a, nb::keep_alive<1, 2>())
        .def("use_precision", &BinaryShard::use_precision, "float64"_a)
        .def("begin_round", &BinaryShard::begin_round, "lowest_up"_a, "largest_low"_a, "slack"_a)
        .def("end_round", &BinaryShard::end_round, "rows"_a, "changes"_a)
        .def("round_interval", &BinaryShard::round_interval)
        .def("violators", &BinaryShard::violators, "rise"_a, "lowest_up"_a, "largest_low"_a, "k"_a, "without"_a)
        .def("gather", &BinaryShard::gather, "positions"_a)
        .def("add", &BinaryShard::add, "positions"_a, "variables"_a, "changes"_a, "rows"_a, "coefficients"_a)
        .def("confirm", &BinaryShard::confirm, "examples"_a, "rows"_a, "beta"_a)
        .def("errors", &BinaryShard::errors);
    nb::class_<BinaryBlockSolver>(module, "BinaryBlockSolver")
        .def(nb::init<const Store&, const Integers&, Index, const Reals&, Loss, const Options&>(), "store"_a, "rows"_a,
             "n_positive"_a, "C"_a, "loss"_a, "options"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("coefficient_mass", &BinaryBlockSolver::coefficient_mass)
        .def_prop_ro("largest_diagonal", &BinaryBlockSolver::largest_diagonal)
        .def_prop_ro("float32_too_coarse", &BinaryBlockSolver::float32_too_coarse)
        .def_prop_ro("iterations", &BinaryBlockSolver::iterations)
        .def("variables", &BinaryBlockSolver::variables)
        .def("summarize", &BinaryBlockSolver::summarize, "errors"_a)
        .def("begin_round", &BinaryBlockSolver::begin_round)
        .def("round_changes", &BinaryBlockSolver::round_changes)
        .def("coefficients", &BinaryBlockSolver::coefficients)
        .def("solve", &BinaryBlockSolver::solve, "examples"_a, "errors"_a, "target"_a, "float64"_a);
    nb::dict rules;
    rules["round_share"] = BinaryBlockRules::round_share;
    rules["block_share"] = BinaryBlockRules::block_share;
    rules["resting_share"] = BinaryBlockRules::resting_share;
    rules["resting_least"] = BinaryBlockRules::resting_least;
    rules["least_block"] = static_cast<Index>(BinaryBlockRules::least_block);
    rules["largest_block"] = static_cast<Index>(BinaryBlockRules::largest_block);
    module.attr("BINARY_BLOCK_RULES") = rules;
}

}  // namespace multimargin::bindings
