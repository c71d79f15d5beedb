#include "failing_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace multimargin::testing {

namespace {

std::atomic<std::ptrdiff_t> n_live{0}, n_asked{0}, first_failure{0}, last_failure{0};
std::atomic<bool> armed{false};

bool fails() {
    if (!armed) return false;
    const std::ptrdiff_t number = ++n_asked;
    return number >= first_failure && number <= last_failure;
}

void* counted(void* piece) {
    if (piece == nullptr) throw std::bad_alloc();
    ++n_live;
    return piece;
}

void give_back(void* piece) {
    if (piece != nullptr) --n_live;
    std::free(piece);
}

}  // namespace

std::ptrdiff_t live_pieces() { return n_live; }

FailingMemory::FailingMemory(std::ptrdiff_t n, bool for_good) {
    n_asked = 0;
    first_failure = n > 0 ? n : std::numeric_limits<std::ptrdiff_t>::max();
    last_failure = n > 0 && !for_good ? n : std::numeric_limits<std::ptrdiff_t>::max() - 1;
    armed = true;
}

FailingMemory::~FailingMemory() { armed = false; }

std::ptrdiff_t FailingMemory::n_requests() const { return n_asked; }

}  // namespace multimargin::testing

namespace testing_memory = multimargin::testing;

void* operator new(std::size_t size) {
    return testing_memory::counted(testing_memory::fails() ? nullptr : std::malloc(size > 0 ? size : 1));
}

// std::stable_sort asks so for its buffer, and does with less where there is none.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    void* const piece = testing_memory::fails() ? nullptr : std::malloc(size > 0 ? size : 1);
    if (piece != nullptr) ++testing_memory::n_live;
    return piece;
}

void* operator new(std::size_t size, std::align_val_t boundary) {
    const std::size_t step = static_cast<std::size_t>(boundary);
    const std::size_t whole = (size + step - 1) / step * step;
    return testing_memory::counted(testing_memory::fails() ? nullptr
                                                           : std::aligned_alloc(step, whole > 0 ? whole : step));
}

void operator delete(void* piece, const std::nothrow_t&) noexcept { testing_memory::give_back(piece); }
void operator delete(void* piece) noexcept { testing_memory::give_back(piece); }
void operator delete(void* piece, std::size_t) noexcept { testing_memory::give_back(piece); }
void operator delete(void* piece, std::align_val_t) noexcept { testing_memory::give_back(piece); }
void operator delete(void* piece, std::size_t, std::align_val_t) noexcept { testing_memory::give_back(piece); }
