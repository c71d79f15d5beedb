// Which vector code this processor can run.
#include <array>

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
    static const Available found = detect();
    return found;
}

}  // namespace

const Table& best_table() { return *available().tables[static_cast<std::size_t>(available().count - 1)]; }

const Table* available_table(int i) {
    return i >= 0 && i < available().count ? available().tables[static_cast<std::size_t>(i)] : nullptr;
}

}  // namespace multimargin::simd
