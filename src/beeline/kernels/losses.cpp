// Sums of a compiled scalar loss over rows whose scores are known. Parts of fixed size are summed in order, so that
// the number of threads does not show in the result.
#include "losses.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "threads.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kRowsPerTask = 1 << 13;

// Sum of part(begin, end) over the rows 0 … n−1.
template <class Sum, class Part>
Sum sum_parts(std::size_t n, int threads, Part part) {
  std::vector<Sum> sums((n + kRowsPerTask - 1) / kRowsPerTask);
  parallel_for(sums.size(), [&](std::size_t task) {
    sums[task] = part(task * kRowsPerTask, std::min(n, (task + 1) * kRowsPerTask));
  }, threads);
  Sum total{};
  for (const Sum& sum : sums) total = total + sum;
  return total;
}

struct Pair {
  double value = 0, slope = 0;
  Pair operator+(const Pair& other) const { return {value + other.value, slope + other.slope}; }
};

// Σ c_i l(z_i, y_i); fills c_i·slope_i and c_i·curvature_i where asked.
double loss_sum(const std::string& name, const Parameters& parameters, Vector z, Vector y, Vector c,
                std::optional<Output> slopes, std::optional<Output> curvatures, int threads) {
  nb::gil_scoped_release release;
  double* slope = slopes ? slopes->data() : nullptr;
  double* curvature = curvatures ? curvatures->data() : nullptr;
  const double *zs = z.data(), *ys = y.data(), *cs = c.data();
  return with_loss(name, parameters, [&](auto loss) {
    return sum_parts<double>(z.size(), threads, [&](std::size_t begin, std::size_t end) {
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const Derivatives d = loss.at(zs[i], ys[i]);
        sum += cs[i] * d.value;
        if (slope) slope[i] = cs[i] * d.slope;
        if (curvature) curvature[i] = cs[i] * d.curvature;
      }
      return sum;
    });
  });
}

// (Σ c_i l(z_i + t·dz_i, y_i), its derivative by t): a line search that needs no pass over the data.
std::pair<double, double> loss_along(const std::string& name, const Parameters& parameters, Vector z, Vector dz,
                                     double t, Vector y, Vector c, int threads) {
  nb::gil_scoped_release release;
  const double *zs = z.data(), *ds = dz.data(), *ys = y.data(), *cs = c.data();
  const Pair total = with_loss(name, parameters, [&](auto loss) {
    return sum_parts<Pair>(z.size(), threads, [&](std::size_t begin, std::size_t end) {
      Pair sum;
      for (std::size_t i = begin; i < end; ++i) {
        const Derivatives d = loss.at(zs[i] + t * ds[i], ys[i]);
        sum.value += cs[i] * d.value;
        sum.slope += cs[i] * d.slope * ds[i];
      }
      return sum;
    });
  });
  return {total.value, total.slope};
}

// Σ ψ_i(scale · a_i); a row that costs nothing has ψ(0) = 0 and no other feasible a.
double conjugate_sum(const std::string& name, const Parameters& parameters, Vector a, double scale, Vector y, Vector c,
                     int threads) {
  nb::gil_scoped_release release;
  const double *as = a.data(), *ys = y.data(), *cs = c.data();
  return with_loss(name, parameters, [&](auto loss) {
    return sum_parts<double>(a.size(), threads, [&](std::size_t begin, std::size_t end) {
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) {
        if (cs[i] > 0) {
          sum += loss.conjugate(scale * as[i], ys[i], cs[i]);
        } else if (as[i] != 0) {
          sum = kInfeasible;
        }
      }
      return sum;
    });
  });
}

}  // namespace

void bind_losses(nb::module_& m) {
  m.def("loss_sum", &loss_sum, "name"_a, "parameters"_a, "z"_a, "y"_a, "c"_a, "slopes"_a.none().noconvert(),
        "curvatures"_a.none().noconvert(), "threads"_a = 0);
  m.def("loss_along", &loss_along, "name"_a, "parameters"_a, "z"_a, "dz"_a, "t"_a, "y"_a, "c"_a, "threads"_a = 0);
  m.def("conjugate_sum", &conjugate_sum, "name"_a, "parameters"_a, "a"_a, "scale"_a, "y"_a, "c"_a, "threads"_a = 0);
}

}  // namespace beeline
