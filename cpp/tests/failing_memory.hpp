// Memory that fails on request: replaces operator new of the whole program.
#pragma once

#include <cstddef>

namespace multimargin::testing {

// Pieces of memory that are in use now.
std::ptrdiff_t live_pieces();

// From its construction to its end the n-th request for memory fails, made by any thread; and all after it, if asked
// for. With n = 0 none fails, and they are counted.
class FailingMemory {
  public:
    explicit FailingMemory(std::ptrdiff_t n, bool for_good = false);
    FailingMemory(const FailingMemory&) = delete;
    FailingMemory& operator=(const FailingMemory&) = delete;
    ~FailingMemory();
    std::ptrdiff_t n_requests() const;
};

}  // namespace multimargin::testing
