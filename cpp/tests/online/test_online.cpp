#include <cmath>
#include <cstring>

#include "check.hpp"
#include "kernels.hpp"
#include "online/larank.hpp"
#include "online/lasvm_set.hpp"

namespace multimargin {

namespace {

constexpr Index n_features = 3;

struct Example {
    std::vector<double> x;
    Index label;
};

// Classes around their own corners, with noise that makes them overlap.
std::vector<Example> draw_examples(Index n, Index n_classes, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<Example> examples;
    for (Index i = 0; i < n; ++i) {
        Example e{std::vector<double>(unsigned_index(n_features)), rng.below(n_classes)};
        for (Index k = 0; k < n_features; ++k) {
            const double noise = static_cast<double>(rng.next() >> 11) * 0x1p-53;
            e.x[unsigned_index(k)] = 2.0 * noise + ((e.label >> k) & 1 ? 1.0 : 0.0);
        }
        examples.push_back(std::move(e));
    }
    return examples;
}

double rbf(const double* x, const double* z, double gamma) {
    double distance = 0.0;
    for (Index k = 0; k < n_features; ++k) distance += (x[k] - z[k]) * (x[k] - z[k]);
    return std::exp(-gamma * distance);
}

// f_y - f_p >= 2 in a box (ww), or >= 1 in a simplex (cs).
Machine relative_machine(Index n_classes, Bound bound) {
    Machine machine;
    machine.n_classes = n_classes;
    machine.bound = bound;
    machine.sigma.assign(unsigned_index(n_classes), 1.0);
    for (Index y = 0; y < n_classes; ++y) {
        std::vector<Component> components;
        for (Index p = 0; p < n_classes; ++p) {
            if (p == y) continue;
            Component c;
            c.class1 = y;
            c.class2 = p;
            c.value1 = 1.0;
            c.value2 = -1.0;
            c.target = bound == Bound::box ? 2.0 : 1.0;
            c.private_square = c.weight = 1.0;
            components.push_back(c);
        }
        machine.components.push_back(components);
    }
    machine.complete();
    return machine;
}

// Errors of the members computed anew from the coefficients.
void check_errors(const OnlineBinaries& learner, Index n_machines, double gamma) {
    const KeptState kept = learner.kept().state();
    for (Index m = 0; m < n_machines; ++m) {
        double sum = 0.0;
        for (const OnlineBinary::Member& a : learner.machine(m).members()) {
            double f = 0.0;
            for (const OnlineBinary::Member& b : learner.machine(m).members()) {
                f += b.beta * rbf(&kept.X[unsigned_index(a.slot * n_features)],
                                  &kept.X[unsigned_index(b.slot * n_features)], gamma);
            }
            const double y = a.high > 0.0 ? 1.0 : -1.0;
            CHECK_CLOSE(a.error, y - f, 1e-9);
            CHECK(a.beta >= a.low && a.beta <= a.high);
            sum += a.beta;
        }
        CHECK_CLOSE(sum, 0.0, 1e-9);
    }
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

TEST(member_rows_after_slots_changed_hands) {
    const auto examples = draw_examples(400, 3, 1);
    KeptExamples kept(testing::rbf(0.7), n_features);
    MemberRows all({0, 1, 2}, 20'000), some({2, 0}, 15'000);  // a few rows only
    MemberRows none({3}, 1'000);                              // no example is of that class
    none.make_ready(kept);
    Rng rng(5);
    std::vector<Index> slots;
    const auto drawn = [&] { return unsigned_index(rng.below(static_cast<Index>(slots.size()))); };
    for (std::size_t i = 0; i < examples.size(); ++i) {
        kept.point_row(examples[i].x.data());
        slots.push_back(kept.insert(examples[i].x.data(), examples[i].label, 1.0, static_cast<Index>(i)));
        all.make_ready(kept);
        some.make_ready(kept);
        if (i % 2 == 0) all.newest_row(kept, slots.back());
        if (i % 5 == 0 && examples[i].label != 1) some.newest_row(kept, some.place(slots.back()));
        all.row(kept, slots[drawn()]);
        const Index other = some.place(slots[drawn()]);
        if (other >= 0) some.row(kept, other);
        if (i % 3 == 2) {
            const std::size_t gone = drawn();
            all.forget(slots[gone]);
            some.forget(slots[gone]);
            kept.release(slots[gone]);
            slots[gone] = slots.back();
            slots.pop_back();
        }
    }
    CHECK(kept.size() == static_cast<Index>(slots.size()));
    CHECK(kept.n_slots() <= 400 && all.n_places() == kept.n_slots() && some.n_places() < kept.n_slots());
    const KeptState state = kept.state();
    const auto value = [&](Index a, Index b) {
        return rbf(&state.X[unsigned_index(a * n_features)], &state.X[unsigned_index(b * n_features)], 0.7);
    };
    for (const Index a : slots) {
        all.make_ready(kept);
        some.make_ready(kept);
        const double* row = all.row(kept, a);
        for (const Index b : slots) CHECK_CLOSE(row[b], value(a, b), 1e-12);
        CHECK((some.place(a) < 0) == (kept.label(a) == 1));
        if (some.place(a) < 0) continue;
        CHECK(some.slot(some.place(a)) == a);
        row = some.row(kept, some.place(a));
        for (const Index b : slots) {
            if (kept.label(b) != 1) CHECK_CLOSE(row[some.place(b)], value(a, b), 1e-12);
        }
    }
    CHECK(all.counters().hits > 0 && some.counters().hits > 0);
}

TEST(member_rows_of_a_class_that_nobody_has) {
    KeptExamples kept(testing::rbf(0.7), n_features);
    MemberRows none({3}, 1'000);
    none.make_ready(kept);
    const std::vector<double> x(unsigned_index(n_features), 0.5);
    kept.point_row(x.data());
    const Index slot = kept.insert(x.data(), 0, 1.0, 0);
    none.make_ready(kept);
    CHECK(none.n_places() == 0 && none.place(slot) < 0);
}

TEST(online_binaries_learn_the_same_bits_with_threads) {
    for (const OnlineScheme scheme : {OnlineScheme::ovo, OnlineScheme::ova}) {
        OnlineOptions options;
        options.cache_bytes = 300'000;
        OnlineBinaries alone(testing::rbf(3.0), n_features, scheme, 8, options, 0);
        OnlineBinaries helped(testing::rbf(3.0), n_features, scheme, 8, options, 0);
        QuickTeam team(3);
        helped.work_with(&team);
        const auto examples = draw_examples(5500, 8, 8);  // the last ones have work enough for threads
        for (std::size_t i = 0; i < examples.size(); ++i) {
            const auto& [x, label] = examples[i];
            CHECK(alone.add(x.data(), label, 0.1, static_cast<Index>(i)) ==
                  helped.add(x.data(), label, 0.1, static_cast<Index>(i)));
        }
        const BinariesState a = alone.state(), b = helped.state();
        CHECK(same_bits(a.beta, b.beta) && same_bits(a.errors, b.errors) && same_bits(a.kept.ids, b.kept.ids));
        CHECK(alone.kept().n_slots() > 4500);
    }
}

TEST(online_binaries_errors_and_sums_stay_right) {
    for (const OnlineScheme scheme : {OnlineScheme::ovo, OnlineScheme::ova}) {
        OnlineOptions options;
        options.cache_bytes = 50'000;
        OnlineBinaries learner(testing::rbf(1.5), n_features, scheme, 4, options, 0);
        const auto examples = draw_examples(600, 4, 2);
        for (std::size_t i = 0; i < examples.size(); ++i) {
            learner.add(examples[i].x.data(), examples[i].label, 2.0, static_cast<Index>(i));
        }
        check_errors(learner, learner.n_machines(), 1.5);
        for (Index id = 0; id < 600; id += 2) learner.forget(id);
        check_errors(learner, learner.n_machines(), 1.5);
        for (Index id = 0; id < 600; id += 2) CHECK(learner.kept().find(id) < 0);
        for (int round = 0; round < 100'000 && learner.improve(); ++round) {
        }
        CHECK(learner.violation() <= options.tol);
        check_errors(learner, learner.n_machines(), 1.5);
    }
}

TEST(online_binaries_far_from_the_optimum_take_more_steps) {
    // Squares of a chessboard, which a large C separates.
    Rng rng(3);
    std::vector<Example> examples;
    for (Index i = 0; i < 1500; ++i) {
        Example e{std::vector<double>(unsigned_index(n_features), 0.0), 0};
        for (std::size_t k = 0; k < 2; ++k) e.x[k] = 4.0 * static_cast<double>(rng.next() >> 11) * 0x1p-53;
        e.label = (static_cast<Index>(e.x[0]) + static_cast<Index>(e.x[1])) % 2;
        examples.push_back(std::move(e));
    }
    for (const double cap : {0.1, 1000.0}) {
        OnlineBinaries learner(testing::rbf(1.0), n_features, OnlineScheme::ovo, 2, OnlineOptions{}, 0);
        for (std::size_t i = 0; i < examples.size(); ++i) {
            learner.add(examples[i].x.data(), examples[i].label, cap, static_cast<Index>(i));
        }
        // PROCESS and REPROCESS make two at most.
        CHECK((learner.n_steps() > 2 * 1500) == (cap > 1.0));
    }
}

TEST(online_binaries_restored_goes_on_with_the_same_bits) {
    for (const Selection selection : {Selection::second_order, Selection::first_order, Selection::random}) {
        OnlineOptions options;
        options.selection = selection;
        options.budget = 150;
        OnlineBinaries first(testing::rbf(1.0), n_features, OnlineScheme::ovo, 3, options, 7);
        const auto examples = draw_examples(500, 3, 3);
        const auto learn = [&](OnlineBinaries& learner, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) {
                learner.add(examples[i].x.data(), examples[i].label, 1.0, static_cast<Index>(i));
            }
        };
        learn(first, 0, 250);
        OnlineBinaries second(testing::rbf(1.0), first.state(), OnlineScheme::ovo, 3, options);
        learn(first, 250, 500);
        learn(second, 250, 500);
        const BinariesState a = first.state(), b = second.state();
        CHECK(same_bits(a.beta, b.beta) && same_bits(a.errors, b.errors) && same_bits(a.kept.ids, b.kept.ids));
        CHECK(first.kept().size() <= 150 && first.n_support() > 50);
    }
}

TEST(online_machine_scores_stay_right_and_reach_the_optimum_of_the_kept) {
    for (const Bound bound : {Bound::box, Bound::simplex}) {
        for (const Selection selection : {Selection::second_order, Selection::first_order, Selection::random}) {
            OnlineOptions options;
            options.selection = selection;
            options.cache_bytes = 50'000;
            OnlineMachine learner(testing::rbf(1.5), n_features, relative_machine(4, bound), options, 11);
            const auto examples = draw_examples(500, 4, 4);
            double before = 0.0;
            for (std::size_t i = 0; i < examples.size(); ++i) {
                learner.add(examples[i].x.data(), examples[i].label, 2.0, static_cast<Index>(i));
                const double dual = learner.dual();
                CHECK(dual >= before - 1e-9);  // steps only ever gain
                before = dual;
            }
            for (Index id = 0; id < 500; id += 3) learner.forget(id);
            const OnlineMachine again(testing::rbf(1.5), learner.state(), relative_machine(4, bound), options);
            const MachineState state = learner.state();
            CHECK(same_bits(state.scores, again.state().scores));
            for (Index a = 0; a < state.kept.n_slots(); ++a) {
                if (state.kept.labels[unsigned_index(a)] < 0) continue;
                for (Index c = 0; c < 4; ++c) {
                    double f = 0.0;
                    for (Index b = 0; b < state.kept.n_slots(); ++b) {
                        f += state.coefficients[unsigned_index(b * 4 + c)] *
                             rbf(&state.kept.X[unsigned_index(a * n_features)],
                                 &state.kept.X[unsigned_index(b * n_features)], 1.5);
                    }
                    CHECK_CLOSE(state.scores[unsigned_index(a * 4 + c)], f, 1e-9);
                }
            }
            for (int round = 0; round < 100'000 && learner.improve(); ++round) {
            }
            CHECK(learner.violation() <= options.tol);
        }
    }
}

TEST(online_machine_bits_do_not_depend_on_threads_looks_and_stops) {
    constexpr Index width = 120;  // so that threads are worth waking
    Rng rng(8);
    std::vector<double> X(unsigned_index(400 * width));
    for (double& value : X) value = static_cast<double>(rng.next() >> 11) * 0x1p-53;
    const Machine machine = relative_machine(4, Bound::box);
    OnlineOptions options;
    options.cache_bytes = 100'000;  // for the first steps only
    OnlineMachine alone(testing::rbf(0.1), width, machine, options, 9),
        helped(testing::rbf(0.1), width, machine, options, 9);
    QuickTeam team(3);
    helped.work_with(&team);
    const auto learn = [&](OnlineMachine& learner, Index i) {
        learner.add(X.data() + i * width, i % 4, 2.0, i);
        if (i % 50 == 49) learner.forget(i - 20);
    };
    for (Index i = 0; i < 200; ++i) learn(helped, i);
    OnlineMachine restored(testing::rbf(0.1), helped.state(), machine, options);
    for (Index i = 200; i < 400; ++i) learn(helped, i);
    for (Index i = 200; i < 400; ++i) learn(restored, i);
    for (Index i = 0; i < 400; ++i) {
        learn(alone, i);
        alone.dual();
    }
    const MachineState a = alone.state();
    CHECK(alone.kept().size() > 200);
    for (const MachineState& b : {helped.state(), restored.state()}) {
        CHECK(same_bits(a.variables, b.variables) && same_bits(a.scores, b.scores));
        CHECK(same_bits(a.coefficients, b.coefficients) && same_bits(a.kept.ids, b.kept.ids));
    }
}

TEST(online_machine_stays_feasible_within_its_budget) {
    for (const Bound bound : {Bound::box, Bound::simplex}) {
        OnlineOptions options;
        options.budget = 60;
        OnlineMachine learner(testing::rbf(1.5), n_features, relative_machine(3, bound), options, 1);
        const auto examples = draw_examples(800, 3, 6);
        for (std::size_t i = 0; i < examples.size(); ++i) {
            learner.add(examples[i].x.data(), examples[i].label, 1.5, static_cast<Index>(i));
            CHECK(learner.kept().size() <= 60);
        }
        for (Index slot = 0; slot < learner.kept().n_slots(); ++slot) {
            const double a = learner.variable(slot, 0), b = learner.variable(slot, 1);
            CHECK(a >= 0.0 && b >= 0.0);
            CHECK((bound == Bound::box ? std::max(a, b) : a + b) <= 1.5 * (1.0 + 1e-12));
        }
    }
}

TEST(online_states_that_make_no_sense_are_refused) {
    KeptState state;
    state.n_features = n_features;
    state.labels.assign(64, 0);
    CHECK_THROWS(KeptExamples(testing::rbf(1.0), state), std::invalid_argument);
    BinariesState empty;
    empty.kept.n_features = n_features;
    CHECK_THROWS(OnlineBinaries(testing::rbf(1.0), empty, OnlineScheme::ovo, 3, OnlineOptions{}),
                 std::invalid_argument);
    KeptExamples kept(testing::rbf(1.0), n_features);
    const std::vector<double> x(unsigned_index(n_features), 0.0);
    kept.point_row(x.data());
    const Index slot = kept.insert(x.data(), 0, 1.0, 5);
    CHECK_THROWS(kept.insert(x.data(), 0, 1.0, 5), std::invalid_argument);
    kept.release(slot);
    CHECK_THROWS(kept.release(slot), std::invalid_argument);
}

}  // namespace multimargin
