// Scalar losses l(z, y) in compiled form: value, slope dl/dz and curvature d²l/dz².
//
// A loss with a `conjugate` also has ψ(a) = max over z of −az − c·l(z, y), c > 0; ∞ where a is not feasible.
//
// The NumPy forms in beeline.losses are the definition; a contract test holds the two together.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace beeline {

constexpr double kInfeasible = std::numeric_limits<double>::infinity();

// What a loss is set to: its ε or width, or both in this order.
using Parameters = std::array<double, 2>;

struct Derivatives {
  double value, slope, curvature;
};

// log(1 + exp(−yz)), y = ±1.
struct LogisticLoss {
  Derivatives at(double z, double y) const {
    // exp of the smaller side never overflows; log1p keeps the digits of a small loss.
    const double margin = y * z, small = std::exp(-std::fabs(margin));
    const double other = small / (1 + small);                   // probability of the less likely side
    const double wrong = margin > 0 ? other : 1 / (1 + small);  // probability of the wrong side
    return {std::log1p(small) + (margin > 0 ? 0 : -margin), -y * wrong, other * (1 - other)};
  }

  double conjugate(double a, double y, double c) const {
    const double alpha = y * a, rest = c - alpha;
    if (alpha < 0 || rest < 0) return kInfeasible;
    return (alpha > 0 ? alpha * std::log(alpha / c) : 0.0) + (rest > 0 ? rest * std::log(rest / c) : 0.0);
  }
};

// max(0, 1 − yz), y = ±1.
struct HingeLoss {
  Derivatives at(double z, double y) const {
    const double slack = 1 - y * z;
    return slack > 0 ? Derivatives{slack, -y, 0} : Derivatives{0, 0, 0};
  }

  double conjugate(double a, double y, double c) const {
    const double alpha = y * a;
    return alpha < 0 || alpha > c ? kInfeasible : -alpha;
  }
};

// max(0, 1 − yz)², y = ±1.
struct SquaredHingeLoss {
  Derivatives at(double z, double y) const {
    const double slack = 1 - y * z;
    return slack > 0 ? Derivatives{slack * slack, -2 * y * slack, 2 * y * y} : Derivatives{0, 0, 0};
  }

  double conjugate(double a, double y, double c) const {
    const double alpha = y * a;
    return alpha < 0 ? kInfeasible : -alpha + alpha * alpha / (4 * c);
  }
};

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

// The hinge with its kink rounded off over a width μ: max over α in [0, 1] of α(1 − yz) − μα²/2.
struct RoundedHingeLoss {
  double width;
  Derivatives at(double z, double y) const {
    const double slack = 1 - y * z;
    if (slack <= 0) return {0, 0, 0};
    if (slack >= width) return {slack - 0.5 * width, -y, 0};
    return {0.5 * slack * slack / width, -y * slack / width, 1 / width};
  }

  double conjugate(double a, double y, double c) const {
    const double alpha = y * a;
    return alpha < 0 || alpha > c ? kInfeasible : -alpha + 0.5 * width * alpha * alpha / c;
  }
};

// max(0, t) with its kink rounded off by entropy: μ·log(1 + exp(t/μ)), at most μ·log 2 above.
struct Softplus {
  double scale;
  Derivatives at(double t) const {
    const double small = std::exp(-std::fabs(t) / scale), other = small / (1 + small);
    return {scale * std::log1p(small) + (t > 0 ? t : 0), t > 0 ? 1 / (1 + small) : other, other * (1 - other) / scale};
  }

  // What the entropy of 0 ≤ p ≤ c adds to a conjugate.
  double conjugate(double p, double c) const {
    const double rest = c - p;
    return scale * ((p > 0 ? p * std::log(p / c) : 0.0) + (rest > 0 ? rest * std::log(rest / c) : 0.0));
  }
};

constexpr double kLog2 = 0.693147180559945309;

// The hinge rounded by entropy, at most width/2 above it.
struct SoftHingeLoss {
  double width;
  Softplus soft() const { return {width / (2 * kLog2)}; }

  Derivatives at(double z, double y) const {
    const Derivatives d = soft().at(1 - y * z);
    return {d.value, -y * d.slope, d.curvature};
  }

  double conjugate(double a, double y, double c) const {
    const double alpha = y * a;
    return alpha < 0 || alpha > c ? kInfeasible : -alpha + soft().conjugate(alpha, c);
  }
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

// visit(loss) with the concrete type of the named loss; `parameters` are its own: ε, width.
template <class Visit>
auto with_loss(const std::string& name, const Parameters& parameters, Visit visit) {
  if (name == "logistic") return visit(LogisticLoss{});
  if (name == "hinge") return visit(HingeLoss{});
  if (name == "squared_hinge") return visit(SquaredHingeLoss{});
  if (name == "rounded_hinge") return visit(RoundedHingeLoss{parameters[0]});
  if (name == "squared") return visit(SquaredLoss{});
  if (name == "epsilon_insensitive") return visit(EpsilonInsensitiveLoss{parameters[0]});
  if (name == "squared_epsilon_insensitive") return visit(SquaredEpsilonInsensitiveLoss{parameters[0]});
  if (name == "soft_hinge") return visit(SoftHingeLoss{parameters[0]});
  if (name == "soft_epsilon_insensitive") return visit(SoftTubeLoss{parameters[0], parameters[1]});
  throw std::invalid_argument("no compiled loss has the name " + name);
}

}  // namespace beeline
