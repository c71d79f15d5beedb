#include "problem/violations.hpp"

#include <algorithm>
#include <numeric>

#include "check.hpp"
#include "problem/workspace.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Clouds;
using testing::Numbers;

// f_y - f_p with the classes the other way round: the class itself is shared wherever it stands.
Machine reversed_ww(Index d) {
    Machine machine = testing::ww(d);
    for (auto& components : machine.components) {
        for (Component& c : components) {
            std::swap(c.class1, c.class2);
            std::swap(c.value1, c.value2);
        }
    }
    return machine;
}

// A machine of a user's own may share any class.
Machine shifted_ww(Index d) {
    Machine machine = testing::ww(d);
    std::rotate(machine.components.begin(), machine.components.begin() + 1, machine.components.end());
    return machine;
}

// Entries, targets and numbers of components that differ from class to class.
Machine uneven_ww(Index d) {
    Machine machine = testing::ww(d);
    double factor = 1.0;
    for (auto& components : machine.components) {
        for (Component& c : components) {
            c.value1 = factor;
            c.value2 = -0.5 * factor;
            c.target = factor += 0.25;
        }
    }
    if (d > 2) machine.components[1].pop_back();
    return machine;
}

Machine (*const machines[])(Index) = {testing::ww,  testing::cs, testing::llw, testing::atm, testing::ats,
                                      testing::ova, reversed_ww, uneven_ww,    shifted_ww};

// Every kind of variable there is: at 0, at the bound, inside; sums below the bound and at it. Any scores at all.
FullState any_state(const Problem& problem, std::uint64_t seed) {
    Numbers numbers(seed);
    FullState state(problem);
    for (double& u : state.scores) u = numbers.uniform(-2.0, 2.0);
    for (Index e = 0; e < problem.size(); ++e) {
        const Index n = static_cast<Index>(problem.machine().of(problem.class_of(e)).size());
        const double C = problem.C(e), inside = 0.9 * C / static_cast<double>(n);
        const bool full = numbers.uniform(0.0, 1.0) < 0.4, box = problem.machine().bound == Bound::box;
        for (Index p = 0; p < n; ++p) {
            const double a = std::max(0.0, numbers.uniform(-inside, inside));
            state.variable(p, e) = full && !box ? 0.0 : a;
        }
        if (full && box) state.variable(numbers.below(n), e) = C;
        if (full && !box) {
            state.variable(0, e) += 0.25 * C;
            state.variable(n - 1, e) += 0.75 * C;
        }
    }
    return state;
}

// Scans some positions of a workspace, and checks that nothing else is written.
void check_range(const Problem& problem, const FullState& state, const Workspace& workspace, Index first, Index last) {
    const ViolationScan<double> scan(problem.machine(), workspace.ld());
    constexpr Index guard = 8;
    AlignedVector<double> found(unsigned_index(last - first + guard), -1.0);
    scan.scan(workspace.view(), first, last, found.data());
    for (Index j = first; j < last; ++j) {
        // A gradient is a sum of five terms below 5, a violation the difference of two of them.
        const double expected = testing::violation_of(problem, state, workspace.example(j));
        CHECK_CLOSE(found[unsigned_index(j - first)], expected, 100.0 * std::numeric_limits<double>::epsilon());
    }
    for (Index i = 0; i < guard; ++i) CHECK(found[unsigned_index(last - first + i)] == -1.0);
}

struct ViolationCase {
    ViolationCase(Index n, Index d, Machine machine, Loss loss)
        : clouds(bounded_clouds(n, d)),
          source(clouds.view(), testing::rbf(0.5)),
          problem(clouds.problem(source, std::move(machine), loss)),
          state(any_state(problem, 4)),
          all(unsigned_index(n)) {
        std::iota(all.begin(), all.end(), Index{0});
    }
    static Clouds bounded_clouds(Index n, Index d) {
        Clouds clouds(n, 2, d, 3);
        Numbers numbers(5);
        for (double& C : clouds.C) C = numbers.uniform(0.5, 2.0);
        return clouds;
    }
    Clouds clouds;
    DenseSource source;
    Problem problem;
    FullState state;
    std::vector<Index> all;
};

}  // namespace

TEST(violations_of_all_examples) {
    for (const auto machine : machines) {
        for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
            for (const Index d : {2, 3, 5}) {
                const ViolationCase c(203, d, machine(d), loss);
                const Workspace workspace(c.problem, c.state, c.all);
                check_range(c.problem, c.state, workspace, 0, workspace.size());
            }
        }
    }
}

// Ranges begin and end anywhere, in the middle of classes and across several.
TEST(violations_of_a_range) {
    for (const auto machine : machines) {
        for (const Loss loss : {Loss::hinge, Loss::squared_hinge}) {
            const ViolationCase c(60, 4, machine(4), loss);
            const Workspace workspace(c.problem, c.state, c.all);
            for (Index first = 0; first <= workspace.size(); ++first) {
                for (Index last = first; last <= workspace.size(); last += 3) {
                    check_range(c.problem, c.state, workspace, first, last);
                }
            }
        }
    }
}

// A workspace of some examples, in which whole classes are missing.
TEST(violations_of_a_part) {
    for (const auto machine : machines) {
        const ViolationCase c(120, 4, machine(4), Loss::hinge);
        std::vector<Index> members;
        for (const Index e : c.all) {
            if (c.problem.class_of(e) % 2 == 1 && e % 3 != 0) members.push_back(e);
        }
        const Workspace workspace(c.problem, c.state, members);
        check_range(c.problem, c.state, workspace, 0, workspace.size());
        check_range(c.problem, c.state, workspace, 5, workspace.size() - 7);
    }
}

// The state that the scans above are shown must contain every case they distinguish.
TEST(violations_meet_every_kind_of_example) {
    for (const Bound bound : {Bound::box, Bound::simplex}) {
        const ViolationCase c(203, 4, bound == Bound::box ? testing::ww(4) : testing::cs(4), Loss::hinge);
        Index n_zero = 0, n_inside = 0, n_full = 0, n_none = 0;
        for (const Index e : c.all) {
            double sum = 0.0;
            for (Index p = 0; p < 3; ++p) {
                const double a = c.state.variable(p, e);
                sum += a;
                n_zero += a == 0.0 ? 1 : 0;
                n_inside += a > 0.0 && a < c.problem.cap(e) ? 1 : 0;
                n_full += bound == Bound::box && a == c.problem.cap(e) ? 1 : 0;
            }
            n_full += bound == Bound::simplex && sum == c.problem.cap(e) ? 1 : 0;
            n_none += sum == 0.0 ? 1 : 0;
        }
        CHECK(n_zero > 40 && n_inside > 40 && n_full > 40 && n_none > 5);
    }
}

}  // namespace multimargin
