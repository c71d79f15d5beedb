#include "online/deferred_scores.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "base/rng.hpp"
#include "check.hpp"
#include "kernels.hpp"
#include "online/slot_coefficients.hpp"

namespace multimargin {

namespace {

double uniform(Rng& rng) { return static_cast<double>(rng.next() >> 11) * 0x1p-53; }

std::vector<double> draw_point(Rng& rng, Index n_features) {
    std::vector<double> x(unsigned_index(n_features));
    for (double& value : x) value = uniform(rng) - 0.5;
    return x;
}

// Examples that come and go, and steps on them, with the scores as they should be: by slot, columns side by side.
struct Stream {
    Stream(const Kernel& kernel, Index width, Index columns, std::uint64_t seed)
        : kept(kernel, width), scores(kernel, width, columns), n_columns(columns), rng(seed) {}

    void take_in() {
        const std::vector<double> x = draw_point(rng, kept.n_features());
        kept.point_row(x.data());
        const Index slot = kept.insert(x.data(), rng.below(3), 1.0, next_id++);
        scores.resize(kept.n_slots());
        expected.resize(unsigned_index(kept.n_slots() * n_columns));
        for (Index c = 0; c < n_columns; ++c) expected[unsigned_index(slot * n_columns + c)] = uniform(rng);
        scores.set(slot, &expected[unsigned_index(slot * n_columns)]);
    }

    Index draw_used() {
        Index slot = rng.below(kept.n_slots());
        while (!kept.is_used(slot)) slot = (slot + 1) % kept.n_slots();
        return slot;
    }

    void step(Index slot) {
        std::vector<double> change(unsigned_index(n_columns), 0.0);
        for (int k = 0; k < 3; ++k) change[unsigned_index(rng.below(n_columns))] = uniform(rng) - 0.5;
        if (scores.is_full()) scores.catch_up(kept, team);
        scores.add_step(kept.example(slot), change);
        const std::span<const double> row = kept.point_row(kept.example(slot));
        for (Index other = 0; other < kept.n_slots(); ++other) {
            for (Index c = 0; c < n_columns; ++c) {
                expected[unsigned_index(other * n_columns + c)] +=
                    change[unsigned_index(c)] * row[unsigned_index(other)];
            }
        }
    }

    // The columns of all slots that are used.
    std::vector<double> all() const {
        std::vector<double> found, columns(scores.read_size());
        for (Index slot = 0; slot < kept.n_slots(); ++slot) {
            if (!kept.is_used(slot)) continue;
            scores.read(slot, kept.example(slot), columns);
            found.insert(found.end(), columns.begin(), columns.begin() + n_columns);
        }
        return found;
    }

    void run(Index n_turns, Index every) {
        for (Index turn = 0; turn < n_turns; ++turn) {
            if (turn % 4 != 3 || kept.size() < 10) take_in();
            step(draw_used());
            if (turn % 5 == 4) kept.release(draw_used());  // the waiting step keeps its example
            if (every > 0 && turn % every == 0) scores.catch_up(kept, team);
        }
    }

    KeptExamples kept;
    SlotScores scores;
    Index n_columns;
    Rng rng;
    QuickTeam* team = nullptr;
    std::vector<double> expected;
    Index next_id = 0;
};

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

const std::array kernels{testing::rbf(0.5), testing::linear(), testing::poly(0.5, 1.0, 3), testing::laplacian(0.5)};

}  // namespace

TEST(slot_scores_hold_all_steps_at_any_time) {
    for (const Kernel& kernel : kernels) {
        for (const Index n_columns : {3, 70}) {
            Stream stream(kernel, 5, n_columns, 1);
            for (int round = 0; round < 12; ++round) {
                stream.run(23, 0);
                const std::vector<double> found = stream.all();
                std::size_t next = 0;
                for (Index slot = 0; slot < stream.kept.n_slots(); ++slot) {
                    if (!stream.kept.is_used(slot)) continue;
                    for (Index c = 0; c < n_columns; ++c) {
                        CHECK_CLOSE(found[next++], stream.expected[unsigned_index(slot * n_columns + c)], 1e-12);
                    }
                }
            }
        }
    }
}

TEST(slot_scores_bits_do_not_depend_on_when_steps_are_added_nor_on_threads) {
    for (const Kernel& kernel : kernels) {
        std::vector<double> first;
        for (const Index every : {0, 1, 7}) {
            for (const Index n_threads : {1, 3}) {
                QuickTeam team(n_threads);
                Stream stream(kernel, 37, 4, 2);
                stream.team = &team;
                stream.run(1500, every);
                const std::vector<double> waiting = stream.all();
                stream.scores.catch_up(stream.kept, &team);
                CHECK(stream.scores.n_waiting() == 0 && same_bits(waiting, stream.all()));
                if (first.empty()) first = waiting;
                CHECK(same_bits(first, waiting));
            }
        }
    }
}

TEST(slot_scores_rows_are_added_with_the_same_bits_as_steps_that_waited) {
    Stream stream(testing::rbf(0.5), 7, 5, 6);
    for (int k = 0; k < 200; ++k) stream.take_in();
    const std::vector<double> before = stream.all(), change{0.5, 0.0, -0.3, 0.0, 0.1};
    std::vector<double> row(unsigned_index(stream.kept.n_slots()));
    stream.scores.add_step(stream.kept.example(3), change);
    const std::vector<double> waited = stream.all();
    CHECK_THROWS(stream.scores.add_row(row.data(), change), std::logic_error);
    Stream again(testing::rbf(0.5), 7, 5, 6);
    for (int k = 0; k < 200; ++k) again.take_in();
    again.scores.add_row(again.kept.point_row(again.kept.example(3)).data(), change);
    CHECK(!same_bits(before, waited) && same_bits(again.all(), waited));
}

TEST(slot_scores_take_no_more_steps_than_may_wait) {
    Stream stream(testing::rbf(0.5), 2, 3, 3);
    stream.take_in();
    const std::vector<double> x(2, 0.0), change(3, 1.0);
    for (Index step = 0; step < SlotScores::most_waiting; ++step) stream.scores.add_step(x.data(), change);
    CHECK(stream.scores.is_full());
    CHECK_THROWS(stream.scores.add_step(x.data(), change), std::logic_error);
}

TEST(slot_coefficients_sum_what_is_not_zero_in_the_order_of_the_slots) {
    constexpr Index n_slots = 192;
    // By lists, by lines because most are not 0, and because there are few columns.
    for (const auto& [n_columns, n_filled] : {std::pair<Index, Index>{9, 200}, {9, 3000}, {3, 100}}) {
        Rng rng(4);
        SlotCoefficients grown(n_columns), made(n_columns);
        grown.resize(n_slots);
        made.resize(n_slots);
        for (Index k = 0; k < n_filled; ++k) {
            const double value = uniform(rng) < 0.3 ? 0.0 : uniform(rng) - 0.5;
            grown.set(rng.below(n_slots), rng.below(n_columns), value);
        }
        std::vector<double> weights(unsigned_index(n_slots));
        for (double& weight : weights) weight = uniform(rng);
        std::vector<double> sums(unsigned_index(n_columns));
        for (Index slot = 0; slot < n_slots; ++slot) {
            for (Index c = 0; c < n_columns; ++c) {
                made.set(slot, c, grown.at(slot, c));
                sums[unsigned_index(c)] += weights[unsigned_index(slot)] * grown.at(slot, c);
            }
        }
        std::vector<double> a(unsigned_index(grown.ld())), b(unsigned_index(grown.ld()));
        grown.combine(weights, a.data());
        made.combine(weights, b.data());
        CHECK(same_bits(a, b));
        for (std::size_t c = 0; c < sums.size(); ++c) CHECK_CLOSE(a[c], sums[c], 1e-12);
    }
}

}  // namespace multimargin
