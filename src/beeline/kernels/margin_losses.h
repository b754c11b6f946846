// Compiled losses of a binary classifier: functions of the margin yz, y = ±1. See losses.h.
#pragma once

#include <cmath>

#include "loss_parts.h"

namespace beeline {

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
    const double alpha = y * a;
    if (alpha < 0 || alpha > c) return kInfeasible;
    return c > 0 ? entropy(alpha, c) : 0.0;
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

// A hinge with its kink rounded off over a width μ below its margin m: max over α in [0, 1] of α(m − yz) − μα²/2.
struct SmoothedHingeLoss {
  double width, margin;
  Derivatives at(double z, double y) const {
    const double slack = margin - y * z;
    if (slack <= 0) return {0, 0, 0};
    if (slack >= width) return {slack - 0.5 * width, -y, 0};
    return {0.5 * slack * slack / width, -y * slack / width, 1 / width};
  }

  double conjugate(double a, double y, double c) const {
    const double alpha = y * a;
    return alpha < 0 || alpha > c ? kInfeasible : -margin * alpha + 0.5 * width * alpha * alpha / c;
  }
};

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

// max(0, −yz), y = ±1.
struct PerceptronLoss {
  Derivatives at(double z, double y) const {
    const double margin = y * z;
    return margin < 0 ? Derivatives{-margin, -y, 0} : Derivatives{0, 0, 0};
  }

  double conjugate(double a, double y, double c) const { return y * a < 0 || y * a > c ? kInfeasible : 0.0; }
};

// ½ max(0, −yz)², y = ±1.
struct SquaredPerceptronLoss {
  Derivatives at(double z, double y) const {
    const double margin = y * z;
    return margin < 0 ? Derivatives{0.5 * margin * margin, y * margin, 1} : Derivatives{0, 0, 0};
  }

  double conjugate(double a, double y, double c) const { return y * a < 0 ? kInfeasible : a * a / (2 * c); }
};

// exp(−yz), y = ±1.
struct ExponentialLoss {
  Derivatives at(double z, double y) const {
    const Derivatives d = capped_exp(-y * z);
    return {d.value, -y * d.slope, d.curvature};
  }

  double conjugate(double a, double y, double c) const {
    const double alpha = y * a;
    return alpha < 0 ? kInfeasible : xlogy(alpha, alpha / c) - alpha;
  }
};

// max(0, 1 − yz)² for yz ≥ −1, −4yz below, y = ±1.
struct ModifiedHuberLoss {
  Derivatives at(double z, double y) const {
    const double slack = 1 - y * z;
    if (slack <= 0) return {0, 0, 0};
    if (slack >= 2) return {4 * (slack - 1), -4 * y, 0};
    return {slack * slack, -2 * y * slack, 2};
  }

  double conjugate(double a, double y, double c) const {
    const double alpha = y * a;
    return alpha < 0 || alpha > 4 * c ? kInfeasible : -alpha + alpha * alpha / (4 * c);
  }
};

}  // namespace beeline
