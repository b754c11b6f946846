// Small dense linear algebra that kernels share.
#pragma once

#include <cstddef>

namespace beeline {

// Replaces the lower triangle of A by L with A = LLᵀ; false when A is not positive definite.
bool cholesky(double* a, std::size_t n);

// Solves LLᵀx = b for x in place of b.
void substitute(const double* factor, std::size_t n, double* x);

}  // namespace beeline
