#include "parallel.hpp"

#include <stdexcept>

#include "check.hpp"

namespace multimargin {

namespace {

void check_each_once(ThreadTeam& team, Index n) {
    std::vector<std::atomic<int>> count(unsigned_index(n));
    team.run(n, [&](Index i) { ++count[unsigned_index(i)]; });
    for (const auto& c : count) CHECK(c == 1);
}

}  // namespace

TEST(parallel_runs_every_task_once) {
    for (const Index n_threads : {1, 2, 3, 5}) {
        ThreadTeam team(n_threads);
        for (const Index n : {0, 1, 2, 7, 1000}) check_each_once(team, n);
    }
}

TEST(parallel_team_is_used_again_and_again) {
    ThreadTeam team(3);
    for (int i = 0; i < 500; ++i) check_each_once(team, 4);
}

TEST(parallel_one_thread_is_the_callers) {
    for (const Index n_threads : {-1, 0, 1}) {
        ThreadTeam team(n_threads);
        CHECK(team.n_threads() == 1);
        bool own = true;
        const std::thread::id caller = std::this_thread::get_id();
        team.run(10, [&](Index) { own = own && std::this_thread::get_id() == caller; });
        CHECK(own);
    }
}

TEST(parallel_rethrows_and_goes_on) {
    for (const Index n_threads : {1, 3}) {
        ThreadTeam team(n_threads);
        const auto failing = [](Index i) {
            if (i == 5) throw std::out_of_range("task 5");
        };
        CHECK_THROWS(team.run(100, failing), std::out_of_range);
        const auto all_failing = [](Index) { throw std::runtime_error("every task"); };
        CHECK_THROWS(team.run(100, all_failing), std::runtime_error);
        check_each_once(team, 100);
    }
}

TEST(parallel_unused_team_starts_no_thread) {
    ThreadTeam team(1000);
    team.run(1, [](Index) {});
    CHECK(team.n_threads() == 1000);
}

}  // namespace multimargin
