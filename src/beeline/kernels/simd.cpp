#include "simd.h"

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

BEELINE_CLONES double dense_dot(const float* a, const double* b, std::size_t n) { return dot(a, b, n); }
BEELINE_CLONES double dense_dot(const double* a, const double* b, std::size_t n) { return dot(a, b, n); }
BEELINE_CLONES double dense_norm(const float* a, std::size_t n) { return dot(a, a, n); }
BEELINE_CLONES double dense_norm(const double* a, std::size_t n) { return dot(a, a, n); }
BEELINE_CLONES void dense_axpy(double scale, const float* a, double* out, std::size_t n) { axpy(scale, a, out, n); }
BEELINE_CLONES void dense_axpy(double scale, const double* a, double* out, std::size_t n) { axpy(scale, a, out, n); }
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

}  // namespace beeline
