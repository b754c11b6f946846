// What compiled losses are made of.
#pragma once

#include <array>
#include <cmath>
#include <limits>

namespace beeline {

constexpr double kInfeasible = std::numeric_limits<double>::infinity();

// What a loss is set to: one number or two, in the order in which the Python class takes them.
using Parameters = std::array<double, 2>;

struct Derivatives {
  double value, slope, curvature;
};

// x log y; zero where x is, and where y, a part of something, is too small for a number: x is nothing then.
inline double xlogy(double x, double y) { return x > 0 && y > 0 ? x * std::log(y) : 0.0; }

// p log(p/c) + (c − p) log((c − p)/c) for 0 ≤ p ≤ c, c > 0. Of a part that is nearly all of c, log1p keeps the digits:
// what is left of c is far smaller than the rounding of c may be.
inline double entropy(double p, double c) {
  const double rest = c - p;
  if (p < rest) return xlogy(p, p / c) + rest * std::log1p(-p / c);
  return p * std::log1p(-rest / c) + xlogy(rest, rest / c);
}

// max(0, t) with its kink rounded off by entropy: μ·log(1 + exp(t/μ)), at most μ·log 2 above.
struct Softplus {
  double scale;
  Derivatives at(double t) const {
    const double small = std::exp(-std::fabs(t) / scale), other = small / (1 + small);
    return {scale * std::log1p(small) + (t > 0 ? t : 0), t > 0 ? 1 / (1 + small) : other, other * (1 - other) / scale};
  }

  // What the entropy of 0 ≤ p ≤ c adds to a conjugate.
  double conjugate(double p, double c) const { return c > 0 ? scale * entropy(p, c) : 0.0; }
};

constexpr double kLog2 = 0.693147180559945309;

// exp(t), going on as its tangent beyond t = 300.
inline Derivatives capped_exp(double t) {
  constexpr double kMost = 300;
  if (t <= kMost) {
    const double power = std::exp(t);
    return {power, power, power};
  }
  const double power = std::exp(kMost);
  return {power * (1 + (t - kMost)), power, 0};
}

// A part of c, also where rounding took it a little below zero or above c. Others stay as they are.
inline double part_of(double p, double c) {
  const double slack = 1e-15 * c;
  return p < 0 && p >= -slack ? 0.0 : p > c && p <= c + slack ? c : p;
}

}  // namespace beeline
