#include "solvers/binary/c_path.hpp"

#include "binary_cases.hpp"
#include "check.hpp"
#include "kernel/cached_source.hpp"
#include "kernel/gram_source.hpp"

namespace multimargin {

namespace {

using testing::check_optimal;
using testing::PlainCheck;
using testing::TwoClouds;

const std::vector<double> costs{0.1, 0.4, 2.0, 2.5, 300.0};

void add(std::deque<BinaryPath>& paths, const TwoClouds& clouds) {
    BinaryPath& path = paths.emplace_back();
    path.rows = clouds.rows;
    path.n_positive = clouds.n_positive;
    path.weights.assign(clouds.rows.size(), 1.0);
    for (std::size_t e = 0; e < path.weights.size(); e += 3) path.weights[e] = 1.7;
}

// The clouds with the costs of one point.
TwoClouds at(TwoClouds clouds, const BinaryPath& path, double C) {
    for (std::size_t e = 0; e < clouds.C.size(); ++e) clouds.C[e] = C * path.weights[e];
    return clouds;
}

void check_points(const TwoClouds& clouds, const BinaryPath& path, Loss loss, double tol) {
    CHECK(path.points.size() == costs.size());
    for (std::size_t k = 0; k < costs.size(); ++k) {
        const PathPoint& point = path.points[k];
        CHECK(point.report.stop_reason == StopReason::converged && point.report.verified);
        const TwoClouds here = at(clouds, path, costs[k]);
        const PlainCheck exact(here, loss, point.variables);
        check_optimal(here, loss, exact, tol + 1e-9);
        CHECK_CLOSE(point.report.dual, exact.dual, 1e-9 * (1.0 + exact.primal));
        CHECK_CLOSE(point.report.bias, exact.bias, 1e-8);
        CHECK(point.report.n_support == exact.n_support);
    }
}

struct StopAt final : Watcher {
    explicit StopAt(int calls_) : calls(calls_) {}
    Verdict watch(const Progress&, const std::function<void()>&) override {
        return --calls <= 0 ? Verdict::callback : Verdict::go_on;
    }
    int calls;
};

PathPool pool;

}  // namespace

TEST(binary_path_points_are_optimal) {
    const TwoClouds clouds(70, 110, 3, 5);
    const DenseSource source = clouds.source();
    for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
        for (const double cache_bytes : {1e8, 1e4, 0.0}) {  // the matrix kept, some rows, none
            std::deque<BinaryPath> paths;
            add(paths, clouds);
            Options options;
            options.solver = SolverKind::two_level;
            options.cache_bytes = cache_bytes;
            CHECK(solve_paths(source, paths, costs, loss, options, pool, nullptr) == StopReason::converged);
            CHECK(paths[0].n_done == static_cast<Index>(costs.size()));
            check_points(clouds, paths[0], loss, options.tol);
            // Kept, no point asks the source for rows.
            CHECK((paths[0].points.back().report.kernel_rows == 0) == (cache_bytes == 1e8));
        }
    }
}

TEST(binary_path_starts_from_the_point_before) {
    const TwoClouds clouds(150, 150, 3, 6, 20.0);
    const DenseSource source = clouds.source();
    std::deque<BinaryPath> paths, alone;
    add(paths, clouds);
    add(alone, clouds);
    Options options;
    const std::vector<double> Cs{0.5, 1.0, 1.5, 1e3, 1e4}, last{1.5};
    solve_paths(source, paths, Cs, Loss::hinge, options, pool, nullptr);
    solve_paths(source, alone, last, Loss::hinge, options, pool, nullptr);
    CHECK(paths[0].points[2].report.iterations < alone[0].points[0].report.iterations);
    // Where no variable is at its bound any more, a larger C changes nothing.
    const PathPoint &before = paths[0].points[3], &after = paths[0].points[4];
    double largest = 0.0;
    for (const double a : before.variables) largest = std::max(largest, a);
    CHECK(largest < 1e3);
    CHECK(after.report.iterations == 0);
    for (std::size_t e = 0; e < after.variables.size(); ++e) {
        CHECK_CLOSE(after.variables[e], before.variables[e], 1e-2 * (1.0 + before.variables[e]));
    }
}

TEST(binary_path_does_not_depend_on_the_threads) {
    std::deque<TwoClouds> clouds;
    for (const Index n : {40, 160, 90, 4100, 61}) clouds.emplace_back(n / 3, n - n / 3, 3, 20);
    const DenseSource source = clouds[3].source();
    std::deque<BinaryPath> one, three;
    for (std::deque<BinaryPath>* paths : {&one, &three}) {
        for (const TwoClouds& each : clouds) add(*paths, each);
    }
    const std::vector<double> Cs{0.5, 2.0};
    Options options;
    solve_paths(source, one, Cs, Loss::hinge, options, pool, nullptr);
    options.n_threads = 3;
    solve_paths(source, three, Cs, Loss::hinge, options, pool, nullptr);
    for (std::size_t t = 0; t < one.size(); ++t) {
        for (std::size_t k = 0; k < Cs.size(); ++k) {
            CHECK(one[t].points[k].variables == three[t].points[k].variables);
            CHECK(one[t].points[k].report.bias == three[t].points[k].report.bias);
        }
    }
}

TEST(binary_path_keeps_the_points_before_a_stop) {
    const TwoClouds clouds(400, 400, 3, 8);
    const DenseSource source = clouds.source();
    std::deque<BinaryPath> paths;
    add(paths, clouds);
    std::vector<double> many;
    for (int k = 0; k < 2000; ++k) many.push_back(0.01 * std::pow(1.01, k));
    Options options;
    options.tol = 1e-9;
    StopAt watcher(2);
    CHECK(solve_paths(source, paths, many, Loss::hinge, options, pool, &watcher) == StopReason::callback);
    CHECK(paths[0].points.size() < many.size());
    for (const PathPoint& point : paths[0].points) CHECK(point.report.stop_reason == StopReason::converged);
    options.max_time = 1e-9;
    std::deque<BinaryPath> none;
    add(none, clouds);
    CHECK(solve_paths(source, none, many, Loss::hinge, options, pool, nullptr) == StopReason::max_time);
    CHECK(none[0].points.empty());
}

TEST(binary_path_kept_matrix_has_the_values_of_its_source) {
    const TwoClouds clouds(30, 41, 3, 9);
    const DenseSource source = clouds.source();
    KeptMemory memory;
    const KeptSource kept(source, clouds.rows, memory);
    CHECK(kept.size() == 71 && KeptSource::bytes(71) >= 71.0 * 71.0 * 12.0);
    std::vector<Index> all(71);
    for (Index i = 0; i < 71; ++i) all[unsigned_index(i)] = i;
    const std::vector<Index> some{70, 0, 33};
    const auto whole = kept.columns<float>(all);
    const auto part = kept.columns<double>(some);
    CHECK(part->kept_row(0) == nullptr);
    AlignedVector<double> values(71 * 64);
    part->fill(all, values.data(), 64);
    for (Index i = 0; i < 71; ++i) {
        CHECK_CLOSE(kept.diagonal(i), 1.0, 1e-15);
        for (Index j = 0; j < 71; ++j) CHECK_CLOSE(whole->kept_row(i)[j], clouds.kernel(i, j), 1e-7);
        for (std::size_t k = 0; k < 3; ++k) {
            CHECK_CLOSE(values[unsigned_index(i * 64) + k], clouds.kernel(i, some[k]), 1e-14);
        }
    }
}

TEST(binary_path_on_a_given_matrix) {
    const TwoClouds clouds(50, 60, 3, 10);
    const Index n = clouds.size() + TwoClouds::unused;
    AlignedVector<double> matrix(unsigned_index(n * n), 0.0);
    for (Index i = 0; i < clouds.size(); ++i) {
        for (Index j = 0; j < clouds.size(); ++j) {
            matrix[unsigned_index(clouds.rows[unsigned_index(i)] * n + clouds.rows[unsigned_index(j)])] =
                clouds.kernel(i, j);
        }
    }
    const GramSource source(DenseView(matrix.data(), n, n), 0.0);
    std::deque<BinaryPath> paths;
    add(paths, clouds);
    Options options;
    solve_paths(source, paths, costs, Loss::hinge, options, pool, nullptr);
    check_points(clouds, paths[0], Loss::hinge, options.tol);
}

}  // namespace multimargin
