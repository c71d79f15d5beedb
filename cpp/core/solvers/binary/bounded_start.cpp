#include "solvers/binary/bounded_start.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace multimargin {

namespace {

// Examples of each class that are tried first, to see whether the full check is worth its rows.
constexpr Index n_asked = 8;
// The share of the smaller class that must go to the bound.
constexpr double least_share = 0.75;
// The larger class has at most so many times the examples of the smaller one; of the others most are 0.
constexpr Index most_times = 2;

bool is_suitable(const BinaryProblem& problem) {
    const Index n_negative = problem.size() - problem.n_positive();
    if (std::max(problem.n_positive(), n_negative) > most_times * std::min(problem.n_positive(), n_negative)) {
        return false;
    }
    if (problem.source().size() != problem.size() || problem.source().kept_row(problem.row(0)) == nullptr) return false;
    for (Index e = 0; e < problem.size(); ++e) {
        if (problem.cap(e) != problem.cap(0) || problem.row(e) != e) return false;
    }
    return problem.cap(0) < infinity;
}

// How many of each side stay at the bound: its violations are E, the lowest of the positive examples and the highest of
// the negative ones the largest, and a bias lies between those that stay as long as the two do not pass each other.
Index count_staying(std::span<const double> rising, std::span<const double> falling) {
    const std::size_t n = std::min(rising.size(), falling.size());
    std::size_t k = 0;
    while (k < n && rising[k] < falling[k]) ++k;
    return static_cast<Index>(k);
}

// E of some examples of a class, with every variable at its bound, in ascending order.
std::vector<double> ask(const BinaryProblem& problem, Index first, Index count) {
    std::vector<double> errors;
    const Index n_positive = problem.n_positive(), step = std::max<Index>(1, count / n_asked);
    for (Index e = first; e < first + count && static_cast<Index>(errors.size()) < n_asked; e += step) {
        const double* row = problem.source().kept_row(e);
        const double of_positive = std::accumulate(row, row + n_positive, 0.0);
        const double of_negative = std::accumulate(row + n_positive, row + problem.size(), 0.0);
        errors.push_back(problem.cap(0) * (of_positive - of_negative) - problem.sign(e));
    }
    // Sums that overflow are useless and have no order.
    if (!std::all_of(errors.begin(), errors.end(), [](double s) { return std::isfinite(s); })) return {};
    std::sort(errors.begin(), errors.end());
    return errors;
}

bool seems_worth_it(const BinaryProblem& problem) {
    const std::vector<double> rising = ask(problem, 0, problem.n_positive());
    std::vector<double> falling = ask(problem, problem.n_positive(), problem.size() - problem.n_positive());
    std::reverse(falling.begin(), falling.end());
    const double wanted = least_share * static_cast<double>(std::min(rising.size(), falling.size()));
    return wanted > 0.0 && static_cast<double>(count_staying(rising, falling)) >= wanted;
}

struct Side {
    std::vector<Index> examples;  // the most violating first
    std::vector<double> errors;
};

Side sorted_side(Index begin, Index end, const std::vector<double>& errors, bool descending) {
    Side side{std::vector<Index>(unsigned_index(end - begin)), {}};
    std::iota(side.examples.begin(), side.examples.end(), begin);
    const auto before = [&](Index i, Index j) {
        const double a = errors[unsigned_index(i)], b = errors[unsigned_index(j)];
        return descending ? a > b : a < b;
    };
    std::stable_sort(side.examples.begin(), side.examples.end(), before);
    for (const Index e : side.examples) side.errors.push_back(errors[unsigned_index(e)]);
    return side;
}

}  // namespace

bool start_at_bounds(const BinaryProblem& problem, BinaryState& state) {
    if (!is_suitable(problem) || !seems_worth_it(problem)) return false;
    const Index n = problem.size(), n_positive = problem.n_positive();
    const double cap = problem.cap(0);
    std::vector<double> errors(unsigned_index(n));
    for (Index e = 0; e < n; ++e) errors[unsigned_index(e)] = -problem.sign(e);
    for (Index e = 0; e < n; ++e) add_row(problem.sign(e) * cap, problem.source().kept_row(e), errors.data(), n);
    if (!std::all_of(errors.begin(), errors.end(), [](double s) { return std::isfinite(s); })) return false;
    const Side rising = sorted_side(0, n_positive, errors, false), falling = sorted_side(n_positive, n, errors, true);
    const Index n_staying = count_staying(rising.errors, falling.errors);
    if (static_cast<double>(n_staying) < least_share * static_cast<double>(std::min(n_positive, n - n_positive))) {
        return false;
    }
    std::fill(state.variables.begin(), state.variables.end(), cap);
    for (const Side* side : {&rising, &falling}) {
        for (std::size_t k = unsigned_index(n_staying); k < side->examples.size(); ++k) {
            const Index e = side->examples[k];
            state.variables[unsigned_index(e)] = 0.0;
            add_row(-problem.sign(e) * cap, problem.source().kept_row(e), errors.data(), n);
        }
    }
    state.errors = std::move(errors);
    state.errors_given = true;
    return true;
}

}  // namespace multimargin
