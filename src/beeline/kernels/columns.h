// The columns of a few features, behind one set of verbs for sparse and dense data: what coordinate descent walks over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd.h"

namespace beeline {

// Σ h x² and Σ h x of a column.
struct Moments {
  double square = 0, sum = 0;
};

// Column j holds rows[indptr[j] … indptr[j+1]), increasing.
template <class Value>
struct SparseColumns {
  const std::int64_t* indptr;
  const std::uint32_t* rows;
  const Value* values;

  std::size_t count(std::size_t j) const { return static_cast<std::size_t>(indptr[j + 1] - indptr[j]); }

  double dot(std::size_t j, const double* u) const {
    // Several sums: the additions of one chain would wait for each other.
    double sums[4] = {0, 0, 0, 0};
    std::int64_t p = indptr[j];
    const std::int64_t end = indptr[j + 1];
    for (; p + 3 < end; p += 4)
      for (int k = 0; k < 4; ++k) sums[k] += static_cast<double>(values[p + k]) * u[rows[p + k]];
    for (; p < end; ++p) sums[0] += static_cast<double>(values[p]) * u[rows[p]];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  // u_i += scale · h_i · x_ij.
  void axpy(std::size_t j, double scale, const double* h, double* u) const {
    for (std::int64_t p = indptr[j], end = indptr[j + 1]; p < end; ++p)
      u[rows[p]] += scale * h[rows[p]] * static_cast<double>(values[p]);
  }

  Moments moments(std::size_t j, const double* h) const {
    Moments m;
    for (std::int64_t p = indptr[j], end = indptr[j + 1]; p < end; ++p) {
      const double x = static_cast<double>(values[p]), hx = h[rows[p]] * x;
      m.square += hx * x;
      m.sum += hx;
    }
    return m;
  }
};

template <class Value>
struct DenseColumns {
  const Value* values;
  std::size_t n_rows;

  const Value* column(std::size_t j) const { return values + j * n_rows; }
  std::size_t count(std::size_t) const { return n_rows; }
  double dot(std::size_t j, const double* u) const { return dense_dot(column(j), u, n_rows); }
  void axpy(std::size_t j, double scale, const double* h, double* u) const {
    dense_axpy(scale, column(j), h, u, n_rows);
  }

  Moments moments(std::size_t j, const double* h) const {
    Moments m;
    for (std::size_t i = 0; i < n_rows; ++i) {
      const double x = static_cast<double>(column(j)[i]), hx = h[i] * x;
      m.square += hx * x;
      m.sum += hx;
    }
    return m;
  }
};

}  // namespace beeline
