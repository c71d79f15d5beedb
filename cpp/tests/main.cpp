// Runs the tests whose names start with one of the arguments, or all of them.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "check.hpp"

namespace {

using multimargin::testing::Suite;
using multimargin::testing::Test;

constexpr std::size_t shown_failures = 10;

bool chosen(const std::string& name, int argc, char** argv) {
    if (argc < 2) return true;
    return std::any_of(argv + 1, argv + argc, [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
}

bool run_one(const Test& test, Suite& suite) {
    suite.failures.clear();
    try {
        test.run();
    } catch (const std::exception& error) {
        suite.failures.push_back(std::string("ended by an exception: ") + error.what());
    }
    if (suite.failures.empty()) return true;
    std::printf("FAILED %s (%zu checks)\n", test.name.c_str(), suite.failures.size());
    for (std::size_t i = 0; i < std::min(shown_failures, suite.failures.size()); ++i) {
        std::printf("  %s\n", suite.failures[i].c_str());
    }
    std::fflush(stdout);
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    Suite& suite = multimargin::testing::suite();
    int passed = 0, failed = 0;
    for (const Test& test : suite.tests) {
        if (!chosen(test.name, argc, argv)) continue;
        (run_one(test, suite) ? passed : failed) += 1;
    }
    std::printf("%d passed, %d failed (%zu checks)\n", passed, failed, suite.n_checks);
    return failed == 0 && passed > 0 ? 0 : 1;
}
