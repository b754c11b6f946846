#include "simd.h"

#include <cmath>

namespace beeline {
namespace {

// `omp simd` allows the reordering of the sum that vector registers need; nothing else of fast-math is wanted.
template <class A, class B>
inline __attribute__((always_inline)) double dot(const A* a, const B* b, std::size_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t j = 0; j < n; ++j) sum += static_cast<double>(a[j]) * static_cast<double>(b[j]);
  return sum;
}

template <class A>
inline __attribute__((always_inline)) void axpy(double scale, const A* a, double* out, std::size_t n) {
#pragma omp simd
  for (std::size_t j = 0; j < n; ++j) out[j] += scale * static_cast<double>(a[j]);
}

template <class A>
inline __attribute__((always_inline)) void axpy(double scale, const A* a, const double* h, double* out, std::size_t n) {
#pragma omp simd
  for (std::size_t j = 0; j < n; ++j) out[j] += scale * h[j] * static_cast<double>(a[j]);
}

}  // namespace

BEELINE_CLONES double long_dot(const float* a, const double* b, std::size_t n) { return dot(a, b, n); }
BEELINE_CLONES double long_dot(const double* a, const double* b, std::size_t n) { return dot(a, b, n); }
BEELINE_CLONES double long_norm(const float* a, std::size_t n) { return dot(a, a, n); }
BEELINE_CLONES double long_norm(const double* a, std::size_t n) { return dot(a, a, n); }

BEELINE_CLONES double dense_size(const double* a, std::size_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t j = 0; j < n; ++j) sum += std::fabs(a[j]);
  return sum;
}

BEELINE_CLONES void long_axpy(double scale, const float* a, double* out, std::size_t n) { axpy(scale, a, out, n); }
BEELINE_CLONES void long_axpy(double scale, const double* a, double* out, std::size_t n) { axpy(scale, a, out, n); }
BEELINE_CLONES void dense_axpy(double scale, const float* a, const double* h, double* out, std::size_t n) {
  axpy(scale, a, h, out, n);
}
BEELINE_CLONES void dense_axpy(double scale, const double* a, const double* h, double* out, std::size_t n) {
  axpy(scale, a, h, out, n);
}

BEELINE_CLONES double dense_weighted_norm(const double* h, const double* a, std::size_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t j = 0; j < n; ++j) sum += h[j] * a[j] * a[j];
  return sum;
}

BEELINE_CLONES void dense_turn(double scale, const double* h, const double* a, double* out, std::size_t n) {
#pragma omp simd
  for (std::size_t j = 0; j < n; ++j) out[j] = h[j] * a[j] + scale * out[j];
}

BEELINE_CLONES void dense_combine(const double* scale, const double* a, const double* keep, double* out,
                                  std::size_t n) {
#pragma omp simd
  for (std::size_t j = 0; j < n; ++j) out[j] = keep[j] * out[j] + scale[j] * a[j];
}

BEELINE_CLONES void dense_add_products(const double* a, const double* b, double* out, std::size_t n) {
#pragma omp simd
  for (std::size_t j = 0; j < n; ++j) out[j] += a[j] * b[j];
}

// Sixteen sums at once: each number that is loaded is used four times.
BEELINE_CLONES void dense_tile(const double* a, const double* b, double* out, std::size_t stride, std::size_t n) {
  using Eight = double __attribute__((vector_size(64)));
  Eight sums[4][4] = {};
  std::size_t j = 0;
  for (; j + 8 <= n; j += 8) {
    Eight x[4], y[4];
    for (std::size_t r = 0; r < 4; ++r) __builtin_memcpy(&x[r], a + r * stride + j, sizeof(Eight));
    for (std::size_t c = 0; c < 4; ++c) __builtin_memcpy(&y[c], b + c * stride + j, sizeof(Eight));
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t c = 0; c < 4; ++c) sums[r][c] += x[r] * y[c];
  }
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < 4; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < 8; ++k) sum += sums[r][c][k];
      for (std::size_t k = j; k < n; ++k) sum += a[r * stride + k] * b[c * stride + k];
      out[r * stride + c] -= sum;
    }
}

}  // namespace beeline
