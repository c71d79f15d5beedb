// One shard of the scores of a multi-class problem, and the solver of its blocks, for drivers written in Python
// (solvers/sharded.py).
#include <nanobind/stl/vector.h>

#include <optional>
#include <variant>

#include "arrays.hpp"
#include "base/rng.hpp"
#include "shard_work.hpp"
#include "solvers/multiclass/local_engine.hpp"
#include "solvers/multiclass/two_level.hpp"

namespace multimargin::bindings {

namespace {

using namespace nb::literals;

class ScoreShard {
  public:
    ScoreShard(const Store& store, const Machine& machine, Loss loss, const Integers& rows, const Integers& y,
               const Vector1<double>& C, const Options& options)
        : work_(store, machine, loss, rows, y, C, options) {
        use_precision(false);
    }
    ScoreShard(const ScoreShard&) = delete;

    void use_precision(bool float64) {
        if (float64) {
            engine_.emplace<LocalEngine<double>>(work_.problem, work_.state, work_.options, work_.monitor, work_.tally,
                                                 work_.team);
        } else {
            engine_.emplace<LocalEngine<float>>(work_.problem, work_.state, work_.options, work_.monitor, work_.tally,
                                                work_.team);
        }
    }

    void begin_round(const Integers& active, const Integers& ranks) {
        const std::vector<Index> examples = indices_of(active), order = indices_of(ranks);
        work_.check_examples(examples);
        if (examples.size() != order.size()) throw nb::value_error("every active example needs a rank");
        n_active_ = static_cast<Index>(examples.size());
        visit([&](auto& engine) { engine.begin_round(examples, order); });
    }

    void end_round(const Integers& rows, const Reals& coefficients) {
        const Coefficients changes = work_.coefficients_from(rows, coefficients);
        visit([&](auto& engine) { engine.end_round(changes); });
        n_active_ = 0;
    }

    void confirm(const Integers& rows, const Reals& coefficients) {
        const Coefficients beta = work_.coefficients_from(rows, coefficients);
        visit([&](auto&) { refresh_scores(work_.problem, work_.state, beta, work_.team, &work_.monitor); });
    }

    void add(const Integers& positions, const Reals& variables, const Integers& rows, const Reals& coefficients) {
        const std::vector<Index> places = active_from(positions);
        const std::size_t width = variables.shape(1);
        const bool fits = variables.shape(0) == places.size() &&
                          static_cast<Index>(width) == work_.problem.machine().max_components();
        if (!fits) throw nb::value_error("variables need one line per position and one column per component");
        const Coefficients changes = work_.coefficients_from(rows, coefficients);
        visit([&](auto& engine) {
            for (std::size_t k = 0; k < places.size(); ++k) {
                engine.set_variables(places[k], {variables.data() + k * width, width});
            }
            engine.add(changes);
        });
    }

    double violation() {
        double largest = 0.0;
        visit([&](auto& engine) { largest = engine.violation(); });
        return largest;
    }

    nb::tuple worst(std::size_t k, const Integers& without) {
        const std::vector<Index> left_out = active_from(without);
        std::vector<Candidate> found;
        visit([&](auto& engine) { found = engine.worst(k, left_out); });
        return to_python(found);
    }

    nb::tuple candidates_at(const Integers& positions) {
        const std::vector<Index> places = active_from(positions);
        std::vector<Candidate> found;
        visit([&](auto& engine) { found = engine.candidates_at(places); });
        return to_python(found);
    }

    // Scores of the round's examples at some positions, one line for each.
    NumpyArray<double> gather(const Integers& positions) {
        const std::vector<Index> places = active_from(positions);
        const std::size_t width = unsigned_index(work_.n_scores());
        std::vector<double> values(places.size() * width);
        visit([&](auto& engine) {
            for (std::size_t k = 0; k < places.size(); ++k) {
                engine.scores_at(places[k], {values.data() + k * width, width});
            }
        });
        return to_numpy<double>(std::move(values), {places.size(), width});
    }

    // Of all examples; up to date between rounds.
    NumpyArray<double> scores() const {
        const std::size_t n = unsigned_index(work_.problem.size()), width = unsigned_index(work_.n_scores());
        std::vector<double> values(n * width);
        for (std::size_t e = 0; e < n; ++e) {
            for (std::size_t c = 0; c < width; ++c) {
                values[e * width + c] = work_.state.score(static_cast<Index>(c), static_cast<Index>(e));
            }
        }
        return to_numpy<double>(std::move(values), {n, width});
    }

  private:
    template <class Function>
    void visit(const Function& function) {
        const ReleasedGil released;
        if (auto* engine = std::get_if<LocalEngine<float>>(&engine_)) function(*engine);
        if (auto* engine = std::get_if<LocalEngine<double>>(&engine_)) function(*engine);
    }

    std::vector<Index> active_from(const Integers& positions) const {
        std::vector<Index> places = indices_of(positions);
        check_indices(places, n_active_);
        return places;
    }

    static nb::tuple to_python(const std::vector<Candidate>& candidates) {
        std::vector<Index> positions, ranks;
        std::vector<double> violations;
        for (const Candidate& candidate : candidates) {
            positions.push_back(candidate.position);
            violations.push_back(candidate.violation);
            ranks.push_back(candidate.rank);
        }
        const std::size_t n = violations.size();
        return nb::make_tuple(integers(std::move(positions)), to_numpy<double>(std::move(violations), {n}),
                              integers(std::move(ranks)));
    }

    Work work_;
    std::variant<std::monostate, LocalEngine<float>, LocalEngine<double>> engine_;
    Index n_active_ = 0;
};

// What a block's solve left.
struct BlockResult {
    bool solved = false, gave_up = false, gained = false;
    nb::object variables, is_free, rows, coefficients;
};

// Holds the variables of all examples, and solves blocks of them whose scores the caller has gathered from shards.
class BlockDriver {
  public:
    BlockDriver(const Store& store, const Machine& machine, Loss loss, const Integers& rows, const Integers& y,
                const Vector1<double>& C, const Options& options)
        : work_(store, machine, loss, rows, y, C, options), before_(work_.state.variables) {
        use_precision(false);
    }
    BlockDriver(const BlockDriver&) = delete;

    void use_precision(bool float64) {
        // Coefficients that float32 cannot carry come from a large C, where steps on examples crawl.
        const bool prefers = prefers_active_set() || (f32_ && float32_too_coarse());
        float64_ = float64;
        f32_.reset();
        f64_.reset();
        if (float64) {
            f64_.emplace(work_.problem, prefers || TwoLevelRules::takes_whole<double>(work_.problem), work_.monitor,
                         work_.tally, work_.team);
        } else {
            f32_.emplace(work_.problem, prefers, work_.monitor, work_.tally, work_.team);
        }
    }

    bool prefers_active_set() const { return f32_ ? f32_->prefers_active_set() : f64_ && f64_->prefers_active_set(); }
    Index block_size() const {
        return float64_ ? TwoLevelRules::block_size<double>(work_.problem)
                        : TwoLevelRules::block_size<float>(work_.problem);
    }
    bool fits_active_set() const { return TwoLevelRules::fits_active_set(work_.problem); }
    double most_margin() const { return TwoLevelRules::most_margin(work_.problem.machine()); }
    bool float32_too_coarse() const {
        return multimargin::float32_too_coarse(work_.problem, work_.state, work_.options.tol);
    }
    bool fits_float32() const { return work_.problem.source().fits_float32(); }
    Index iterations() const { return work_.tally.iterations; }

    // (violation, dual, primal) from the scores of all examples; `exact` ones are where the dual is counted from.
    nb::tuple summarize(const Reals& scores, bool exact) {
        const std::vector<Index> all = first_indices(work_.problem.size());
        load_scores(all, scores);
        const Summary summary = multimargin::summarize(work_.problem, work_.state);
        if (exact) work_.tally.note(summary);
        return nb::make_tuple(summary.violation, summary.dual, summary.primal);
    }

    // By the scores that were summarized last.
    NumpyArray<std::int64_t> near_active(double margin) {
        LocalEngine<double> engine(work_.problem, work_.state, work_.options, work_.monitor, work_.tally, work_.team);
        return integers(engine.near_active(margin));
    }

    void begin_round() { before_ = work_.state.variables; }
    nb::tuple round_changes() const { return changes_from(before_); }
    nb::tuple coefficients() const { return changes_from(AlignedVector<double>(work_.state.variables.size(), 0.0)); }

    NumpyArray<double> variables() const {
        const std::size_t n = unsigned_index(work_.problem.size());
        const std::size_t width = unsigned_index(work_.problem.machine().max_components());
        std::vector<double> values(n * width);
        for (std::size_t e = 0; e < n; ++e) {
            for (std::size_t p = 0; p < width; ++p) {
                values[e * width + p] = work_.state.variable(static_cast<Index>(p), static_cast<Index>(e));
            }
        }
        return to_numpy<double>(std::move(values), {n, width});
    }

    BlockResult solve(const Integers& chosen, const Reals& scores, double target) {
        std::vector<Index> examples = indices_of(chosen);
        work_.check_examples(examples);
        load_scores(examples, scores);
        Workspace block(work_.problem, work_.state, examples);
        const AlignedVector<double> before = block.all_variables();
        const double dual = work_.tally.dual;
        BlockResult result;
        {
            const ReleasedGil released;
            constexpr Index no_limit = std::numeric_limits<Index>::max();
            result.solved =
                float64_ ? f64_->solve(block, {}, target, no_limit) : f32_->solve(block, {}, target, no_limit);
        }
        result.gained = work_.tally.dual > dual;
        const std::size_t n = examples.size();
        const std::size_t width = unsigned_index(work_.problem.machine().max_components());
        std::vector<double> values(n * width);
        std::vector<std::int64_t> is_free(n, 0);
        for (std::size_t k = 0; k < n; ++k) {
            for (std::size_t p = 0; p < width; ++p) {
                const double a = block.variables(static_cast<Index>(p))[k];
                values[k * width + p] = a;
                work_.state.variable(static_cast<Index>(p), examples[k]) = a;
                if (a > 0.0 && a < block.cap()[k]) is_free[k] = 1;
            }
        }
        const Coefficients changes = changed_coefficients(work_.problem, examples, [&](Index k, Index p) {
            return block.variables(p)[k] - before[unsigned_index(p * block.ld() + k)];
        });
        const nb::tuple lists = work_.to_python(changes);
        result.variables = nb::cast(to_numpy<double>(std::move(values), {n, width}));
        result.is_free = nb::cast(to_numpy<std::int64_t>(std::move(is_free), {n}));
        result.rows = lists[0];
        result.coefficients = lists[1];
        return result;
    }

  private:
    void load_scores(const std::vector<Index>& examples, const Reals& scores) {
        const std::size_t width = unsigned_index(work_.n_scores());
        if (scores.shape(0) != examples.size() || scores.shape(1) != width) {
            throw nb::value_error("scores need one line per example and one column per score");
        }
        for (std::size_t k = 0; k < examples.size(); ++k) {
            for (std::size_t c = 0; c < width; ++c) {
                work_.state.scores[c * unsigned_index(work_.state.ld) + unsigned_index(examples[k])] =
                    scores.data()[k * width + c];
            }
        }
    }

    nb::tuple changes_from(const AlignedVector<double>& before) const {
        const std::vector<Index> all = first_indices(work_.problem.size());
        return work_.to_python(changed_coefficients(work_.problem, all, [&](Index e, Index p) {
            return work_.state.variable(p, e) - before[unsigned_index(p * work_.state.ld + e)];
        }));
    }

    Work work_;
    AlignedVector<double> before_;  // variables when the round began
    bool float64_ = false;
    std::optional<BlockSolver<float>> f32_;
    std::optional<BlockSolver<double>> f64_;
};

}  // namespace

void bind_shards(nb::module_& module) {
    using Given = nb::init<const Store&, const Machine&, Loss, const Integers&, const Integers&, const Vector1<double>&,
                           const Options&>;
    nb::class_<ScoreShard>(module, "ScoreShard")
        .def(Given(), "store"_a, "machine"_a, "loss"_a, "rows"_a, "y"_a, "C"_a, "options"_a, nb::keep_alive<1, 2>())
        .def("use_precision", &ScoreShard::use_precision, "float64"_a)
        .def("begin_round", &ScoreShard::begin_round, "active"_a, "ranks"_a)
        .def("end_round", &ScoreShard::end_round, "rows"_a, "coefficients"_a)
        .def("confirm", &ScoreShard::confirm, "rows"_a, "coefficients"_a)
        .def("add", &ScoreShard::add, "positions"_a, "variables"_a, "rows"_a, "coefficients"_a)
        .def("violation", &ScoreShard::violation)
        .def("worst", &ScoreShard::worst, "k"_a, "without"_a)
        .def("candidates_at", &ScoreShard::candidates_at, "positions"_a)
        .def("gather", &ScoreShard::gather, "positions"_a)
        .def("scores", &ScoreShard::scores);
    nb::class_<BlockResult>(module, "BlockResult")
        .def_ro("solved", &BlockResult::solved)
        .def_ro("gained", &BlockResult::gained)
        .def_ro("variables", &BlockResult::variables)
        .def_ro("is_free", &BlockResult::is_free)
        .def_ro("rows", &BlockResult::rows)
        .def_ro("coefficients", &BlockResult::coefficients);
    nb::class_<BlockDriver>(module, "BlockSolver")
        .def(Given(), "store"_a, "machine"_a, "loss"_a, "rows"_a, "y"_a, "C"_a, "options"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("prefers_active_set", &BlockDriver::prefers_active_set)
        .def_prop_ro("block_size", &BlockDriver::block_size)
        .def_prop_ro("fits_active_set", &BlockDriver::fits_active_set)
        .def_prop_ro("most_margin", &BlockDriver::most_margin)
        .def_prop_ro("float32_too_coarse", &BlockDriver::float32_too_coarse)
        .def_prop_ro("fits_float32", &BlockDriver::fits_float32)
        .def_prop_ro("iterations", &BlockDriver::iterations)
        .def("use_precision", &BlockDriver::use_precision, "float64"_a)
        .def("summarize", &BlockDriver::summarize, "scores"_a, "exact"_a)
        .def("near_active", &BlockDriver::near_active, "margin"_a)
        .def("begin_round", &BlockDriver::begin_round)
        .def("round_changes", &BlockDriver::round_changes)
        .def("coefficients", &BlockDriver::coefficients)
        .def("variables", &BlockDriver::variables)
        .def("solve", &BlockDriver::solve, "examples"_a, "scores"_a, "target"_a);
    module.def("random_permutation", [](Index n) { return integers(random_permutation(n, 0)); }, "n"_a);
    nb::dict rules;
    rules["carried_share"] = TwoLevelRules::carried_share;
    rules["round_share"] = TwoLevelRules::round_share;
    rules["block_share"] = TwoLevelRules::block_share;
    rules["exact_share"] = TwoLevelRules::exact_share;
    module.attr("TWO_LEVEL_RULES") = rules;
}

}  // namespace multimargin::bindings
