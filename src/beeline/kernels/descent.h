// Coordinate descent on a quadratic model with L1 and L2 penalties, whatever way the model is stored.
//
// A model has: size, work(j), gradient(j), curvature(j), move(j, δ), and product(S, p, out): its Hessian on the
// features S.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "simd.h"

namespace beeline {

struct Penalty {
  double l1, l2;
  std::size_t nonnegative;  // how many of the weights, counted from the first, may not be negative

  bool may_fall(std::size_t j) const { return j >= nonnegative; }

  // By how much the slope of what is smooth pulls a weight away from zero, to where it may go.
  double pull(std::size_t j, double g) const { return may_fall(j) ? std::fabs(g) : -g; }

  // How far 0 is from the subgradients at w; `g` is the slope of what is smooth.
  double violation(std::size_t j, double w, double g) const {
    if (w == 0) return std::max(pull(j, g) - l1, 0.0);
    return std::fabs(g + (w > 0 ? l1 : -l1));
  }

  // The best weight under curvature q.
  double best(std::size_t j, double w, double g, double q) const {
    if (!(q > 0)) return pull(j, g) <= l1 ? 0.0 : w;  // no curvature: 0, or without a lower bound
    const double at = w - g / q, margin = (may_fall(j) ? std::fabs(at) : at) - l1 / q;
    return margin <= 0 ? 0.0 : std::copysign(margin, at);
  }
};

// The weights that are not zero, and the model over them as if their signs were fixed: a system of linear equations.
// Conjugate gradients on it do what coordinate descent needs hundreds of sweeps for when features are nearly collinear.
template <class Model>
class Support {
 public:
  Support(Model& model, double* w, const Penalty& penalty) : model_(model), w_(w), penalty_(penalty) {
    for (std::size_t j = 0; j < model.size; ++j) {
      if (w[j] == 0) continue;
      const double diagonal = model.curvature(j) + penalty.l2;
      features_.push_back(static_cast<std::uint32_t>(j));
      residual_.push_back(-(model.gradient(j) + penalty.l2 * w[j] + std::copysign(penalty.l1, w[j])));
      inverse_.push_back(diagonal > 0 ? 1 / diagonal : 0.0);
      work_ += static_cast<double>(model.work(j));
    }
  }

  // Finds a way down by up to `most` steps.
  void solve(std::size_t most) {
    const std::size_t n = features_.size();
    std::vector<double> r = residual_, p(n), q(n);
    double rho = 0;
    for (std::size_t k = 0; k < n; ++k) {
      p[k] = inverse_[k] * r[k];
      rho += r[k] * p[k];
    }
    way_.assign(n, 0.0);
    const double enough = kEnough * rho;
    for (; steps_ < most && rho > enough; ++steps_) {
      const double curvature = product(p, q);
      if (!(curvature > 0)) {  // flat: along p until a weight stops it
        way_ = p;
        curvature_ = 0;
        return;
      }
      const double alpha = rho / curvature, before = rho;
      rho = 0;
      for (std::size_t k = 0; k < n; ++k) {
        way_[k] += alpha * p[k];
        r[k] -= alpha * q[k];
        rho += r[k] * r[k] * inverse_[k];
      }
      curvature_ += alpha * alpha * curvature;  // the directions are conjugate
      for (std::size_t k = 0; k < n; ++k) p[k] = inverse_[k] * r[k] + rho / before * p[k];
    }
  }

  // Goes to the minimum along the way; whether no weight stopped it.
  bool move() {
    double slope = 0;
    for (std::size_t k = 0; k < features_.size(); ++k) slope -= residual_[k] * way_[k];
    if (!(slope < 0)) return false;
    const auto [t, stopped] = search(slope);
    for (std::size_t k = 0; k < features_.size(); ++k) {
      double& w = w_[features_[k]];
      const double moved = static_cast<std::ptrdiff_t>(k) == stopped ? 0.0 : w + t * way_[k], change = moved - w;
      if (change == 0) continue;
      w = moved;
      model_.move(features_[k], change);
    }
    return stopped < 0 && t > 0.5;
  }

  double work() const { return work_ * static_cast<double>(steps_ + 2); }

 private:
  static constexpr double kEnough = 1e-4;  // of the squared residual

  // q = Hessian · p; pᵀq, 0 where that is lost in rounding.
  double product(const std::vector<double>& p, std::vector<double>& q) {
    model_.product(features_, p.data(), q.data());
    double curvature = 0, scale = 0;
    for (std::size_t k = 0; k < p.size(); ++k) {
      q[k] += penalty_.l2 * p[k];
      curvature += p[k] * q[k];
      scale += inverse_[k] > 0 ? p[k] * p[k] / inverse_[k] : 0.0;
    }
    return curvature > 1e-12 * scale ? curvature : 0.0;
  }

  // The exact minimum of the model along w + t · way, t ≥ 0, and which weight ends there at zero (−1: none). Where a
  // weight crosses zero the slope jumps by 2λ₁|way_k|; one that may not be negative goes no farther.
  std::pair<double, std::ptrdiff_t> search(double slope) const {
    std::vector<std::pair<double, std::size_t>> crossings;
    for (std::size_t k = 0; k < way_.size(); ++k)
      if (w_[features_[k]] * way_[k] < 0) crossings.emplace_back(-w_[features_[k]] / way_[k], k);
    std::sort(crossings.begin(), crossings.end());
    double t = 0;
    for (const auto& [at, k] : crossings) {
      if (slope + curvature_ * (at - t) >= 0) break;
      slope += curvature_ * (at - t) + 2 * penalty_.l1 * std::fabs(way_[k]);
      t = at;
      if (slope >= 0 || !penalty_.may_fall(features_[k])) return {t, static_cast<std::ptrdiff_t>(k)};
    }
    return {curvature_ > 0 ? t - slope / curvature_ : t, -1};
  }

  Model& model_;
  double* w_;
  const Penalty& penalty_;
  std::vector<std::uint32_t> features_;
  std::vector<double> residual_, inverse_, way_;
  double work_ = 0, curvature_ = 0;
  std::size_t steps_ = 0;
};

// A model by its Gram matrix, whole, and its slopes.
struct GramModel {
  const double* gram;
  std::size_t size;
  double* slopes;

  std::size_t work(std::size_t) const { return 1; }
  double gradient(std::size_t j) const { return slopes[j]; }
  double curvature(std::size_t j) const { return gram[j * size + j]; }
  void move(std::size_t j, double change) { dense_axpy(change, gram + j * size, slopes, size); }

  void product(const std::vector<std::uint32_t>& features, const double* p, double* out) const {
    for (std::size_t i = 0; i < features.size(); ++i) {
      const double* row = gram + features[i] * size;
      out[i] = 0;
      for (std::size_t k = 0; k < features.size(); ++k) out[i] += row[features[k]] * p[k];
    }
  }
};

// Lowers the model over w by sweeps until no violation exceeds `tol`, or `accuracy` times the worst of the first sweep.
//
// Weights that are zero and whose gradient is well inside ±λ₁ (by the worst violation of the last sweep, as in
// LIBLINEAR) leave the sweeps; once the others have converged, all are looked at again. Between sweeps the support is
// solved for, by more and more steps as long as its signs hold, and more and more seldom while they do not.
template <class Model>
class Descent {
 public:
  Descent(Model& model, double* w, std::tuple<double, double, std::size_t> penalty)
      : model_(model), w_(w), penalty_{std::get<0>(penalty), std::get<1>(penalty), std::get<2>(penalty)} {
    for (std::size_t j = 0; j < model.size; ++j) total_ += static_cast<double>(model.work(j));
    restore();
  }

  // (the worst violation of the first and of the last sweep, the work in units of whole sweeps).
  std::tuple<double, double, double> run(double tol, double accuracy, std::size_t most) {
    double first = 0, worst = 0;
    std::size_t wait = kFewest, steps = kFewest, next = kFewest;
    for (std::size_t sweep = 0; sweep < most; ++sweep) {
      const bool whole = active_.size() == model_.size;
      worst = this->sweep();
      if (sweep == 0) {
        first = worst;
        tol = std::max(tol, accuracy * first);
      }
      if (worst <= tol) {
        if (whole) break;
        restore();
        continue;
      }
      margin_ = worst;
      if (sweep + 1 < next) continue;
      if (solve_support(steps)) {
        steps = std::min(2 * steps, kMost);
        wait = kFewest;
      } else {
        steps = kFewest;
        wait *= 2;
      }
      next = sweep + 1 + wait;
    }
    return {first, worst, total_ > 0 ? visited_ / total_ : 0.0};
  }

 private:
  static constexpr std::size_t kFewest = 5, kMost = 80;

  void restore() {
    active_.resize(model_.size);
    std::iota(active_.begin(), active_.end(), 0);
    margin_ = std::numeric_limits<double>::infinity();
  }

  double sweep() {
    double worst = 0;
    std::size_t kept = 0;
    for (const std::uint32_t j : active_) {
      const double g = model_.gradient(j) + penalty_.l2 * w_[j];
      visited_ += static_cast<double>(model_.work(j));
      if (w_[j] == 0 && penalty_.pull(j, g) < penalty_.l1 - margin_) continue;
      active_[kept++] = j;
      const double violation = penalty_.violation(j, w_[j], g);
      worst = std::max(worst, violation);
      if (violation == 0) continue;
      const double next = penalty_.best(j, w_[j], g, model_.curvature(j) + penalty_.l2), change = next - w_[j];
      if (change == 0) continue;
      w_[j] = next;
      model_.move(j, change);
    }
    active_.resize(kept);
    return worst;
  }

  bool solve_support(std::size_t steps) {
    Support<Model> support(model_, w_, penalty_);
    support.solve(steps);
    visited_ += support.work();
    return support.move();
  }

  Model& model_;
  double* w_;
  const Penalty penalty_;
  std::vector<std::uint32_t> active_;
  double margin_ = std::numeric_limits<double>::infinity(), visited_ = 0, total_ = 0;
};

}  // namespace beeline
