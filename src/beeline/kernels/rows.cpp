// Products of a run of rows with vectors, threads inside, the same bits for any number of threads.
#include "rows.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "threads.h"

namespace beeline {
namespace {

// Rows are cut into parts of about this many multiplications: large enough to hide the hand-over to a thread.
constexpr std::size_t kWorkPerTask = 1 << 16;

// Parts begin with whole batches.
struct Parts {
  std::size_t n_rows, count;
  std::size_t begin(std::size_t part) const {
    return std::min(n_rows, (n_rows + kBatch - 1) / kBatch * part / count * kBatch);
  }
};

template <class Rows>
Parts cut(const Rows& rows, std::size_t columns, std::size_t most) {
  const std::size_t wanted = rows.work() * columns / kWorkPerTask + 1;
  const std::size_t batches = std::max<std::size_t>(1, (rows.n_rows + kBatch - 1) / kBatch);
  return {rows.n_rows, std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, std::min(most, batches)))};
}

// Of the rows begin … end−1 those that matter, a batch at a time: visit(their numbers, how many).
template <std::size_t kMost, class Matters, class Visit>
void in_batches(std::size_t begin, std::size_t end, Matters matters, Visit visit) {
  std::size_t which[kMost], n = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (!matters(i)) continue;
    which[n++] = i;
    if (n == kMost) visit(which, n), n = 0;
  }
  if (n > 0) visit(which, n);
}

constexpr auto kAll = [](std::size_t) { return true; };

template <class Rows>
void scores(const Rows& rows, const double* w, std::size_t columns, double* out, int threads) {
  const Parts parts = cut(rows, columns, rows.n_rows);
  parallel_for(parts.count, [&](std::size_t part) {
    const std::size_t begin = parts.begin(part), end = parts.begin(part + 1);
    if (columns == 1) {
      for (std::size_t i = begin; i < end; ++i) out[i] = rows.dot(i, w);
      return;
    }
    in_batches<kBatch>(begin, end, kAll, [&](const std::size_t* which, std::size_t n) {
      rows.dots(which, n, w, columns, out + which[0] * columns);
    });
  }, threads);
}

// Each part of the rows adds into a vector of `size` numbers; the vectors are added in order. Their number
// depends only on the shape: at most 16, and so few that making them and adding them up costs little against the work,
// which is `per_entry` multiplications an entry, and 64 MB of memory. add(begin, end, sum) adds rows into `sum` and
// returns a number; the numbers are summed too. Vectors lie whole cache lines apart: threads that write to one line
// wait for each other.
template <class Rows, class Add>
double sum_over_parts(const Rows& rows, std::size_t size, std::size_t per_entry, double* out, int threads, Add add) {
  std::fill(out, out + size, 0.0);
  if (size == 0) return 0;
  const std::size_t affordable = std::min(rows.work() * per_entry / (4 * size) + 1, (std::size_t{8} << 20) / size + 1);
  const Parts parts = cut(rows, per_entry, std::min<std::size_t>(16, affordable));
  const std::size_t stride = (size + 15) / 8 * 8;
  const std::unique_ptr<double[]> sums(parts.count > 1 ? new double[(parts.count - 1) * stride + 8] : nullptr);
  std::vector<double> totals(parts.count, 0.0);
  parallel_for(parts.count, [&](std::size_t part) {
    double* sum = part > 0 ? sums.get() + 8 + (part - 1) * stride : out;
    if (part > 0) std::fill(sum, sum + size, 0.0);
    totals[part] = add(parts.begin(part), parts.begin(part + 1), sum);
  }, threads);
  constexpr std::size_t kChunk = 1 << 13;
  parallel_for((size + kChunk - 1) / kChunk, [&](std::size_t chunk) {
    const std::size_t begin = chunk * kChunk, end = std::min(size, begin + kChunk);
    for (std::size_t part = 1; part < parts.count; ++part)
      dense_axpy(1.0, sums.get() + 8 + (part - 1) * stride + begin, out + begin, end - begin);
  }, threads);
  return std::accumulate(totals.begin(), totals.end(), 0.0);
}

template <class Rows>
void transposed(const Rows& rows, const double* u, std::size_t columns, double* out, int threads) {
  const std::size_t size = rows.n_features * columns;
  sum_over_parts(rows, size, columns, out, threads, [&](std::size_t begin, std::size_t end, double* sum) {
    if (columns == 1) {
      for (std::size_t i = begin; i < end; ++i)
        if (u[i] != 0) rows.axpy(i, u[i], sum);
      return 0.0;
    }
    in_batches<kBatch>(begin, end, kAll, [&](const std::size_t* which, std::size_t n) {
      rows.axpys(which, n, u + which[0] * columns, columns, sum);
    });
    return 0.0;
  });
}

// out = Σ_i h_i (x_iᵀv + shift) x_i in one pass; returns Σ_i h_i (x_iᵀv + shift). Rows with h_i = 0 cost nothing.
template <class Rows>
double gram_matvec(const Rows& rows, const double* h, const double* v, double shift, double* out, int threads) {
  return sum_over_parts(rows, rows.n_features, 1, out, threads, [&](std::size_t begin, std::size_t end, double* sum) {
    double total = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (h[i] == 0) continue;
      const double u = h[i] * (rows.dot(i, v) + shift);
      rows.axpy(i, u, sum);
      total += u;
    }
    return total;
  });
}

// u becomes (diag(h) − hhᵀ/Σh)(u + shift), the curvature of a softmax.
void apply_softmax_hessian(const double* h, const double* shift, std::size_t columns, double* u) {
  double total = 0, mean = 0;
  for (std::size_t k = 0; k < columns; ++k) {
    u[k] += shift[k];
    total += h[k];
    mean += h[k] * u[k];
  }
  if (total > 0) mean /= total;
  for (std::size_t k = 0; k < columns; ++k) u[k] = h[k] * (u[k] - mean);
}

// The same for many rows whose scores are known.
void apply_softmax_hessians(const double* h, const double* shift, std::size_t n, std::size_t columns, double* u,
                            int threads) {
  constexpr std::size_t kRowsPerTask = 1 << 10;
  parallel_for((n + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task) {
    for (std::size_t i = task * kRowsPerTask, end = std::min(n, i + kRowsPerTask); i < end; ++i)
      apply_softmax_hessian(h + i * columns, shift, columns, u + i * columns);
  }, threads);
}

// out = Σ_i x_i u_iᵀ over the rows that matter, and below the last feature Σ_i u_i; make(which, n, u) fills the u_i of
// a batch, one after the other.
template <class Rows, class Matters, class Make>
void add_products(const Rows& rows, std::size_t columns, std::size_t per_entry, double* out, int threads,
                  Matters matters, Make make) {
  const std::size_t size = rows.n_features * columns;
  sum_over_parts(rows, size + columns, per_entry, out, threads, [&](std::size_t begin, std::size_t end, double* sum) {
    std::vector<double> room(kBatch * columns);
    double* u = room.data();
    in_batches<kBatch>(begin, end, matters, [&](const std::size_t* which, std::size_t n) {
      make(which, n, u);
      for (std::size_t r = 0; r < n; ++r)
        for (std::size_t k = 0; k < columns; ++k) sum[size + k] += u[r * columns + k];
      rows.axpys(which, n, u, columns, sum);
    });
    return 0.0;
  });
}

// The same for a matrix: each row's u = (diag(h_i) − h_i h_iᵀ/Σh_i)(Vᵀx_i + shift).
template <class Rows>
void softmax_gram_matvec(const Rows& rows, const double* h, const double* v, const double* shift, std::size_t columns,
                         double* out, int threads) {
  const auto matters = [&](std::size_t i) {
    const double* row = h + i * columns;
    return std::any_of(row, row + columns, [](double curvature) { return curvature != 0; });
  };
  add_products(rows, columns, 2 * columns, out, threads, matters,
               [&](const std::size_t* which, std::size_t n, double* u) {
    rows.dots(which, n, v, columns, u);
    for (std::size_t r = 0; r < n; ++r) apply_softmax_hessian(h + which[r] * columns, shift, columns, u + r * columns);
  });
}

using Pointers = std::vector<const double*>;

// Products for several problems over the same rows. A problem's numbers of all rows lie in a vector of their own, since
// everything but these products takes one problem at a time. The weights of a feature lie side by side, as above.

// out_ik = w_kᵀx_i + shift_k.
template <class Rows>
void batched_matvec(const Rows& rows, const double* w, const double* shift, std::size_t columns, double* out,
                    int threads) {
  const Parts parts = cut(rows, columns, rows.n_rows);
  parallel_for(parts.count, [&](std::size_t part) {
    std::vector<double> z(kBatch * columns);
    in_batches<kBatch>(parts.begin(part), parts.begin(part + 1), kAll, [&](const std::size_t* which, std::size_t n) {
      rows.dots(which, n, w, columns, z.data());
      for (std::size_t k = 0; k < columns; ++k)
        for (std::size_t r = 0; r < n; ++r) out[k * rows.n_rows + which[r]] = z[r * columns + k] + shift[k];
    });
  }, threads);
}

// Whether row i has a number that is not zero in any of the vectors.
auto any_of(const Pointers& vectors) {
  return [&vectors](std::size_t i) {
    return std::any_of(vectors.begin(), vectors.end(), [i](const double* v) { return v[i] != 0; });
  };
}

template <class Rows>
void batched_rmatvec(const Rows& rows, const Pointers& u, double* out, int threads) {
  const std::size_t columns = u.size();
  add_products(rows, columns, columns, out, threads, any_of(u),
               [&](const std::size_t* which, std::size_t n, double* numbers) {
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t k = 0; k < columns; ++k) numbers[r * columns + k] = u[k][which[r]];
  });
}

// The products of the Hessians Σ_i h_ik x_i x_iᵀ, each with its own vector v_k (and shift_k for an intercept).
template <class Rows>
void batched_gram_matvec(const Rows& rows, const Pointers& h, const double* v, const double* shift, double* out,
                         int threads) {
  const std::size_t columns = h.size();
  add_products(rows, columns, 2 * columns, out, threads, any_of(h),
               [&](const std::size_t* which, std::size_t n, double* u) {
    rows.dots(which, n, v, columns, u);
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t k = 0; k < columns; ++k) u[r * columns + k] = h[k][which[r]] * (u[r * columns + k] + shift[k]);
  });
}

template <class Rows>
void squared_norms(const Rows& rows, double* out, int threads) {
  const Parts parts = cut(rows, 1, rows.n_rows);
  parallel_for(parts.count, [&](std::size_t part) {
    for (std::size_t i = parts.begin(part), end = parts.begin(part + 1); i < end; ++i) out[i] = rows.squared_norm(i);
  }, threads);
}

// out_j = Σ_i h_i x_ij², the diagonal of Σ_i h_i x_i x_iᵀ, for every column of h.
template <class Rows>
void gram_diagonal(const Rows& rows, const double* h, std::size_t columns, double* out, int threads) {
  const std::size_t size = rows.n_features * columns;
  sum_over_parts(rows, size, columns, out, threads, [&](std::size_t begin, std::size_t end, double* sum) {
    for (std::size_t i = begin; i < end; ++i) {
      const double* weight = h + i * columns;
      if (columns > 1) {
        rows.each(i, [&](std::size_t j, double x) { dense_axpy(x * x, weight, sum + j * columns, columns); });
      } else if (*weight != 0) {
        rows.each(i, [&](std::size_t j, double x) { sum[j] += *weight * x * x; });
      }
    }
    return 0.0;
  });
}

// Leaves zeros above the diagonal. What lies there is added to its mirror image, where the order of a row's indices
// says on which side a product falls; else it is of no use.
template <class Rows>
void tidy_upper(const Rows& rows, double* matrix, int threads) {
  const std::size_t d = rows.n_features;
  constexpr std::size_t kTile = 32;
  parallel_for((d + kTile - 1) / kTile, [&](std::size_t tile) {
    const std::size_t first = tile * kTile, last = std::min(d, first + kTile);
    for (std::size_t left = 0; left <= first; left += kTile)
      for (std::size_t i = first; i < last; ++i)
        for (std::size_t j = left, end = std::min(i, left + kTile); j < end; ++j) {
          if (!Rows::kInOrder) matrix[i * d + j] += matrix[j * d + i];
          matrix[j * d + i] = 0;
        }
  }, threads);
}

// max ‖x_i‖².
template <class Rows>
double longest_square(const Rows& rows, int threads) {
  const Parts parts = cut(rows, 1, rows.n_rows);
  std::vector<double> longest(parts.count, 0.0);
  parallel_for(parts.count, [&](std::size_t part) {
    double most = 0;
    for (std::size_t i = parts.begin(part), end = parts.begin(part + 1); i < end; ++i)
      most = std::max(most, rows.squared_norm(i));
    longest[part] = most;
  }, threads);
  return *std::max_element(longest.begin(), longest.end());
}

// The mean μ of the rows, ‖x_i − μ‖² and μᵀx_i of each; three passes. Returns the mean of the norms.
template <class Rows>
double centre(const Rows& rows, double* mean, double* norms, double* means, int threads) {
  const double part = 1 / static_cast<double>(std::max<std::size_t>(1, rows.n_rows));
  sum_over_parts(rows, rows.n_features, 1, mean, threads, [&](std::size_t begin, std::size_t end, double* sum) {
    for (std::size_t i = begin; i < end; ++i) rows.axpy(i, part, sum);
    return 0.0;
  });
  scores(rows, mean, 1, means, threads);
  squared_norms(rows, norms, threads);
  const double square = dense_norm(mean, rows.n_features);
  double total = 0;
  for (std::size_t i = 0; i < rows.n_rows; ++i) total += norms[i] = std::max(norms[i] - 2 * means[i] + square, 0.0);
  return part * total;
}

// The lower triangle of Σ_i h_i x_i x_iᵀ.
template <class Rows>
void gram(const Rows& rows, const double* h, double* out, int threads) {
  const std::size_t d = rows.n_features;
  const std::size_t per_entry = rows.work() / (2 * std::max<std::size_t>(1, rows.n_rows)) + 1;  // half a row
  const auto matters = [h](std::size_t i) { return h[i] != 0; };
  sum_over_parts(rows, d * d, per_entry, out, threads, [&](std::size_t begin, std::size_t end, double* sum) {
    in_batches<kOuterBatch>(begin, end, matters, [&](const std::size_t* which, std::size_t n) {
      double scale[kOuterBatch];
      for (std::size_t r = 0; r < n; ++r) scale[r] = h[which[r]];
      rows.add_outers(which, scale, n, sum);
    });
    return 0.0;
  });
  tidy_upper(rows, out, threads);
}

// rows[out_row] = the picked row, into arrays that Python has allocated.
template <class Index, class Value>
void gather(const CsrRows<Index, Value>& rows, const std::int64_t* picked, std::size_t n,
            const std::int64_t* out_indptr, void* out_indices, void* out_values, int threads) {
  constexpr std::size_t kRowsPerTask = 1 << 12;
  parallel_for((n + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task) {
    for (std::size_t i = task * kRowsPerTask, end = std::min(n, i + kRowsPerTask); i < end; ++i) {
      const std::size_t from = rows.indptr[picked[i]], count = rows.indptr[picked[i] + 1] - rows.indptr[picked[i]];
      std::copy_n(rows.indices + from, count, static_cast<Index*>(out_indices) + out_indptr[i]);
      std::copy_n(rows.values + from, count, static_cast<Value*>(out_values) + out_indptr[i]);
    }
  }, threads);
}

template <class Value>
void gather(const DenseRows<Value>& rows, const std::int64_t* picked, std::size_t n, const std::int64_t*, void*,
            void* out_values, int threads) {
  constexpr std::size_t kRowsPerTask = 1 << 10;
  parallel_for((n + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task) {
    for (std::size_t i = task * kRowsPerTask, end = std::min(n, i + kRowsPerTask); i < end; ++i)
      std::copy_n(rows.row(picked[i]), rows.n_features, static_cast<Value*>(out_values) + i * rows.n_features);
  }, threads);
}

using Column = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Pointers pointers_of(const std::vector<Column>& columns) {
  Pointers pointers;
  for (const Column& column : columns) pointers.push_back(column.data());
  return pointers;
}

std::size_t columns_of(const nb::ndarray<>& a) { return a.ndim() == 2 ? a.shape(1) : 1; }

using Longs = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<nb::c_contig, nb::device::cpu>;

}  // namespace

void bind_rows(nb::module_& m) {
  using namespace nb::literals;

  nb::class_<RowArrays>(m, "RowArrays")
      .def("__init__",
           [](RowArrays* self, Array values, std::optional<Array> indptr, std::optional<Array> indices,
              std::size_t n_features) { new (self) RowArrays{values, indptr, indices, n_features}; },
           "values"_a.noconvert(), "indptr"_a.none().noconvert(), "indices"_a.none().noconvert(), "n_features"_a)
      .def("scores",
           [](const RowArrays& self, Vector w, Output out, int threads) {
    const std::size_t columns = columns_of(nb::ndarray<>(w));
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) { scores(rows, w.data(), columns, out.data(), threads); });
  }, "w"_a, "out"_a.noconvert(), "threads"_a = 0)
      .def("transposed",
           [](const RowArrays& self, Vector u, Output out, int threads) {
    const std::size_t columns = columns_of(nb::ndarray<>(u));
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) { transposed(rows, u.data(), columns, out.data(), threads); });
  }, "u"_a, "out"_a.noconvert(), "threads"_a = 0)
      .def("gram_matvec",
           [](const RowArrays& self, Vector h, Vector v, double shift, Output out, int threads) {
    nb::gil_scoped_release release;
    return self.with_rows([&](auto rows) { return gram_matvec(rows, h.data(), v.data(), shift, out.data(), threads); });
  }, "h"_a, "v"_a, "shift"_a, "out"_a.noconvert(), "threads"_a = 0)
      .def("softmax_gram_matvec",
           [](const RowArrays& self, Vector h, Vector v, Vector shift, Output out, int threads) {
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) {
      softmax_gram_matvec(rows, h.data(), v.data(), shift.data(), shift.size(), out.data(), threads);
    });
  }, "h"_a, "v"_a, "shift"_a, "out"_a.noconvert(), "threads"_a = 0)
      .def("batched_matvec",
           [](const RowArrays& self, Vector w, Vector shift, Output out, int threads) {
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) { batched_matvec(rows, w.data(), shift.data(), shift.size(), out.data(), threads); });
  }, "w"_a, "shift"_a, "out"_a.noconvert(), "threads"_a = 0)
      .def("batched_rmatvec",
           [](const RowArrays& self, const std::vector<Column>& u, Output out, int threads) {
    const Pointers pointers = pointers_of(u);
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) { batched_rmatvec(rows, pointers, out.data(), threads); });
  }, "u"_a, "out"_a.noconvert(), "threads"_a = 0)
      .def("batched_gram_matvec",
           [](const RowArrays& self, const std::vector<Column>& h, Vector v, Vector shift, Output out, int threads) {
    const Pointers pointers = pointers_of(h);
    nb::gil_scoped_release release;
    self.with_rows(
        [&](auto rows) { batched_gram_matvec(rows, pointers, v.data(), shift.data(), out.data(), threads); });
  }, "h"_a, "v"_a, "shift"_a, "out"_a.noconvert(), "threads"_a = 0)
      .def("gram_diagonal",
           [](const RowArrays& self, Vector h, Output out, int threads) {
    const std::size_t columns = columns_of(nb::ndarray<>(h));
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) { gram_diagonal(rows, h.data(), columns, out.data(), threads); });
  }, "h"_a, "out"_a.noconvert(), "threads"_a = 0)
      .def("gram",
           [](const RowArrays& self, Vector h, Output out, int threads) {
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) { gram(rows, h.data(), out.data(), threads); });
  }, "h"_a, "out"_a.noconvert(), "threads"_a = 0)
      .def("squared_norms",
           [](const RowArrays& self, Output out, int threads) {
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) { squared_norms(rows, out.data(), threads); });
  }, "out"_a.noconvert(), "threads"_a = 0)
      .def("longest_row",
           [](const RowArrays& self, int threads) {
    nb::gil_scoped_release release;
    return std::sqrt(self.with_rows([&](auto rows) { return longest_square(rows, threads); }));
  }, "threads"_a = 0)
      .def("centre",
           [](const RowArrays& self, Output mean, Output norms, Output means, int threads) {
    nb::gil_scoped_release release;
    return self.with_rows([&](auto rows) { return centre(rows, mean.data(), norms.data(), means.data(), threads); });
  }, "mean"_a.noconvert(), "norms"_a.noconvert(), "means"_a.noconvert(), "threads"_a = 0)
      .def("gather",
           [](const RowArrays& self, Longs picked, std::optional<Longs> out_indptr, std::optional<Writable> out_indices,
              Writable out_values, int threads) {
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) {
      gather(rows, picked.data(), picked.size(), out_indptr ? out_indptr->data() : nullptr,
             out_indices ? out_indices->data() : nullptr, out_values.data(), threads);
    });
  },
           "picked"_a, "out_indptr"_a.none(), "out_indices"_a.none().noconvert(), "out_values"_a.noconvert(),
           "threads"_a = 0);
  m.def("apply_softmax_hessians", [](Vector h, Vector shift, Output u, int threads) {
    nb::gil_scoped_release release;
    apply_softmax_hessians(h.data(), shift.data(), u.shape(0), shift.size(), u.data(), threads);
  }, "h"_a, "shift"_a, "u"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
