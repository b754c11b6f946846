// Rows against tables of weights with all classes of a feature side by side: products and updates in whole registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simd.h"

namespace beeline {

typedef float Lanes __attribute__((vector_size(32), aligned(4)));
constexpr std::size_t kLanes = 8;

// How many features have sums of their own, where a feature has T registers: additions to one sum wait for each other.
template <std::size_t T>
constexpr std::size_t kChains = T == 1   ? 8
                                : T == 2 ? 4
                                : T <= 4 ? 2
                                         : 1;

// z += Σ x_p · w[index_p] over T·8 classes, all of them in registers.
template <std::size_t T>
BEELINE_CLONES void tile_scores(const std::uint32_t* index, const float* x, std::size_t n, const float* w,
                                std::size_t stride, float* z) {
  constexpr std::size_t C = kChains<T>;
  Lanes sums[C * T] = {};
  std::size_t p = 0;
  for (; p + C <= n; p += C)
    for (std::size_t c = 0; c < C; ++c) {
      const float* row = w + index[p + c] * stride;
      for (std::size_t t = 0; t < T; ++t)
        sums[c * T + t] += x[p + c] * *reinterpret_cast<const Lanes*>(row + t * kLanes);
    }
  for (; p < n; ++p) {
    const float* row = w + index[p] * stride;
    for (std::size_t t = 0; t < T; ++t) sums[t] += x[p] * *reinterpret_cast<const Lanes*>(row + t * kLanes);
  }
  for (std::size_t c = 1; c < C; ++c)
    for (std::size_t t = 0; t < T; ++t) sums[t] += sums[c * T + t];
  for (std::size_t t = 0; t < T; ++t) *reinterpret_cast<Lanes*>(z + t * kLanes) = sums[t];
}

// Both the scores by w and those by F, which lies `apart` floats behind it.
template <std::size_t T>
BEELINE_CLONES void tile_both(const std::uint32_t* index, const float* x, std::size_t n, const float* w,
                              std::size_t stride, std::size_t apart, float* z, float* zf) {
  Lanes sums[T] = {}, sums_f[T] = {};
  for (std::size_t p = 0; p < n; ++p) {
    const float* row = w + index[p] * stride;
    const float value = x[p];
    for (std::size_t t = 0; t < T; ++t) {
      sums[t] += value * *reinterpret_cast<const Lanes*>(row + t * kLanes);
      sums_f[t] += value * *reinterpret_cast<const Lanes*>(row + apart + t * kLanes);
    }
  }
  for (std::size_t t = 0; t < T; ++t) {
    *reinterpret_cast<Lanes*>(z + t * kLanes) = sums[t];
    *reinterpret_cast<Lanes*>(zf + t * kLanes) = sums_f[t];
  }
}

// w[index_p] += x_p·move and F[index_p] += x_p·move_f, over the classes from each of `groups` on that fill a register.
BEELINE_CLONES inline void push_groups(const std::uint32_t* index, const float* x, std::size_t n, float* w,
                                       std::size_t padded, const float* move, const float* move_f,
                                       const std::vector<std::size_t>& groups) {
  const std::size_t* const first = groups.data();
  const std::size_t* const last = first + groups.size();
  for (std::size_t p = 0; p < n; ++p) {
    float* row = w + index[p] * 2 * padded;
    const float value = x[p];
    for (const std::size_t* group = first; group != last; ++group) {
      const std::size_t k = *group;
      *reinterpret_cast<Lanes*>(row + k) += value * *reinterpret_cast<const Lanes*>(move + k);
      *reinterpret_cast<Lanes*>(row + padded + k) += value * *reinterpret_cast<const Lanes*>(move_f + k);
    }
  }
}

// w *= keep and F −= back·(what w loses).
BEELINE_CLONES inline void shrink_row(float* w, float* f, std::size_t n, float keep, float back) {
#pragma omp simd
  for (std::size_t k = 0; k < n; ++k) {
    const float before = w[k];
    w[k] = before * keep;
    f[k] -= back * (w[k] - before);
  }
}

// x_p *= exp(−by·size_p), whose exponent is at most about 1, to a few thousandths.
BEELINE_CLONES inline void shrink_entries(float* x, const float* size, std::size_t n, float by) {
#pragma omp simd
  for (std::size_t p = 0; p < n; ++p) {
    const float h = by * size[p], t = h < 1.0f ? h : 1.0f;
    x[p] *= 1 - t * (1 - t * (0.5f - t * (1.0f / 6 - t * (1.0f / 24))));
  }
}

// Σ x_p².
BEELINE_CLONES inline float squared_length(const float* x, std::size_t n) {
  Lanes sums[2] = {};
  std::size_t p = 0;
  for (; p + 2 * kLanes <= n; p += 2 * kLanes)
    for (std::size_t c = 0; c < 2; ++c) {
      const Lanes some = *reinterpret_cast<const Lanes*>(x + p + c * kLanes);
      sums[c] += some * some;
    }
  sums[0] += sums[1];
  float sum = 0;
  for (std::size_t k = 0; k < kLanes; ++k) sum += sums[0][k];
  for (; p < n; ++p) sum += x[p] * x[p];
  return sum;
}

// A row's entries, scaled.
struct ScaledRow {
  std::vector<std::uint32_t> index;
  std::vector<float> x, size;  // r_j x_j, and r_j² of weights that decay
  std::size_t n = 0, place = 0;
  double norm = 0, y = 0, cost = 0;

  void reserve(std::size_t most) {
    if (index.size() < most) {
      index.resize(most);
      x.resize(most);
      size.resize(most);
    }
  }
  // An entry, forgotten by the next one where it is not `kept`: a processor cannot foresee which entries are zero.
  void add(std::size_t j, double root, double value, bool kept, bool decays = true) {
    index[n] = static_cast<std::uint32_t>(j);
    size[n] = decays ? static_cast<float>(root * root) : 0.0f;
    x[n] = static_cast<float>(root * value);
    n += kept;
  }
  void measure() { norm = static_cast<double>(squared_length(x.data(), n)); }
};

}  // namespace beeline
