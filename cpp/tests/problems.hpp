// What several tests need: repeatable numbers, machines written by hand, small data sets.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel_source.hpp"
#include "kernels.hpp"
#include "problem/machine.hpp"
#include "problem/problem.hpp"

namespace multimargin::testing {

// The same numbers on every machine (a 64-bit linear congruential generator).
class Numbers {
  public:
    explicit Numbers(std::uint64_t seed) : state_(seed * 2 + 1) { next(); }

    double uniform(double low, double high) {
        return low + (high - low) * static_cast<double>(next() >> 11) / 9007199254740992.0;
    }
    Index below(Index n) { return static_cast<Index>(next() >> 33) % n; }

    template <class T>
    AlignedVector<T> many(Index n, double low, double high) {
        AlignedVector<T> values(unsigned_index(n));
        for (T& v : values) v = static_cast<T>(uniform(low, high));
        return values;
    }

  private:
    std::uint64_t next() { return state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL; }

    std::uint64_t state_;
};

// f_y - f_p, for p != y.
inline Machine relative_machine(Index d, Bound bound, double target) {
    Machine machine{d, bound, false, true, {}, std::vector<double>(unsigned_index(d), 1.0), 0};
    for (Index y = 0; y < d; ++y) {
        std::vector<Component> components;
        for (Index p = 0; p < d; ++p) {
            if (p != y) components.push_back({y, p, 1.0, -1.0, target, 1.0, 1.0});
        }
        machine.components.push_back(std::move(components));
    }
    return machine;
}

inline Machine ww(Index d) { return relative_machine(d, Bound::box, 2.0); }
inline Machine cs(Index d) { return relative_machine(d, Bound::simplex, 1.0); }

// -f_p for p != y and, with `own`, f_y; projected scores.
inline Machine absolute_machine(Index d, Bound bound, double target, bool own) {
    const double sigma = -1.0 / static_cast<double>(d);
    Machine machine{d, bound, true, true, {}, std::vector<double>(unsigned_index(d), sigma), 0};
    for (Index y = 0; y < d; ++y) {
        std::vector<Component> components;
        for (Index p = 0; p < d; ++p) {
            const double value = p == y ? 1.0 : -1.0;
            if (p != y || own) components.push_back({p, -1, value, 0.0, target, 1.0, value});
        }
        machine.components.push_back(std::move(components));
    }
    return machine;
}

inline Machine llw(Index d) { return absolute_machine(d, Bound::box, 1.0 / static_cast<double>(d - 1), false); }
inline Machine atm(Index d) { return absolute_machine(d, Bound::simplex, 1.0, true); }
inline Machine ats(Index d) { return absolute_machine(d, Bound::box, 1.0, true); }

// f_y and -f_p, scores as they are: nothing is shared.
inline Machine ova(Index d) {
    Machine machine = ats(d);
    machine.sum_to_zero = false;
    machine.sigma.assign(machine.sigma.size(), 0.0);
    for (auto& components : machine.components) {
        for (Component& c : components) c.weight = 0.0;
    }
    return machine;
}

// Overlapping clouds, one per class, and labels of which some are wrong.
struct Clouds {
    Clouds(Index n, Index n_features, Index d, std::uint64_t seed) : width(n_features), C(unsigned_index(n), 1.0) {
        Numbers numbers(seed);
        for (Index i = 0; i < n; ++i) {
            const Index label = numbers.below(d);
            for (Index k = 0; k < n_features; ++k) {
                X.push_back(numbers.uniform(-1.0, 1.0) + (k % d == label ? 0.7 : 0.0));
            }
            rows.push_back(i);
            y.push_back(numbers.uniform(0.0, 1.0) < 0.1 ? numbers.below(d) : label);
        }
    }

    DenseView view() const { return {X.data(), static_cast<Index>(rows.size()), width}; }
    Problem problem(const KernelSource& source, Machine machine, Loss loss = Loss::hinge) const {
        return {source, std::move(machine), loss, rows, y, C};
    }

    Index width;
    std::vector<double> X;
    std::vector<Index> rows, y;
    std::vector<double> C;
};

// From the definitions, one example at a time.
inline double violation_of(const Problem& problem, const FullState& state, Index example) {
    const std::size_t n = problem.machine().of(problem.class_of(example)).size();
    std::vector<double> gradient(n), a(n);
    gradient_of(problem, state, example, gradient);
    for (std::size_t p = 0; p < n; ++p) a[p] = state.variable(static_cast<Index>(p), example);
    return example_violation(problem.machine().bound, gradient, a, problem.cap(example));
}

}  // namespace multimargin::testing
