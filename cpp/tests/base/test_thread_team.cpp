#include "base/thread_team.hpp"

#include <chrono>
#include <functional>
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

namespace {

// Two tasks of which the one that the caller did not take lasts until `meanwhile` has run.
struct OneWaits {
    void operator()(Index) {
        if (std::this_thread::get_id() == caller) {
            wait_for(other_began);
        } else {
            other_began = true;
            wait_for(released);
            other_ended = true;
        }
    }
    static void wait_for(const std::atomic<bool>& flag) {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!flag && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    }
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> other_began{false}, released{false}, other_ended{false};
};

}  // namespace

TEST(parallel_caller_wakes_up_while_others_work) {
    ThreadTeam team(2);
    for (int repeat = 0; repeat < 3; ++repeat) {
        OneWaits work;
        int calls = 0;
        bool own = true;
        team.run(2, std::ref(work), [&] {
            own = own && std::this_thread::get_id() == work.caller;
            if (++calls == 3) work.released = true;
        });
        CHECK(calls >= 3 && own && work.other_ended);
        check_each_once(team, 7);
    }
}

TEST(parallel_meanwhile_may_throw) {
    ThreadTeam team(2);
    OneWaits work;
    const auto meanwhile = [&] {
        work.released = true;
        throw std::domain_error("meanwhile");
    };
    CHECK_THROWS(team.run(2, std::ref(work), meanwhile), std::domain_error);
    CHECK(work.other_ended);  // no thread still uses what the caller is about to destroy
    check_each_once(team, 7);
}

TEST(parallel_meanwhile_is_not_needed_alone) {
    int calls = 0;
    ThreadTeam team(1);
    team.run(5, [](Index) {}, [&] { ++calls; });
    CHECK(calls == 0);
}

}  // namespace multimargin
