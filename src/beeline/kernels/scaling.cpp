// Statistics of features over a run of rows, and the scaling of rows by them.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "rows.h"
#include "threads.h"

namespace beeline {
namespace {

constexpr std::size_t kWorkPerTask = 1 << 16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of each feature: how many entries are stored, their mean, the sum of their squared deviations from it, and their
// range.
struct Statistics {
  std::int64_t* count;
  double *mean, *spread, *low, *high;
};

struct OwnStatistics {
  std::vector<std::int64_t> count;
  std::vector<double> mean, spread, low, high;

  explicit OwnStatistics(std::size_t n)
      : count(n, 0), mean(n, 0.0), spread(n, 0.0), low(n, kInfinity), high(n, -kInfinity) {}
  Statistics view() { return {count.data(), mean.data(), spread.data(), low.data(), high.data()}; }
};

// Welford's update for one row of which every feature is stored: all counts are equal, so one division serves all.
template <class Value>
inline __attribute__((always_inline)) void welford(const Value* row, std::size_t n, double inverse,
                                                   const Statistics& s) {
  double *mean = s.mean, *spread = s.spread, *low = s.low, *high = s.high;
#pragma omp simd
  for (std::size_t j = 0; j < n; ++j) {
    const double x = row[j], delta = x - mean[j];
    mean[j] += delta * inverse;
    spread[j] += delta * (x - mean[j]);
    low[j] = x < low[j] ? x : low[j];
    high[j] = x > high[j] ? x : high[j];
  }
}

BEELINE_CLONES void add_row(const float* row, std::size_t n, double inverse, const Statistics& s) {
  welford(row, n, inverse, s);
}
BEELINE_CLONES void add_row(const double* row, std::size_t n, double inverse, const Statistics& s) {
  welford(row, n, inverse, s);
}

template <class Value>
void add_rows(const DenseRows<Value>& rows, std::size_t begin, std::size_t end, const Statistics& s) {
  for (std::size_t i = begin; i < end; ++i) add_row(rows.row(i), rows.n_features, 1.0 / (i - begin + 1), s);
  std::fill(s.count, s.count + rows.n_features, static_cast<std::int64_t>(end - begin));
}

template <class Index, class Value>
void add_rows(const CsrRows<Index, Value>& rows, std::size_t begin, std::size_t end, const Statistics& s) {
  for (std::size_t p = rows.indptr[begin], stop = rows.indptr[end]; p < stop; ++p) {
    const std::size_t j = rows.indices[p];
    const double x = rows.values[p], delta = x - s.mean[j];
    s.mean[j] += delta / static_cast<double>(++s.count[j]);
    s.spread[j] += delta * (x - s.mean[j]);
    s.low[j] = std::min(s.low[j], x);
    s.high[j] = std::max(s.high[j], x);
  }
}

// The pairwise formula of Chan, Golub and LeVeque (1979), for features begin … end-1.
void merge(const Statistics& into, const Statistics& part, std::size_t begin, std::size_t end) {
  for (std::size_t j = begin; j < end; ++j) {
    if (part.count[j] == 0) continue;
    const double a = static_cast<double>(into.count[j]), b = static_cast<double>(part.count[j]);
    const double delta = part.mean[j] - into.mean[j];
    into.mean[j] = a == 0 ? part.mean[j] : into.mean[j] + delta * (b / (a + b));
    into.spread[j] += part.spread[j] + delta * delta * (a * (b / (a + b)));
    into.count[j] += part.count[j];
    into.low[j] = std::min(into.low[j], part.low[j]);
    into.high[j] = std::max(into.high[j], part.high[j]);
  }
}

// Like the transposed product: the rows are cut into at most 16 parts, by their shape alone; each part has statistics
// of its own, and these are merged in order.
template <class Rows>
void add_statistics(const Rows& rows, const Statistics& total, int threads) {
  if (rows.n_rows == 0 || rows.n_features == 0) return;
  const std::size_t affordable = rows.work() / (4 * rows.n_features) + 1;
  const std::size_t n_parts =
      std::max<std::size_t>(1, std::min({rows.work() / kWorkPerTask + 1, affordable, rows.n_rows, std::size_t{16}}));
  std::vector<OwnStatistics> parts(n_parts, OwnStatistics(0));
  parallel_for(n_parts, [&](std::size_t part) {
    parts[part] = OwnStatistics(rows.n_features);
    add_rows(rows, rows.n_rows * part / n_parts, rows.n_rows * (part + 1) / n_parts, parts[part].view());
  }, threads);
  constexpr std::size_t kChunk = 1 << 13;
  parallel_for((rows.n_features + kChunk - 1) / kChunk, [&](std::size_t chunk) {
    const std::size_t begin = chunk * kChunk, end = std::min(rows.n_features, begin + kChunk);
    for (auto& part : parts) merge(total, part.view(), begin, end);
  }, threads);
}

template <class Visit>
void each_run(std::size_t n_rows, std::size_t work, int threads, Visit visit) {
  if (n_rows == 0) return;
  const std::size_t n_tasks = std::min(n_rows, work / kWorkPerTask + 1);
  parallel_for(n_tasks, [&](std::size_t task) { visit(n_rows * task / n_tasks, n_rows * (task + 1) / n_tasks); },
               threads);
}

// out may be the rows' own values.
template <class Value>
void scale_features(const DenseRows<Value>& rows, const double* shift, const double* factor, Value* out, int threads) {
  each_run(rows.n_rows, rows.work(), threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Value* row = rows.row(i);
      Value* to = out + i * rows.n_features;
      if (shift) {
        for (std::size_t j = 0; j < rows.n_features; ++j)
          to[j] = static_cast<Value>((static_cast<double>(row[j]) - shift[j]) * factor[j]);
      } else {
        for (std::size_t j = 0; j < rows.n_features; ++j)
          to[j] = static_cast<Value>(static_cast<double>(row[j]) * factor[j]);
      }
    }
  });
}

template <class Index, class Value>
void scale_features(const CsrRows<Index, Value>& rows, const double*, const double* factor, Value* out, int threads) {
  each_run(rows.n_rows, rows.work(), threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = rows.indptr[begin], stop = rows.indptr[end]; p < stop; ++p)
      out[p] = static_cast<Value>(static_cast<double>(rows.values[p]) * factor[rows.indices[p]]);
  });
}

// Where row i's values lie.
template <class Value>
std::pair<std::size_t, std::size_t> extent(const DenseRows<Value>& rows, std::size_t i) {
  return {i * rows.n_features, rows.n_features};
}
template <class Index, class Value>
std::pair<std::size_t, std::size_t> extent(const CsrRows<Index, Value>& rows, std::size_t i) {
  return {static_cast<std::size_t>(rows.indptr[i]), static_cast<std::size_t>(rows.indptr[i + 1] - rows.indptr[i])};
}

template <class Value>
void to_unit_norm(const Value* row, std::size_t n, double squared, Value* out) {
  // Squares of very large or very small values leave the range of a double: such rows are first divided by their
  // largest value.
  double largest = 1;
  if (!(squared > 1e-200 && squared < 1e200)) {
    largest = 0;
    for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, std::fabs(static_cast<double>(row[k])));
    squared = 0;
    if (largest > 0)
      for (std::size_t k = 0; k < n; ++k) squared += (row[k] / largest) * (row[k] / largest);
  }
  if (squared == 0) {
    std::copy_n(row, n, out);
    return;
  }
  const double norm = std::sqrt(squared);
  for (std::size_t k = 0; k < n; ++k) out[k] = static_cast<Value>((static_cast<double>(row[k]) / largest) / norm);
}

template <class Rows, class Value>
void scale_to_unit_norm(const Rows& rows, Value* out, int threads) {
  each_run(rows.n_rows, rows.work(), threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto [from, n] = extent(rows, i);
      to_unit_norm(rows.values + from, n, rows.squared_norm(i), out + from);
    }
  });
}

using Values = nb::ndarray<nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void demand(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

template <class Rows>
auto value_pointer(const Rows& rows, const Values& out) {
  using Value = std::remove_const_t<std::remove_pointer_t<decltype(rows.values)>>;
  return static_cast<Value*>(out.data());
}

}  // namespace

void bind_scaling(nb::module_& m) {
  using namespace nb::literals;

  m.def("add_statistics",
        [](const RowArrays& rows, Counts count, Numbers mean, Numbers spread, Numbers low, Numbers high, int threads) {
    const std::size_t n = rows.n_features;
    demand(std::min({count.size(), mean.size(), spread.size(), low.size(), high.size()}) >= n,
           "statistics must have a place for every feature");
    const Statistics total{count.data(), mean.data(), spread.data(), low.data(), high.data()};
    nb::gil_scoped_release release;
    rows.with_rows([&](auto concrete) { add_statistics(concrete, total, threads); });
  }, "rows"_a, "count"_a.noconvert(), "mean"_a.noconvert(), "spread"_a.noconvert(), "low"_a.noconvert(),
        "high"_a.noconvert(), "threads"_a = 0);
  m.def("scale_features",
        [](const RowArrays& rows, std::optional<Vector> shift, Vector factor, Values out, int threads) {
    demand(factor.size() == rows.n_features && (!shift || shift->size() == rows.n_features),
           "a scaling must have one shift and one factor a feature");
    demand(!(shift && rows.indptr), "sparse rows cannot be shifted");
    demand(out.size() == rows.values.size() && out.dtype() == rows.values.dtype(), "out must be like values");
    nb::gil_scoped_release release;
    rows.with_rows([&](auto concrete) {
      scale_features(concrete, shift ? shift->data() : nullptr, factor.data(), value_pointer(concrete, out), threads);
    });
  }, "rows"_a, "shift"_a.none(), "factor"_a, "out"_a.noconvert(), "threads"_a = 0);
  m.def("scale_to_unit_norm", [](const RowArrays& rows, Values out, int threads) {
    demand(out.size() == rows.values.size() && out.dtype() == rows.values.dtype(), "out must be like values");
    nb::gil_scoped_release release;
    rows.with_rows([&](auto concrete) { scale_to_unit_norm(concrete, value_pointer(concrete, out), threads); });
  }, "rows"_a, "out"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
