// Boxes around runs of rows, and what they say about scores.
//
// For each feature that is not zero in all rows of a leaf, a box has the least and the greatest value; with zeros where
// a row has no entry. They are kept in 16 bits, the upper half of a float32, rounded outwards: so every row lies
// inside. Beside the box there is a ball around its centre. Then wᵀx lies between wᵀm ± min(Σ |w_j| s_j, ‖w‖ r) for
// every row x of the leaf, m the middle of the box, s half of its sides, r the radius of the ball, ‖w‖ over the
// features of the box.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "rows.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;
template <class T>
using Numbers = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Half = std::uint16_t;

constexpr std::size_t kLeavesPerTask = 1 << 9;
constexpr double kRounding = 1e-13;  // of the sizes of what is summed: far more than a few thousand terms are off by

float widened(Half half) {
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The nearest number of 16 bits that is no less (up) or no greater; beyond all numbers there is infinity.
Half outward(double x, bool up) {
  float value = static_cast<float>(x);
  if (up ? value < x : value > x) value = std::nextafter(value, up ? INFINITY : -INFINITY);
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const bool cut = bits & 0xffffu, away = (bits >> 31) ? !up : up;  // away from zero
  std::uint32_t half = bits >> 16;
  if (cut && away) ++half;  // carries into the exponent, and from the largest number to infinity
  return static_cast<Half>(half);
}

// The values of each feature in a leaf.
class Extent {
 public:
  explicit Extent(std::size_t n_features) : low_(n_features), high_(n_features), count_(n_features, 0) {}

  template <class Rows>
  void take(const Rows& rows, std::size_t begin, std::size_t end) {
    for (const std::size_t j : features) count_[j] = 0;
    features.clear();
    for (std::size_t i = begin; i < end; ++i)
      rows.each(i, [&](std::size_t j, double x) {
        if (x == 0) return;
        if (!count_[j]) {
          features.push_back(j);
          low_[j] = high_[j] = x;
        }
        ++count_[j];
        low_[j] = std::min(low_[j], x);
        high_[j] = std::max(high_[j], x);
      });
    std::sort(features.begin(), features.end());
    n_ = end - begin;
  }

  double low(std::size_t j) const { return count_[j] < n_ ? std::min(low_[j], 0.0) : low_[j]; }
  double high(std::size_t j) const { return count_[j] < n_ ? std::max(high_[j], 0.0) : high_[j]; }

  std::vector<std::size_t> features;

 private:
  std::vector<double> low_, high_;
  std::vector<std::uint32_t> count_;
  std::size_t n_ = 0;
};

// Leaf k has rows ends[k − 1] … ends[k] − 1.
std::size_t begin_of(const std::int64_t* ends, std::size_t k) { return k ? static_cast<std::size_t>(ends[k - 1]) : 0; }

template <class Visit>
void over_leaves(const RowArrays& arrays, std::size_t n_leaves, int threads, Visit visit) {
  arrays.with_rows([&](auto rows) {
    parallel_for((n_leaves + kLeavesPerTask - 1) / kLeavesPerTask, [&](std::size_t task) {
      Extent extent(arrays.n_features);
      for (std::size_t k = task * kLeavesPerTask, end = std::min(k + kLeavesPerTask, n_leaves); k < end; ++k)
        visit(rows, extent, k);
    }, threads);
    return 0;
  });
}

// How many features the box of each leaf has.
void count_box_features(const RowArrays& arrays, Numbers<const std::int64_t> ends, Numbers<std::int64_t> out,
                        int threads) {
  nb::gil_scoped_release release;
  over_leaves(arrays, ends.size(), threads, [&](const auto& rows, Extent& extent, std::size_t k) {
    extent.take(rows, begin_of(ends.data(), k), static_cast<std::size_t>(ends.data()[k]));
    out.data()[k] = static_cast<std::int64_t>(extent.features.size());
  });
}

// The boxes, that of leaf k from indptr[k] on, and the radii of their balls.
template <class Index>
void fill_boxes(const RowArrays& arrays, const Numbers<const std::int64_t>& ends,
                const Numbers<const std::int64_t>& indptr, Index* indices, Half* low, Half* high, float* radii,
                int threads) {
  over_leaves(arrays, ends.size(), threads, [&](const auto& rows, Extent& extent, std::size_t k) {
    const std::size_t begin = begin_of(ends.data(), k), end = static_cast<std::size_t>(ends.data()[k]);
    extent.take(rows, begin, end);
    std::size_t p = static_cast<std::size_t>(indptr.data()[k]);
    std::vector<double> middle(extent.features.size());
    double square = 0;
    for (std::size_t f = 0; f < extent.features.size(); ++f, ++p) {
      const std::size_t j = extent.features[f];
      indices[p] = static_cast<Index>(j);
      low[p] = outward(extent.low(j), false);
      high[p] = outward(extent.high(j), true);
      middle[f] = 0.5 * (static_cast<double>(widened(low[p])) + static_cast<double>(widened(high[p])));
      square += middle[f] * middle[f];
    }
    double largest = 0;
    for (std::size_t i = begin; i < end; ++i) {
      double distance = square, size = square;
      rows.each(i, [&](std::size_t j, double x) {
        if (x == 0) return;
        const std::size_t f = static_cast<std::size_t>(
            std::lower_bound(extent.features.begin(), extent.features.end(), j) - extent.features.begin());
        distance += x * (x - 2 * middle[f]);
        size += x * x + 2 * std::fabs(x * middle[f]);
      });
      largest = std::max(largest, std::max(distance, 0.0) + kRounding * size);
    }
    const float radius = static_cast<float>(std::sqrt(largest));
    radii[k] = std::isfinite(radius) ? std::nextafter(radius * (1 + 1e-6f), INFINITY) : INFINITY;
  });
}

void make_boxes(const RowArrays& arrays, Numbers<const std::int64_t> ends, Numbers<const std::int64_t> indptr,
                nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu> indices, Numbers<Half> low, Numbers<Half> high,
                Numbers<float> radii, int threads) {
  nb::gil_scoped_release release;
  if (indices.dtype() == nb::dtype<std::uint16_t>()) {
    fill_boxes(arrays, ends, indptr, static_cast<std::uint16_t*>(indices.data()), low.data(), high.data(), radii.data(),
               threads);
  } else {
    fill_boxes(arrays, ends, indptr, static_cast<std::int32_t*>(indices.data()), low.data(), high.data(), radii.data(),
               threads);
  }
}

// Between which numbers the scores wᵀx of each leaf's rows lie.
template <class Index>
void bound_boxes(const Numbers<const std::int64_t>& indptr, const Index* indices, const Half* low, const Half* high,
                 const float* radii, const std::int64_t* picked, std::size_t n_leaves, const double* w, double* out_low,
                 double* out_high, int threads) {
  parallel_for((n_leaves + kLeavesPerTask - 1) / kLeavesPerTask, [&](std::size_t task) {
    for (std::size_t k = task * kLeavesPerTask, end = std::min(k + kLeavesPerTask, n_leaves); k < end; ++k) {
      const std::size_t leaf = picked ? static_cast<std::size_t>(picked[k]) : k;
      double middle = 0, reach = 0, square = 0, size = 0;
      for (std::int64_t p = indptr.data()[leaf]; p < indptr.data()[leaf + 1]; ++p) {
        const double weight = w[indices[p]];
        if (weight == 0) continue;  // whatever the sides are, infinite ones too
        const double a = widened(low[p]), b = widened(high[p]), m = weight * 0.5 * (a + b);
        middle += m;
        size += std::fabs(m);
        reach += std::fabs(weight) * 0.5 * (b - a);
        square += weight * weight;
      }
      if (square > 0) reach = std::min(reach, std::sqrt(square) * static_cast<double>(radii[leaf]));
      reach += kRounding * (size + reach);
      const bool known = std::isfinite(middle) && std::isfinite(reach);
      out_low[k] = known ? middle - reach : -INFINITY;
      out_high[k] = known ? middle + reach : INFINITY;
    }
  }, threads);
}

void box_bounds(Numbers<const std::int64_t> indptr,
                nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu> indices, Numbers<const Half> low,
                Numbers<const Half> high, Numbers<const float> radii, std::optional<Numbers<const std::int64_t>> leaves,
                Vector w, Output out_low, Output out_high, int threads) {
  nb::gil_scoped_release release;
  const std::int64_t* picked = leaves ? leaves->data() : nullptr;
  const std::size_t n = leaves ? leaves->size() : indptr.size() - 1;
  if (indices.dtype() == nb::dtype<std::uint16_t>()) {
    bound_boxes(indptr, static_cast<const std::uint16_t*>(indices.data()), low.data(), high.data(), radii.data(),
                picked, n, w.data(), out_low.data(), out_high.data(), threads);
  } else {
    bound_boxes(indptr, static_cast<const std::int32_t*>(indices.data()), low.data(), high.data(), radii.data(), picked,
                n, w.data(), out_low.data(), out_high.data(), threads);
  }
}

}  // namespace

void bind_boxes(nb::module_& m) {
  m.def("count_box_features", &count_box_features, "rows"_a, "ends"_a, "out"_a.noconvert(), "threads"_a = 0);
  m.def("make_boxes", &make_boxes, "rows"_a, "ends"_a, "indptr"_a, "indices"_a.noconvert(), "low"_a.noconvert(),
        "high"_a.noconvert(), "radii"_a.noconvert(), "threads"_a = 0);
  m.def("box_bounds", &box_bounds, "indptr"_a, "indices"_a, "low"_a, "high"_a, "radii"_a, "leaves"_a.none(), "w"_a,
        "out_low"_a.noconvert(), "out_high"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
