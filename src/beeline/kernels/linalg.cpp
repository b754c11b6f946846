// Small dense linear algebra whose bits do not depend on the threads of a BLAS.
#include "linalg.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "simd.h"
#include "threads.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Factors = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Grid = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kPanel = 16;  // columns that are finished together
constexpr std::size_t kTile = 4;
constexpr std::size_t kLarge = 600;  // from here on a panel is worth the wait for other threads to wake up

// Subtracts from columns top … bottom of rows begin … end what the columns left of them contribute.
void subtract_left(double* a, std::size_t n, std::size_t begin, std::size_t end, std::size_t top, std::size_t bottom) {
  for (std::size_t i = begin; i < end; i += kTile)
    for (std::size_t k = top; k < bottom; k += kTile) {
      if (i + kTile <= end && k + kTile <= bottom && k + kTile <= i + 1) {
        dense_tile(a + i * n, a + k * n, a + i * n + k, n, top);
        continue;
      }
      for (std::size_t r = i; r < std::min(end, i + kTile); ++r)
        for (std::size_t c = k; c < std::min({bottom, k + kTile, r + 1}); ++c)
          a[r * n + c] -= dense_dot(a + r * n, a + c * n, top);
    }
}

// The square of a panel on the diagonal: its factor, transposed so that a row's numbers are finished one after the
// other by steps over the rest of them.
struct Square {
  double factor[kPanel][kPanel] = {};  // [k][i] = L_ik
  double inverse[kPanel] = {};         // 1/L_kk

  // Solves for the panel's part of a row below, in place.
  void finish(double* row, std::size_t width) const {
    double rest[kPanel] = {};
    std::copy_n(row, width, rest);
    for (std::size_t k = 0; k < kPanel; ++k) {
      const double x = rest[k] * inverse[k];
      for (std::size_t i = 0; i < kPanel; ++i) rest[i] -= x * factor[k][i];
      if (k < width) row[k] = x;
    }
  }
};

// Factors the square in place; false when it is not positive definite.
bool factor_square(double* a, std::size_t n, std::size_t width, Square& square) {
  for (std::size_t j = 0; j < width; ++j) {
    double* row = a + j * n;
    for (std::size_t k = 0; k < j; ++k) {
      row[k] *= square.inverse[k];
      for (std::size_t i = k + 1; i <= j; ++i) row[i] -= row[k] * (i < j ? square.factor[k][i] : row[k]);
    }
    if (!(row[j] > 0)) return false;
    row[j] = std::sqrt(row[j]);
    square.inverse[j] = 1 / row[j];
    for (std::size_t k = 0; k <= j; ++k) square.factor[k][j] = row[k];
  }
  return true;
}

}  // namespace

// Panel by panel of columns: once the panel's own square is done, the rows below it are independent and run on threads.
bool cholesky(double* a, std::size_t n) {
  for (std::size_t top = 0; top < n; top += kPanel) {
    const std::size_t bottom = std::min(n, top + kPanel);
    Square square;
    subtract_left(a, n, top, bottom, top, bottom);
    if (!factor_square(a + top * n + top, n, bottom - top, square)) return false;
    constexpr std::size_t kRowsPerTask = 64;
    parallel_for((n - bottom + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task) {
      const std::size_t begin = bottom + task * kRowsPerTask, end = std::min(n, begin + kRowsPerTask);
      subtract_left(a, n, begin, end, top, bottom);
      for (std::size_t i = begin; i < end; ++i) square.finish(a + i * n + top, bottom - top);
    }, n < kLarge ? 1 : 0);
  }
  return true;
}

void substitute(const double* factor, std::size_t n, double* x) {
  for (std::size_t i = 0; i < n; ++i) x[i] = (x[i] - dense_dot(factor + i * n, x, i)) / factor[i * n + i];
  for (std::size_t i = n; i-- > 0;) {
    x[i] /= factor[i * n + i];
    dense_axpy(-x[i], factor + i * n, x, i);
  }
}

namespace {

// Solves A x = b for x in place of b; A is overwritten by its factor. False when A is not positive definite.
bool solve_positive(Matrix a, Output b) {
  nb::gil_scoped_release release;
  if (!cholesky(a.data(), a.shape(0))) return false;
  substitute(a.data(), a.shape(0), b.data());
  return true;
}

bool factor_positive(Matrix a) {
  nb::gil_scoped_release release;
  return cholesky(a.data(), a.shape(0));
}

// Solves L_k L_kᵀ x = b_k for x in place of row k of b, on threads.
void solve_factored(Factors factors, Matrix b) {
  nb::gil_scoped_release release;
  const std::size_t n = factors.shape(1);
  parallel_for(factors.shape(0), [&](std::size_t k) { substitute(factors.data() + k * n * n, n, b.data() + k * n); });
}

// a += part · (b − a).
void blend(Output a, Vector b, double part) {
  nb::gil_scoped_release release;
  double* into = a.data();
  const double* from = b.data();
  for (std::size_t i = 0, n = a.size(); i < n; ++i) into[i] += part * (from[i] - into[i]);
}

// Vectors are cut into chunks of fixed length, which threads share, and sums are added in the order of the
// chunks.
constexpr std::size_t kChunk = 1 << 14;

template <class Task>
void for_each_chunk(std::size_t n, Task task) {
  parallel_for((n + kChunk - 1) / kChunk,
               [&](std::size_t part) { task(part * kChunk, std::min(kChunk, n - part * kChunk)); });
}

template <class Part>
double sum_of_chunks(std::size_t n, Part part) {
  std::vector<double> sums((n + kChunk - 1) / kChunk);
  for_each_chunk(n, [&](std::size_t begin, std::size_t count) { sums[begin / kChunk] = part(begin, count); });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double dot(Vector a, Vector b) {
  nb::gil_scoped_release release;
  return sum_of_chunks(a.size(), [&](std::size_t begin, std::size_t count) {
    return dense_dot(a.data() + begin, b.data() + begin, count);
  });
}

// Σ |a_j|.
double absolute_sum(nb::ndarray<const double, nb::c_contig, nb::device::cpu> a) {
  nb::gil_scoped_release release;
  return sum_of_chunks(a.size(),
                       [&](std::size_t begin, std::size_t count) { return dense_size(a.data() + begin, count); });
}

// Scales down the numbers of the heavier sign until all of them sum to zero.
void balance(Output a) {
  nb::gil_scoped_release release;
  const auto sum_of = [&](double sign) {
    return sum_of_chunks(a.size(), [&](std::size_t begin, std::size_t count) {
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::size_t j = begin; j < begin + count; ++j) sum += std::max(sign * a.data()[j], 0.0);
      return sum;
    });
  };
  const double up = sum_of(1), down = sum_of(-1), sign = up > down ? 1 : -1;
  if (up == down) return;
  const double part = std::min(up, down) / std::max(up, down);
  for (std::size_t j = 0; j < a.size(); ++j)
    if (sign * a.data()[j] > 0) a.data()[j] *= part;
}

// The smallest value at which the weights of all that are no larger reach half of the total; NaN without weights.
double weighted_median(Vector values, Vector weights) {
  nb::gil_scoped_release release;
  struct Weighted {
    double value, weight;
  };
  std::vector<Weighted> left(values.size());
  double total = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = {values.data()[i], weights.data()[i]};
    total += left[i].weight;
  }
  if (!(total > 0)) return std::numeric_limits<double>::quiet_NaN();
  // Of the values below and above a pivot, one side is left each time.
  double wanted = 0.5 * total;
  auto begin = left.begin(), end = left.end();
  while (end - begin > 1) {
    const double a = begin->value, b = begin[(end - begin) / 2].value, c = end[-1].value;
    const double pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    const auto same = std::partition(begin, end, [&](const Weighted& w) { return w.value < pivot; });
    const auto above = std::partition(same, end, [&](const Weighted& w) { return !(w.value > pivot); });
    double below = 0, here = 0;
    for (auto at = begin; at < same; ++at) below += at->weight;
    for (auto at = same; at < above; ++at) here += at->weight;
    if (below >= wanted && begin < same) {
      end = same;
    } else if (below + here >= wanted || above == end) {
      return pivot;
    } else {
      wanted -= below + here;
      begin = above;
    }
  }
  return begin->value;
}

// out += scale · a.
void add_scaled(double scale, Vector a, Output out) {
  nb::gil_scoped_release release;
  for_each_chunk(a.size(), [&](std::size_t begin, std::size_t count) {
    dense_axpy(scale, a.data() + begin, out.data() + begin, count);
  });
}

// The vectors of conjugate gradients after a step along p, with q = Ap: s += αp and r −= αq; returns rᵀM⁻¹r, M
// diagonal.
double cg_step(double alpha, Vector p, Vector q, Vector inverse, Output s, Output r) {
  nb::gil_scoped_release release;
  return sum_of_chunks(p.size(), [&](std::size_t begin, std::size_t count) {
    dense_axpy(alpha, p.data() + begin, s.data() + begin, count);
    dense_axpy(-alpha, q.data() + begin, r.data() + begin, count);
    return dense_weighted_norm(inverse.data() + begin, r.data() + begin, count);
  });
}

// The next direction of conjugate gradients: p = M⁻¹r + βp.
void cg_direction(double beta, Vector inverse, Vector r, Output p) {
  nb::gil_scoped_release release;
  for_each_chunk(r.size(), [&](std::size_t begin, std::size_t count) {
    dense_turn(beta, inverse.data() + begin, r.data() + begin, p.data() + begin, count);
  });
}

// Matrices with a column for each of several problems. Rows are cut as vectors are.
std::size_t rows_of_chunk(std::size_t columns) { return std::max<std::size_t>(1, kChunk / columns); }

template <class Task>
void for_each_row_chunk(std::size_t rows, std::size_t columns, Task task) {
  const std::size_t most = rows_of_chunk(columns);
  parallel_for((rows + most - 1) / most,
               [&](std::size_t part) { task(part, part * most, std::min(rows, (part + 1) * most)); });
}

// out_kj = x_jk: each column in a vector of its own.
void split_columns(Grid x, Matrix out) {
  nb::gil_scoped_release release;
  const std::size_t rows = x.shape(0), columns = x.shape(1);
  for_each_row_chunk(rows, columns, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t k = 0; k < columns; ++k)
      for (std::size_t j = begin; j < end; ++j) out.data()[k * rows + j] = x.data()[j * columns + k];
  });
}

// The numbers of a row, repeated until there are enough of them for whole vectors: what is done to each column becomes
// one loop over all rows, however few columns there are.
class Pattern {
 public:
  Pattern(const double* numbers, std::size_t columns) : numbers_((kLeast + columns - 1) / columns * columns) {
    for (std::size_t at = 0; at < numbers_.size(); ++at) numbers_[at] = numbers ? numbers[at % columns] : 0.0;
  }
  double* data() { return numbers_.data(); }

  // task(begin, count) for all numbers of rows begin … end−1, as many at a time as the pattern has.
  template <class Task>
  void along(std::size_t begin, std::size_t end, Task task) const {
    for (std::size_t at = begin; at < end; at += numbers_.size()) task(at, std::min(numbers_.size(), end - at));
  }

 private:
  static constexpr std::size_t kLeast = 64;
  std::vector<double> numbers_;
};

// y_jk = b_k·y_jk + a_k·x_jk.
void combine_columns(Vector a, Grid x, Vector b, Matrix y) {
  nb::gil_scoped_release release;
  const std::size_t columns = y.shape(1);
  Pattern scale(a.data(), columns), keep(b.data(), columns);
  for_each_row_chunk(y.shape(0), columns, [&](std::size_t, std::size_t begin, std::size_t end) {
    scale.along(begin * columns, end * columns, [&](std::size_t at, std::size_t count) {
      dense_combine(scale.data(), x.data() + at, keep.data(), y.data() + at, count);
    });
  });
}

// out_k = Σ_j x_jk·y_jk.
void dot_columns(Grid x, Grid y, Output out) {
  nb::gil_scoped_release release;
  const std::size_t columns = x.shape(1), most = rows_of_chunk(columns);
  std::vector<double> sums((x.shape(0) + most - 1) / most * columns, 0.0);
  for_each_row_chunk(x.shape(0), columns, [&](std::size_t part, std::size_t begin, std::size_t end) {
    Pattern sum(nullptr, columns);
    std::size_t used = 0;
    sum.along(begin * columns, end * columns, [&](std::size_t at, std::size_t count) {
      dense_add_products(x.data() + at, y.data() + at, sum.data(), count);
      used = std::max(used, count);
    });
    for (std::size_t at = 0; at < used; ++at) sums[part * columns + at % columns] += sum.data()[at];
  });
  std::fill(out.data(), out.data() + columns, 0.0);
  for (std::size_t at = 0; at < sums.size(); ++at) out.data()[at % columns] += sums[at];
}

}  // namespace

void bind_linalg(nb::module_& m) {
  m.def("dot", &dot, "a"_a, "b"_a);
  m.def("absolute_sum", &absolute_sum, "a"_a);
  m.def("balance", &balance, "a"_a.noconvert());
  m.def("weighted_median", &weighted_median, "values"_a, "weights"_a);
  m.def("add_scaled", &add_scaled, "scale"_a, "a"_a, "out"_a.noconvert());
  m.def("cg_step", &cg_step, "alpha"_a, "p"_a, "q"_a, "inverse"_a, "s"_a.noconvert(), "r"_a.noconvert());
  m.def("cg_direction", &cg_direction, "beta"_a, "inverse"_a, "r"_a, "p"_a.noconvert());
  m.def("split_columns", &split_columns, "x"_a, "out"_a.noconvert());
  m.def("combine_columns", &combine_columns, "a"_a, "x"_a, "b"_a, "y"_a.noconvert());
  m.def("dot_columns", &dot_columns, "x"_a, "y"_a, "out"_a.noconvert());
  m.def("blend", &blend, "a"_a.noconvert(), "b"_a, "part"_a);
  m.def("factor_positive", &factor_positive, "a"_a.noconvert());
  m.def("solve_factored", &solve_factored, "factors"_a, "b"_a.noconvert());
  m.def("solve_positive", &solve_positive, "a"_a.noconvert(), "b"_a.noconvert());
}

}  // namespace beeline
