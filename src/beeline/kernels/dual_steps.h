// The problems of one variable that dual coordinate descent solves, one for each loss:
//
//   min over a of  ½ q (a − a_i)² + z (a − a_i) + ψ(a),   ψ(a) = max over z of −az − c·l(z, y).
//
// Each has three verbs: `step` solves it, `settled` says whether a row at a bound is so clearly there that it can leave
// the sweeps, and `conjugate` is ψ.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "losses.h"

namespace beeline {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The numbers of a row that its problem is made of.
struct DualRow {
  double a, q, cost, y;
};

// Where the minimum is, and how far from optimal the old a was: the slope there, 0 where a bound holds it.
struct DualStep {
  double a, violation;
};

// How far beyond zero a slope must point outwards before the row leaves: at the lower and at the upper bound.
struct ShrinkLimits {
  double low = -kInfinity, high = kInfinity;
};

// ψ(a) = −α + Dα²/2 with α = ya in [0, U]: hinge D = 0, U = c; squared hinge D = 1/(2c), U = ∞.
template <bool kSquared>
struct MarginDual {
  static constexpr bool kShrinks = true;
  static double diagonal(const DualRow& row) { return kSquared ? 0.5 / row.cost : 0.0; }
  static double upper(const DualRow& row) { return kSquared ? kInfinity : row.cost; }

  DualStep step(const DualRow& row, double z) const {
    const double alpha = row.y * row.a, slope = row.y * z - 1 + diagonal(row) * alpha;
    if ((alpha <= 0 && slope >= 0) || (alpha >= upper(row) && slope <= 0) || slope == 0) return {row.a, 0};
    return {row.y * std::clamp(alpha - slope / (row.q + diagonal(row)), 0.0, upper(row)), slope};
  }

  bool settled(const DualRow& row, double z, const ShrinkLimits& limits) const {
    const double alpha = row.y * row.a, slope = row.y * z - 1 + diagonal(row) * alpha;
    return (alpha <= 0 && slope > limits.high) || (alpha >= upper(row) && slope < limits.low);
  }

  double conjugate(const DualRow& row) const {
    const double alpha = row.y * row.a;
    return -alpha + 0.5 * diagonal(row) * alpha * alpha;
  }
};

// ψ(a) = −ya + ε|a| + Da²/2 with |a| ≤ U: ε-insensitive D = 0, U = c; squared D = 1/(2c), U = ∞.
template <bool kSquared>
struct TubeDual {
  static constexpr bool kShrinks = true;
  double epsilon;
  static double diagonal(const DualRow& row) { return kSquared ? 0.5 / row.cost : 0.0; }
  static double upper(const DualRow& row) { return kSquared ? kInfinity : row.cost; }

  DualStep step(const DualRow& row, double z) const {
    const double smooth = z - row.y + diagonal(row) * row.a;
    const double right = smooth + epsilon, left = smooth - epsilon;  // slopes on both sides of a = 0
    if ((row.a == 0 && right >= 0 && left <= 0) || (row.a >= upper(row) && right <= 0) ||
        (row.a <= -upper(row) && left >= 0))
      return {row.a, 0};
    const double q = row.q + diagonal(row);
    double next = 0;
    if (right < q * row.a) {
      next = row.a - right / q;
    } else if (left > q * row.a) {
      next = row.a - left / q;
    }
    const double violation = row.a > 0 ? right : row.a < 0 ? left : right < 0 ? right : left;
    return {std::clamp(next, -upper(row), upper(row)), violation};
  }

  bool settled(const DualRow& row, double z, const ShrinkLimits& limits) const {
    const double smooth = z - row.y + diagonal(row) * row.a, most = std::max(limits.high, -limits.low);
    if (row.a == 0) return smooth + epsilon > most && epsilon - smooth > most;
    if (row.a >= upper(row)) return smooth + epsilon < -most;
    return row.a <= -upper(row) && smooth - epsilon > most;
  }

  double conjugate(const DualRow& row) const {
    return -row.y * row.a + epsilon * std::fabs(row.a) + 0.5 * diagonal(row) * row.a * row.a;
  }
};

// ψ(a) = α log α + (c − α) log(c − α) − c log c with α = ya in (0, c) (Yu, Huang & Lin 2011).
struct LogisticDual {
  static constexpr bool kShrinks = false;  // no variable ever reaches a bound

  // Newton's method in the smaller of α and c − α, where the logarithm bends; the slopes at both ends are infinite, so
  // the minimum lies inside.
  DualStep step(const DualRow& row, double z) const {
    const double c = row.cost, margin = row.y * z, alpha = std::clamp(row.y * row.a, 1e-300, c);
    const double rest = std::max(c - alpha, 1e-300), slope = margin + std::log(alpha / rest);
    // The same problem in s = c − α has the slope −margin: take the side whose minimum is at most c/2.
    const bool flip = margin - row.q * (alpha - 0.5 * c) < 0;
    const double start = flip ? rest : alpha, linear = flip ? -margin : margin;
    double s = std::clamp(start, c * 1e-12, 0.5 * c);
    for (int i = 0; i < 100; ++i) {
      const double g = row.q * (s - start) + linear + std::log(s / (c - s));
      double next = s - g / (row.q + c / (s * (c - s)));
      if (next <= 0) next = 0.1 * s;
      if (next >= c) next = 0.5 * (s + c);
      const bool done = std::fabs(next - s) <= 1e-3 * std::fabs(s - start) || std::fabs(next - s) <= 1e-14 * s;
      s = next;
      if (done) break;
    }
    return {row.y * (flip ? c - s : s), slope};
  }

  bool settled(const DualRow&, double, const ShrinkLimits&) const { return false; }

  double conjugate(const DualRow& row) const {
    const double alpha = row.y * row.a, rest = row.cost - alpha;
    return (alpha > 0 ? alpha * std::log(alpha / row.cost) : 0) + (rest > 0 ? rest * std::log(rest / row.cost) : 0);
  }
};

// ψ(a) = −ya + a²/(2c).
struct SquaredDual {
  static constexpr bool kShrinks = false;

  DualStep step(const DualRow& row, double z) const {
    const double slope = z - row.y + row.a / row.cost;
    return {row.a - slope / (row.q + 1 / row.cost), slope};
  }

  bool settled(const DualRow&, double, const ShrinkLimits&) const { return false; }
  double conjugate(const DualRow& row) const { return -row.y * row.a + 0.5 * row.a * row.a / row.cost; }
};

// visit(problem) for the named loss; `parameters` are its own.
template <class Visit>
auto with_dual(const std::string& name, const Parameters& parameters, Visit visit) {
  if (name == "hinge") return visit(MarginDual<false>{});
  if (name == "squared_hinge") return visit(MarginDual<true>{});
  if (name == "epsilon_insensitive") return visit(TubeDual<false>{parameters[0]});
  if (name == "squared_epsilon_insensitive") return visit(TubeDual<true>{parameters[0]});
  if (name == "logistic") return visit(LogisticDual{});
  if (name == "squared") return visit(SquaredDual{});
  throw std::invalid_argument("dual coordinate descent has no step for the loss " + name);
}

}  // namespace beeline
