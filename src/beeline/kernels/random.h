// Random numbers whose bits are the same everywhere: SplitMix64 (Steele, Lea & Flood 2014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace beeline {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  // Where it is in its sequence; a generator with that seed goes on from there.
  std::uint64_t state() const { return state_; }

  // A number from 0 to n − 1, n below 2³².
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32); }

  template <class T>
  void shuffle(T* items, std::size_t n) {
    for (std::size_t i = n; i > 1; --i) std::swap(items[i - 1], items[below(static_cast<std::uint32_t>(i))]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace beeline
