// Which vector code this processor can run.
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "table.hpp"

namespace multimargin::simd {

#ifdef MULTIMARGIN_HAVE_VECTORS
const Table& baseline_table();
#endif
#ifdef MULTIMARGIN_HAVE_X86_TARGETS
const Table& avx2_table();
const Table& avx512_table();
#endif

namespace {

struct Available {
    std::array<const Table*, 5> tables{};
    int count = 0;
    void add(const Table& table) { tables[static_cast<std::size_t>(count++)] = &table; }
};

// The set that the environment variable names becomes the last of the tables, which is the one used.
Available up_to_chosen(Available found) {
    const char* chosen = std::getenv("MULTIMARGIN_SIMD");
    if (chosen == nullptr || *chosen == '\0') return found;
    std::string names;
    for (int i = 0; i < found.count; ++i) {
        const std::string name = found.tables[static_cast<std::size_t>(i)]->name;
        if (name == chosen) {
            found.count = i + 1;
            return found;
        }
        names += (i == 0 ? "" : ", ") + name;
    }
    throw std::invalid_argument("MULTIMARGIN_SIMD=" + std::string(chosen) +
                                " names no instruction set that this machine runs: it must be one of " + names +
                                ", or not be set.");
}

Available detect() {
    Available found;
    found.add(scalar_table());
#ifdef MULTIMARGIN_HAVE_VECTORS
    found.add(baseline_table());
#endif
#ifdef MULTIMARGIN_HAVE_X86_TARGETS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        found.add(avx2_table());
        const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
        if (wide) found.add(avx512_table());
    }
#endif
    return found;
}

const Available& available() {
    static const Available found = up_to_chosen(detect());
    return found;
}

}  // namespace

const Table& best_table() { return *available().tables[static_cast<std::size_t>(available().count - 1)]; }

const Table* available_table(int i) {
    return i >= 0 && i < available().count ? available().tables[static_cast<std::size_t>(i)] : nullptr;
}

}  // namespace multimargin::simd
