// Rows against tables of weights with all classes of a feature side by side: products and updates in whole registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simd.h"

namespace beeline {

typedef float Lanes __attribute__((vector_size(32), aligned(4)));
constexpr std::size_t kLanes = 8;

// z += Σ x_p · w[index_p] over T·8 classes, all of them in registers.
template <std::size_t T>
BEELINE_CLONES void tile_scores(const std::uint32_t* index, const float* x, std::size_t n, const float* w,
                                std::size_t stride, float* z) {
  Lanes sums[T] = {};
  for (std::size_t p = 0; p < n; ++p) {
    const float* row = w + index[p] * stride;
    const float value = x[p];
    for (std::size_t t = 0; t < T; ++t) sums[t] += value * *reinterpret_cast<const Lanes*>(row + t * kLanes);
  }
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
BEELINE_CLONES inline void shrink_row(float* w, std::size_t padded, float keep, float back) {
  float* f = w + padded;
#pragma omp simd
  for (std::size_t k = 0; k < padded; ++k) {
    const float before = w[k];
    w[k] = before * keep;
    f[k] -= back * (w[k] - before);
  }
}

// A row's entries, scaled.
struct ScaledRow {
  std::vector<std::uint32_t> index;
  std::vector<float> x;
  std::size_t n = 0, place = 0;
  double norm = 0, y = 0, cost = 0;

  void reserve(std::size_t most) {
    if (index.size() < most) {
      index.resize(most);
      x.resize(most);
    }
  }
  void add(std::size_t j, double value) {
    index[n] = static_cast<std::uint32_t>(j);
    x[n++] = static_cast<float>(value);
  }
  // The same, forgotten by the next one where it is not `kept`: a processor cannot foresee which entries are zero.
  void add(std::size_t j, double value, bool kept) {
    add(j, value);
    n -= !kept;
  }
  void measure() {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t p = 0; p < n; ++p) sum += x[p] * x[p];
    norm = static_cast<double>(sum);
  }
};

}  // namespace beeline
