// Dense inner loops, compiled for several instruction sets; the loader picks the best one that the processor has.
#pragma once

#include <cstddef>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(BEELINE_NO_CLONES)
#define BEELINE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define BEELINE_CLONES
#endif

namespace beeline {

// Σ a_j b_j in float64.
double dense_dot(const float* a, const double* b, std::size_t n);
double dense_dot(const double* a, const double* b, std::size_t n);
// Σ a_j² in float64.
double dense_norm(const float* a, std::size_t n);
double dense_norm(const double* a, std::size_t n);
// Σ |a_j|.
double dense_size(const double* a, std::size_t n);
// out += scale · a.
void dense_axpy(double scale, const float* a, double* out, std::size_t n);
void dense_axpy(double scale, const double* a, double* out, std::size_t n);
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
