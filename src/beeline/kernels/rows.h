// A run of rows, CSR or dense, behind one set of verbs: every kernel is written once, as a template over `Rows`.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "dense_batch.h"
#include "simd.h"
#include "wide.h"

namespace beeline {

namespace nb = nanobind;

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

// Where rows begin, in 32 or 64 bits. One type for both: a row asks twice, which costs nothing beside its entries, and
// kernels are compiled once instead of twice.
struct Positions {
  const std::int32_t* narrow;
  const std::int64_t* wide;  // null where they are narrow
  std::int64_t operator[](std::size_t i) const { return wide ? wide[i] : narrow[i]; }
};

// Positions are absolute: row i holds indices[indptr[i] … indptr[i+1]), also when the run is a slice of a larger one.
// The indices of a row are distinct and in any order: vectorizers of text give them as the words come.
template <class Index, class Value>
struct CsrRows {
  static constexpr bool kInOrder = false;
  Positions indptr;
  const Index* indices;
  const Value* values;
  std::size_t n_rows;
  std::size_t n_features;

  std::size_t work() const { return static_cast<std::size_t>(indptr[n_rows] - indptr[0]) + n_rows; }

  double dot(std::size_t i, const double* w) const {
    // Two sums: the additions of one chain would wait for each other.
    double even = 0, odd = 0;
    std::size_t p = indptr[i];
    const std::size_t end = indptr[i + 1];
    for (; p + 1 < end; p += 2) {
      even += static_cast<double>(values[p]) * w[indices[p]];
      odd += static_cast<double>(values[p + 1]) * w[indices[p + 1]];
    }
    if (p < end) even += static_cast<double>(values[p]) * w[indices[p]];
    return even + odd;
  }

  void axpy(std::size_t i, double scale, double* out) const {
    for (std::size_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
      out[indices[p]] += scale * static_cast<double>(values[p]);
  }

  // The same two verbs for a matrix, with the columns of a feature side by side, and for a batch of rows, whose numbers
  // come one row after the other.
  void dots(const std::size_t* which, std::size_t n, const double* w, std::size_t columns, double* z) const {
    for (std::size_t r = 0; r < n; ++r)
      wide_dot(indices + indptr[which[r]], values + indptr[which[r]], count(which[r]), w, columns, z + r * columns);
  }
  void axpys(const std::size_t* which, std::size_t n, const double* u, std::size_t columns, double* out) const {
    for (std::size_t r = 0; r < n; ++r)
      wide_axpy(indices + indptr[which[r]], values + indptr[which[r]], count(which[r]), u + r * columns, columns, out);
  }

  double squared_norm(std::size_t i) const {
    return dense_norm(values + indptr[i], static_cast<std::size_t>(indptr[i + 1] - indptr[i]));
  }

  std::size_t count(std::size_t i) const { return static_cast<std::size_t>(indptr[i + 1] - indptr[i]); }

  // Asks for the entries of row i to be brought near, the first few cache lines of them.
  void prefetch(std::size_t i) const {
    const char* index = reinterpret_cast<const char*>(indices + indptr[i]);
    const char* value = reinterpret_cast<const char*>(values + indptr[i]);
    const std::size_t n = count(i);
    for (std::size_t at = 0; at < n * sizeof(Index) && at < 512; at += 64) __builtin_prefetch(index + at);
    for (std::size_t at = 0; at < n * sizeof(Value) && at < 512; at += 64) __builtin_prefetch(value + at);
  }

  // Adds half of Σ_r scale_r x_r x_rᵀ over a batch of rows to a matrix.
  void add_outers(const std::size_t* which, const double* scale, std::size_t n, double* out) const {
    for (std::size_t r = 0; r < n; ++r) add_outer(which[r], scale[r], out);
  }

  // Adds half of scale · x_i x_iᵀ to a matrix: of two mirror images the one whose line comes later in the row, and the
  // diagonal. That is the lower triangle where indices increase. Four lines of the matrix at once: a processor cannot
  // foresee the ends of short loops, and so there are fewer of them.
  void add_outer(std::size_t i, double scale, double* out) const {
    const Index* index = indices + indptr[i];
    const Value* value = values + indptr[i];
    const std::size_t n = count(i);
    std::size_t p = 0;
    for (; p + 4 <= n; p += 4) add_lines(index, value, p, scale, out);
    for (; p < n; ++p) {
      double* line = out + static_cast<std::size_t>(index[p]) * n_features;
      const double x = scale * static_cast<double>(value[p]);
      for (std::size_t q = 0; q <= p; ++q) line[index[q]] += x * static_cast<double>(value[q]);
    }
  }

  // Lines p … p + 3 of the row's product with itself, each up to the diagonal.
  void add_lines(const Index* index, const Value* value, std::size_t p, double scale, double* out) const {
    double *line[4], x[4];
    for (std::size_t k = 0; k < 4; ++k) {
      line[k] = out + static_cast<std::size_t>(index[p + k]) * n_features;
      x[k] = scale * static_cast<double>(value[p + k]);
    }
    double *const a = line[0], *const b = line[1], *const c = line[2], *const d = line[3];
    for (std::size_t q = 0; q < p; ++q) {
      const std::size_t j = static_cast<std::size_t>(index[q]);
      const double v = static_cast<double>(value[q]);
      // All four are read before one is written: the compiler cannot know that they are apart.
      const double at_a = a[j], at_b = b[j], at_c = c[j], at_d = d[j];
      a[j] = at_a + x[0] * v;
      b[j] = at_b + x[1] * v;
      c[j] = at_c + x[2] * v;
      d[j] = at_d + x[3] * v;
    }
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t q = 0; q <= k; ++q) line[k][index[p + q]] += x[k] * static_cast<double>(value[p + q]);
  }

  // visit(feature, value) for every stored entry of row i.
  template <class Visit>
  void each(std::size_t i, Visit visit) const {
    for (std::size_t p = indptr[i], end = indptr[i + 1]; p < end; ++p)
      visit(static_cast<std::size_t>(indices[p]), static_cast<double>(values[p]));
  }
};

template <class Value>
struct DenseRows {
  static constexpr bool kInOrder = true;
  const Value* values;
  std::size_t n_rows;
  std::size_t n_features;

  std::size_t work() const { return n_rows * n_features; }
  const Value* row(std::size_t i) const { return values + i * n_features; }
  double dot(std::size_t i, const double* w) const { return dense_dot(row(i), w, n_features); }
  void axpy(std::size_t i, double scale, double* out) const { dense_axpy(scale, row(i), out, n_features); }
  void dots(const std::size_t* which, std::size_t n, const double* w, std::size_t columns, double* z) const {
    batch_dot(Batch(*this, which, n).rows, n, n_features, w, columns, z);
  }
  void axpys(const std::size_t* which, std::size_t n, const double* u, std::size_t columns, double* out) const {
    batch_axpy(Batch(*this, which, n).rows, n, n_features, u, columns, out);
  }
  void add_outers(const std::size_t* which, const double* scale, std::size_t n, double* out) const {
    batch_outer(Batch(*this, which, n).rows, scale, n, n_features, out);
  }
  double squared_norm(std::size_t i) const { return dense_norm(row(i), n_features); }

  std::size_t count(std::size_t) const { return n_features; }

  void prefetch(std::size_t i) const {
    const char* value = reinterpret_cast<const char*>(row(i));
    for (std::size_t at = 0; at < n_features * sizeof(Value) && at < 512; at += 64) __builtin_prefetch(value + at);
  }

  template <class Visit>
  void each(std::size_t i, Visit visit) const {
    for (std::size_t j = 0; j < n_features; ++j) visit(j, static_cast<double>(row(i)[j]));
  }

 private:
  // Where the rows of a batch begin.
  struct Batch {
    Batch(const DenseRows& all, const std::size_t* which, std::size_t n) {
      for (std::size_t r = 0; r < n; ++r) rows[r] = all.row(which[r]);
    }
    const Value* rows[kOuterBatch];
  };
};

template <class Visit>
auto with_float(const Array& a, Visit visit) {
  if (a.dtype() == nb::dtype<float>()) return visit(static_cast<const float*>(a.data()));
  if (a.dtype() == nb::dtype<double>()) return visit(static_cast<const double*>(a.data()));
  throw std::invalid_argument("values must be float32 or float64");
}

inline Positions positions_of(const Array& a) {
  if (a.dtype() == nb::dtype<std::int32_t>()) return {static_cast<const std::int32_t*>(a.data()), nullptr};
  if (a.dtype() == nb::dtype<std::int64_t>()) return {nullptr, static_cast<const std::int64_t*>(a.data())};
  throw std::invalid_argument("positions must be int32 or int64");
}

// Indices may also have 16 bits, which saves memory and traffic.
template <class Visit>
auto with_index(const Array& a, Visit visit) {
  if (a.dtype() == nb::dtype<std::uint16_t>()) return visit(static_cast<const std::uint16_t*>(a.data()));
  if (a.dtype() == nb::dtype<std::int32_t>()) return visit(static_cast<const std::int32_t*>(a.data()));
  if (a.dtype() == nb::dtype<std::int64_t>()) return visit(static_cast<const std::int64_t*>(a.data()));
  throw std::invalid_argument("indices must be uint16, int32 or int64");
}

// What Python passes for a run of rows: (values, indptr, indices, n_features), the middle two None when dense.
struct RowArrays {
  Array values;
  std::optional<Array> indptr, indices;
  std::size_t n_features;

  std::size_t n_rows() const { return indptr ? indptr->shape(0) - 1 : values.shape(0); }

  // visit(rows) with the concrete type of the rows.
  template <class Visit>
  auto with_rows(Visit visit) const {
    return with_float(values, [&](auto* value) {
      using Value = std::remove_const_t<std::remove_pointer_t<decltype(value)>>;
      if (!indptr) return visit(DenseRows<Value>{value, values.shape(0), n_features});
      return with_index(*indices, [&](auto* index) {
        using Index = std::remove_const_t<std::remove_pointer_t<decltype(index)>>;
        return visit(CsrRows<Index, Value>{positions_of(*indptr), index, value, n_rows(), n_features});
      });
    });
  }
};

}  // namespace beeline
