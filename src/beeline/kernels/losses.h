// Scalar losses l(z, y) in compiled form: value, slope dl/dz and curvature d²l/dz².
//
// A loss with a `conjugate` also has ψ(a) = max over z of −az − c·l(z, y), c > 0; ∞ where a is not feasible.
//
// The NumPy forms in beeline.losses are the definition; a contract test holds the two together.
#pragma once

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace beeline {

constexpr double kInfeasible = std::numeric_limits<double>::infinity();

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

// visit(loss) with the concrete type of the named loss; `parameter` is its ε where it has one.
template <class Visit>
auto with_loss(const std::string& name, double parameter, Visit visit) {
  if (name == "logistic") return visit(LogisticLoss{});
  if (name == "hinge") return visit(HingeLoss{});
  if (name == "squared_hinge") return visit(SquaredHingeLoss{});
  if (name == "rounded_hinge") return visit(RoundedHingeLoss{parameter});
  if (name == "squared") return visit(SquaredLoss{});
  if (name == "epsilon_insensitive") return visit(EpsilonInsensitiveLoss{parameter});
  if (name == "squared_epsilon_insensitive") return visit(SquaredEpsilonInsensitiveLoss{parameter});
  throw std::invalid_argument("no compiled loss has the name " + name);
}

}  // namespace beeline
