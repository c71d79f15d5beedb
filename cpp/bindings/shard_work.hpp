// What bindings of multi-class shards share: a problem with its state, and coefficients as arrays.
#pragma once

#include <vector>

#include "arrays.hpp"
#include "problem/options.hpp"
#include "problem/problem.hpp"
#include "problem/solve_stats.hpp"
#include "store.hpp"

namespace multimargin::bindings {

using Integers = Vector1<std::int64_t>;
using Reals = Matrix<double>;

inline NumpyArray<std::int64_t> integers(std::vector<Index> values) {
    const std::size_t n = values.size();
    return to_numpy<std::int64_t>(std::vector<std::int64_t>(values.begin(), values.end()), {n});
}

// A problem with its state, and what a solver of it needs.
struct Work {
    Work(const Store& store, const Machine& machine, Loss loss, const Integers& rows, const Integers& y,
         const Vector1<double>& C, const Options& given)
        : problem(*store.source, machine, loss, indices_of(rows), indices_of(y), span_of(C)),
          state(problem),
          options(given),
          monitor(nullptr, infinity),
          team(given.n_threads) {
        for (Index e = 0; e < problem.size(); ++e) {
            if (problem.given_position(e) != e) throw nb::value_error("examples must be given in the order of classes");
        }
    }

    Index n_scores() const { return problem.machine().n_scores(); }

    void check_examples(const std::vector<Index>& examples) const { check_indices(examples, problem.size()); }

    // (rows, coefficients), a line of coefficients for each row.
    nb::tuple to_python(const Coefficients& coefficients) const {
        const std::size_t m = coefficients.rows().size(), width = unsigned_index(n_scores());
        std::vector<double> values(m * width, 0.0);
        for (std::size_t c = 0; c < width; ++c) {
            const auto& positions = coefficients.positions(static_cast<Index>(c));
            const auto& column = coefficients.values(static_cast<Index>(c));
            for (std::size_t k = 0; k < positions.size(); ++k) {
                values[static_cast<std::size_t>(positions[k]) * width + c] = column[k];
            }
        }
        return nb::make_tuple(integers({coefficients.rows().begin(), coefficients.rows().end()}),
                              to_numpy<double>(std::move(values), {m, width}));
    }

    Coefficients coefficients_from(const Integers& rows, const Reals& values) const {
        const std::vector<Index> list = indices_of(rows);
        check_indices(list, problem.source().size());
        const std::size_t width = unsigned_index(n_scores());
        if (values.shape(0) != list.size() || values.shape(1) != width) {
            throw nb::value_error("coefficients need one line per row and one column per score");
        }
        Coefficients coefficients(n_scores());
        for (std::size_t k = 0; k < list.size(); ++k) {
            coefficients.add_row(list[k], {values.data() + k * width, width});
        }
        return coefficients;
    }

    Problem problem;
    FullState state;
    Options options;
    Monitor monitor;
    Tally tally;
    ThreadTeam team;
};

}  // namespace multimargin::bindings
