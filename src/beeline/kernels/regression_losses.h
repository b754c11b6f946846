// Compiled losses of a regression, most of them functions of the residual r = z − y. See losses.h.
#pragma once

#include <cmath>

#include "loss_parts.h"

namespace beeline {

// ½(z − y)².
struct SquaredLoss {
  Derivatives at(double z, double y) const {
    const double r = z - y;
    return {0.5 * r * r, r, 1};
  }

  double conjugate(double a, double y, double c) const { return -y * a + a * a / (2 * c); }
};

// max(0, |z − y| − ε).
struct EpsilonInsensitiveLoss {
  double epsilon;
  Derivatives at(double z, double y) const {
    const double r = z - y, excess = std::fabs(r) - epsilon;
    return excess > 0 ? Derivatives{excess, r > 0 ? 1.0 : -1.0, 0} : Derivatives{0, 0, 0};
  }

  double conjugate(double a, double y, double c) const {
    return std::fabs(a) > c ? kInfeasible : -y * a + epsilon * std::fabs(a);
  }
};

// max(0, |z − y| − ε)².
struct SquaredEpsilonInsensitiveLoss {
  double epsilon;
  Derivatives at(double z, double y) const {
    const double r = z - y, excess = std::fabs(r) - epsilon;
    return excess > 0 ? Derivatives{excess * excess, r > 0 ? 2 * excess : -2 * excess, 2} : Derivatives{0, 0, 0};
  }

  double conjugate(double a, double y, double c) const { return -y * a + epsilon * std::fabs(a) + a * a / (4 * c); }
};

// The ε-insensitive loss rounded by entropy, at most width/2 above it: a softplus on each side of the tube.
struct SoftTubeLoss {
  double epsilon, width;
  Softplus soft() const { return {width / (4 * kLog2)}; }

  Derivatives at(double z, double y) const {
    const Derivatives above = soft().at(z - y - epsilon), below = soft().at(y - z - epsilon);
    return {above.value + below.value, above.slope - below.slope, above.curvature + below.curvature};
  }

  // |a| = p − q with the split p, q in [0, c] that costs least: pq = k(c − p)(c − q), k = exp(−2ε/μ), a quadratic in p.
  double conjugate(double a, double y, double c) const {
    const double size = std::fabs(a);
    if (size > c) return kInfeasible;
    const double k = std::exp(-2 * epsilon / soft().scale);
    const double b = k * (2 * c - size) + size,
                 q = 2 * k * c * (c - size) / (b + std::sqrt(b * b + 4 * (1 - k) * k * c * (c - size)));
    const double p = size + q < c ? size + q : c;
    return -y * a + epsilon * (p + q) + soft().conjugate(p, c) + soft().conjugate(q, c);
  }
};

// max(0, ρ − z).
struct NoveltyLoss {
  double rho;
  Derivatives at(double z, double) const { return z < rho ? Derivatives{rho - z, -1, 0} : Derivatives{0, 0, 0}; }

  double conjugate(double a, double, double c) const { return a < 0 || a > c ? kInfeasible : -rho * a; }
};

// |z − y|.
struct AbsoluteLoss {
  Derivatives at(double z, double y) const {
    const double r = z - y;
    return {std::fabs(r), r > 0 ? 1.0 : r < 0 ? -1.0 : 0.0, 0};
  }

  double conjugate(double a, double y, double c) const { return std::fabs(a) > c ? kInfeasible : -y * a; }
};

// ½r² for |r| ≤ δ, δ(|r| − δ/2) beyond, r = z − y.
struct HuberLoss {
  double delta;
  Derivatives at(double z, double y) const {
    const double r = z - y;
    if (std::fabs(r) < delta) return {0.5 * r * r, r, 1};
    return {delta * (std::fabs(r) - 0.5 * delta), r > 0 ? delta : -delta, 0};
  }

  double conjugate(double a, double y, double c) const {
    return std::fabs(a) > c * delta ? kInfeasible : -y * a + a * a / (2 * c);
  }
};

// δ²(√(1 + (r/δ)²) − 1), r = z − y.
struct PseudoHuberLoss {
  double delta;
  Derivatives at(double z, double y) const {
    const double r = z - y, part = r / delta, root = std::sqrt(1 + part * part);
    return {r * (r / (1 + root)), r / root, 1 / (root * root * root)};
  }

  double conjugate(double a, double y, double c) const {
    const double part = a / (c * delta);
    return std::fabs(a) > c * delta ? kInfeasible : -y * a + c * delta * delta * (1 - std::sqrt(1 - part * part));
  }
};

// log cosh(z − y).
struct LogCoshLoss {
  Derivatives at(double z, double y) const {
    const double r = z - y, size = std::fabs(r), less = std::expm1(-2 * size), small = 1 + less;
    // ½ log(1 + sinh² r) keeps the digits of a small loss, and expm1 those of a small slope.
    const bool near = size < 1;
    const double log = std::log1p(near ? less * less / (4 * small) : small);
    const double slope = -less / (1 + small);
    return {near ? 0.5 * log : size + log - kLog2, r > 0 ? slope : -slope, 4 * small / ((1 + small) * (1 + small))};
  }

  double conjugate(double a, double y, double c) const {
    if (std::fabs(a) > c) return kInfeasible;
    if (!(c > 0)) return 0.0;
    const double above = c + a > 0 ? (c + a) * std::log1p(a / c) : 0.0;
    const double below = c - a > 0 ? (c - a) * std::log1p(-a / c) : 0.0;
    return -y * a + 0.5 * (above + below);
  }
};

// max(τ(y − z), (1 − τ)(z − y)).
struct QuantileLoss {
  double tau;
  Derivatives at(double z, double y) const {
    const double r = z - y;
    if (r == 0) return {0, 0, 0};
    const double slope = r > 0 ? 1 - tau : -tau;
    return {slope * r, slope, 0};
  }

  double conjugate(double a, double y, double c) const {
    return a > tau * c || a < -(1 - tau) * c ? kInfeasible : -y * a;
  }
};

// The quantile loss rounded by entropy, at most width/2 above it: a softplus and a slope.
struct SoftQuantileLoss {
  double tau, width;
  Softplus soft() const { return {width / (2 * kLog2)}; }

  Derivatives at(double z, double y) const {
    const double r = z - y, scale = soft().scale;
    const double small = std::exp(-std::fabs(r) / scale), other = small / (1 + small);
    const double value = scale * std::log1p(small) + (r > 0 ? (1 - tau) * r : -tau * r);
    return {value, (r > 0 ? 1 - other : other) - tau, other * (1 - other) / scale};
  }

  double conjugate(double a, double y, double c) const {
    const double p = part_of(tau * c - a, c);
    return p < 0 || p > c ? kInfeasible : -y * a + soft().conjugate(p, c);
  }
};

// τr² for r = z − y < 0, (1 − τ)r² above.
struct ExpectileLoss {
  double tau;
  Derivatives at(double z, double y) const {
    const double r = z - y, weight = r > 0 ? 1 - tau : tau;
    return {weight * r * r, 2 * weight * r, 2 * weight};
  }

  double conjugate(double a, double y, double c) const { return -y * a + a * a / (4 * c * (a > 0 ? tau : 1 - tau)); }
};

// Deviances have differences of large numbers where a prediction is nearly the label. In t, the logarithm of the one
// over the other, they have not. Far from the label, where a power may be capped, the plain formulas are as good.
constexpr double kNear = 1;

// (1 + e) log(1 + e) − e, the conjugate of exp(t) − 1 − t, for e ≥ −1; ∞ below.
inline double power_conjugate(double e) {
  if (e < -1 - 1e-15) return kInfeasible;
  return e > -1 ? (1 + e) * std::log1p(e) - e : 1.0;
}

// exp(z) − yz + y log y − y, y ≥ 0: y(exp t − 1 − t).
struct PoissonLoss {
  Derivatives at(double z, double y) const {
    const Derivatives d = capped_exp(z);
    const double t = y > 0 ? z - std::log(y) : z;
    if (y > 0 && std::fabs(t) < kNear) return {y * (std::expm1(t) - t), y * std::expm1(t), d.curvature};
    return {std::fmax(d.value - y * z + (xlogy(y, y) - y), 0), d.slope - y, d.curvature};
  }

  double conjugate(double a, double y, double c) const {
    if (y > 0) return -a * std::log(y) + c * y * power_conjugate(-a / (c * y));
    return a > 0 ? kInfeasible : xlogy(-a, -a / c) + a;
  }
};

// y·exp(−z) + z − log y − 1, y > 0: exp(−t) − 1 + t.
struct GammaLoss {
  Derivatives at(double z, double y) const {
    const Derivatives d = capped_exp(-z);
    const double t = z - std::log(y);
    if (std::fabs(t) < kNear) return {std::expm1(-t) + t, -std::expm1(-t), y * d.curvature};
    return {std::fmax(y * d.value + t - 1, 0), 1 - y * d.slope, y * d.curvature};
  }

  double conjugate(double a, double y, double c) const { return -a * std::log(y) + c * power_conjugate(a / c); }
};

// μ^(2−p)/(2−p) + yμ^(1−p)/(p−1) − y^(2−p)/((p−1)(2−p)), μ = exp(z), y ≥ 0, 1 < p < 2: with u = 2 − p and d = p − 1
// it is y^u ((exp(ut) − 1)/u + (exp(−dt) − 1)/d).
struct TweedieLoss {
  double power;
  Derivatives at(double z, double y) const {
    const double up = 2 - power, down = power - 1;
    const Derivatives rise = capped_exp(up * z), fall = capped_exp(-down * z);
    const double t = y > 0 ? z - std::log(y) : z;
    if (y > 0 && std::fabs(t) < kNear) {
      const double size = std::pow(y, up), more = std::expm1(up * t), less = std::expm1(-down * t);
      return {std::fmax(size * (more / up + less / down), 0), size * (more - less),
              up * rise.curvature + y * down * fall.curvature};
    }
    const double value = rise.value / up + y * fall.value / down - std::pow(y, up) / (up * down);
    return {std::fmax(value, 0), rise.slope - y * fall.slope, up * rise.curvature + y * down * fall.curvature};
  }

  // No formula is known; ∞ claims nothing.
  double conjugate(double, double, double) const { return kInfeasible; }
};

// log(1 + exp(z)) − yz, 0 ≤ y ≤ 1.
struct CrossEntropyLoss {
  Derivatives at(double z, double y) const {
    const double small = std::exp(-std::fabs(z)), other = small / (1 + small);
    const double value = std::log1p(small) + (z > 0 ? (1 - y) * z : -y * z);
    return {value, z > 0 ? (1 - y) - other : other - y, other * (1 - other)};
  }

  double conjugate(double a, double y, double c) const {
    const double p = part_of(c * y - a, c);
    if (p < 0 || p > c) return kInfeasible;
    return c > 0 ? entropy(p, c) : 0.0;
  }
};

}  // namespace beeline
