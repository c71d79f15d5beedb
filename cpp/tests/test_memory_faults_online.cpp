// A stream whose memory fails: the dual variables that it has are those of a feasible point, whichever request failed.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "check.hpp"
#include "failing_memory.hpp"
#include "online/larank.hpp"
#include "online/lasvm_set.hpp"
#include "problems.hpp"

namespace multimargin {

namespace {

using testing::Clouds;
using testing::FailingMemory;
using testing::live_pieces;
using Turn = OnlineLearner::Turn;

constexpr Index n_classes = 3, n_rows = 150;

void add_rows(OnlineLearner& learner, const Clouds& clouds, Index first, Index last) {
    for (Index i = first; i < last; ++i) {
        learner.add(clouds.X.data() + i * clouds.width, clouds.y[unsigned_index(i)], 1.0, i);
    }
}

void check_examples(const KeptState& kept, const Clouds& clouds) {
    std::map<Index, Index> seen;
    for (Index slot = 0; slot < kept.n_slots(); ++slot) {
        const std::size_t s = unsigned_index(slot);
        if (kept.labels[s] < 0) continue;
        const Index id = kept.ids[s];
        CHECK(++seen[id] == 1 && kept.caps[s] == 1.0 && kept.labels[s] == clouds.y[unsigned_index(id)]);
        CHECK(std::equal(kept.X.begin() + slot * clouds.width, kept.X.begin() + (slot + 1) * clouds.width,
                         clouds.X.begin() + id * clouds.width));
    }
}

void check_feasible(const OnlineBinaries& learner, const Clouds& clouds) {
    const BinariesState state = learner.state();
    check_examples(state.kept, clouds);
    std::size_t next = 0;
    for (const Index count : state.counts) {
        double sum = 0.0;
        for (Index k = 0; k < count; ++k, ++next) {
            CHECK(state.kept.labels[unsigned_index(state.slots[next])] >= 0);
            CHECK(std::abs(state.beta[next]) <= 1.0);
            sum += state.beta[next];
        }
        CHECK_CLOSE(sum, 0.0, 1e-12);
    }
    CHECK(next == state.beta.size());
}

void check_feasible(const OnlineMachine& learner, const Clouds& clouds) {
    const MachineState state = learner.state();
    check_examples(state.kept, clouds);
    CHECK(std::all_of(state.variables.begin(), state.variables.end(), [](double a) { return a >= 0.0 && a <= 1.0; }));
}

// The rows from a third on are learnt while memory fails.
template <class Make>
void check_stream(const Clouds& clouds, const Make& make) {
    std::ptrdiff_t n_requests = 0;
    {
        auto learner = make();
        add_rows(*learner, clouds, 0, n_rows / 3);
        const FailingMemory memory(0);
        add_rows(*learner, clouds, n_rows / 3, n_rows);
        n_requests = memory.n_requests();
    }
    CHECK(n_requests > 0);
    for (std::ptrdiff_t n = 1; n <= n_requests; ++n) {
        const std::ptrdiff_t before = live_pieces();
        {
            auto learner = make();
            add_rows(*learner, clouds, 0, n_rows / 3);
            bool failed = false;
            try {
                const Turn turn(*learner, Turn::change);
                const FailingMemory memory(n);
                add_rows(*learner, clouds, n_rows / 3, n_rows);
            } catch (const std::bad_alloc&) {
                failed = true;
            }
            CHECK(failed && learner->is_broken());
            check_feasible(*learner, clouds);
        }
        const bool all_back = live_pieces() == before;
        CHECK(all_back);
    }
}

}  // namespace

TEST(memory_faults_of_online_binaries) {
    const Clouds clouds(n_rows, 3, n_classes, 4);
    for (const Index budget : {-1, 20}) {
        for (const OnlineScheme scheme : {OnlineScheme::ovo, OnlineScheme::ova}) {
            OnlineOptions options;
            options.budget = budget;
            check_stream(clouds, [&] {
                return std::make_unique<OnlineBinaries>(testing::rbf(1.0), 3, scheme, n_classes, options, 0);
            });
        }
    }
}

TEST(memory_faults_of_online_machines) {
    const Clouds clouds(n_rows, 3, n_classes, 4);
    Machine machine = testing::ww(n_classes);
    machine.complete();
    for (const double cache_bytes : {2e8, 0.0}) {
        OnlineOptions options;
        options.exact_bias = false;
        options.cache_bytes = cache_bytes;
        check_stream(clouds,
                     [&] { return std::make_unique<OnlineMachine>(testing::rbf(1.0), 3, machine, options, 0); });
    }
}

TEST(memory_faults_do_not_let_anyone_use_what_is_broken) {
    OnlineBinaries learner(testing::rbf(1.0), 3, OnlineScheme::ovo, 2, OnlineOptions{}, 0);
    {
        const Turn turn(learner);
        CHECK_THROWS(Turn(learner), std::runtime_error);
    }
    try {
        const Turn turn(learner, Turn::change);
        throw std::bad_alloc();
    } catch (const std::bad_alloc&) {
        CHECK(learner.is_broken());
    }
    CHECK_THROWS(Turn(learner), std::runtime_error);
    const Turn turn(learner, Turn::salvage);
}

}  // namespace multimargin
