// Aligned memory, memory in large pages, and room made before it is needed.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "base/types.hpp"

namespace multimargin {

inline constexpr std::size_t alignment = 64;

template <class T>
struct AlignedAllocator {
    using value_type = T;
    AlignedAllocator() noexcept = default;
    template <class U>
    explicit AlignedAllocator(const AlignedAllocator<U>&) noexcept {}
    T* allocate(std::size_t n) {
        if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{alignment}));
    }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t{alignment}); }
    template <class U>
    bool operator==(const AlignedAllocator<U>&) const noexcept {
        return true;
    }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// Memory for many numbers, not set to anything: the thread that computes a value is the first to touch it.
// Large ones ask for large pages, without which the first touch of a matrix costs as much as computing it.
class RawMemory {
  public:
    RawMemory() = default;
    explicit RawMemory(std::size_t bytes);
    ~RawMemory();
    RawMemory(RawMemory&& other) noexcept { swap(other); }
    RawMemory& operator=(RawMemory&& other) noexcept {
        swap(other);
        return *this;
    }
    void* get() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    void swap(RawMemory& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
    }
    std::align_val_t boundary() const;

    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

template <class T>
class RawArray {
  public:
    T* data() { return static_cast<T*>(memory_.get()); }
    const T* data() const { return static_cast<const T*>(memory_.get()); }
    // Room for n values; what was there before is lost when it must grow.
    void reserve(std::size_t n) {
        if (n > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T)) throw std::bad_alloc();
        if (n * sizeof(T) > memory_.bytes()) memory_ = RawMemory(n * sizeof(T));
    }

  private:
    RawMemory memory_;
};

// Room for n values, so that growing up to there cannot fail; twofold at least, as vectors grow by themselves.
template <class Values>
void reserve_ahead(Values& values, std::size_t n) {
    if (n > values.capacity()) values.reserve(n > 2 * values.capacity() ? n : 2 * values.capacity());
}

}  // namespace multimargin
