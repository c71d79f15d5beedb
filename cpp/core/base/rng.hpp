// Our own generator, so that results do not depend on the standard library.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "base/types.hpp"

namespace multimargin {

// splitmix64 (Steele, Lea, Flood 2014).
class Rng {
  public:
    explicit Rng(std::uint64_t seed) : state_(seed) {}
    // A generator with this seed goes on where this one stands.
    std::uint64_t state() const { return state_; }

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }

    // 0..bound-1; the bias of the remainder is below 2^-40 for every size that fits in memory.
    Index below(Index bound) { return static_cast<Index>(next() % static_cast<std::uint64_t>(bound)); }

    // The same by a product instead of a division, for bounds below 2^32 (larger ones take the other way).
    Index below_fast(Index bound) {
        if (bound >> 32 != 0) return below(bound);
        return static_cast<Index>((next() >> 32) * static_cast<std::uint64_t>(bound) >> 32);
    }

  private:
    std::uint64_t state_;
};

inline std::vector<Index> random_permutation(Index n, std::uint64_t seed) {
    std::vector<Index> order(unsigned_index(n));
    std::iota(order.begin(), order.end(), Index{0});
    Rng rng(seed);
    for (Index i = n - 1; i > 0; --i) std::swap(order[unsigned_index(i)], order[unsigned_index(rng.below(i + 1))]);
    return order;
}

}  // namespace multimargin
