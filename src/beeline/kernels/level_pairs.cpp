// The hinge of all pairs of rows of different levels, and its slopes, without looking at pairs.
//
// A pair with y_i < y_j costs C(y_i, y_j)·(1 + z_i − z_j) where that is positive. Down the sorted scores, the rows i with
// z_i > z_j − 1 only become more: for every level, their weight and what they cost together grow by positive terms, so
// that nothing cancels. Up the scores, so do the rows j that a row i makes a pair with.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "score_order.h"
#include "threads.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The rows that count, in the order of their scores.
struct Rows {
  std::vector<Scored> items;
  std::vector<double> weights;        // in that order
  std::vector<std::uint32_t> levels;  // in that order
  std::vector<double> totals;         // of each level
  double cost = 0;                    // the mean cost of a row
  bool finite = true;
};

Rows sorted_rows(const double* z, const double* y, const double* c, std::size_t n, std::size_t n_levels, int threads) {
  Rows rows;
  rows.items.reserve(n);
  double low = std::numeric_limits<double>::infinity(), high = 0, sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(c[i] > 0)) continue;
    if (!(y[i] >= 0 && y[i] < static_cast<double>(n_levels))) throw std::invalid_argument("a level without a cost");
    rows.items.push_back({z[i], static_cast<std::uint32_t>(i)});
    rows.finite = rows.finite && std::isfinite(z[i]);
    low = std::min(low, c[i]);
    high = std::max(high, c[i]);
    sum += c[i];
  }
  const std::size_t m = rows.items.size();
  if (m == 0) return rows;
  rows.cost = low == high ? low : sum / static_cast<double>(m);
  if (!rows.finite) return rows;
  sort_scored(rows.items, threads);
  rows.weights.resize(m);
  rows.levels.resize(m);
  rows.totals.assign(n_levels, 0.0);
  for (std::size_t i = 0; i < m; ++i) {
    rows.weights[i] = c[rows.items[i].row];
    rows.levels[i] = static_cast<std::uint32_t>(y[rows.items[i].row]);
    rows.totals[rows.levels[i]] += rows.weights[i];
  }
  return rows;
}

// Whether the lower row i and the higher row j cost something: the same test on both ways, to the last bit.
inline bool costs(double lower, double higher) { return lower > higher - 1.0; }

// Down the scores: Σ over pairs, and the slopes of the rows of higher levels.
double sum_down(const Rows& rows, const double* matrix, std::size_t n_levels, double scale, double* out) {
  std::vector<double> weight(n_levels, 0.0), cost(n_levels, 0.0);
  std::vector<double> by_higher(n_levels * n_levels);  // C, a row for each higher level
  for (std::size_t k = 0; k < n_levels; ++k)
    for (std::size_t l = 0; l < n_levels; ++l) by_higher[l * n_levels + k] = matrix[k * n_levels + l];
  double sum = 0, at = rows.items.back().score;
  std::size_t next = rows.items.size();
  for (std::size_t j = rows.items.size(); j-- > 0;) {
    const double score = rows.items[j].score, down = at - score;
    if (down > 0)
      for (std::size_t k = 0; k < n_levels; ++k) cost[k] += weight[k] * down;
    at = score;
    while (next > 0 && costs(rows.items[next - 1].score, score)) {
      --next;
      const std::size_t k = rows.levels[next];
      weight[k] += rows.weights[next];
      cost[k] += rows.weights[next] * (1.0 + (rows.items[next].score - score));
    }
    const std::size_t l = rows.levels[j];
    const double* own = by_higher.data() + l * n_levels;
    double slope = 0, value = 0;
    for (std::size_t k = 0; k < l; ++k) {
      slope += own[k] * weight[k];
      value += own[k] * cost[k];
    }
    sum += rows.weights[j] * value;
    out[j] = -scale * rows.weights[j] * slope;
  }
  return sum;
}

// Up the scores: the slopes of the rows of lower levels.
void slopes_up(const Rows& rows, const double* matrix, std::size_t n_levels, double scale, double* out) {
  std::vector<double> weight(n_levels, 0.0);
  std::size_t next = 0;
  for (std::size_t i = 0; i < rows.items.size(); ++i) {
    while (next < rows.items.size() && costs(rows.items[i].score, rows.items[next].score)) {
      weight[rows.levels[next]] += rows.weights[next];
      ++next;
    }
    const std::size_t k = rows.levels[i];
    const double* own = matrix + k * n_levels;
    double slope = 0;
    for (std::size_t l = k + 1; l < n_levels; ++l) slope += own[l] * weight[l];
    out[i] = scale * rows.weights[i] * slope;
  }
}

// (the mean cost of the pairs, the mean cost of a row); the slopes are those of their product.
std::pair<double, double> level_pairs(Vector z, Vector y, Vector c, Matrix matrix, Output slopes, int threads) {
  const std::size_t n = z.size(), n_levels = matrix.shape(0);
  if (y.size() != n || c.size() != n || slopes.size() != n)
    throw std::invalid_argument("there must be one number a row");
  if (n_levels < 1 || matrix.shape(1) != n_levels) throw std::invalid_argument("the costs must be a square matrix");
  if (n > std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("too many rows");
  nb::gil_scoped_release release;
  const Rows rows = sorted_rows(z.data(), y.data(), c.data(), n, n_levels, threads);
  std::fill(slopes.data(), slopes.data() + n, 0.0);
  if (!rows.finite) return {std::numeric_limits<double>::quiet_NaN(), rows.cost};
  double pairs = 0, below = 0;
  for (const double total : rows.totals) {
    pairs += below * total;
    below += total;
  }
  if (!(pairs > 0)) return {0.0, rows.cost};
  const double scale = rows.cost / pairs;
  const std::size_t m = rows.items.size();
  std::vector<double> down(m), up(m);
  double sum = 0;
  parallel_for(2, [&](std::size_t way) {
    if (way == 0)
      sum = sum_down(rows, matrix.data(), n_levels, scale, down.data());
    else
      slopes_up(rows, matrix.data(), n_levels, scale, up.data());
  }, threads);
  for (std::size_t i = 0; i < m; ++i) slopes.data()[rows.items[i].row] = down[i] + up[i];
  return {sum / pairs, rows.cost};
}

}  // namespace

void bind_level_pairs(nb::module_& m) {
  m.def("level_pairs", &level_pairs, "z"_a, "y"_a, "c"_a, "costs"_a, "slopes"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
