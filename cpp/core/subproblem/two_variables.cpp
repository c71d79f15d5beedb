#include "subproblem/two_variables.hpp"

#include <cmath>

namespace multimargin {

namespace {

// Below this share of q11 q22 the determinant is rounding noise: the pair counts as rank one.
constexpr double rank_tolerance = 1e-12;

using Step = std::pair<double, double>;

double objective(const PairProblem& p, const Step& mu) {
    return p.g1 * mu.first + p.g2 * mu.second - 0.5 * (p.q11 * mu.first * mu.first + p.q22 * mu.second * mu.second) -
           p.q12 * mu.first * mu.second;
}

// The best point of the edge on which one variable has moved by `fixed`.
Step edge_first(const PairProblem& p, double fixed) {
    return {fixed, one_variable_step(p.g2 - p.q12 * fixed, p.q22, p.a2, p.cap2)};
}

Step edge_second(const PairProblem& p, double fixed) {
    return {one_variable_step(p.g1 - p.q12 * fixed, p.q11, p.a1, p.cap1), fixed};
}

void keep_better(const PairProblem& p, Step& best, const Step& candidate) {
    if (objective(p, candidate) > objective(p, best)) best = candidate;
}

// The optimum lies on the boundary. An edge at infinity is never a candidate: with a positive
// curvature across, the optimum of the other edges is finite.
Step best_edge(const PairProblem& p) {
    Step best = edge_first(p, -p.a1);
    if (p.cap1 < infinity) keep_better(p, best, edge_first(p, p.cap1 - p.a1));
    keep_better(p, best, edge_second(p, -p.a2));
    if (p.cap2 < infinity) keep_better(p, best, edge_second(p, p.cap2 - p.a2));
    return best;
}

bool inside(const PairProblem& p, const Step& mu) {
    return mu.first >= -p.a1 && mu.first <= p.cap1 - p.a1 && mu.second >= -p.a2 && mu.second <= p.cap2 - p.a2;
}

// Rank one: along the null direction n = (-q12, q11) the objective is linear with slope g'n, so it is
// optimal at an end of a segment, that is on an edge; where the slope vanishes the optimum of the
// range of Q is taken first, because no edge need hold it, and every point along n is as good.
Step rank_one_step(const PairProblem& p) {
    const double n1 = p.q11 >= p.q22 ? -p.q12 : p.q22;
    const double n2 = p.q11 >= p.q22 ? p.q11 : -p.q12;
    const double slope = p.g1 * n1 + p.g2 * n2;
    const double size = std::abs(p.g1 * n1) + std::abs(p.g2 * n2);
    Step best{0.0, 0.0};
    if (std::abs(slope) <= rank_tolerance * size) {
        const double along = p.g1 * p.g1 * p.q11 + 2.0 * p.g1 * p.g2 * p.q12 + p.g2 * p.g2 * p.q22;
        const double length = along > 0.0 ? (p.g1 * p.g1 + p.g2 * p.g2) / along : 0.0;
        const Step newton{length * p.g1, length * p.g2};
        if (inside(p, newton)) return newton;
    } else {
        // Follow the null direction uphill: unbounded when no bound stops it.
        const double d1 = slope > 0.0 ? n1 : -n1, d2 = slope > 0.0 ? n2 : -n2;
        const double reach1 = d1 > 0.0 ? p.cap1 : (d1 < 0.0 ? 0.0 : infinity);
        const double reach2 = d2 > 0.0 ? p.cap2 : (d2 < 0.0 ? 0.0 : infinity);
        if (reach1 == infinity && reach2 == infinity) return {infinity, infinity};
    }
    keep_better(p, best, best_edge(p));
    return best;
}

}  // namespace

std::pair<double, double> two_variable_step(const PairProblem& p) {
    if (!(p.q11 > 0.0) && !(p.q22 > 0.0)) {
        if (p.q12 == 0.0) {
            return {one_variable_step(p.g1, 0.0, p.a1, p.cap1), one_variable_step(p.g2, 0.0, p.a2, p.cap2)};
        }
        return best_edge(p);
    }
    const double det = p.q11 * p.q22 - p.q12 * p.q12;
    if (det <= rank_tolerance * p.q11 * p.q22) {
        // An indefinite kernel may even give det < 0: then the optimum is on an edge as well.
        return det < -rank_tolerance * std::abs(p.q11 * p.q22) ? best_edge(p) : rank_one_step(p);
    }
    const Step newton{(p.q22 * p.g1 - p.q12 * p.g2) / det, (p.q11 * p.g2 - p.q12 * p.g1) / det};
    return inside(p, newton) ? newton : best_edge(p);
}

}  // namespace multimargin
