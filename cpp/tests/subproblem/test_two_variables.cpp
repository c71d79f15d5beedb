#include "subproblem/two_variables.hpp"

#include "check.hpp"
#include "problems.hpp"
#include "simd/table.hpp"

namespace multimargin {

namespace {

using testing::Numbers;

// For a concave objective the KKT conditions of the box are all there is to check.
void check_optimal(const PairProblem& p) {
    const auto [mu1, mu2] = two_variable_step(p);
    const double a1 = p.a1 + mu1, a2 = p.a2 + mu2;
    const double rounding = 1e-12 * (1.0 + std::abs(p.g1) + std::abs(p.g2));
    CHECK(a1 >= -rounding && a1 <= p.cap1 + rounding);
    CHECK(a2 >= -rounding && a2 <= p.cap2 + rounding);
    const double g1 = p.g1 - p.q11 * mu1 - p.q12 * mu2, g2 = p.g2 - p.q12 * mu1 - p.q22 * mu2;
    const auto snapped = [&](double a, double cap) { return a <= rounding ? 0.0 : (a >= cap - rounding ? cap : a); };
    const double size = std::abs(p.g1) + std::abs(p.g2) + std::abs(p.q11 * mu1) + std::abs(p.q22 * mu2) +
                        std::abs(p.q12) * (std::abs(mu1) + std::abs(mu2));
    CHECK_CLOSE(simd::box_violation_of(g1, snapped(a1, p.cap1), p.cap1), 0.0, 1e-10 * size);
    CHECK_CLOSE(simd::box_violation_of(g2, snapped(a2, p.cap2), p.cap2), 0.0, 1e-10 * size);
}

PairProblem random_pair(Numbers& numbers, double correlation, double cap) {
    PairProblem p{};
    p.g1 = numbers.uniform(-2.0, 2.0);
    p.g2 = numbers.uniform(-2.0, 2.0);
    p.q11 = numbers.uniform(0.1, 2.0);
    p.q22 = numbers.uniform(0.1, 2.0);
    p.q12 = correlation * std::sqrt(p.q11 * p.q22);
    p.cap1 = p.cap2 = cap;
    const double reach = cap < infinity ? cap : 1.0;
    p.a1 = numbers.below(3) == 0 ? 0.0 : numbers.uniform(0.0, reach);
    p.a2 = numbers.below(3) == 0 ? reach : numbers.uniform(0.0, reach);
    return p;
}

}  // namespace

TEST(two_variables_one_variable_step) {
    CHECK_CLOSE(one_variable_step(1.0, 2.0, 0.0, 1.0), 0.5, 0.0);
    CHECK_CLOSE(one_variable_step(5.0, 2.0, 0.25, 1.0), 0.75, 0.0);
    CHECK_CLOSE(one_variable_step(-5.0, 2.0, 0.25, 1.0), -0.25, 0.0);
    CHECK_CLOSE(one_variable_step(1.0, 0.0, 0.25, 1.0), 0.75, 0.0);
    CHECK_CLOSE(one_variable_step(-1.0, 0.0, 0.25, 1.0), -0.25, 0.0);
    CHECK_CLOSE(one_variable_step(0.0, 0.0, 0.25, 1.0), 0.0, 0.0);
    CHECK_CLOSE(one_variable_step(1.0, 0.0, 0.25, infinity), infinity, 0.0);
}

TEST(two_variables_positive_definite) {
    Numbers numbers(1);
    for (int i = 0; i < 2000; ++i) {
        check_optimal(random_pair(numbers, numbers.uniform(-0.99, 0.99), 1.0));
        check_optimal(random_pair(numbers, numbers.uniform(-0.99, 0.99), infinity));
    }
}

TEST(two_variables_rank_one) {
    Numbers numbers(2);
    for (int i = 0; i < 2000; ++i) check_optimal(random_pair(numbers, numbers.below(2) == 0 ? 1.0 : -1.0, 1.0));
    // equal variables of opposite sign, gradient in the range of Q: a whole segment is optimal
    check_optimal({0.5, 0.5, 1.0, 1.0, 1.0, 0.2, 0.9, 1.0, 1.0});
    check_optimal({0.5, -0.5, 1.0, 1.0, -1.0, 0.2, 0.9, 1.0, 1.0});
}

TEST(two_variables_without_curvature) {
    check_optimal({1.0, -1.0, 0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0});
    check_optimal({1.0, 1.0, 1.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0});
    check_optimal({1.0, -1.0, 0.0, 2.0, 0.0, 0.5, 0.5, 1.0, 1.0});
}

TEST(two_variables_indefinite_stays_feasible_and_gains) {
    Numbers numbers(3);
    for (int i = 0; i < 500; ++i) {
        const PairProblem p = random_pair(numbers, numbers.uniform(1.1, 3.0), 1.0);
        const auto [mu1, mu2] = two_variable_step(p);
        CHECK(p.a1 + mu1 >= -1e-12 && p.a1 + mu1 <= 1.0 + 1e-12 && p.a2 + mu2 >= -1e-12 && p.a2 + mu2 <= 1.0 + 1e-12);
        const double gain = p.g1 * mu1 + p.g2 * mu2 - 0.5 * (p.q11 * mu1 * mu1 + p.q22 * mu2 * mu2) - p.q12 * mu1 * mu2;
        CHECK(gain >= -1e-12);
    }
}

TEST(two_variables_unbounded) {
    // the null direction (1, 1) rises for ever
    const auto [mu1, mu2] = two_variable_step({1.0, 1.0, 1.0, 1.0, -1.0, 0.0, 0.0, infinity, infinity});
    CHECK(mu1 == infinity && mu2 == infinity);
}

}  // namespace multimargin
