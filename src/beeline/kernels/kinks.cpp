// Where a piecewise linear function of the scores bends along a line.
//
// Row i, with its kink at the score k_i, passes it at t = (k_i − z_i)/dz_i. A line search that has a bracket wants the
// few of these times that lie inside, which one look at every row finds. Parts of fixed size are gathered in order, so
// that the number of threads does not show in the result.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "threads.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kRowsPerTask = 1 << 14;

struct Found {
  std::vector<double> times;
  std::vector<std::int64_t> rows;
};

template <class Value>
auto as_array(std::vector<Value>&& values) {
  auto* kept = new std::vector<Value>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Value>*>(p); });
  return nb::ndarray<nb::numpy, Value, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

// The times in (low, high) at which rows pass their kinks, and the numbers of these rows, in the order of the rows.
std::pair<nb::ndarray<nb::numpy, double, nb::ndim<1>>, nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>> kink_times(
    Vector z, Vector dz, Vector kinks, double low, double high) {
  const std::size_t n = z.size();
  if (dz.size() != n || kinks.size() != n) throw std::invalid_argument("there must be one kink and one slope a row");
  Found all;
  {
    nb::gil_scoped_release release;
    const double *zs = z.data(), *ds = dz.data(), *ks = kinks.data();
    std::vector<Found> parts((n + kRowsPerTask - 1) / kRowsPerTask);
    parallel_for(parts.size(), [&](std::size_t part) {
      Found& found = parts[part];
      for (std::size_t i = part * kRowsPerTask, end = std::min(n, i + kRowsPerTask); i < end; ++i) {
        const double t = (ks[i] - zs[i]) / ds[i];  // ±∞ or NaN where the row does not move: in no bracket
        if (t > low && t < high) {
          found.times.push_back(t);
          found.rows.push_back(static_cast<std::int64_t>(i));
        }
      }
    });
    for (const Found& found : parts) {
      all.times.insert(all.times.end(), found.times.begin(), found.times.end());
      all.rows.insert(all.rows.end(), found.rows.begin(), found.rows.end());
    }
  }
  return {as_array(std::move(all.times)), as_array(std::move(all.rows))};
}

}  // namespace

void bind_kinks(nb::module_& m) { m.def("kink_times", &kink_times, "z"_a, "dz"_a, "kinks"_a, "low"_a, "high"_a); }

}  // namespace beeline
