// A start with nearly all variables at their bounds: feasible, with the errors it says, and only where it helps.
#include "solvers/binary/bounded_start.hpp"

#include <numeric>

#include "binary_cases.hpp"
#include "check.hpp"
#include "kernel/cached_source.hpp"
#include "solvers/binary/c_path.hpp"

namespace multimargin {

namespace {

using testing::check_optimal;
using testing::PlainCheck;
using testing::TwoClouds;

// The problem of the clouds at one C, its kernel in memory.
struct Kept {
    Kept(const TwoClouds& clouds, const KernelSource& of, double C, Loss loss = Loss::hinge)
        : source(of, clouds.rows, memory), rows(clouds.rows.size()), costs(clouds.rows.size(), C), loss_(loss) {
        std::iota(rows.begin(), rows.end(), Index{0});
        n_positive = clouds.n_positive;
    }
    BinaryProblem problem() const { return {source, rows, n_positive, costs, loss_}; }
    bool starts() const {
        const BinaryProblem stated = problem();
        BinaryState state(stated);
        const bool found = start_at_bounds(stated, state);
        CHECK(found == state.errors_given);
        const bool untouched =
            std::all_of(state.variables.begin(), state.variables.end(), [](double a) { return a == 0.0; });
        CHECK(found != untouched);
        return found;
    }

    KeptMemory memory;
    KeptSource source;
    std::vector<Index> rows;
    std::vector<double> costs;
    Index n_positive = 0;
    Loss loss_;
};

}  // namespace

TEST(bounded_start_is_feasible_and_knows_its_scores) {
    for (const Index n_negative : {70, 64, 41}) {
        TwoClouds clouds(64, n_negative, 3, 5);
        const DenseSource of = clouds.source();
        const double C = 0.02;
        const Kept kept(clouds, of, C);
        const BinaryProblem problem = kept.problem();
        BinaryState state(problem);
        CHECK(start_at_bounds(problem, state));
        clouds.C.assign(clouds.C.size(), C);
        const PlainCheck exact(clouds, Loss::hinge, state.variables);
        CHECK(exact.feasible() && exact.n_support >= clouds.size() / 2);
        for (std::size_t e = 0; e < state.errors.size(); ++e) {
            CHECK(state.variables[e] == 0.0 || state.variables[e] == C);
            CHECK_CLOSE(state.errors[e], exact.E[e], 1e-12);
        }
        CHECK(exact.dual > 0.5 * C * static_cast<double>(exact.n_support));
    }
}

TEST(bounded_start_only_where_it_helps) {
    const TwoClouds clouds(64, 70, 3, 5), uneven(20, 90, 3, 6);
    const DenseSource of = clouds.source(), of_uneven = uneven.source();
    CHECK(Kept(clouds, of, 0.02).starts());
    CHECK(!Kept(clouds, of, 50.0).starts());                       // few are at their bounds
    CHECK(!Kept(uneven, of_uneven, 0.02).starts());                // most of one class are 0
    CHECK(!Kept(clouds, of, 0.02, Loss::squared_hinge).starts());  // no bounds
    Kept weighted(clouds, of, 0.02);
    weighted.costs[3] *= 2.0;
    CHECK(!weighted.starts());                           // equal counts would not keep the equality
    const BinaryProblem elsewhere = clouds.problem(of);  // a row would have to be computed
    BinaryState state(elsewhere);
    CHECK(!start_at_bounds(elsewhere, state) && !state.errors_given);
}

TEST(bounded_start_leads_a_path_to_its_optimum) {
    TwoClouds clouds(150, 140, 3, 7, 0.3);
    const DenseSource source = clouds.source();
    std::deque<BinaryPath> paths;
    BinaryPath& path = paths.emplace_back();
    path.rows = clouds.rows;
    path.n_positive = clouds.n_positive;
    path.weights.assign(clouds.rows.size(), 1.0);
    const std::vector<double> Cs{0.002, 0.1, 5.0};
    PathPool pool;
    Options options;
    CHECK(solve_paths(source, paths, Cs, Loss::hinge, options, pool, nullptr) == StopReason::converged);
    for (std::size_t k = 0; k < Cs.size(); ++k) {
        clouds.C.assign(clouds.C.size(), Cs[k]);
        const PlainCheck exact(clouds, Loss::hinge, path.points[k].variables);
        check_optimal(clouds, Loss::hinge, exact, options.tol + 1e-9);
    }
    CHECK(path.points[0].report.iterations < 15);  // from zero 140 pairs would go to their bounds
}

}  // namespace multimargin
