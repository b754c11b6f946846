// Sums of a compiled loss over rows whose scores are known: a vector of them, or a matrix with several a row. Parts of
// fixed size are summed in order, so that the number of threads does not show in the result.
#include "losses.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "loss_loops.h"
#include "simd.h"
#include "threads.h"
#include "vector_losses.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Scores = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;  // (n,) or (n, K)
using Output = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kScoresPerTask = 1 << 13;

std::size_t columns_of(const Scores& z) { return z.ndim() > 1 ? z.shape(1) : 1; }

// Sum of part(begin, end) over the rows 0 … n−1 with so many scores each.
template <class Sum, class Part>
Sum sum_parts(std::size_t n, std::size_t columns, int threads, Part part) {
  const std::size_t rows = std::max<std::size_t>(1, kScoresPerTask / std::max<std::size_t>(1, columns));
  std::vector<Sum> sums((n + rows - 1) / rows);
  parallel_for(sums.size(), [&](std::size_t task) { sums[task] = part(task * rows, std::min(n, (task + 1) * rows)); },
               threads);
  Sum total{};
  for (const Sum& sum : sums) total = total + sum;
  return total;
}

// A label of a matrix of scores is the number of one of its columns.
void check_labels(const Scores& z, const Vector& y) {
  if (z.shape(0) != y.size()) throw std::invalid_argument("there must be one label a row");
  if (z.ndim() < 2) return;
  const double k = static_cast<double>(z.shape(1));
  for (std::size_t i = 0; i < y.size(); ++i)
    if (!(y.data()[i] >= 0 && y.data()[i] < k)) throw std::invalid_argument("a label is no class number");
}

// Σ c_i l(z_i, y_i); fills c_i·slope_i and c_i·curvature_i where asked.
double scalar_sum(const std::string& name, const Parameters& parameters, const Scores& z, const double* ys,
                  const double* cs, double* slope, double* curvature, int threads) {
  const double* zs = z.data();
  return with_loss(name, parameters, [&](auto loss) {
    return sum_parts<double>(z.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
      if (!slope && !curvature) return values_part(loss, zs + begin, ys + begin, cs + begin, end - begin);
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

void scale_by(double c, double* row, std::size_t k) {
  for (std::size_t j = 0; j < k; ++j) row[j] *= c;
}

double vector_sum(const std::string& name, const Scores& z, const double* ys, const double* cs, double* slope,
                  double* curvature, int threads) {
  const double* zs = z.data();
  const std::size_t k = columns_of(z);
  return with_vector_loss(name, [&](auto loss) {
    return sum_parts<double>(z.shape(0), k, threads, [&](std::size_t begin, std::size_t end) {
      std::vector<double> room(k);
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) {
        double* p = curvature ? curvature + i * k : room.data();
        double* s = slope ? slope + i * k : nullptr;
        sum += cs[i] * loss.at(zs + i * k, k, static_cast<std::size_t>(ys[i]), p, s);
        if (curvature) scale_by(cs[i], p, k);
        if (slope) scale_by(cs[i], s, k);
      }
      return sum;
    });
  });
}

double loss_sum(const std::string& name, const Parameters& parameters, Scores z, Vector y, Vector c,
                std::optional<Output> slopes, std::optional<Output> curvatures, int threads) {
  check_labels(z, y);
  nb::gil_scoped_release release;
  double* slope = slopes ? slopes->data() : nullptr;
  double* curvature = curvatures ? curvatures->data() : nullptr;
  if (z.ndim() > 1) return vector_sum(name, z, y.data(), c.data(), slope, curvature, threads);
  return scalar_sum(name, parameters, z, y.data(), c.data(), slope, curvature, threads);
}

// (Σ c_i l(z_i + t·dz_i, y_i), its derivative by t): a line search that needs no pass over the data.
Pair scalar_along(const std::string& name, const Parameters& parameters, const Scores& z, const double* ds, double t,
                  const double* ys, const double* cs, int threads) {
  const double* zs = z.data();
  return with_loss(name, parameters, [&](auto loss) {
    return sum_parts<Pair>(z.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
      return along_part(loss, zs + begin, ds + begin, t, ys + begin, cs + begin, end - begin);
    });
  });
}

Pair vector_along(const std::string& name, const Scores& z, const double* ds, double t, const double* ys,
                  const double* cs, int threads) {
  const double* zs = z.data();
  const std::size_t k = columns_of(z);
  return with_vector_loss(name, [&](auto loss) {
    return sum_parts<Pair>(z.shape(0), k, threads, [&](std::size_t begin, std::size_t end) {
      std::vector<double> moved(k), p(k), slope(k);
      Pair sum;
      for (std::size_t i = begin; i < end; ++i) {
        for (std::size_t j = 0; j < k; ++j) moved[j] = zs[i * k + j] + t * ds[i * k + j];
        sum.value += cs[i] * loss.at(moved.data(), k, static_cast<std::size_t>(ys[i]), p.data(), slope.data());
        sum.slope += cs[i] * dense_dot(slope.data(), ds + i * k, k);
      }
      return sum;
    });
  });
}

std::pair<double, double> loss_along(const std::string& name, const Parameters& parameters, Scores z, Scores dz,
                                     double t, Vector y, Vector c, int threads) {
  check_labels(z, y);
  nb::gil_scoped_release release;
  const Pair total = z.ndim() > 1 ? vector_along(name, z, dz.data(), t, y.data(), c.data(), threads)
                                  : scalar_along(name, parameters, z, dz.data(), t, y.data(), c.data(), threads);
  return {total.value, total.slope};
}

std::tuple<double, double, double, double> loss_interval_cut(const std::string& name, const Parameters& parameters,
                                                             Output z, Output dz, std::array<double, 3> t, Vector y,
                                                             Vector c, int threads) {
  const std::size_t n = z.size();
  if (dz.size() != n || y.size() != n) throw std::invalid_argument("there must be one number a row");
  const Costs costs(c.data(), c.size(), n);
  nb::gil_scoped_release release;
  const IntervalCutSums total = with_loss(name, parameters, [&](auto loss) {
    return sum_parts<IntervalCutSums>(n, 1, threads, [&](std::size_t begin, std::size_t end) {
      return sum_runs(begin, end, [&](std::size_t i, std::size_t stop) {
        return interval_cut_part(loss, z.data() + i, dz.data() + i, t, y.data() + i, costs.from(i), stop - i);
      });
    });
  });
  return {total.value, total.offset, total.terms, total.slopes};
}

// Σ ψ_i(scale · a_i); a row that costs nothing has ψ(0) = 0 and no other feasible a. psi(i) is ψ_i, zero(i) says
// whether a_i is zero.
template <class Psi, class Zero>
double sum_conjugates(std::size_t n, std::size_t columns, const double* cs, int threads, Psi psi, Zero zero) {
  return sum_parts<double>(n, columns, threads, [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (cs[i] > 0) {
        sum += psi(i);
      } else if (!zero(i)) {
        sum = kInfeasible;
      }
    }
    return sum;
  });
}

double conjugate_sum(const std::string& name, const Parameters& parameters, Scores a, double scale, Vector y, Vector c,
                     int threads) {
  check_labels(a, y);
  nb::gil_scoped_release release;
  const double *as = a.data(), *ys = y.data(), *cs = c.data();
  const std::size_t k = columns_of(a), n = a.shape(0);
  const auto zero = [&](std::size_t i) {
    return std::all_of(as + i * k, as + (i + 1) * k, [](double v) { return v == 0; });
  };
  if (a.ndim() > 1)
    return with_vector_loss(name, [&](auto loss) {
      return sum_conjugates(n, k, cs, threads, [&](std::size_t i) {
        return loss.conjugate(as + i * k, scale, k, static_cast<std::size_t>(ys[i]), cs[i]);
      }, zero);
    });
  return with_loss(name, parameters, [&](auto loss) {
    return sum_conjugates(n, 1, cs, threads, [&](std::size_t i) { return loss.conjugate(scale * as[i], ys[i], cs[i]); },
                          zero);
  });
}

}  // namespace

void bind_losses(nb::module_& m) {
  m.def("loss_sum", &loss_sum, "name"_a, "parameters"_a, "z"_a, "y"_a, "c"_a, "slopes"_a.none().noconvert(),
        "curvatures"_a.none().noconvert(), "threads"_a = 0);
  m.def("loss_interval_cut", &loss_interval_cut, "name"_a, "parameters"_a, "z"_a.noconvert(), "dz"_a.noconvert(), "t"_a,
        "y"_a, "c"_a, "threads"_a = 0);
  m.def("loss_along", &loss_along, "name"_a, "parameters"_a, "z"_a, "dz"_a, "t"_a, "y"_a, "c"_a, "threads"_a = 0);
  m.def("conjugate_sum", &conjugate_sum, "name"_a, "parameters"_a, "a"_a, "scale"_a, "y"_a, "c"_a, "threads"_a = 0);
}

}  // namespace beeline
