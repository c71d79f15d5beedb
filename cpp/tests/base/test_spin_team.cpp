#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/spin_team.hpp"
#include "check.hpp"

namespace multimargin {

TEST(quick_team_runs_each_task_once_run_after_run) {
    for (const Index n_threads : {1, 2, 5}) {
        QuickTeam team(n_threads);
        std::vector<int> done(37);
        for (int run = 1; run <= 20'000; ++run) {
            const Index n = run % 38;
            team.run(n, [&](Index i) { ++done[unsigned_index(i)]; });
        }
        int before = 20'001;
        for (std::size_t i = 0; i < done.size(); ++i) {
            int expected = 0;
            for (int run = 1; run <= 20'000; ++run) expected += run % 38 > static_cast<int>(i);
            CHECK(done[i] == expected && done[i] < before);
            before = done[i];
        }
    }
}

TEST(quick_team_wakes_workers_that_sleep) {
    QuickTeam team(3);
    for (int run = 0; run < 5; ++run) {
        std::atomic<int> begun{0};
        // Each task waits for all, so that three threads are needed.
        team.run(3, [&](Index) {
            ++begun;
            while (begun < 3) std::this_thread::yield();
        });
        CHECK(begun == 3);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

TEST(quick_team_throws_what_a_task_threw_and_goes_on) {
    QuickTeam team(2);
    std::atomic<int> done{0};
    for (int run = 0; run < 100; ++run) {
        CHECK_THROWS(team.run(50,
                              [&](Index i) {
                                  if (i == 25) throw std::runtime_error("no");
                                  ++done;
                              }),
                     std::runtime_error);
        const int before = done;
        team.run(50, [&](Index) { ++done; });
        CHECK(done == before + 50);
    }
}

}  // namespace multimargin
