#include "problem/problem.hpp"

#include <limits>

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Clouds;
using testing::Numbers;

constexpr Index d = 4;

Machine (*const machines[])(Index) = {testing::ww, testing::cs, testing::llw, testing::atm};

// Anything, feasible or not.
void scramble(FullState& state, std::uint64_t seed) {
    Numbers numbers(seed);
    for (double& a : state.variables) a = numbers.uniform(-1.0, 2.0);
}

void check_feasible(const Problem& problem, const FullState& state) {
    const Machine& machine = problem.machine();
    for (Index e = 0; e < problem.size(); ++e) {
        const Index n = static_cast<Index>(machine.of(problem.class_of(e)).size());
        double sum = 0.0;
        for (Index p = 0; p < machine.max_components(); ++p) {
            const double a = state.variable(p, e);
            CHECK(a >= 0.0 && a <= problem.cap(e) && (p < n || a == 0.0));
            sum += a;
        }
        if (machine.bound == Bound::simplex) CHECK(sum <= problem.cap(e) * (1.0 + 1e-12));
    }
}

// The dual's definition: sum t a - 1/2 sum_c beta_c' K beta_c, by explicit sums.
double naive_dual(const Problem& problem, const FullState& state) {
    const Machine& machine = problem.machine();
    const Index n = problem.size();
    std::vector<Index> rows;
    for (Index e = 0; e < n; ++e) rows.push_back(problem.source_row(e));
    const auto columns = problem.source().columns<double>(rows);
    const Index ld = columns->n_panels() * simd::panel_width;
    AlignedVector<double> K(unsigned_index(n * ld));
    columns->fill(rows, K.data(), ld);
    double dual = 0.0;
    for (Index e = 0; e < n; ++e) {
        const auto& own = machine.of(problem.class_of(e));
        for (std::size_t p = 0; p < own.size(); ++p) {
            const double a = state.variable(static_cast<Index>(p), e);
            dual += own[p].target * a;
            for (Index f = 0; f < n; ++f) {
                const auto& other = machine.of(problem.class_of(f));
                for (std::size_t q = 0; q < other.size(); ++q) {
                    const double b = state.variable(static_cast<Index>(q), f);
                    dual -= 0.5 * a * b * machine.coupling(own[p], other[q]) * K[unsigned_index(e * ld + f)];
                }
            }
        }
    }
    return dual;
}

}  // namespace

// Box: a variable may rise unless it is at its cap, and fall unless it is 0; only that part of a gradient counts.
TEST(problem_violation_of_a_box) {
    const auto violation = [](double gradient, double a) {
        return certain_violation(Bound::box, std::span(&gradient, 1), std::span(&a, 1), 2.0);
    };
    CHECK(violation(0.5, 0.0) == 0.5 && violation(-0.5, 0.0) == 0.0);
    CHECK(violation(0.5, 1.0) == 0.5 && violation(-0.5, 1.0) == 0.5);
    CHECK(violation(0.5, 2.0) == 0.0 && violation(-0.5, 2.0) == 0.5);
    const double gradient[] = {-3.0, 0.25, 5.0, -0.75}, a[] = {0.0, 1.0, 2.0, 2.0};
    CHECK(certain_violation(Bound::box, gradient, a, 2.0) == 0.75);
    CHECK(certain_violation(Bound::box, {}, {}, 2.0) == 0.0);
}

// Simplex: the largest gradient, or the slack's 0, less the smallest of a variable that may fall; the slack may fall
// while the sum is below the cap.
TEST(problem_violation_of_a_simplex) {
    const double gradient[] = {0.5, -0.25, 1.5};
    const auto violation = [&](double a0, double a1, double a2) {
        const double a[] = {a0, a1, a2};
        return certain_violation(Bound::simplex, gradient, a, 2.0);
    };
    CHECK(violation(0.0, 0.0, 0.0) == 1.5);
    CHECK(violation(0.0, 0.0, 2.0) == 0.0);
    CHECK(violation(0.0, 0.0, 1.0) == 1.5);
    CHECK(violation(2.0, 0.0, 0.0) == 1.0);
    CHECK(violation(1.0, 1.0, 0.0) == 1.75);
    const double falling[] = {-0.5, -1.0}, free[] = {0.5, 0.5};
    CHECK(certain_violation(Bound::simplex, falling, free, 1.0) == 1.0);
}

// Comparisons pass over what is not a number, and an infinite gradient that pushes to a bound seems right.
TEST(problem_violation_of_what_is_not_finite) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (const Bound bound : {Bound::box, Bound::simplex}) {
        for (const double wrong : {nan, infinity, -infinity}) {
            for (const std::size_t where : {0, 2}) {
                double numbers[] = {-1.0, -1.0, -1.0}, zeros[] = {0.0, 0.0, 0.0};
                CHECK(certain_violation(bound, numbers, zeros, 2.0) == 0.0);
                numbers[where] = wrong;
                CHECK(certain_violation(bound, numbers, zeros, 2.0) == infinity);
                numbers[where] = -1.0;
                zeros[where] = wrong;
                CHECK(certain_violation(bound, numbers, zeros, 2.0) == infinity);
            }
        }
        const double huge[] = {1e300, -1e300}, a[] = {0.0, 0.0};
        CHECK(certain_violation(bound, huge, a, 2.0) == 1e300);
        // The squared hinge has no cap: nothing is at it.
        const double gradient[] = {0.5}, large[] = {1e200};
        CHECK(certain_violation(bound, gradient, large, infinity) == 0.5);
    }
}

TEST(problem_weak_duality) {
    const Clouds clouds(60, 3, d, 1);
    const DenseSource source(clouds.view(), testing::rbf(0.5));
    ThreadTeam team(1);
    for (const auto machine : machines) {
        for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
            const Problem problem = clouds.problem(source, machine(d), loss);
            FullState state(problem);
            for (std::uint64_t seed = 1; seed <= 5; ++seed) {
                scramble(state, seed);
                make_feasible(problem, state);
                CHECK(refresh_scores(problem, state, team, nullptr) && state.scores_current);
                const Summary summary = summarize(problem, state);
                CHECK(summary.dual <= summary.primal);
                CHECK(summary.violation > 0.0 && summary.n_support > 0 && summary.n_support <= problem.size());
                if (loss == Loss::hinge) CHECK_CLOSE(summary.dual, naive_dual(problem, state), 1e-10 * summary.primal);
            }
        }
    }
}

TEST(problem_zero_has_dual_zero) {
    const Clouds clouds(30, 3, d, 2);
    const DenseSource source(clouds.view(), testing::rbf(0.5));
    const Problem problem = clouds.problem(source, testing::ww(d));
    const Summary summary = summarize(problem, FullState(problem));
    CHECK(summary.dual == 0.0 && summary.n_support == 0);
    CHECK_CLOSE(summary.primal, 30.0 * 3.0 * 2.0, 1e-10);  // every margin is short by its target 2
    CHECK_CLOSE(summary.violation, 2.0, 0.0);
}

TEST(problem_make_feasible) {
    const Clouds clouds(40, 3, d, 3);
    const DenseSource source(clouds.view(), testing::rbf(0.5));
    for (const auto machine : machines) {
        for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
            const Problem problem = clouds.problem(source, machine(d), loss);
            FullState state(problem);
            scramble(state, 4);
            make_feasible(problem, state);
            check_feasible(problem, state);
            const AlignedVector<double> before = state.variables;
            make_feasible(problem, state);
            for (std::size_t i = 0; i < before.size(); ++i) CHECK_CLOSE(state.variables[i], before[i], 1e-15);
        }
    }
}

TEST(problem_groups_examples_by_class) {
    const Clouds clouds(50, 3, d, 5);
    const DenseSource source(clouds.view(), testing::rbf(0.5));
    const Problem problem = clouds.problem(source, testing::cs(d));
    CHECK(problem.group_begin(0) == 0 && problem.group_begin(d) == problem.size());
    for (Index e = 0; e < problem.size(); ++e) {
        const std::size_t given = unsigned_index(problem.given_position(e));
        CHECK(problem.class_of(e) == clouds.y[given] && problem.source_row(e) == clouds.rows[given]);
        CHECK(e >= problem.group_begin(problem.class_of(e)) && e < problem.group_begin(problem.class_of(e) + 1));
    }
}

TEST(problem_violation_of_an_example) {
    const std::vector<double> g{0.5, -2.0, 1.0};
    CHECK_CLOSE(example_violation(Bound::box, g, std::vector<double>{0.0, 0.0, 0.0}, 1.0), 1.0, 0.0);
    CHECK_CLOSE(example_violation(Bound::box, g, std::vector<double>{0.0, 0.0, 1.0}, 1.0), 0.5, 0.0);
    CHECK_CLOSE(example_violation(Bound::box, g, std::vector<double>{1.0, 0.5, 1.0}, 1.0), 2.0, 0.0);
    CHECK_CLOSE(example_violation(Bound::box, g, std::vector<double>{1.0, 0.0, 1.0}, 1.0), 0.0, 0.0);
    // simplex: the slack counts as a component of gradient 0
    CHECK_CLOSE(example_violation(Bound::simplex, g, std::vector<double>{0.0, 0.0, 0.5}, 1.0), 1.0, 0.0);
    CHECK_CLOSE(example_violation(Bound::simplex, g, std::vector<double>{0.0, 0.0, 1.0}, 1.0), 0.0, 0.0);
    CHECK_CLOSE(example_violation(Bound::simplex, g, std::vector<double>{0.5, 0.0, 0.5}, 1.0), 0.5, 0.0);
    CHECK_CLOSE(example_violation(Bound::simplex, g, std::vector<double>{0.0, 0.5, 0.0}, 1.0), 3.0, 0.0);
    const std::vector<double> falling{-1.0, -2.0};
    CHECK_CLOSE(example_violation(Bound::simplex, falling, std::vector<double>{0.0, 0.0}, 1.0), 0.0, 0.0);
}

TEST(problem_refuses_invalid_input) {
    const Clouds clouds(10, 2, d, 6);
    const DenseSource source(clouds.view(), testing::rbf(0.5));
    const auto with = [&](auto change) {
        Clouds changed = clouds;
        Machine machine = testing::ww(d);
        change(changed, machine);
        CHECK_THROWS(changed.problem(source, machine), std::invalid_argument);
    };
    with([](Clouds& c, Machine&) { c.y[3] = d; });
    with([](Clouds& c, Machine&) { c.y[3] = -1; });
    with([](Clouds& c, Machine&) { c.rows[0] = 10; });
    with([](Clouds& c, Machine&) { c.rows[0] = -1; });
    with([](Clouds& c, Machine&) { c.C[9] = 0.0; });
    with([](Clouds& c, Machine&) { c.C[9] = std::numeric_limits<double>::quiet_NaN(); });
    with([](Clouds& c, Machine&) { c.C.pop_back(); });
    with([](Clouds& c, Machine&) { c.y.pop_back(); });
    with([](Clouds&, Machine& m) { m.components[1].clear(); });
    with([](Clouds&, Machine& m) { m.components.pop_back(); });
    with([](Clouds&, Machine& m) { m.sigma.pop_back(); });
    with([](Clouds&, Machine& m) { m.components[0][0].class1 = d; });
    with([](Clouds&, Machine& m) { m.components[0][0].class2 = m.components[0][0].class1; });
    with([](Clouds&, Machine& m) { m.components[0][0].target = infinity; });
    with([](Clouds&, Machine& m) { m.n_classes = 0; });
}

TEST(problem_machine_coupling) {
    const Machine ww = testing::ww(3), llw = testing::llw(3);
    CHECK_CLOSE(ww.coupling(ww.of(0)[0], ww.of(0)[0]), 2.0, 0.0);
    CHECK_CLOSE(ww.coupling(ww.of(0)[0], ww.of(0)[1]), 1.0, 0.0);
    CHECK_CLOSE(ww.coupling(ww.of(0)[0], ww.of(1)[0]), -2.0, 0.0);
    CHECK_CLOSE(llw.coupling(llw.of(0)[0], llw.of(0)[0]), 2.0 / 3.0, 1e-15);
    CHECK_CLOSE(llw.coupling(llw.of(0)[0], llw.of(0)[1]), -1.0 / 3.0, 1e-15);
    CHECK(ww.n_scores() == 3 && llw.n_scores() == 4);
}

}  // namespace multimargin
