// Losses of levels by thresholds: sums over rows of a margin loss of the differences between score and thresholds.
//
// A row of level k has its score above the thresholds below k and under the others. With all thresholds each of them
// counts; with those next to the level only the largest one below and the smallest one above.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <vector>

#include "threads.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kMarginsPerTask = 1 << 14;

// φ(a), φ'(a) and φ''(a).
struct Margin {
  double value, slope, curvature;
};

struct LogisticMargin {
  template <bool kSlopes>
  static Margin at(double a) {
    const double small = std::exp(-std::fabs(a)), value = std::log1p(small) + std::max(-a, 0.0);
    if (!kSlopes) return {value, 0, 0};
    const double part = 1 / (1 + small), other = small * part;
    return {value, a > 0 ? -other : -part, other * part};
  }
};

struct HingeMargin {
  template <bool kSlopes>
  static Margin at(double a) {
    return a >= 1 ? Margin{0, 0, 0} : Margin{1 - a, -1, 0};
  }
};

// What the rows of a task come to.
struct Sums {
  double value = 0;
  std::vector<double> slopes, curvatures;  // by the thresholds
};

struct Thresholds {
  const double* values;
  std::size_t count;
  bool all;
  std::vector<std::size_t> lower, upper;  // of the thresholds up to each the largest, and of those from it on the least

  Thresholds(const double* given, std::size_t n, bool with_all) : values(given), count(n), all(with_all), lower(n), upper(n) {
    for (std::size_t k = 1; k < n; ++k) lower[k] = values[k] >= values[lower[k - 1]] ? k : lower[k - 1];
    for (std::size_t k = n; k-- > 0;)
      upper[k] = k + 1 == n || values[k] <= values[upper[k + 1]] ? k : upper[k + 1];
  }
};

template <class Loss, bool kSlopes>
void add_rows(const Thresholds& thresholds, const double* z, const double* y, const double* c, std::size_t begin,
              std::size_t end, double* slopes, Sums& sums) {
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t level = static_cast<std::size_t>(y[i]);
    double value = 0, slope = 0;
    const auto add = [&](std::size_t k, double sign) {
      const Margin margin = Loss::template at<kSlopes>(sign * (z[i] - thresholds.values[k]));
      value += margin.value;
      if (!kSlopes) return;
      slope += sign * margin.slope;
      sums.slopes[k] -= c[i] * (sign * margin.slope);
      sums.curvatures[k] += c[i] * margin.curvature;
    };
    if (thresholds.all) {
      for (std::size_t k = 0; k < level; ++k) add(k, 1.0);
      for (std::size_t k = level; k < thresholds.count; ++k) add(k, -1.0);
    } else {
      if (level > 0) add(thresholds.lower[level - 1], 1.0);
      if (level < thresholds.count) add(thresholds.upper[level], -1.0);
    }
    sums.value += c[i] * value;
    if (kSlopes) slopes[i] = c[i] * slope;
  }
}

// Σ c_i l(z_i, y_i); with `slopes`, also those of every row, and the first and second derivatives by the thresholds.
double level_thresholds(Vector z, Vector y, Vector c, Vector thresholds, bool all, bool logistic,
                        std::optional<Output> slopes, std::optional<Output> by_threshold,
                        std::optional<Output> curvatures, int threads) {
  const std::size_t n = z.size(), count = thresholds.size();
  if (y.size() != n || c.size() != n || (slopes && slopes->size() != n))
    throw std::invalid_argument("there must be one number a row");
  if (count < 1 || (by_threshold && by_threshold->size() != count) || (curvatures && curvatures->size() != count))
    throw std::invalid_argument("there must be one number a threshold");
  if (bool(by_threshold) != bool(slopes) || bool(curvatures) != bool(slopes))
    throw std::invalid_argument("slopes are all wanted, or none");
  const double *scores = z.data(), *labels = y.data(), *costs = c.data();
  double* out = slopes ? slopes->data() : nullptr;
  const Thresholds given(thresholds.data(), count, all);
  const std::size_t per_task = std::max<std::size_t>(1, kMarginsPerTask / (all ? count : 2));
  const std::size_t n_tasks = (n + per_task - 1) / per_task;
  std::vector<Sums> parts(n_tasks);
  bool valid = true;
  {
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < n; ++i) valid = valid && labels[i] >= 0 && labels[i] <= static_cast<double>(count);
    if (valid) parallel_for(n_tasks, [&](std::size_t task) {
      const std::size_t begin = task * per_task, end = std::min(n, begin + per_task);
      Sums& sums = parts[task];
      if (out != nullptr) {
        sums.slopes.assign(count, 0.0);
        sums.curvatures.assign(count, 0.0);
      }
      const auto add = logistic ? (out ? add_rows<LogisticMargin, true> : add_rows<LogisticMargin, false>)
                                : (out ? add_rows<HingeMargin, true> : add_rows<HingeMargin, false>);
      add(given, scores, labels, costs, begin, end, out, sums);
    }, threads);
  }
  if (!valid) throw std::invalid_argument("a label that is the number of no level");
  double value = 0;
  if (out != nullptr) {
    std::fill(by_threshold->data(), by_threshold->data() + count, 0.0);
    std::fill(curvatures->data(), curvatures->data() + count, 0.0);
  }
  for (const Sums& sums : parts) {
    value += sums.value;
    for (std::size_t k = 0; out != nullptr && k < count; ++k) {
      by_threshold->data()[k] += sums.slopes[k];
      curvatures->data()[k] += sums.curvatures[k];
    }
  }
  return value;
}

}  // namespace

void bind_level_thresholds(nb::module_& m) {
  m.def("level_thresholds", &level_thresholds, "z"_a, "y"_a, "c"_a, "thresholds"_a, "all"_a, "logistic"_a,
        "slopes"_a.noconvert().none() = nb::none(), "by_threshold"_a.noconvert().none() = nb::none(),
        "curvatures"_a.noconvert().none() = nb::none(), "threads"_a = 0);
}

}  // namespace beeline
