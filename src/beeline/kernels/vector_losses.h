// Vector losses l(z, y) in compiled form: K scores a row and the number of the right class.
//
// at(z, K, y, p, slope) returns the value; p has room for K numbers, to be filled with the curvature that stands for
// the Hessian diag(p) − ppᵀ (all zero where a loss has none), and `slope` with the gradient where it is not null.
// conjugate(…) is ψ(a) = max over z of −a·z − c·l(z, y), c > 0; ∞ where a is not feasible.
//
// The NumPy forms in beeline.losses are the definition; a contract test holds the two together.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "losses.h"

namespace beeline {

// β = c·e_y − a must be c times a point of the simplex, up to the rounding of numbers that came from scores.
class Shares {
 public:
  Shares(const double* a, double scale, std::size_t k, std::size_t y, double c) : a_(a), scale_(scale), y_(y), c_(c) {
    double sum = 0, least = 0;
    for (std::size_t j = 0; j < k; ++j) {
      sum += scale * a[j];
      least = std::min(least, raw(j));
    }
    feasible_ = least >= -kRounding * c && std::fabs(sum) <= kRounding * static_cast<double>(k) * c;
  }
  bool feasible() const { return feasible_; }
  double operator[](std::size_t j) const { return std::max(0.0, raw(j)); }

 private:
  static constexpr double kRounding = 1e-14;
  double raw(std::size_t j) const { return (j == y_ ? c_ : 0.0) - scale_ * a_[j]; }
  const double* a_;
  double scale_;
  std::size_t y_;
  double c_;
  bool feasible_;
};

// log Σ exp(z_k) − z_y.
struct SoftmaxLoss {
  double at(const double* z, std::size_t k, std::size_t y, double* p, double* slope) const {
    const std::size_t most = static_cast<std::size_t>(std::max_element(z, z + k) - z);
    const double largest = z[most];
    double sum = 0;
    for (std::size_t j = 0; j < k; ++j) p[j] = std::exp(z[j] - largest);
    // Without the power of the most likely class, which is 1: log1p keeps the digits of a small loss.
    for (std::size_t j = 0; j < k; ++j) sum += j == most ? 0.0 : p[j];
    const double share = 1 / (1 + sum);
    for (std::size_t j = 0; j < k; ++j) p[j] *= share;
    if (slope) {
      std::copy(p, p + k, slope);
      slope[y] = y == most ? -sum * share : p[y] - 1;
    }
    return std::log1p(sum) + (largest - z[y]);
  }

  double conjugate(const double* a, double scale, std::size_t k, std::size_t y, double c) const {
    const Shares beta(a, scale, k, y, c);
    if (!beta.feasible()) return kInfeasible;
    // What the right class leaves of c is known by itself, and may be far smaller than the rounding of c.
    const double right = beta[y], rest = scale * a[y];
    double sum = rest < right ? right * std::log1p(-rest / c) : xlogy(right, right / c);
    for (std::size_t j = 0; j < k; ++j) sum += j == y ? 0.0 : xlogy(beta[j], beta[j] / c);
    return sum;
  }
};

// max over k of z_k + [k ≠ y], less z_y.
struct CrammerSingerLoss {
  double at(const double* z, std::size_t k, std::size_t y, double* p, double* slope) const {
    double value = 0;
    std::size_t most = y;
    for (std::size_t j = 0; j < k; ++j) {
      const double above = z[j] - z[y] + 1;
      if (j != y && above > value) {
        value = above;
        most = j;
      }
    }
    std::fill(p, p + k, 0.0);
    if (slope) {
      std::fill(slope, slope + k, 0.0);
      slope[most] += 1;
      slope[y] -= 1;
    }
    return value;
  }

  double conjugate(const double* a, double scale, std::size_t k, std::size_t y, double c) const {
    return Shares(a, scale, k, y, c).feasible() ? -scale * a[y] : kInfeasible;
  }
};

// visit(loss) with the concrete type of the named loss.
template <class Visit>
auto with_vector_loss(const std::string& name, Visit visit) {
  if (name == "softmax") return visit(SoftmaxLoss{});
  if (name == "crammer_singer") return visit(CrammerSingerLoss{});
  throw std::invalid_argument("no compiled loss of several scores has the name " + name);
}

}  // namespace beeline
