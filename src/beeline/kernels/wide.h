// Products of one sparse row with a matrix of a few columns. The columns of a feature lie side by side, so that one
// entry of the row meets them all at once, and what the row adds up stays in registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beeline {

// z_k = Σ_p values[p] · w[indices[p]·columns + k].
void wide_dot(const std::uint16_t* indices, const float* values, std::size_t n, const double* w, std::size_t columns,
              double* z);
void wide_dot(const std::uint16_t* indices, const double* values, std::size_t n, const double* w, std::size_t columns,
              double* z);
void wide_dot(const std::int32_t* indices, const float* values, std::size_t n, const double* w, std::size_t columns,
              double* z);
void wide_dot(const std::int32_t* indices, const double* values, std::size_t n, const double* w, std::size_t columns,
              double* z);
void wide_dot(const std::int64_t* indices, const float* values, std::size_t n, const double* w, std::size_t columns,
              double* z);
void wide_dot(const std::int64_t* indices, const double* values, std::size_t n, const double* w, std::size_t columns,
              double* z);

// out[indices[p]·columns + k] += values[p] · u_k.
void wide_axpy(const std::uint16_t* indices, const float* values, std::size_t n, const double* u, std::size_t columns,
               double* out);
void wide_axpy(const std::uint16_t* indices, const double* values, std::size_t n, const double* u, std::size_t columns,
               double* out);
void wide_axpy(const std::int32_t* indices, const float* values, std::size_t n, const double* u, std::size_t columns,
               double* out);
void wide_axpy(const std::int32_t* indices, const double* values, std::size_t n, const double* u, std::size_t columns,
               double* out);
void wide_axpy(const std::int64_t* indices, const float* values, std::size_t n, const double* u, std::size_t columns,
               double* out);
void wide_axpy(const std::int64_t* indices, const double* values, std::size_t n, const double* u, std::size_t columns,
               double* out);

}  // namespace beeline
