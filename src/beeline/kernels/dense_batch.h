// Products of several dense rows at once. What a row meets (a matrix of weights, a sum over rows) is larger than the
// nearest cache: four rows that meet it together load it a fourth as often.
#pragma once

#include <cstddef>

namespace beeline {

constexpr std::size_t kBatch = 4;        // rows of a product with a matrix
constexpr std::size_t kOuterBatch = 64;  // rows of a product with themselves

// z_rk = Σ_j rows_rj w_jk, for at most kBatch rows of n numbers; z_r comes after z_(r−1). A row's numbers do not depend
// on its neighbours, to the last bit.
void batch_dot(const float* const* rows, std::size_t count, std::size_t n, const double* w, std::size_t columns,
               double* z);
void batch_dot(const double* const* rows, std::size_t count, std::size_t n, const double* w, std::size_t columns,
               double* z);

// out_jk += Σ_r rows_rj u_rk, row after row.
void batch_axpy(const float* const* rows, std::size_t count, std::size_t n, const double* u, std::size_t columns,
                double* out);
void batch_axpy(const double* const* rows, std::size_t count, std::size_t n, const double* u, std::size_t columns,
                double* out);

// The lower triangle of out += Σ_r scale_r rows_r rows_rᵀ, for at most kOuterBatch rows; above the diagonal, out may
// become anything.
void batch_outer(const float* const* rows, const double* scale, std::size_t count, std::size_t n, double* out);
void batch_outer(const double* const* rows, const double* scale, std::size_t count, std::size_t n, double* out);

}  // namespace beeline
