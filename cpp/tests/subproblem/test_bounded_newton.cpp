#include "subproblem/bounded_newton.hpp"

#include "check.hpp"
#include "problems.hpp"
#include "simd/table.hpp"
#include "subproblem/two_variables.hpp"

namespace multimargin {

namespace {

using testing::Numbers;

// Q = G G' of the given rank with an infinite bound here and there, from a point with variables at both bounds.
BoundedProblem random_problem(Numbers& numbers, Index n, Index rank, double unbounded_share) {
    BoundedProblem p;
    p.resize(n);
    const AlignedVector<double> G = numbers.many<double>(n * rank, -1.0, 1.0);
    for (Index i = 0; i < n; ++i) {
        const std::size_t k = unsigned_index(i);
        for (Index j = 0; j < n; ++j) {
            for (Index r = 0; r < rank; ++r) {
                p.q(i, j) += G[unsigned_index(i * rank + r)] * G[unsigned_index(j * rank + r)];
            }
        }
        p.gradient[k] = numbers.uniform(-2.0, 2.0);
        p.cap[k] = numbers.uniform(0.0, 1.0) < unbounded_share ? infinity : numbers.uniform(0.5, 2.0);
        const Index place = numbers.below(3);
        const double inside = numbers.uniform(0.0, 0.5);
        p.a[k] = place == 0 ? 0.0 : (place == 1 && p.cap[k] < infinity ? p.cap[k] : inside);
    }
    return p;
}

double objective(const BoundedProblem& p, const std::vector<double>& from, const std::vector<double>& to) {
    double value = 0.0;
    for (Index i = 0; i < p.size(); ++i) {
        const std::size_t k = unsigned_index(i);
        value += p.gradient[k] * (to[k] - from[k]);
        for (Index j = 0; j < p.size(); ++j) {
            const std::size_t m = unsigned_index(j);
            value -= 0.5 * p.q(i, j) * (to[k] - from[k]) * (to[m] - from[m]);
        }
    }
    return value;
}

// For a concave objective the KKT conditions of the box are all there is to check, up to rounding.
void check_optimal(BoundedProblem p, BoundedNewton& newton) {
    const std::vector<double> start = p.a;
    const double gain = newton.solve(p);
    CHECK_CLOSE(gain, objective(p, start, p.a), 1e-12 * (1.0 + std::abs(gain)));
    CHECK(gain >= 0.0);
    for (Index i = 0; i < p.size(); ++i) {
        const std::size_t k = unsigned_index(i);
        CHECK(p.a[k] >= 0.0 && p.a[k] <= p.cap[k]);
        double slope = p.gradient[k], size = std::abs(slope);
        for (Index j = 0; j < p.size(); ++j) {
            const double term = p.q(i, j) * (p.a[unsigned_index(j)] - start[unsigned_index(j)]);
            slope -= term;
            size += std::abs(term);
        }
        CHECK_CLOSE(simd::box_violation_of(slope, p.a[k], p.cap[k]), 0.0, 1e-11 * size);
    }
}

}  // namespace

TEST(bounded_newton_positive_definite) {
    Numbers numbers(1);
    BoundedNewton newton;
    for (const Index n : {1, 2, 3, 10, 40}) {
        for (int i = 0; i < 200; ++i) check_optimal(random_problem(numbers, n, n + 3, 0.2), newton);
    }
}

TEST(bounded_newton_of_low_rank) {
    Numbers numbers(2);
    BoundedNewton newton;
    for (const Index rank : {1, 3, 7}) {
        for (int i = 0; i < 300; ++i) check_optimal(random_problem(numbers, 10, rank, 0.0), newton);
    }
}

TEST(bounded_newton_is_the_step_on_one_and_two_variables) {
    Numbers numbers(3);
    BoundedNewton newton;
    for (int i = 0; i < 500; ++i) {
        BoundedProblem p = random_problem(numbers, 2, 3, 0.3);
        const std::vector<double> a = p.a;
        const auto [mu1, mu2] = two_variable_step(
            {p.gradient[0], p.gradient[1], p.q(0, 0), p.q(1, 1), p.q(0, 1), a[0], a[1], p.cap[0], p.cap[1]});
        newton.solve(p);
        CHECK_CLOSE(p.a[0], a[0] + mu1, 1e-9);
        CHECK_CLOSE(p.a[1], a[1] + mu2, 1e-9);
    }
}

TEST(bounded_newton_without_curvature_goes_to_the_bounds) {
    BoundedNewton newton;
    BoundedProblem p;
    p.resize(3);
    p.gradient = {1e-9, -2.0, 0.0};
    p.a = {0.0, 1.0, 0.5};
    p.cap = {1.0, 1.0, 1.0};
    CHECK_CLOSE(newton.solve(p), 2.0 + 1e-9, 1e-15);
    CHECK(p.a[0] == 1.0 && p.a[1] == 0.0 && p.a[2] == 0.5);
}

TEST(bounded_newton_where_nothing_violates_changes_nothing) {
    BoundedNewton newton;
    BoundedProblem p;
    p.resize(2);
    p.gradient = {-1.0, 1.0};
    p.a = {0.0, 1.0};
    p.cap = {1.0, 1.0};
    p.Q = {1.0, 0.5, 0.5, 1.0};
    CHECK(newton.solve(p) == 0.0);
    CHECK(p.a[0] == 0.0 && p.a[1] == 1.0);
    p.resize(0);
    CHECK(newton.solve(p) == 0.0);
}

// Equal variables that pull in opposite directions: the flat direction ends at bounds, as far as the slope leads.
TEST(bounded_newton_of_variables_that_are_the_same) {
    Numbers numbers(4);
    BoundedNewton newton;
    for (int i = 0; i < 300; ++i) {
        BoundedProblem p = random_problem(numbers, 6, 9, 0.0);
        for (Index j = 0; j < 6; ++j) p.q(1, j) = p.q(0, j);
        for (Index j = 0; j < 6; ++j) p.q(j, 1) = p.q(j, 0);
        if (i % 2 == 0) p.gradient[1] = p.gradient[0];
        check_optimal(p, newton);
    }
}

}  // namespace multimargin
