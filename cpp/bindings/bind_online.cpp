#include <nanobind/stl/string.h>

#include <new>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "online/larank.hpp"
#include "online/lasvm_set.hpp"
#include "python_watcher.hpp"

namespace multimargin::bindings {

namespace {

using namespace nb::literals;
using Turn = OnlineLearner::Turn;

// One call to a learner. Python's lock is given up before the turn is taken, as in all of these functions: whoever has
// the turn may be waiting for that lock.
template <class Function>
auto in_turn(const OnlineLearner& learner, const Function& function, Turn::Purpose purpose = Turn::inspect) {
    const ReleasedGil released;
    const Turn turn(learner, purpose);
    return function();
}

// Rows for which it is worth beginning a thread.
constexpr std::size_t rows_worth_threads = 16;

// Lends threads to a learner for one call: none is alive between calls, where the process may fork.
class Helpers {
  public:
    Helpers(OnlineLearner& learner, Index n_threads) : learner_(learner), team_(n_threads) {
        if (n_threads > 1) learner_.work_with(&team_);
    }
    Helpers(const Helpers&) = delete;
    Helpers& operator=(const Helpers&) = delete;
    ~Helpers() { learner_.work_with(nullptr); }

  private:
    OnlineLearner& learner_;
    QuickTeam team_;
};

// Learns from rows until an exception ends it, which is returned, else None. The classes predicted go into an array of
// the caller's, so that they are not lost if Python raises Ctrl-C when this returns.
nb::object add_block(OnlineLearner& learner, const Matrix<double>& X, const Vector1<std::int64_t>& labels,
                     const Vector1<double>& caps, const Vector1<std::int64_t>& ids,
                     nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> predicted, Index n_threads) {
    const std::size_t n = X.shape(0), width = X.shape(1);
    if (labels.shape(0) != n || caps.shape(0) != n || ids.shape(0) != n || predicted.shape(0) != n) {
        throw nb::value_error("labels, caps, ids and predicted need one entry for each row");
    }
    if (static_cast<Index>(width) != learner.kept().n_features()) throw nb::value_error("the rows have another width");
    PythonWatcher watcher(nb::none(), nullptr);
    {
        const ReleasedGil released;
        const Turn turn(learner, Turn::change);
        const Helpers helpers(learner, n >= rows_worth_threads ? n_threads : 1);
        Monitor monitor(&watcher, infinity);
        for (std::size_t i = 0; i < n && !monitor.poll(); ++i) {
            predicted.data()[i] = learner.add(X.data() + i * width, labels.data()[i], caps.data()[i], ids.data()[i]);
        }
    }
    return watcher.error;
}

// Steps on kept examples until none violates optimality, at most so many rounds; whether that was reached.
bool improve(OnlineLearner& learner, Index n_rounds, Index n_threads) {
    SignalWatcher watcher;
    bool reached = false;
    {
        const ReleasedGil released;
        const Turn turn(learner, Turn::change);
        const Helpers helpers(learner, n_threads);
        Monitor monitor(&watcher, infinity);
        for (Index round = 0; round < n_rounds && !reached && !monitor.poll(); ++round) reached = !learner.improve();
    }
    if (watcher.pending) throw nb::python_error();
    return reached;
}

template <class Choice>
Choice choice_of(const std::string& name, std::initializer_list<std::pair<const char*, Choice>> choices) {
    for (const auto& [known, choice] : choices) {
        if (name == known) return choice;
    }
    throw nb::value_error("a choice is not known");
}

OnlineScheme scheme_of(const std::string& name) {
    return choice_of<OnlineScheme>(
        name, {{"ovo", OnlineScheme::ovo}, {"dag", OnlineScheme::dag}, {"ova", OnlineScheme::ova}});
}

OnlineOptions make_options(const std::string& selection, Index reprocess, Index budget, bool exact_bias, double tol,
                           double cache_bytes) {
    const Selection chosen = choice_of<Selection>(selection, {{"second-order", Selection::second_order},
                                                              {"first-order", Selection::first_order},
                                                              {"random", Selection::random}});
    return {chosen, reprocess, budget, exact_bias, tol, cache_bytes};
}

NumpyArray<std::int64_t> integers(const std::vector<Index>& values) {
    std::vector<std::int64_t> copy(values.begin(), values.end());
    const std::size_t n = copy.size();
    return to_numpy<std::int64_t>(std::move(copy), {n});
}

NumpyArray<double> numbers(std::vector<double> values) {
    const std::size_t n = values.size();
    return to_numpy<double>(std::move(values), {n});
}

NumpyArray<double> matrix(std::vector<double> values, std::size_t n_rows) {
    const std::size_t width = n_rows == 0 ? 0 : values.size() / n_rows;
    return to_numpy<double>(std::move(values), {n_rows, width});
}

void put_kept(nb::dict& out, KeptState kept) {
    const std::size_t n = kept.labels.size(), width = unsigned_index(kept.n_features);
    out["X"] = to_numpy<double>(std::move(kept.X), {n, width});
    out["labels"] = integers(kept.labels);
    out["ids"] = integers(kept.ids);
    out["caps"] = numbers(std::move(kept.caps));
}

template <class T>
std::vector<T> vector_from(const nb::dict& state, const char* name) {
    using Stored = std::conditional_t<std::is_same_v<T, double>, double, std::int64_t>;
    const auto array = nb::cast<nb::ndarray<const Stored, nb::c_contig, nb::device::cpu>>(state[name]);
    return {array.data(), array.data() + array.size()};
}

KeptState kept_from(const nb::dict& state) {
    const auto X = nb::cast<Matrix<double>>(state["X"]);
    return {static_cast<Index>(X.shape(1)),
            {X.data(), X.data() + X.shape(0) * X.shape(1)},
            vector_from<Index>(state, "labels"),
            vector_from<Index>(state, "ids"),
            vector_from<double>(state, "caps")};
}

nb::dict binaries_state(const OnlineBinaries& learner) {
    BinariesState state = in_turn(learner, [&] { return learner.state(); }, Turn::salvage);
    nb::dict out;
    put_kept(out, std::move(state.kept));
    out["counts"] = integers(state.counts);
    out["slots"] = integers(state.slots);
    out["beta"] = numbers(std::move(state.beta));
    out["errors"] = numbers(std::move(state.errors));
    out["random"] = state.random;
    return out;
}

void restore_binaries(OnlineBinaries* self, const Kernel& kernel, const nb::dict& state, const std::string& scheme,
                      Index n_classes, const OnlineOptions& options) {
    const BinariesState read{kept_from(state),
                             vector_from<Index>(state, "counts"),
                             vector_from<Index>(state, "slots"),
                             vector_from<double>(state, "beta"),
                             vector_from<double>(state, "errors"),
                             nb::cast<std::uint64_t>(state["random"])};
    new (self) OnlineBinaries(kernel, read, scheme_of(scheme), n_classes, options);
}

nb::dict machine_state(const OnlineMachine& learner) {
    MachineState state = in_turn(learner, [&] { return learner.state(); }, Turn::salvage);
    const std::size_t n = state.kept.labels.size();
    nb::dict out;
    put_kept(out, std::move(state.kept));
    out["amounts"] = matrix(std::move(state.variables), n);
    out["coefficients"] = matrix(std::move(state.coefficients), n);
    out["scores"] = matrix(std::move(state.scores), n);
    out["rates"] = numbers({state.rates.begin(), state.rates.end()});
    out["random"] = state.random;
    return out;
}

void restore_machine(OnlineMachine* self, const Kernel& kernel, const nb::dict& state, const Machine& machine,
                     const OnlineOptions& options) {
    const std::vector<double> rates = vector_from<double>(state, "rates");
    if (rates.size() != 3) throw nb::value_error("a state needs three rates");
    const MachineState read{kept_from(state),
                            vector_from<double>(state, "amounts"),
                            vector_from<double>(state, "coefficients"),
                            vector_from<double>(state, "scores"),
                            {rates[0], rates[1], rates[2]},
                            nb::cast<std::uint64_t>(state["random"])};
    new (self) OnlineMachine(kernel, read, machine, options);
}

NumpyArray<double> biases(const OnlineBinaries& learner) {
    return numbers(in_turn(learner, [&] {
        std::vector<double> values;
        for (Index m = 0; m < learner.n_machines(); ++m) values.push_back(learner.bias(m));
        return values;
    }));
}

void make_binaries(OnlineBinaries* self, const Kernel& kernel, Index n_features, const std::string& scheme,
                   Index n_classes, const OnlineOptions& options, std::uint64_t seed) {
    new (self) OnlineBinaries(kernel, n_features, scheme_of(scheme), n_classes, options, seed);
}

bool forget(OnlineLearner& learner, Index number) {
    return in_turn(learner, [&] { return learner.forget(number); }, Turn::change);
}

// Of functions that bring scores up to date first.
auto computed_by(double (OnlineLearner::*function)()) {
    return [function](OnlineLearner& learner) {
        return in_turn(learner, [&] { return (learner.*function)(); }, Turn::change);
    };
}

}  // namespace

void bind_online(nb::module_& module) {
    nb::class_<OnlineOptions>(module, "OnlineOptions")
        .def(nb::new_(&make_options), "selection"_a, "reprocess"_a, "budget"_a, "exact_bias"_a, "tol"_a,
             "cache_bytes"_a);
    nb::class_<OnlineLearner>(module, "OnlineLearner")
        .def("add", &add_block, "X"_a, "labels"_a, "caps"_a, "ids"_a, "predicted"_a.noconvert(), "n_threads"_a = 1)
        .def("forget", &forget, "number"_a)
        .def("improve", &improve, "n_rounds"_a, "n_threads"_a = 1)
        .def("dual", computed_by(&OnlineLearner::dual))
        .def("violation", computed_by(&OnlineLearner::violation))
        .def_prop_ro("is_broken", &OnlineLearner::is_broken)
        .def_prop_ro("n_kept",
                     [](const OnlineLearner& self) { return in_turn(self, [&] { return self.kept().size(); }); })
        .def_prop_ro("n_slots",
                     [](const OnlineLearner& self) { return in_turn(self, [&] { return self.kept().n_slots(); }); })
        .def_prop_ro(
            "n_steps",
            [](const OnlineLearner& self) { return in_turn(self, [&] { return self.n_steps(); }, Turn::salvage); })
        .def_prop_ro("n_support",
                     [](const OnlineLearner& self) { return in_turn(self, [&] { return self.n_support(); }); });
    nb::class_<OnlineBinaries, OnlineLearner>(module, "OnlineBinaries")
        .def("__init__", &make_binaries, "kernel"_a, "n_features"_a, "scheme"_a, "n_classes"_a, "options"_a, "seed"_a)
        .def("__init__", &restore_binaries, "kernel"_a, "state"_a, "scheme"_a, "n_classes"_a, "options"_a)
        .def("state", &binaries_state)
        .def("biases", &biases);
    nb::class_<OnlineMachine, OnlineLearner>(module, "OnlineMachine")
        .def(nb::init<const Kernel&, Index, const Machine&, const OnlineOptions&, std::uint64_t>(), "kernel"_a,
             "n_features"_a, "machine"_a, "options"_a, "seed"_a)
        .def("__init__", &restore_machine, "kernel"_a, "state"_a, "machine"_a, "options"_a)
        .def("state", &machine_state);
}

}  // namespace multimargin::bindings
