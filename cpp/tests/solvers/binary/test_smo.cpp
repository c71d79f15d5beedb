#include "solvers/binary/smo.hpp"

#include <limits>
#include <numeric>

#include "binary_cases.hpp"
#include "check.hpp"

namespace multimargin {

namespace {

using testing::check_optimal;
using testing::Numbers;
using testing::PlainCheck;
using testing::TwoClouds;

constexpr Loss losses[] = {Loss::hinge, Loss::squared_hinge};
constexpr Index no_limit = std::numeric_limits<Index>::max();

// A descent on all examples, with their whole kernel matrix. Its padding holds numbers that must not be read.
template <class T>
struct Work {
    Work(const TwoClouds& of, Loss loss_ = Loss::hinge, bool most_violating = false)
        : clouds(of),
          loss(loss_),
          source(of.source()),
          problem(of.problem(source, loss_)),
          all(of.rows.size()),
          descent(most_violating) {
        const Index n = problem.size(), padded = round_up(n, simd::panel_width);
        std::iota(all.begin(), all.end(), Index{0});
        matrix = Numbers(9).many<T>(n * padded, -1000.0, 1000.0);
        for (Index i = 0; i < n; ++i) {
            for (Index j = 0; j < n; ++j) matrix[unsigned_index(i * padded + j)] = static_cast<T>(of.kernel(i, j));
        }
        start_at(std::vector<double>(all.size(), 0.0));
    }

    void start_at(const std::vector<double>& variables) {
        start = variables;
        descent.load(problem, all, variables, PlainCheck(clouds, loss, variables).E);
    }
    Outcome run(double target, Index max_steps = no_limit, double seconds = infinity) {
        MatrixRows<T> rows(matrix.data(), round_up(problem.size(), simd::panel_width));
        Monitor monitor(nullptr, seconds);
        return descent.run(rows, target, max_steps, monitor);
    }
    std::vector<double> variables() const {
        std::vector<double> values;
        for (Index e = 0; e < descent.size(); ++e) values.push_back(descent.variable(e));
        return values;
    }
    PlainCheck check() const { return {clouds, loss, variables()}; }

    const TwoClouds& clouds;
    Loss loss;
    DenseSource source;
    BinaryProblem problem;
    std::vector<Index> all;
    AlignedVector<T> matrix;
    std::vector<double> start;
    BinaryDescent<T> descent;
};

// What the descent believes, against plain loops. `rounding`: of its errors.
template <class T>
PlainCheck check_account(const Work<T>& work, double rounding) {
    const PlainCheck exact = work.check();
    for (std::size_t e = 0; e < exact.E.size(); ++e) {
        CHECK_CLOSE(work.descent.error(static_cast<Index>(e)), exact.E[e], rounding);
    }
    const double before = PlainCheck(work.clouds, work.loss, work.start).dual;
    CHECK_CLOSE(work.descent.gain(), exact.dual - before, 10.0 * rounding * (1.0 + exact.mass));
    CHECK(std::abs(exact.sum) <= 1e-13 * (1.0 + exact.mass));
    CHECK(exact.in_box);
    return exact;
}

void vary_weights(TwoClouds& clouds, double low, double high) {
    Numbers numbers(4);
    for (double& C : clouds.C) C = numbers.uniform(low, high);
}

}  // namespace

TEST(binary_descent_finds_the_optimum) {
    for (const Loss loss : losses) {
        for (const double C : {0.01, 1.0, 100.0}) {
            TwoClouds clouds(31, 46, 3, 2);
            clouds.C.assign(clouds.C.size(), C);
            if (C == 1.0) vary_weights(clouds, 0.1, 3.0);
            Work<double> work(clouds, loss);
            CHECK(work.run(1e-8) == Outcome::satisfied && work.descent.violation() <= 1e-8);
            const PlainCheck exact = check_account(work, 1e-12 * (1.0 + C));
            check_optimal(clouds, loss, exact, 1e-8 + 1e-11 * C);
            CHECK_CLOSE(work.descent.violation(), exact.violation, 1e-11 * (1.0 + C));
            Work<float> coarse(clouds, loss);
            const double reachable = 1e-4 * (1.0 + C);
            CHECK(coarse.run(reachable) == Outcome::satisfied);
            check_optimal(clouds, loss, check_account(coarse, 0.3 * reachable), 2.0 * reachable);
        }
    }
}

TEST(binary_descent_reaches_bounds_exactly) {
    TwoClouds clouds(40, 35, 3, 6);
    vary_weights(clouds, 0.2, 1.0);
    Work<double> work(clouds);
    CHECK(work.run(1e-9) == Outcome::satisfied);
    Index at_zero = 0, at_cap = 0;
    for (std::size_t e = 0; e < clouds.C.size(); ++e) {
        const double a = work.descent.variable(static_cast<Index>(e));
        at_zero += a == 0.0 ? 1 : 0;
        at_cap += a == clouds.C[e] ? 1 : 0;
        CHECK(a == 0.0 || a > 1e-12);  // neither is a bound missed by rounding
        CHECK(a == clouds.C[e] || a < clouds.C[e] - 1e-12);
    }
    CHECK(at_zero > 5 && at_cap > 20);
    CHECK(at_zero + at_cap < 75);
}

TEST(binary_descent_reaches_a_bound_that_addition_misses) {
    Numbers numbers(8);
    Index n_seen = 0;
    while (n_seen < 20) {
        const double a = numbers.uniform(0.0, 0.3), C = numbers.uniform(0.9, 1.0);
        if (a + (C - a) == C) continue;
        ++n_seen;
        for (const bool first_lighter : {true, false}) {
            TwoClouds clouds(1, 1, 2, 3);
            clouds.C = first_lighter ? std::vector<double>{C, 7.0} : std::vector<double>{7.0, C};
            std::fill(clouds.X.begin(), clouds.X.end(), 0.0);  // the same point twice: as far as the box allows
            Work<double> work(clouds);
            work.start_at({a, a});
            CHECK(work.run(1e-9) == Outcome::satisfied);
            CHECK(work.descent.variable(first_lighter ? 0 : 1) == C);
        }
    }
}

TEST(binary_descent_takes_the_pair_of_largest_gain) {
    // At zero all positive errors tie and the first is taken; the second follows from kernel and ridges.
    for (const Loss loss : losses) {
        TwoClouds clouds(30, 60, 3, 12);
        vary_weights(clouds, 0.1, 5.0);
        Work<double> work(clouds, loss);
        CHECK(work.run(1e-9, 1) == Outcome::out_of_steps);
        Index second = 30;
        double best = 0.0;
        for (Index j = 30; j < 90; ++j) {
            const double bend = work.problem.diagonal(0) + work.problem.diagonal(j) - 2.0 * clouds.kernel(0, j);
            if (4.0 / bend > best) best = 4.0 / bend, second = j;
        }
        for (Index e = 0; e < 90; ++e) CHECK((work.descent.variable(e) > 0.0) == (e == 0 || e == second));
    }
}

// From any point: the pair that a plain search for the two extremes finds.
TEST(binary_descent_takes_the_most_violating_pair) {
    for (const Loss loss : losses) {
        TwoClouds clouds(30, 60, 3, 12);
        vary_weights(clouds, 0.1, 5.0);
        Work<double> work(clouds, loss, true);
        for (int i = 0; i < 40; ++i) {
            const PlainCheck before = work.check();
            const std::vector<double> a = work.variables();
            Index low = -1, up = -1;
            for (Index e = 0; e < 90; ++e) {
                const std::size_t k = unsigned_index(e);
                if (work.problem.may_rise(e, a[k]) && before.E[k] == before.lowest_up) up = up < 0 ? e : up;
                if (work.problem.may_fall(e, a[k]) && before.E[k] == before.largest_low) low = low < 0 ? e : low;
            }
            work.start_at(a);
            CHECK(work.run(1e-9, 1) == Outcome::out_of_steps);
            for (Index e = 0; e < 90; ++e) {
                CHECK((work.descent.variable(e) != a[unsigned_index(e)]) == (e == up || e == low));
            }
        }
        CHECK(work.run(1e-8) == Outcome::satisfied);
        check_optimal(clouds, loss, work.check(), 1e-8 + 1e-11);
    }
}

TEST(binary_descent_of_a_kernel_that_is_not_positive) {
    TwoClouds clouds(1, 1, 2, 3);
    for (const double C : {1.0, 1e20}) {
        clouds.C = {C, C};
        Work<double> work(clouds);
        work.matrix[1] = work.matrix[64] = 1.5;  // curvature -1: to the bound, or as far as its floor says
        CHECK(work.run(1e-9, 1) != Outcome::stuck);
        CHECK(work.descent.variable(0) == std::min(C, 2.0 / 1e-12) &&
              work.descent.variable(1) == work.descent.variable(0));
    }
}

TEST(binary_descent_of_one_pair) {
    for (const bool first_lighter : {true, false}) {
        TwoClouds clouds(1, 1, 2, 3);
        clouds.C = first_lighter ? std::vector<double>{0.125, 7.0} : std::vector<double>{7.0, 0.125};
        Work<double> work(clouds);
        CHECK(work.run(1e-9) == Outcome::satisfied && work.descent.steps() == 1);
        CHECK(work.descent.variable(0) == 0.125 && work.descent.variable(1) == 0.125);
        CHECK(work.descent.violation() == 0.0);  // none may rise, or none may fall
        clouds.C = {1e6, 1e6};
        Work<double> inside(clouds);
        CHECK(inside.run(1e-9) == Outcome::satisfied);
        const double expected = 1.0 / (1.0 - clouds.kernel(0, 1));  // 2 / (k11 + k22 - 2 k12)
        CHECK_CLOSE(inside.descent.variable(0), expected, 1e-12 * expected);
        Work<double> squared(clouds, Loss::squared_hinge);
        CHECK(squared.run(1e-9) == Outcome::satisfied);
        const double softer = 2.0 / (2.0 - 2.0 * clouds.kernel(0, 1) + 2.0 * 0.5e-6);
        CHECK_CLOSE(squared.descent.variable(1), softer, 1e-12 * softer);
    }
}

TEST(binary_descent_from_a_feasible_point) {
    for (const Loss loss : losses) {
        TwoClouds clouds(33, 60, 3, 8);
        vary_weights(clouds, 0.5, 2.0);
        Work<double> cold(clouds, loss), warm(clouds, loss);
        CHECK(cold.run(1e-8) == Outcome::satisfied);
        BinaryState state(cold.problem);
        Numbers numbers(1);
        for (double& a : state.variables) a = numbers.uniform(-0.5, 2.5);
        make_feasible(warm.problem, state);
        warm.start_at(state.variables);
        CHECK(warm.run(1e-8) == Outcome::satisfied);
        const PlainCheck exact = check_account(warm, 1e-11);
        check_optimal(clouds, loss, exact, 2e-8);
        CHECK_CLOSE(exact.dual, cold.check().dual, 1e-6);
        warm.start_at(warm.variables());
        CHECK(warm.run(2e-8) == Outcome::satisfied && warm.descent.steps() == 0 && warm.descent.gain() == 0.0);
    }
}

TEST(binary_descent_counts_steps_from_the_load) {
    const TwoClouds clouds(50, 50, 3, 2);
    Work<double> work(clouds), whole(clouds);
    Index taken = 0;
    double dual = 0.0;
    for (const Index limit : {0, 1, 5, 6, 40}) {
        CHECK(work.run(1e-9, limit) == Outcome::out_of_steps);
        CHECK(work.descent.steps() == limit);
        const PlainCheck exact = check_account(work, 1e-12);
        CHECK(limit == 0 || exact.dual > dual);  // no step loses
        CHECK(exact.violation > 1e-9 && work.descent.violation() > 1e-9);
        CHECK_CLOSE(work.descent.violation(), exact.violation, 1e-12);
        dual = exact.dual;
        taken = limit;
    }
    CHECK(whole.run(1e-9, taken) == Outcome::out_of_steps);
    CHECK(whole.variables() == work.variables());  // where it paused makes no difference
    CHECK(work.run(1e-9) == Outcome::satisfied && work.descent.steps() > 40);
    work.start_at(work.start);
    CHECK(work.descent.steps() == 0 && work.descent.gain() == 0.0 && work.descent.violation() == infinity);
}

TEST(binary_descent_with_duplicates_in_both_classes) {
    for (const Loss loss : losses) {
        TwoClouds clouds(24, 24, 2, 2);
        // every point is there three times, with labels that disagree: pairs without any curvature
        for (Index e = 0; e < 48; ++e) {
            const Index of = clouds.rows[unsigned_index(e % 16)];
            for (Index k = 0; k < 2; ++k) {
                clouds.X[unsigned_index(clouds.rows[unsigned_index(e)] * 2 + k)] = clouds.X[unsigned_index(of * 2 + k)];
            }
        }
        CHECK(clouds.kernel(8, 24) == 1.0);
        Work<double> work(clouds, loss);
        CHECK(work.run(1e-7) == Outcome::satisfied);
        check_optimal(clouds, loss, check_account(work, 1e-10), 2e-7);
        Work<float> coarse(clouds, loss);
        CHECK(coarse.run(1e-3) == Outcome::satisfied);
        check_optimal(clouds, loss, check_account(coarse, 1e-4), 2e-3);
    }
}

TEST(binary_descent_of_points_that_are_all_the_same) {
    TwoClouds clouds(20, 30, 2, 2);
    std::fill(clouds.X.begin(), clouds.X.end(), 0.5);
    Work<double> work(clouds);
    CHECK(work.run(1e-9) == Outcome::satisfied);
    CHECK(work.check().mass == 40.0);  // the smaller class is at its bound and balanced by the other
    check_optimal(clouds, Loss::hinge, work.check(), 1e-9);
}

TEST(binary_descent_stops_by_the_monitor) {
    const TwoClouds clouds(50, 50, 3, 2);
    Work<double> work(clouds);
    CHECK(work.run(1e-9, 3) == Outcome::out_of_steps);
    CHECK(work.run(1e-9, no_limit, 0.0) == Outcome::stopped);
    CHECK(work.descent.steps() == 32);  // where it asks next
    check_account(work, 1e-12);
    CHECK(work.run(1e-9) == Outcome::satisfied);
    check_optimal(clouds, Loss::hinge, work.check(), 2e-9);
    Work<double> untouched(clouds);
    CHECK(untouched.run(1e-9, no_limit, 0.0) == Outcome::stopped && untouched.descent.steps() == 0);
    CHECK(untouched.check().mass == 0.0);
}

TEST(binary_descent_says_when_it_is_stuck) {
    TwoClouds clouds(3, 3, 2, 2);
    clouds.C.assign(6, 1e17);
    Work<double> work(clouds);
    // steps of the size of the errors' differences are lost beside such variables
    std::vector<double> errors{-1.0, -1.0, -1.0, -0.5, -0.5, -0.5};
    work.descent.load(work.problem, work.all, std::vector<double>(6, 0.9e17), errors);
    CHECK(work.run(1e-9) == Outcome::stuck && work.descent.steps() == 0);
    CHECK(work.descent.violation() == 0.5);
}

TEST(binary_descent_on_some_of_the_examples) {
    for (const Loss loss : losses) {
        TwoClouds clouds(40, 60, 3, 5);
        vary_weights(clouds, 0.5, 2.0);
        const DenseSource source = clouds.source();
        const BinaryProblem problem = clouds.problem(source, loss);
        std::vector<Index> some, rows;
        for (Index e = 1; e < 100; e += 3) some.push_back(e), rows.push_back(problem.row(e));
        BinaryState state(problem);
        Numbers numbers(3);
        for (double& a : state.variables) a = numbers.uniform(0.0, 1.0);
        make_feasible(problem, state);
        state.errors = PlainCheck(clouds, loss, state.variables).E;
        BinaryDescent<double> descent;
        std::vector<double> variables, errors;
        for (const Index e : some) {
            variables.push_back(state.variables[unsigned_index(e)]);
            errors.push_back(state.errors[unsigned_index(e)]);
        }
        descent.load(problem, some, variables, errors);
        CacheCounters counters;
        RowMemory<double> memory;
        SlotRows<double> slots(source, rows, 0.0, counters, memory);
        Monitor monitor(nullptr, infinity);
        CHECK(descent.run(slots, 1e-8, no_limit, monitor) == Outcome::satisfied);
        for (std::size_t k = 0; k < some.size(); ++k) {
            state.variables[unsigned_index(some[k])] = descent.variable(static_cast<Index>(k));
        }
        const PlainCheck exact(clouds, loss, state.variables);
        CHECK(exact.feasible());
        BinaryInterval interval;
        for (std::size_t k = 0; k < some.size(); ++k) {
            const Index e = some[k];
            CHECK_CLOSE(descent.error(static_cast<Index>(k)), exact.E[unsigned_index(e)], 1e-11);
            const double a = state.variables[unsigned_index(e)], error = exact.E[unsigned_index(e)];
            if (problem.may_rise(e, a)) interval.lowest_up = std::min(interval.lowest_up, error);
            if (problem.may_fall(e, a)) interval.largest_low = std::max(interval.largest_low, error);
        }
        CHECK(interval.violation() <= 1e-8 + 1e-11 && exact.violation > 1e-3);
        CHECK(counters.rows_computed > 0);
    }
}

}  // namespace multimargin
