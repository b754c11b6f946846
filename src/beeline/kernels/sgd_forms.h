// Losses of several scores a row for stochastic steps: joint ones of all classes, and one against the rest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "sgd_parts.h"
#include "simd.h"

namespace beeline {

// exp(t) for t ≤ 0 to about 1e-7, relatively: 2ⁿ·exp(r), |r| ≤ ½ log 2, by its series.
inline float small_exp(float t) {
  t = t < -87.0f ? -87.0f : t;
  const float n = std::floor(t * 1.44269504f + 0.5f);
  const float r = (t - n * 0.693145752f) - n * 1.42860677e-6f;
  const float p =
      1 + r * (1 + r * (0.5f + r * (1.6666667e-1f + r * (4.1666667e-2f + r * (8.3333333e-3f + r * 1.3888889e-3f)))));
  const std::int32_t bits = (static_cast<std::int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

// p_k = exp(z_k − largest); their sum.
inline double powers(const double* z, double largest, double* p, std::size_t k) {
  double sum = 0;
  for (std::size_t j = 0; j < k; ++j) sum += p[j] = std::exp(z[j] - largest);
  return sum;
}

BEELINE_CLONES inline float powers(const float* z, float largest, float* p, std::size_t k) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t j = 0; j < k; ++j) {
    p[j] = small_exp(z[j] - largest);
    sum += p[j];
  }
  return sum;
}

// What a row's loss asks for: slopes of the classes, and the least step that brings its tangent to the least value.
struct ClassSlopes {
  static constexpr std::size_t kFew = 8;
  double value = 0;
  bool none = true;           // no slope but zero
  std::size_t few = 0;        // how many slopes there are, where they are listed below; 0: all K
  std::size_t classes[kFew];  // whose slopes these are
};

// A loss of K scores and the number of the right class. `slopes` makes moves −s_k·g_k out of the scores, where s is the
// length of a step: s = min(η, (l − min l)/(‖g‖² q)), for all classes together or, one against the rest, for each.
class ClassForm {
 public:
  enum class Kind { kSoftmax, kCrammerSinger, kPerceptron, kOneAgainstRest };

  ClassForm(const std::string& name, const Parameters& parameters)
      : kind_(kind_of(name)), scalar_(kind_ == Kind::kOneAgainstRest ? name.substr(kPrefix) : "hinge", parameters) {}

  bool one_against_rest() const { return kind_ == Kind::kOneAgainstRest; }

  // l(z, y).
  template <class Real>
  double value(const Real* z, std::size_t k, std::size_t y, Real* room) const {
    switch (kind_) {
      case Kind::kSoftmax: {
        const Real largest = *std::max_element(z, z + k);
        return std::log(powers(z, largest, room, k)) + (largest - z[y]);
      }
      case Kind::kCrammerSinger:
        return std::max(0.0, 1.0 + best_other(z, k, y) - z[y]);
      case Kind::kPerceptron:
        return std::max(0.0, static_cast<double>(best_other(z, k, y)) - z[y]);
      default:
        break;
    }
    double sum = 0;
    for (std::size_t j = 0; j < k; ++j) sum += scalar_.at(z[j], j == y ? 1 : -1).value;
    return sum;
  }

  // The slopes g of the loss, in `g`: all of them, or only those that are listed.
  template <class Real>
  ClassSlopes slopes(const Real* z, std::size_t k, std::size_t y, Real* g) const {
    ClassSlopes found;
    if (kind_ == Kind::kSoftmax) {
      const Real largest = *std::max_element(z, z + k);
      const Real sum = powers(z, largest, g, k), share = 1 / sum;
      for (std::size_t j = 0; j < k; ++j) g[j] *= share;
      found.value = std::log(sum) + (largest - z[y]);
      Real others = 0;  // 1 − p_y without cancellation
      for (std::size_t j = 0; j < k; ++j) others += j == y ? Real(0) : g[j];
      g[y] = -others;
      found.none = !(others > 0);
      return found;
    }
    if (kind_ == Kind::kOneAgainstRest) return each_slope(z, k, y, g);
    std::size_t most = y == 0 ? 1 : 0;
    for (std::size_t j = most + 1; j < k; ++j)
      if (j != y && z[j] > z[most]) most = j;
    const bool margin = kind_ == Kind::kCrammerSinger;
    const double above = static_cast<double>(z[most]) - z[y] + (margin ? 1.0 : 0.0);
    // The perceptron's ties go against the right class (M9): from zero weights it would never begin.
    if (margin ? !(above > 0) : !(above >= 0)) return found;
    found.value = above;
    found.none = false;
    found.few = 2;
    found.classes[0] = most;
    found.classes[1] = y;
    g[most] = 1;
    g[y] = -1;
    return found;
  }

  // A binary loss, less its least value, as a step goes by it.
  double above(double z, bool right) const {
    const double y = right ? 1 : -1;
    return scalar_.at_step(z, y).value - scalar_.floor(y);
  }

  bool is_perceptron() const { return kind_ == Kind::kPerceptron; }
  bool has_few_slopes() const { return kind_ == Kind::kCrammerSinger || kind_ == Kind::kPerceptron; }
  bool is_softmax() const { return kind_ == Kind::kSoftmax; }

 private:
  static constexpr std::size_t kPrefix = 4;  // of "ovr:hinge"

  static Kind kind_of(const std::string& name) {
    if (name == "softmax") return Kind::kSoftmax;
    if (name == "crammer_singer") return Kind::kCrammerSinger;
    if (name == "multiclass_perceptron") return Kind::kPerceptron;
    if (name.rfind("ovr:", 0) == 0) return Kind::kOneAgainstRest;
    throw std::invalid_argument("stochastic steps have no form for the loss " + name);
  }

  template <class Real>
  static Real best_other(const Real* z, std::size_t k, std::size_t y) {
    Real best = -INFINITY;
    for (std::size_t j = 0; j < k; ++j) best = j != y && z[j] > best ? z[j] : best;
    return best;
  }

  template <class Real>
  ClassSlopes each_slope(const Real* z, std::size_t k, std::size_t y, Real* g) const {
    ClassSlopes found;
    std::size_t n = 0;
    for (std::size_t j = 0; j < k; ++j) {
      const Derivatives d = scalar_.at_step(z[j], j == y ? 1 : -1);
      found.value += d.value;
      g[j] = static_cast<Real>(d.slope);
      if (d.slope == 0) continue;
      if (n < ClassSlopes::kFew) found.classes[n] = j;
      ++n;
    }
    found.none = n == 0;
    found.few = n <= ClassSlopes::kFew && 4 * n <= k ? n : 0;
    return found;
  }

  Kind kind_;
  ScalarForm scalar_;
};

// A label as the number of one of K classes.
inline std::size_t class_number(double y, std::size_t k) {
  if (!(y >= 0 && y < static_cast<double>(k))) throw std::invalid_argument("a label is no class number");
  return static_cast<std::size_t>(y);
}

// Of m classes with the largest score, among them the right one, all but one are wrong.
template <class Real>
double wrong_class(const Real* z, std::size_t k, std::size_t y) {
  std::size_t alike = 0;
  for (std::size_t j = 0; j < k; ++j) {
    if (z[j] > z[y]) return 1;
    alike += z[j] == z[y];
  }
  return 1 - 1 / static_cast<double>(alike);
}

}  // namespace beeline
