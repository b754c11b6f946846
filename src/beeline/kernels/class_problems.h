// The problems of one row of the dual of a multi-class hinge that is not the right class against the best other one.
//
// a_k = −β_k for the other classes and a_y = Σ β_k. With slacks g_k = z_k − z_y + 1 and q = ‖x‖²/λ, a row's part of the
// dual grows by Σ g_k dβ_k − q/2 (Σ dβ_k² + (Σ dβ_k)²). What β may be depends on the loss:
//
// - Weston & Watkins, Σ_k max(0, g_k):     0 ≤ β_k ≤ c;
// - scaled slacks, max_k max(0, Δ_k g_k):  β_k = Δ_k π_k, π_k ≥ 0, Σ π_k ≤ c.
//
// The term (Σ dβ)² has a multiplier τ = q Σ dβ; for a given τ the classes are independent, and Σ dβ falls with τ: the
// right τ is the root of a function that only falls, and whose pieces are straight.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace beeline {

// A function of one number at some place.
struct Tangent {
  double value, slope;
};

// Where a falling function of straight pieces is zero, from 0 on: Newton's steps, which are exact on the root's own
// piece, within a bracket that is halved where they leave it or take long.
template <class Function>
double falling_root(Function f, double low, double high, double enough) {
  constexpr double kRounding = 2 * std::numeric_limits<double>::epsilon();
  double t = 0;
  for (int i = 1; i < 200; ++i) {
    const Tangent at = f(t);
    if (std::fabs(at.value) <= enough) break;
    (at.value > 0 ? low : high) = t;
    const double next = t - at.value / at.slope;
    if (std::fabs(next - t) <= kRounding * std::fabs(t)) break;
    t = low < next && next < high && i % 8 != 0 ? next : 0.5 * (low + high);
    if (!(low < t && t < high)) break;
  }
  return t;
}

// One row; g, β and Δ have an entry for each class, the right one's is not looked at.
struct HingeRow {
  std::size_t n, y;
  double q, cost;
  const double* g;
  const double* beta;
  const double* delta;  // null for Weston & Watkins

  double largest_slack() const {
    double most = 0;
    for (std::size_t k = 0; k < n; ++k)
      if (k != y) most = std::max(most, std::fabs(g[k]));
    return most;
  }

  // The same row with a q that can be divided by. A row of zeros, or nearly so, has none; a q that is too large only
  // makes steps shorter, and this one lets all of the cost go to a class that is better by 1e-12 of the slacks.
  HingeRow with_weight() const {
    HingeRow row = *this;
    row.q = std::max(q, 1e-12 * largest_slack() / cost);
    return row;
  }
};

class SeparateHinges {
 public:
  // How far the row is from its optimum, as a slack; 0 where rounding hides it.
  static double violation(const HingeRow& row) {
    double worst = 0;
    for (std::size_t k = 0; k < row.n; ++k) {
      if (k == row.y) continue;
      if (row.beta[k] < row.cost) worst = std::max(worst, row.g[k]);
      if (row.beta[k] > 0) worst = std::max(worst, -row.g[k]);
    }
    return worst;
  }

  // Whether every class wants to stay at its bound by more than a limit.
  static bool settled(const HingeRow& row, double limit) {
    for (std::size_t k = 0; k < row.n; ++k) {
      if (k == row.y) continue;
      const bool below = row.beta[k] <= 0 && row.g[k] < -limit, above = row.beta[k] >= row.cost && row.g[k] > limit;
      if (!below && !above) return false;
    }
    return true;
  }

  // What the row adds to the duality gap.
  static double gap(const HingeRow& row) {
    double sum = 0;
    for (std::size_t k = 0; k < row.n; ++k)
      if (k != row.y) sum += row.cost * std::max(0.0, row.g[k]) - row.beta[k] * row.g[k];
    return sum;
  }

  // The best β; some slack is not zero.
  void solve(const HingeRow& given, double* next) const {
    const HingeRow row = given.with_weight();
    const double reach = static_cast<double>(row.n) * row.largest_slack();
    const double tau = falling_root([&](double t) {
      double sum = 0, inside = 0;
      for (std::size_t k = 0; k < row.n; ++k) {
        if (k == row.y) continue;
        const double beta = at(row, k, t);
        sum += beta - row.beta[k];
        inside += beta > 0 && beta < row.cost;
      }
      return Tangent{row.q * sum - t, -inside - 1};
    }, -reach, reach, 1e-15 * reach);
    for (std::size_t k = 0; k < row.n; ++k) next[k] = k == row.y ? 0.0 : at(row, k, tau);
  }

  // β for scores near the optimum.
  static void start(const HingeRow& row, double width, double* next) {
    for (std::size_t k = 0; k < row.n; ++k)
      next[k] = k == row.y ? 0.0 : row.cost * std::min(std::max(row.g[k] / width, 0.0), 1.0);
  }

 private:
  static double at(const HingeRow& row, std::size_t k, double tau) {
    return std::min(std::max(row.beta[k] + (row.g[k] - tau) / row.q, 0.0), row.cost);
  }
};

class ScaledSlacks {
 public:
  static double violation(const HingeRow& row) {
    const double top = highest(row), low = least_owned(row);
    return std::max(0.0, top - low);
  }

  static bool settled(const HingeRow& row, double limit) {
    std::size_t owners = spare(row) > 0, owner = row.y;
    for (std::size_t k = 0; k < row.n; ++k)
      if (k != row.y && row.beta[k] > 0) {
        ++owners;
        owner = k;
      }
    if (owners != 1) return false;
    const double own = owner == row.y ? 0.0 : row.delta[owner] * row.g[owner];
    double other = owner == row.y ? -std::numeric_limits<double>::infinity() : 0.0;
    for (std::size_t k = 0; k < row.n; ++k)
      if (k != row.y && k != owner) other = std::max(other, row.delta[k] * row.g[k]);
    return own - other > limit;
  }

  static double gap(const HingeRow& row) {
    double sum = row.cost * highest(row);
    for (std::size_t k = 0; k < row.n; ++k)
      if (k != row.y) sum -= row.beta[k] * row.g[k];
    return sum;
  }

  // The best β: for each τ the best π of the simplex, by a multiplier ν of its own. Some slack is not zero.
  void solve(const HingeRow& given, double* next) const {
    const HingeRow row = given.with_weight();
    const double reach = static_cast<double>(row.n + 1) * row.largest_slack();
    const double tau = falling_root([&](double t) {
      const double slope = shares(row, t, next);
      double sum = 0;
      for (std::size_t k = 0; k < row.n; ++k)
        if (k != row.y) sum += next[k] - row.beta[k];
      return Tangent{row.q * sum - t, slope - 1};
    }, -reach, reach, 1e-14 * reach);
    shares(row, tau, next);
  }

  static void start(const HingeRow& row, double width, double* next) {
    double sum = 0;
    for (std::size_t k = 0; k < row.n; ++k) {
      next[k] = k == row.y || row.delta[k] <= 0 ? 0.0 : row.cost * std::max(row.delta[k] * row.g[k] / width, 0.0);
      sum += next[k];
    }
    const double scale = sum > row.cost ? row.cost / sum : 1.0;
    for (std::size_t k = 0; k < row.n; ++k) next[k] *= scale * (k == row.y ? 0.0 : row.delta[k]);
  }

 private:
  // c − Σ π, the part of the right class; 0 where rounding hides it.
  static double spare(const HingeRow& row) {
    double left = row.cost;
    for (std::size_t k = 0; k < row.n; ++k)
      if (k != row.y && row.delta[k] > 0) left -= row.beta[k] / row.delta[k];
    return left > 1e-12 * row.cost ? left : 0.0;
  }

  static double highest(const HingeRow& row) {
    double top = 0;
    for (std::size_t k = 0; k < row.n; ++k)
      if (k != row.y) top = std::max(top, row.delta[k] * row.g[k]);
    return top;
  }

  static double least_owned(const HingeRow& row) {
    double low = spare(row) > 0 ? 0.0 : std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < row.n; ++k)
      if (k != row.y && row.beta[k] > 0) low = std::min(low, row.delta[k] * row.g[k]);
    return low;
  }

  // β for a τ: π_k = max(0, π⁰_k + (Δ_k (g_k − τ) − ν)/(qΔ_k²)), ν ≥ 0 so that Σ π ≤ c. Returns the slope of q Σ β in
  // τ, where ν moves so that Σ π stays.
  static double shares(const HingeRow& row, double tau, double* next) {
    double top = 0;
    for (std::size_t k = 0; k < row.n; ++k)
      if (k != row.y) top = std::max(top, row.delta[k] * (row.g[k] - tau) + row.q * row.delta[k] * row.beta[k]);
    const double nu = falling_root([&](double v) {
      double sum = 0, slope = 0;
      for (std::size_t k = 0; k < row.n; ++k)
        if (const double pi = share(row, k, tau, v); pi > 0) {
          sum += pi;
          slope -= 1 / (row.q * row.delta[k] * row.delta[k]);
        }
      return Tangent{sum - row.cost, slope};
    }, 0.0, top, 1e-15 * row.cost);
    double sum = 0, count = 0, inverses = 0, squares = 0;
    for (std::size_t k = 0; k < row.n; ++k) {
      next[k] = share(row, k, tau, nu);
      if (!(next[k] > 0)) continue;
      sum += next[k];
      ++count;
      inverses += 1 / row.delta[k];
      squares += 1 / (row.delta[k] * row.delta[k]);
    }
    const bool full = nu > 0 || sum > row.cost;
    const double scale = full && sum > 0 ? row.cost / sum : 1.0;  // what the root has left
    for (std::size_t k = 0; k < row.n; ++k) next[k] *= scale * (k == row.y ? 0.0 : row.delta[k]);
    return full && squares > 0 ? inverses * inverses / squares - count : -count;
  }

  static double share(const HingeRow& row, std::size_t k, double tau, double nu) {
    const double d = row.delta[k];
    if (k == row.y || !(d > 0)) return 0.0;
    return std::max(row.beta[k] / d + (row.g[k] - tau - nu / d) / (row.q * d), 0.0);
  }
};

}  // namespace beeline
