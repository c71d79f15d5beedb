// The words that every part of the core shares: index type, choices, aligned memory.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

namespace multimargin {

using Index = std::ptrdiff_t;

enum class KernelKind { linear, rbf, poly, sigmoid, laplacian };
enum class Bound { box, simplex };
enum class Loss { hinge, squared_hinge };
enum class SolverKind {
    smo,
    s2do,
    whole_example,
    semi_greedy,
    two_level,
    working_set,
    most_violating_pair,
    maximum_gain
};
enum class Precision { automatic, float32, float64 };
// unfinished: a budget of work is used up, and whoever set it goes on by other means.
enum class StopReason { converged, max_iter, max_time, stalled, interrupted, callback, unfinished };

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// LIBSVM's floor for a curvature that is not positive (indefinite kernels, duplicates).
inline constexpr double curvature_floor = 1e-12;

// A dual variable (or a slack) within this share of C of a bound counts as at it.
inline constexpr double bound_tolerance = 1e-12;

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

// The product of two sizes, refused when it does not fit.
inline std::size_t checked_product(Index a, Index b) {
    if (a < 0 || b < 0) throw std::invalid_argument("a size is negative");
    if (a != 0 && b > std::numeric_limits<Index>::max() / a) throw std::bad_alloc();
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

// Room for n values, so that growing up to there cannot fail; twofold at least, as vectors grow by themselves.
template <class Values>
void reserve_ahead(Values& values, std::size_t n) {
    if (n > values.capacity()) values.reserve(n > 2 * values.capacity() ? n : 2 * values.capacity());
}

inline std::size_t unsigned_index(Index i) { return static_cast<std::size_t>(i); }

// 0, 1, ..., n - 1.
inline std::vector<Index> first_indices(Index n) {
    std::vector<Index> all(unsigned_index(n));
    std::iota(all.begin(), all.end(), Index{0});
    return all;
}

inline Index round_up(Index n, Index multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace multimargin
