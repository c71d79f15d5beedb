#include "kernel/score_pass.hpp"

#include <limits>
#include <numeric>

#include "check.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Numbers;

constexpr Index n_scores = 3;

// Columns 0..n-1 of a data set, coefficients on every second row, some of them zero. Enough for threads.
struct ScoreCase {
    ScoreCase() : X(Numbers(1).many<double>(n * 4, -1.0, 1.0)), source(DenseView(X.data(), n, 4), testing::rbf(0.5)) {
        Numbers numbers(2);
        all.resize(unsigned_index(n));
        std::iota(all.begin(), all.end(), Index{0});
        std::vector<Index> rows;
        for (Index i = 0; i < n; i += 2) rows.push_back(i);
        beta = numbers.many<double>(static_cast<Index>(rows.size()) * n_scores, -1.0, 1.0);
        coefficients = std::make_unique<Coefficients>(rows, n_scores);
        for (std::size_t s = 0; s < rows.size(); ++s) {
            for (Index c = 0; c < n_scores; ++c) {
                double& value = beta[s * unsigned_index(n_scores) + unsigned_index(c)];
                if (numbers.below(3) == 0) value = 0.0;
                if (value != 0.0) coefficients->add(c, static_cast<Index>(s), value);
            }
        }
    }

    template <class T>
    AlignedVector<double> scores(Index n_threads, double initial = 0.0) const {
        AlignedVector<double> out(unsigned_index(n_scores * ld), initial);
        ThreadTeam team(n_threads);
        CHECK(add_scores(*source.columns<T>(all), *coefficients, out.data(), ld, team, nullptr));
        return out;
    }

    double naive(Index c, Index j) const {
        double sum = 0.0;
        for (std::size_t s = 0; s < coefficients->rows().size(); ++s) {
            double distance = 0.0;
            for (Index k = 0; k < 4; ++k) {
                const double d = X[unsigned_index(coefficients->rows()[s] * 4 + k)] - X[unsigned_index(j * 4 + k)];
                distance += d * d;
            }
            sum += beta[s * unsigned_index(n_scores) + unsigned_index(c)] * std::exp(-0.5 * distance);
        }
        return sum;
    }

    static constexpr Index n = 701, ld = 704;
    AlignedVector<double> X, beta;
    DenseSource source;
    std::vector<Index> all;
    std::unique_ptr<Coefficients> coefficients;
};

template <class T>
void check_against_naive(const ScoreCase& c, double initial) {
    const AlignedVector<double> found = c.scores<T>(2, initial);
    // Kernel values and coefficients are at most 1, and 351 rows are summed, 32 at a time in T.
    const double tolerance = 351.0 * 40.0 * static_cast<double>(std::numeric_limits<T>::epsilon());
    for (Index score = 0; score < n_scores; ++score) {
        for (Index j = 0; j < c.n; ++j) {
            CHECK_CLOSE(found[unsigned_index(score * c.ld + j)], c.naive(score, j) + initial, tolerance);
        }
    }
}

class StoppingWatcher final : public Watcher {
  public:
    explicit StoppingWatcher(Verdict verdict) : verdict_(verdict) {}
    Verdict watch(const Progress&, const std::function<void()>&) override {
        ++calls;
        return verdict_;
    }
    int calls = 0;

  private:
    Verdict verdict_;
};

}  // namespace

TEST(scores_against_a_naive_sum) {
    const ScoreCase c;
    check_against_naive<float>(c, 0.0);
    check_against_naive<double>(c, 0.0);
    check_against_naive<double>(c, 2.5);  // adds to what is there
}

TEST(scores_do_not_depend_on_threads) {
    const ScoreCase c;
    CHECK(c.scores<float>(1) == c.scores<float>(2) && c.scores<float>(1) == c.scores<float>(3));
    CHECK(c.scores<double>(1) == c.scores<double>(2) && c.scores<double>(1) == c.scores<double>(3));
}

TEST(scores_of_nothing) {
    const ScoreCase c;
    ThreadTeam team(2);
    AlignedVector<double> out(unsigned_index(n_scores * c.ld), 1.0);
    const Coefficients none({}, n_scores);
    CHECK(add_scores(*c.source.columns<double>(c.all), none, out.data(), c.ld, team, nullptr));
    CHECK(out == AlignedVector<double>(out.size(), 1.0));
}

TEST(scores_stop_at_a_deadline) {
    const ScoreCase c;
    ThreadTeam team(2);
    AlignedVector<double> out(unsigned_index(n_scores * c.ld), 0.0);
    Monitor monitor(nullptr, 0.0);
    CHECK(!add_scores(*c.source.columns<double>(c.all), *c.coefficients, out.data(), c.ld, team, &monitor));
    CHECK(monitor.stopped() && monitor.reason() == StopReason::max_time);
}

TEST(scores_stop_by_a_watcher) {
    const ScoreCase c;
    for (const Verdict verdict : {Verdict::interrupted, Verdict::callback}) {
        ThreadTeam team(2);
        AlignedVector<double> out(unsigned_index(n_scores * c.ld), 0.0);
        StoppingWatcher watcher(verdict);
        Monitor monitor(&watcher, infinity);
        // Asked at the first poll; by the first tile of the calling thread, which may come too late to find one left.
        CHECK(monitor.poll() && watcher.calls == 1);
        CHECK(!add_scores(*c.source.columns<float>(c.all), *c.coefficients, out.data(), c.ld, team, &monitor));
        CHECK(watcher.calls == 1);
        const bool interrupted = verdict == Verdict::interrupted;
        CHECK(monitor.reason() == (interrupted ? StopReason::interrupted : StopReason::callback));
    }
}

TEST(scores_go_on_while_the_watcher_agrees) {
    const ScoreCase c;
    ThreadTeam team(1);
    AlignedVector<double> out(unsigned_index(n_scores * c.ld), 0.0);
    StoppingWatcher watcher(Verdict::go_on);
    Monitor monitor(&watcher, infinity);
    CHECK(add_scores(*c.source.columns<double>(c.all), *c.coefficients, out.data(), c.ld, team, &monitor));
    CHECK(watcher.calls >= 1 && out == c.scores<double>(1));
}

}  // namespace multimargin
