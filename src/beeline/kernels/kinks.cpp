// Where a piecewise linear function of the scores bends along a line.
//
// Row i, with its kink at the score k_i, passes it at t = (k_i − z_i)/dz_i. A line search first wants to know how much
// the derivative grows in each of many short stretches of the line, its buckets; then the few times in the one bucket
// where it changes sign. One look at every row gives both: sums for the buckets, and a mark for the row.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "loss_loops.h"
#include "losses.h"
#include "simd.h"
#include "threads.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Marks = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kRowsPerTask = 1 << 14;
constexpr std::size_t kMostBuckets = 254;

// Equal buckets between two times.
struct Window {
  double low, scale, last;
  Window(double low, double high, std::size_t buckets)
      : low(low), scale(static_cast<double>(buckets) / (high - low)), last(static_cast<double>(buckets + 1)) {}
};

// The buckets in which rows pass their kinks, counted from 1; 0 for what lies outside or does not move.
BEELINE_CLONES void mark_rows(const double* z, const double* dz, const double* kinks, std::size_t n,
                              const Window& window, std::uint8_t* marks) {
  const double low = window.low, scale = window.scale, last = window.last;
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const double place = ((kinks[i] - z[i]) / dz[i] - low) * scale + 1;
    marks[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(place >= 1 && place < last ? place : 0.0));
  }
}

// Most rows are outside: eight of them are passed over at once.
void add_marked(const double* dz, const double* c, const std::uint8_t* marks, std::size_t n, double* sums) {
  std::size_t i = 0;
  for (std::uint64_t eight; i + 8 <= n; i += 8) {
    std::memcpy(&eight, marks + i, 8);
    if (eight == 0) continue;
    for (std::size_t j = i; j < i + 8; ++j)
      if (marks[j]) sums[marks[j]] += c[j] * std::fabs(dz[j]);
  }
  for (; i < n; ++i)
    if (marks[i]) sums[marks[i]] += c[i] * std::fabs(dz[i]);
}

// Σ c_i|dz_i| over the rows that pass their kinks in each bucket goes to `sums`, a row's bucket to `marks`. Returns the
// derivative by t at `high` of Σ c_i l(z_i + t·dz_i, y_i), or zero where no loss is named.
double kink_buckets(const std::string& name, const Parameters& parameters, Vector z, Vector dz, Vector y, Vector c,
                    Vector kinks, std::array<double, 2> between, Sums sums, Marks marks) {
  const std::size_t n = z.size(), buckets = sums.size();
  if (dz.size() != n || y.size() != n || kinks.size() != n || marks.size() != n)
    throw std::invalid_argument("there must be one number a row");
  if (!(between[0] < between[1]) || buckets == 0 || buckets > kMostBuckets)
    throw std::invalid_argument("there must be a window with 1 to 254 buckets");
  const Costs costs(c.data(), c.size(), n);
  nb::gil_scoped_release release;
  const Window window(between[0], between[1], buckets);
  const std::size_t width = buckets + 1, n_tasks = (n + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<double> room(width * n_tasks), slopes(n_tasks);
  const auto run_tasks = [&](auto slope_of) {
    parallel_for(n_tasks, [&](std::size_t task) {
      const std::size_t first = task * kRowsPerTask, last = std::min(n, first + kRowsPerTask);
      slopes[task] = sum_runs(first, last, [&](std::size_t i, std::size_t stop) {
        mark_rows(z.data() + i, dz.data() + i, kinks.data() + i, stop - i, window, marks.data() + i);
        add_marked(dz.data() + i, costs.from(i), marks.data() + i, stop - i, room.data() + task * width);
        return slope_of(i, stop - i);
      });
    });
  };
  if (name.empty()) {
    run_tasks([](std::size_t, std::size_t) { return 0.0; });
  } else {
    with_loss(name, parameters, [&](auto loss) {
      run_tasks([&](std::size_t i, std::size_t rows) {
        return along_part(loss, z.data() + i, dz.data() + i, between[1], y.data() + i, costs.from(i), rows).slope;
      });
      return 0;
    });
  }
  std::fill(sums.data(), sums.data() + buckets, 0.0);
  double slope = 0;
  for (std::size_t task = 0; task < n_tasks; ++task) {
    slope += slopes[task];
    for (std::size_t k = 0; k < buckets; ++k) sums.data()[k] += room[task * width + k + 1];
  }
  return slope;
}

}  // namespace

void bind_kinks(nb::module_& m) {
  m.def("kink_buckets", &kink_buckets, "name"_a, "parameters"_a, "z"_a, "dz"_a, "y"_a, "c"_a, "kinks"_a, "between"_a,
        "sums"_a.noconvert(), "marks"_a.noconvert());
}

}  // namespace beeline
