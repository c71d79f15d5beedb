#include "base/memory.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace multimargin {

namespace {

constexpr std::size_t large_page = std::size_t{1} << 21;

}  // namespace

std::align_val_t RawMemory::boundary() const {
    return std::align_val_t{bytes_ >= 2 * large_page ? large_page : alignment};
}

RawMemory::RawMemory(std::size_t bytes) : bytes_(bytes) {
    data_ = ::operator new(bytes, boundary());
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    // A wish: nothing depends on it.
    if (boundary() == std::align_val_t{large_page}) madvise(data_, bytes / large_page * large_page, MADV_HUGEPAGE);
#endif
}

RawMemory::~RawMemory() {
    if (data_ != nullptr) ::operator delete(data_, boundary());
}

}  // namespace multimargin
