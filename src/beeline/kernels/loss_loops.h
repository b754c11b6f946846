// Inner loops over rows whose scores are known, for several instruction sets.
//
// `omp simd` allows the reordering of sums that vector registers need; a part always has the same rows, and so the same
// sum.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "loss_parts.h"
#include "simd.h"

namespace beeline {

// The costs of rows, one each or one for all: an array that is not read leaves the way free for the others. Loops over
// rows take them in runs of at most kRun.
class Costs {
 public:
  static constexpr std::size_t kRun = 512;

  Costs(const double* costs, std::size_t size, std::size_t n_rows) : costs_(costs), same_(size == 1) {
    if (size != 1 && size != n_rows) throw std::invalid_argument("there must be one cost a row, or one for all");
    if (same_) constant_.fill(*costs);
  }

  const double* from(std::size_t row) const { return same_ ? constant_.data() : costs_ + row; }

 private:
  const double* costs_;
  bool same_;
  std::array<double, kRun> constant_;
};

// The sum of part(begin, end) over the runs of the rows begin … end − 1.
template <class Part>
auto sum_runs(std::size_t begin, std::size_t end, Part part) {
  decltype(part(begin, end)) sum{};
  for (; begin < end; begin += Costs::kRun) sum = sum + part(begin, std::min(end, begin + Costs::kRun));
  return sum;
}

struct Pair {
  double value = 0, slope = 0;
  Pair operator+(const Pair& other) const { return {value + other.value, slope + other.slope}; }
};

// Σ c_i l(z_i, y_i).
template <class Loss>
BEELINE_CLONES double values_part(const Loss& loss, const double* z, const double* y, const double* c, std::size_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += c[i] * loss.at(z[i], y[i]).value;
  return sum;
}

// (Σ c_i l(z_i + t·dz_i, y_i), its derivative by t).
template <class Loss>
BEELINE_CLONES Pair along_part(const Loss& loss, const double* z, const double* dz, double t, const double* y,
                               const double* c, std::size_t n) {
  double value = 0, slope = 0;
#pragma omp simd reduction(+ : value, slope)
  for (std::size_t i = 0; i < n; ++i) {
    const Derivatives d = loss.at(z[i] + t * dz[i], y[i]);
    value += c[i] * d.value;
    slope += c[i] * d.slope * dz[i];
  }
  return {value, slope};
}

// What an interval of a line gives: the losses at a point of it, and a plane below them.
struct IntervalCutSums {
  double value = 0;   // Σ of the losses at the point
  double offset = 0;  // Σ of the rows' lines at zero
  double terms = 0;   // the sizes of what the offset is a sum of
  double slopes = 0;  // the sizes of what the slopes of the lines are sums of
  IntervalCutSums operator+(const IntervalCutSums& other) const {
    return {value + other.value, offset + other.offset, terms + other.terms, slopes + other.slopes};
  }
};

// z becomes z + t₁·dz. The losses there, and a plane below them from an interval of the line, t₀ … t₂. A row's line
// below c·l is a mean of its tangents at both ends, the one whose slope is that of the chord. For a loss of flat pieces
// with one kink inside that is the mean of all tangents on the way. dz becomes the slopes of these lines. The ends may
// be far away, where tangents are sums of large numbers that cancel: hence the sizes.
template <class Loss>
BEELINE_CLONES IntervalCutSums interval_cut_part(const Loss& loss, double* z, double* dz,
                                                 const std::array<double, 3>& t, const double* y, const double* c,
                                                 std::size_t n) {
  double value = 0, offset = 0, terms = 0, slopes = 0;
#pragma omp simd reduction(+ : value, offset, terms, slopes)
  for (std::size_t i = 0; i < n; ++i) {
    const double left = z[i] + t[0] * dz[i], here = z[i] + t[1] * dz[i], right = z[i] + t[2] * dz[i];
    const Derivatives a = loss.at(left, y[i]), b = loss.at(right, y[i]);
    const double jump = b.slope - a.slope, rise = b.value - a.value - a.slope * (right - left);
    const double room = jump * (right - left), part = room > 0 ? rise / room : 0.0;
    const double share = part > 0 ? (part < 1 ? part : 1.0) : 0.0;  // however rise was rounded
    z[i] = here;
    dz[i] = c[i] * (a.slope + share * jump);
    value += c[i] * loss.at(here, y[i]).value;
    offset += c[i] * ((1 - share) * (a.value - a.slope * left) + share * (b.value - b.slope * right));
    terms += c[i] * ((1 - share) * (std::fabs(a.value) + std::fabs(a.slope * left)) +
                     share * (std::fabs(b.value) + std::fabs(b.slope * right)));
    slopes += c[i] * (std::fabs(a.slope) + std::fabs(b.slope));
  }
  return {value, offset, terms, slopes};
}

}  // namespace beeline
