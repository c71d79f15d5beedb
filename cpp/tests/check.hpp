// A test framework of one header: TEST registers, CHECK counts, a failed check does not end its test.
#pragma once

#include <cmath>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace multimargin::testing {

struct Test {
    std::string name;
    void (*run)();
};

// All tests of the program, and the failed checks of the one that runs.
struct Suite {
    std::vector<Test> tests;
    std::vector<std::string> failures;
    std::size_t n_checks = 0;
};

inline Suite& suite() {
    static Suite the_suite;
    return the_suite;
}

struct Registration {
    Registration(const char* name, void (*run)()) { suite().tests.push_back({name, run}); }
};

inline void note(bool good, const char* file, int line, const std::string& what) {
    ++suite().n_checks;
    if (good) return;
    std::ostringstream text;
    text << file << ":" << line << ": " << what;
    suite().failures.push_back(text.str());
}

inline void note_close(double a, double b, double tolerance, const char* file, int line, const char* what) {
    const bool good = a == b || std::abs(a - b) <= tolerance;  // a == b also compares infinities
    if (good) {
        note(true, file, line, "");
        return;
    }
    std::ostringstream text;
    text.precision(17);
    text << what << ": " << a << " against " << b << ", apart by " << std::abs(a - b) << ", allowed " << tolerance;
    note(false, file, line, text.str());
}

}  // namespace multimargin::testing

// The name's first word is the part of the core that it tests: the programs' arguments filter by it.
#define TEST(name)                                                                       \
    static void test_##name();                                                           \
    static const multimargin::testing::Registration register_##name(#name, test_##name); \
    static void test_##name()

#define CHECK(condition) multimargin::testing::note(static_cast<bool>(condition), __FILE__, __LINE__, #condition)

#define CHECK_CLOSE(a, b, tolerance)                                                                                  \
    multimargin::testing::note_close(static_cast<double>(a), static_cast<double>(b), (tolerance), __FILE__, __LINE__, \
                                     #a " ~ " #b)

#define CHECK_THROWS(expression, Exception)                                                              \
    do {                                                                                                 \
        bool thrown = false;                                                                             \
        try {                                                                                            \
            static_cast<void>(expression);                                                               \
        } catch (const Exception&) {                                                                     \
            thrown = true;                                                                               \
        }                                                                                                \
        multimargin::testing::note(thrown, __FILE__, __LINE__, #expression " should throw " #Exception); \
    } while (false)
