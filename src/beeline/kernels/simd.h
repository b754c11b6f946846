// Dense inner loops, compiled for several instruction sets, of which the loader picks the best one that the processor
// has; or, where a build is for this machine alone (BEELINE_LEVEL, which CMakeLists.txt finds), for that one only.
#pragma once

#include <cstddef>

#if defined(BEELINE_LEVEL)
#define BEELINE_CLONES __attribute__((target("arch=" BEELINE_LEVEL)))
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(BEELINE_NO_CLONES)
#define BEELINE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define BEELINE_CLONES
#endif

namespace beeline {

double long_dot(const float* a, const double* b, std::size_t n);
double long_dot(const double* a, const double* b, std::size_t n);
double long_norm(const float* a, std::size_t n);
double long_norm(const double* a, std::size_t n);
void long_axpy(double scale, const float* a, double* out, std::size_t n);
void long_axpy(double scale, const double* a, double* out, std::size_t n);

// Up to this length a call takes longer than the loop.
constexpr std::size_t kShort = 16;

template <class A, class B>
inline double short_dot(const A* a, const B* b, std::size_t n) {
  // Four sums: the additions of one chain would wait for each other.
  double sums[4] = {0, 0, 0, 0};
  std::size_t j = 0;
  for (; j + 4 <= n; j += 4)
    for (std::size_t k = 0; k < 4; ++k) sums[k] += static_cast<double>(a[j + k]) * static_cast<double>(b[j + k]);
  for (; j < n; ++j) sums[j & 3] += static_cast<double>(a[j]) * static_cast<double>(b[j]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Σ a_j b_j in float64.
template <class A>
inline double dense_dot(const A* a, const double* b, std::size_t n) {
  return n > kShort ? long_dot(a, b, n) : short_dot(a, b, n);
}

// Σ a_j² in float64.
template <class A>
inline double dense_norm(const A* a, std::size_t n) {
  return n > kShort ? long_norm(a, n) : short_dot(a, a, n);
}

// Σ |a_j|.
double dense_size(const double* a, std::size_t n);
// out += scale · a.
template <class A>
inline void dense_axpy(double scale, const A* a, double* out, std::size_t n) {
  if (n > kShort) return long_axpy(scale, a, out, n);
#pragma omp simd
  for (std::size_t j = 0; j < n; ++j) out[j] += scale * static_cast<double>(a[j]);
}

// out_j += scale · h_j · a_j.
void dense_axpy(double scale, const float* a, const double* h, double* out, std::size_t n);
void dense_axpy(double scale, const double* a, const double* h, double* out, std::size_t n);
// Σ h_j a_j².
double dense_weighted_norm(const double* h, const double* a, std::size_t n);
// out_j = h_j · a_j + scale · out_j.
void dense_turn(double scale, const double* h, const double* a, double* out, std::size_t n);

// out_j = keep_j · out_j + scale_j · a_j.
void dense_combine(const double* scale, const double* a, const double* keep, double* out, std::size_t n);
// out_j += a_j · b_j.
void dense_add_products(const double* a, const double* b, double* out, std::size_t n);

// out_rc −= Σ_j a_rj b_cj for four rows of a and four of b, `stride` numbers apart, as those of out are.
void dense_tile(const double* a, const double* b, double* out, std::size_t stride, std::size_t n);

}  // namespace beeline
