#include <numeric>

#include "check.hpp"
#include "problem/problem.hpp"
#include "problems.hpp"
#include "subproblem/example_problem.hpp"

namespace multimargin {

namespace {

using testing::Numbers;

// How the margins of one example share their classes.
struct Shape {
    std::vector<double> private_square, weight;
    double sigma;
};

Shape relative_shape(std::size_t n) { return {std::vector<double>(n, 1.0), std::vector<double>(n, 1.0), 1.0}; }

// -f_p for p != y, projected
Shape absolute_shape(std::size_t n) {
    return {std::vector<double>(n, 1.0), std::vector<double>(n, -1.0), -1.0 / static_cast<double>(n + 1)};
}

// f_y and -f_p, projected: the Hessian is singular along (1, -1, ..., -1)
Shape total_shape(std::size_t n) {
    Shape shape{std::vector<double>(n, 1.0), std::vector<double>(n, -1.0), -1.0 / static_cast<double>(n)};
    shape.weight[0] = 1.0;
    return shape;
}

Shape uneven_shape(std::size_t n) {
    Shape shape = relative_shape(n);
    for (std::size_t p = 0; p < n; ++p) {
        shape.private_square[p] = 0.5 + 0.25 * static_cast<double>(p);
        shape.weight[p] = 1.0 - 0.4 * static_cast<double>(p);
    }
    return shape;
}

struct Case {
    std::vector<double> gradient, a;
    double k, cap, ridge;
};

Case random_case(Numbers& numbers, Bound bound, std::size_t n, bool squared) {
    Case c;
    c.k = numbers.uniform(0.2, 3.0);
    const double C = numbers.uniform(0.5, 2.0);
    c.cap = squared ? infinity : C;
    c.ridge = squared ? 1.0 / (2.0 * C) : 0.0;
    const double share = bound == Bound::simplex ? C / static_cast<double>(n) : C;
    for (std::size_t p = 0; p < n; ++p) {
        c.gradient.push_back(numbers.uniform(-3.0, 3.0));
        c.a.push_back(numbers.below(3) == 0 ? 0.0 : numbers.uniform(0.0, share));
    }
    return c;
}

// The gradient after the step: g - H delta.
std::vector<double> gradient_after(Bound bound, const Shape& shape, const Case& c, const std::vector<double>& a) {
    const std::size_t n = a.size();
    double along = 0.0, sum = 0.0;
    for (std::size_t p = 0; p < n; ++p) {
        along += shape.weight[p] * (a[p] - c.a[p]);
        sum += a[p] - c.a[p];
    }
    std::vector<double> g(n);
    for (std::size_t p = 0; p < n; ++p) {
        const double delta = a[p] - c.a[p];
        const double ridged = c.ridge * (bound == Bound::simplex ? sum : delta);
        g[p] = c.gradient[p] - c.k * (shape.private_square[p] * delta + shape.sigma * shape.weight[p] * along) - ridged;
    }
    return g;
}

void check_case(Bound bound, const Shape& shape, const Case& c) {
    std::vector<double> a = c.a;
    ExampleScratch scratch;
    const ExampleProblem problem{c.gradient, shape.private_square, shape.weight, shape.sigma, c.k, c.cap, c.ridge};
    if (bound == Bound::box) {
        solve_box_example(problem, a, scratch);
    } else {
        solve_simplex_example(problem, a, scratch);
    }
    const double sum = std::accumulate(a.begin(), a.end(), 0.0);
    for (double& v : a) {
        CHECK(v >= 0.0 && (bound == Bound::simplex || v <= c.cap));
        if (v < 1e-13) v = 0.0;
        if (bound == Bound::box && v > c.cap * (1.0 - 1e-13)) v = c.cap;
    }
    CHECK(bound == Bound::box || sum <= c.cap * (1.0 + 1e-12));
    CHECK_CLOSE(example_violation(bound, gradient_after(bound, shape, c, a), a, c.cap), 0.0, 1e-10);
}

void check_many(Bound bound, Shape (*shape_of)(std::size_t), std::uint64_t seed) {
    Numbers numbers(seed);
    for (const std::size_t n : {1, 2, 3, 7, 25}) {
        const Shape shape = shape_of(n);
        for (int i = 0; i < 100; ++i) {
            check_case(bound, shape, random_case(numbers, bound, n, false));
            check_case(bound, shape, random_case(numbers, bound, n, true));
        }
    }
}

}  // namespace

TEST(examples_box_relative) { check_many(Bound::box, relative_shape, 1); }
TEST(examples_box_absolute) { check_many(Bound::box, absolute_shape, 2); }
TEST(examples_box_total) { check_many(Bound::box, total_shape, 3); }
TEST(examples_box_uneven) { check_many(Bound::box, uneven_shape, 4); }
TEST(examples_simplex_relative) { check_many(Bound::simplex, relative_shape, 5); }
TEST(examples_simplex_absolute) { check_many(Bound::simplex, absolute_shape, 6); }
TEST(examples_simplex_total) { check_many(Bound::simplex, total_shape, 7); }
TEST(examples_simplex_uneven) { check_many(Bound::simplex, uneven_shape, 8); }

TEST(examples_without_curvature) {
    const Shape shape = relative_shape(3);
    const Case hinge{{1.0, -1.0, 2.0}, {0.1, 0.2, 0.3}, 0.0, 1.0, 0.0};
    check_case(Bound::box, shape, hinge);
    check_case(Bound::simplex, shape, hinge);
    check_case(Bound::simplex, shape, {{-1.0, -3.0, -2.0}, {0.1, 0.2, 0.3}, 0.0, 1.0, 0.0});
    check_case(Bound::box, shape, {{1.0, -1.0, 2.0}, {0.1, 0.2, 0.3}, 0.0, infinity, 0.5});
    check_case(Bound::simplex, shape, {{1.0, -1.0, 2.0}, {0.1, 0.2, 0.3}, 0.0, infinity, 0.5});
}

TEST(examples_slack) {
    CHECK(slack_of(0.5, 1.0) == 0.5);
    CHECK(slack_of(1.0 - 1e-13, 1.0) == 0.0);
    CHECK(slack_of(2.0, 1.0) == 0.0);
    CHECK(slack_of(5.0, infinity) == infinity);
}

}  // namespace multimargin
