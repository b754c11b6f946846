// The problems of one variable that dual coordinate descent solves, one for each loss:
//
//   min over a of  ½ q (a − a_i)² + z (a − a_i) + ψ(a),   ψ(a) = max over z of −az − c·l(z, y).
//
// `loss` is l itself. Each has three verbs: `step` solves it, `settled` says whether a row at a bound is so clearly
// there that it can leave the sweeps, and `conjugate` is ψ.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

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
  static auto loss() { return std::conditional_t<kSquared, SquaredHingeLoss, HingeLoss>{}; }
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
  auto loss() const {
    return std::conditional_t<kSquared, SquaredEpsilonInsensitiveLoss, EpsilonInsensitiveLoss>{epsilon};
  }
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
  static LogisticLoss loss() { return {}; }

  // Newton's method in t = log(α/(c − α)), where the slope q(α(t) − α₀) + margin + t of the problem rises by 1 to
  // 1 + qc/4 a unit: two steps are usually enough. α lies in (0, c), which brackets t.
  DualStep step(const DualRow& row, double z) const {
    const double c = row.cost, margin = row.y * z, alpha = std::clamp(row.y * row.a, 1e-300, c);
    const double start = std::log(alpha / std::max(c - alpha, 1e-300)), slope = margin + start;
    double low = -margin - row.q * (c - alpha), high = -margin + row.q * alpha;
    double t = std::clamp(start, low, high), sigma = t == start ? alpha / c : sigmoid(t);
    for (int i = 0; i < 100; ++i) {
      const double g = row.q * (c * sigma - alpha) + margin + t;
      (g > 0 ? high : low) = t;
      double next = t - g / (1 + row.q * c * sigma * (1 - sigma));
      if (!(low <= next && next <= high)) next = 0.5 * (low + high);
      const double moved = std::fabs(next - t);
      t = next;
      sigma = sigmoid(t);
      // A step of Newton's method leaves at most 0.05qc of its square: σ″ never exceeds 0.1.
      const double left = std::min(moved, 0.05 * row.q * c * moved * moved);
      if (left <= 1e-3 * std::fabs(t - start) || left <= 1e-14 * std::fabs(t)) break;
    }
    return {row.y * c * sigma, slope};
  }

  static double sigmoid(double t) { return 1 / (1 + std::exp(-t)); }

  bool settled(const DualRow&, double, const ShrinkLimits&) const { return false; }

  double conjugate(const DualRow& row) const { return row.cost > 0 ? entropy(row.y * row.a, row.cost) : 0.0; }
};

// ψ(a) = −ya + a²/(2c).
struct SquaredDual {
  static constexpr bool kShrinks = false;
  static SquaredLoss loss() { return {}; }

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
