#include "problem/binary_problem.hpp"

#include <numeric>

#include "binary_cases.hpp"
#include "check.hpp"

namespace multimargin {

namespace {

using testing::Numbers;
using testing::PlainCheck;
using testing::TwoClouds;

constexpr Loss losses[] = {Loss::hinge, Loss::squared_hinge};

// Weights that differ, variables at 0, at the cap and inside, the equality kept.
struct RandomState {
    RandomState(Loss loss_, std::uint64_t seed) : clouds(23, 38, 3, seed), loss(loss_), source(clouds.source()) {
        Numbers numbers(seed);
        for (double& C : clouds.C) C = numbers.uniform(0.2, 2.0);
        for (std::size_t e = 0; e < clouds.C.size(); ++e) {
            const double inside = numbers.uniform(0.0, clouds.C[e]);
            const double places[] = {0.0, clouds.C[e], inside};
            variables.push_back(places[numbers.below(3)]);
        }
    }
    BinaryProblem problem() const { return clouds.problem(source, loss); }
    BinaryState state(const BinaryProblem& of) const {
        BinaryState s(of);
        s.variables = variables;
        make_feasible(of, s);
        const PlainCheck exact(clouds, loss, s.variables);
        s.errors = exact.E;
        return s;
    }
    TwoClouds clouds;
    Loss loss;
    DenseSource source;
    std::vector<double> variables;
};

bool refresh(const BinaryProblem& problem, BinaryState& state, std::span<const Index> examples, double seconds) {
    ThreadTeam team(2);
    Monitor monitor(nullptr, seconds);
    return refresh_errors(problem, state, examples, team, monitor);
}

}  // namespace

TEST(binary_problem_refuses_what_is_none) {
    const TwoClouds clouds(2, 2, 2, 1);
    const DenseSource source = clouds.source();
    const auto make = [&](std::vector<Index> rows, Index n_positive, std::vector<double> C) {
        return BinaryProblem(source, std::move(rows), n_positive, std::move(C), Loss::hinge);
    };
    CHECK(make({0, 1}, 1, {1.0, infinity}).size() == 2);
    CHECK_THROWS(make({0, 1}, 1, {1.0}), std::invalid_argument);
    CHECK_THROWS(make({0, 1}, 0, {1.0, 1.0}), std::invalid_argument);
    CHECK_THROWS(make({0, 1}, 2, {1.0, 1.0}), std::invalid_argument);
    CHECK_THROWS(make({0, -1}, 1, {1.0, 1.0}), std::invalid_argument);
    CHECK_THROWS(make({0, source.size()}, 1, {1.0, 1.0}), std::invalid_argument);
    for (const double bad : {0.0, -1.0, std::nan("")}) CHECK_THROWS(make({0, 1}, 1, {1.0, bad}), std::invalid_argument);
}

TEST(binary_problem_words) {
    TwoClouds clouds(2, 3, 2, 1);
    clouds.C = {1.0, 2.0, 4.0, 0.5, infinity};
    const DenseSource source = clouds.source();
    const BinaryProblem hinge = clouds.problem(source), squared = clouds.problem(source, Loss::squared_hinge);
    CHECK(hinge.sign(1) == 1.0 && hinge.sign(2) == -1.0 && hinge.n_positive() == 2 && hinge.size() == 5);
    CHECK(hinge.row(1) == clouds.rows[1] && hinge.C(3) == 0.5);
    CHECK(hinge.cap(2) == 4.0 && squared.cap(2) == infinity);
    CHECK(hinge.ridge(2) == 0.0 && squared.ridge(2) == 0.125 && squared.ridge(4) == 0.0);
    CHECK(hinge.diagonal(3) == 1.0 && squared.diagonal(3) == 2.0);
    CHECK(hinge.may_rise(1, 0.0) && !hinge.may_rise(1, 2.0) && !hinge.may_fall(1, 0.0) && hinge.may_fall(1, 2.0));
    CHECK(!hinge.may_rise(2, 0.0) && hinge.may_rise(2, 4.0) && hinge.may_fall(2, 0.0) && !hinge.may_fall(2, 4.0));
    CHECK(squared.may_rise(1, 1e9) && squared.may_fall(2, 1e9));
}

TEST(binary_problem_interval_by_hand) {
    const TwoClouds clouds(3, 3, 2, 1);
    const DenseSource source = clouds.source();
    const BinaryProblem problem = clouds.problem(source);
    BinaryState state(problem);
    state.variables = {0.0, 1.0, 0.5, 0.0, 1.0, 0.5};  // up: 0, 2, 4, 5;  low: 1, 2, 3, 5
    state.errors = {-0.5, -9.0, 0.25, 9.0, -0.75, 0.5};
    BinaryInterval interval = interval_of(problem, state);
    CHECK(interval.lowest_up == -0.75 && interval.largest_low == 9.0 && interval.violation() == 9.75);
    BinarySummary summary = summarize(problem, state);
    CHECK(summary.bias == -0.375 && summary.violation == 9.75 && summary.n_support == 4);
    state.variables = {0.0, 1.0, 1.0, 0.0, 1.0, 1.0};  // none is free: the middle. up: 0, 4, 5;  low: 1, 2, 3
    state.errors = {2.0, -3.0, 0.25, -1.0, 1.5, 4.0};
    interval = interval_of(problem, state);
    CHECK(interval.lowest_up == 1.5 && interval.largest_low == 0.25 && interval.violation() == 0.0);
    summary = summarize(problem, state);
    CHECK(summary.bias == -0.875 && summary.violation == 0.0);
}

TEST(binary_problem_summary_against_plain_loops) {
    for (const Loss loss : losses) {
        for (std::uint64_t seed = 1; seed < 12; ++seed) {
            const RandomState c(loss, seed);
            const BinaryProblem problem = c.problem();
            const BinaryState state = c.state(problem);
            const PlainCheck exact(c.clouds, loss, state.variables);
            const BinaryInterval interval = interval_of(problem, state);
            const BinarySummary summary = summarize(problem, state);
            CHECK(interval.lowest_up == exact.lowest_up && interval.largest_low == exact.largest_low);
            CHECK(summary.violation == exact.violation && summary.n_support == exact.n_support);
            CHECK_CLOSE(summary.bias, exact.bias, 1e-13);
            CHECK_CLOSE(summary.dual, exact.dual, 1e-12 * (1.0 + exact.primal));
            CHECK_CLOSE(summary.primal, exact.primal, 1e-12 * (1.0 + exact.primal));
            CHECK(exact.dual <= exact.primal);  // so the plain loops are not wrong either
            CHECK_CLOSE(coefficient_mass(state), exact.mass, 1e-12 * exact.mass);
        }
    }
}

TEST(binary_problem_summary_of_a_hard_margin) {
    TwoClouds clouds(2, 2, 2, 1);
    clouds.C.assign(4, infinity);
    const DenseSource source = clouds.source();
    for (const Loss loss : losses) {
        const BinaryProblem problem = clouds.problem(source, loss);
        BinaryState state(problem);
        state.errors = {-1.0, -1.0, 1.0, 1.0};
        const BinarySummary summary = summarize(problem, state);
        // what is short of the margin is not charged: an infinity would say nothing
        CHECK(summary.primal == 0.0 && summary.dual == 0.0 && summary.violation == 2.0 && summary.bias == 0.0);
    }
}

TEST(binary_problem_make_feasible) {
    for (const Loss loss : losses) {
        for (std::uint64_t seed = 1; seed < 12; ++seed) {
            const RandomState c(loss, seed);
            const BinaryProblem problem = c.problem();
            BinaryState state(problem);
            Numbers numbers(seed);
            for (double& a : state.variables) a = numbers.uniform(-1.0, 3.0);
            const std::vector<double> before = state.variables;
            make_feasible(problem, state);
            const PlainCheck exact(c.clouds, loss, state.variables);
            CHECK(exact.in_box && std::abs(exact.sum) <= 1e-14 * exact.mass && exact.mass > 0.0);
            // one side is clipped and no more, the other scaled
            double side[2] = {0.0, 0.0}, clipped[2] = {0.0, 0.0};
            for (Index e = 0; e < problem.size(); ++e) {
                const std::size_t s = e < problem.n_positive() ? 0 : 1;
                side[s] += state.variables[unsigned_index(e)];
                clipped[s] += std::clamp(before[unsigned_index(e)], 0.0, problem.cap(e));
            }
            CHECK_CLOSE(std::min(side[0], side[1]), std::min(clipped[0], clipped[1]), 1e-12 * exact.mass);
            const std::vector<double> once = state.variables;
            make_feasible(problem, state);
            for (std::size_t e = 0; e < once.size(); ++e) CHECK_CLOSE(state.variables[e], once[e], 1e-14 * once[e]);
        }
    }
}

TEST(binary_problem_make_feasible_of_one_side) {
    const TwoClouds clouds(2, 3, 2, 1);
    const DenseSource source = clouds.source();
    const BinaryProblem problem = clouds.problem(source);
    for (const bool first : {true, false}) {
        BinaryState state(problem);
        state.variables =
            first ? std::vector<double>{0.5, 2.0, 0, 0, -1.0} : std::vector<double>{0, -2.0, 0.5, 2.0, 0.1};
        make_feasible(problem, state);
        CHECK(coefficient_mass(state) == 0.0);  // nothing can balance it
    }
}

TEST(binary_problem_refresh_scores_against_plain_loops) {
    for (const Loss loss : losses) {
        const RandomState c(loss, 5);
        const BinaryProblem problem = c.problem();
        const BinaryState exact = c.state(problem);
        BinaryState state = exact;
        state.errors.assign(state.errors.size(), 77.0);
        const std::vector<Index> some{0, 40, 7, 22, 23, 60};  // in any order
        CHECK(refresh(problem, state, some, infinity));
        for (Index e = 0; e < problem.size(); ++e) {
            const bool asked = std::find(some.begin(), some.end(), e) != some.end();
            CHECK_CLOSE(state.errors[unsigned_index(e)], asked ? exact.errors[unsigned_index(e)] : 77.0, 1e-12);
        }
        std::vector<Index> all(unsigned_index(problem.size()));
        std::iota(all.begin(), all.end(), Index{0});
        CHECK(refresh(problem, state, all, infinity));
        for (std::size_t e = 0; e < all.size(); ++e) CHECK_CLOSE(state.errors[e], exact.errors[e], 1e-12);
        CHECK(state.variables == exact.variables);
        // a pass that was broken off leaves the errors alone
        state.errors.assign(state.errors.size(), 77.0);
        CHECK(!refresh(problem, state, all, 0.0));
        CHECK(std::all_of(state.errors.begin(), state.errors.end(), [](double s) { return s == 77.0; }));
        // nothing to add up
        BinaryState zero(problem);
        CHECK(refresh(problem, zero, all, infinity));
        for (Index e = 0; e < problem.size(); ++e) CHECK(zero.errors[unsigned_index(e)] == -problem.sign(e));
    }
}

TEST(binary_problem_when_float32_is_too_coarse) {
    TwoClouds clouds(2, 3, 2, 1);
    for (Index k = 0; k < 2; ++k) clouds.X[unsigned_index(clouds.rows[1] * 2 + k)] = 100.0;  // no support vector
    const DenseSource source(clouds.view(), testing::linear());
    const BinaryProblem problem = clouds.problem(source);
    BinaryState state(problem);
    CHECK(!float32_too_coarse(problem, state, 1e-30));  // no coefficient, no error
    state.variables = {1.0, 0.0, 0.25, 0.75, 0.0};
    double largest = 0.0;
    for (const Index e : {0, 2, 3}) largest = std::max(largest, source.diagonal(problem.row(e)));
    const double threshold = 4.0 * 1e-8 * 2.0 * largest;  // the coefficients' sum is 2; a quarter of tol
    CHECK(!float32_too_coarse(problem, state, 1.001 * threshold));
    CHECK(float32_too_coarse(problem, state, 0.999 * threshold));
}

}  // namespace multimargin
