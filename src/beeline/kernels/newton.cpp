// Newton's method where there are few rows and features: all of its steps in one call.
//
// Problem: min over W, b of  λ₁‖W‖₁ + λ₂/2‖W‖² + Σ c_i l(z_i, y_i),  z_i = Wᵀx_i + b, with K scores a row, one where λ₁
// is not zero or weights may not be negative; b counts as a weight, or is free, or is not there. Each step minimises a
// quadratic model, by Cholesky or by coordinate descent, and goes back to where J is sufficiently lower. That is what
// `beeline.solvers.newton.newton` and `beeline.solvers.l1.l1_cd` do, step by step, for data of any size: there a step
// costs Python a quarter of a millisecond and more, which is longer than all steps take here.
//
// What is found here is a start that is likely to be good enough. Whether it is, the caller certifies.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "descent.h"
#include "linalg.h"
#include "losses.h"
#include "rows.h"
#include "vector_losses.h"

namespace beeline {
namespace {

using namespace nb::literals;

constexpr std::size_t kTile = 4;
constexpr double kSufficient = 1e-2;  // part of what the slope promises that a step must win
constexpr double kLost = 1e-15;       // part of J that is lost in rounding
constexpr double kNoise = 1e-12;      // part of J below which slopes may still fall when J does not show it any more
constexpr int kMostBlind = 2;         // steps that go by this
constexpr double kPart = 0.05;        // of the tolerance, that is left to the gap here
constexpr std::size_t kMostSweeps = 300;

std::size_t padded(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Vectors of rows side by side, each as long as a multiple of eight: zeros fill the rest.
struct Planes {
  std::size_t stride;
  std::vector<double> numbers;
  Planes(std::size_t count, std::size_t stride) : stride(stride), numbers(count * stride, 0.0) {}
  double* operator[](std::size_t k) { return numbers.data() + k * stride; }
  const double* operator[](std::size_t k) const { return numbers.data() + k * stride; }
};

class SmallNewton {
 public:
  SmallNewton(const RowArrays& arrays, const Vector& y, const Vector& costs, const std::string& loss,
              const Parameters& parameters, const Penalty& penalty, std::size_t outputs, bool constant, bool free)
      : n_(arrays.n_rows()),
        outputs_(outputs),
        columns_(arrays.n_features + constant),
        free_(free ? 1 : 0),
        stride_(padded(std::max(n_, padded(columns_, kTile)), 8)),
        y_(y.data()),
        costs_(costs.data()),
        loss_(loss),
        parameters_(parameters),
        penalty_(penalty),
        x_(padded(columns_, kTile), stride_),
        scaled_(padded(columns_, kTile), stride_),
        block_(padded(columns_, kTile), stride_),
        z_(outputs, stride_),
        moved_(outputs, stride_),
        way_(outputs, stride_),
        slopes_(outputs, stride_),
        curvatures_(outputs, stride_) {
    arrays.with_rows([&](auto rows) {
      for (std::size_t i = 0; i < n_; ++i) rows.each(i, [&](std::size_t j, double x) { x_[j][i] = x; });
    });
    if (constant) std::fill_n(x_[columns_ - 1], n_, 1.0);
  }

  // Moves θ until the gap is a small part of the tolerance, or nothing helps; the steps that it took.
  std::size_t run(double* theta, double tol, std::size_t most) {
    const std::size_t size = columns_ * outputs_;
    std::vector<double> gradient(size), step(size), hessian(size * size);
    scores(theta, z_);
    double value = losses(z_) + cost(theta);
    bool enough = false;
    for (std::size_t steps = 0;; ++steps) {
      slope_of(theta, gradient);
      if (steps == most || !std::isfinite(value) || enough) return steps;
      enough = is_enough(theta, gradient, value, tol);  // one step more doubles the digits
      if (enough && steps == 0) return 0;
      make_hessian(hessian);
      if (!(is_smooth() ? solve(hessian, gradient, step) : descend(hessian, gradient, theta, tol, step))) return steps;
      if (!move(theta, gradient, step, value)) return steps;
    }
  }

 private:
  std::size_t n_regularized() const { return (columns_ - free_) * outputs_; }
  bool is_smooth() const { return penalty_.l1 == 0 && penalty_.nonnegative == 0; }

  void scores(const double* theta, Planes& out) const {
    std::fill(out.numbers.begin(), out.numbers.end(), 0.0);
    for (std::size_t j = 0; j < columns_; ++j)
      for (std::size_t k = 0; k < outputs_; ++k) dense_axpy(theta[j * outputs_ + k], x_[j], out[k], n_);
  }

  double cost(const double* theta) const {
    const double size = penalty_.l1 > 0 ? dense_size(theta, n_regularized()) : 0.0;
    return penalty_.l1 * size + 0.5 * penalty_.l2 * dense_norm(theta, n_regularized());
  }

  // Σ c_i l(z_i, y_i); fills slopes and curvatures.
  double losses(const Planes& z) {
    if (outputs_ > 1) return with_vector_loss(loss_, [&](auto loss) { return vector_losses(loss, z); });
    return with_loss(loss_, parameters_, [&](auto loss) {
      double sum = 0;
      for (std::size_t i = 0; i < n_; ++i) {
        const Derivatives d = loss.at(z[0][i], y_[i]);
        sum += costs_[i] * d.value;
        slopes_[0][i] = costs_[i] * d.slope;
        curvatures_[0][i] = costs_[i] * d.curvature;
      }
      return sum;
    });
  }

  template <class Loss>
  double vector_losses(const Loss& loss, const Planes& z) {
    std::vector<double> row(outputs_), p(outputs_), slope(outputs_);
    double sum = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k < outputs_; ++k) row[k] = z[k][i];
      sum += costs_[i] * loss.at(row.data(), outputs_, static_cast<std::size_t>(y_[i]), p.data(), slope.data());
      for (std::size_t k = 0; k < outputs_; ++k) {
        slopes_[k][i] = costs_[i] * slope[k];
        curvatures_[k][i] = p[k];
      }
    }
    return sum;
  }

  // The gradient of what is smooth in J.
  void slope_of(const double* theta, std::vector<double>& gradient) const {
    for (std::size_t j = 0; j < columns_; ++j)
      for (std::size_t k = 0; k < outputs_; ++k) gradient[j * outputs_ + k] = dense_dot(x_[j], slopes_[k], n_);
    dense_axpy(penalty_.l2, theta, gradient.data(), n_regularized());
  }

  // Whether the gap is small enough: ‖∂J‖²/(2λ₂), or what slopes lose that are scaled until λ₁ bears them, and what
  // slopes along a free intercept take from a bound.
  bool is_enough(const double* theta, const std::vector<double>& gradient, double value, double tol) const {
    const std::size_t n = n_regularized();
    double missing = 0, total = 0, worst = 0, squares = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const double violation = penalty_.violation(j, theta[j], gradient[j]);
      worst = std::max(worst, violation);
      squares += violation * violation;
    }
    for (std::size_t k = n; k < gradient.size(); ++k) missing += std::fabs(gradient[k]);
    for (std::size_t k = 0; k < outputs_; ++k) total += dense_size(slopes_[k], n_);
    const double allowed = kPart * tol * std::fabs(value);
    const bool bearable = penalty_.l1 > 0 ? worst <= kPart * tol * penalty_.l1 : squares <= 2 * penalty_.l2 * allowed;
    return bearable && 2 * missing * std::fabs(value) <= allowed * total;
  }

  // The curvature of row i between the scores k and l.
  double curvature(std::size_t i, std::size_t k, std::size_t l) const {
    if (outputs_ == 1) return curvatures_[0][i];
    const double p = curvatures_[k][i];
    return costs_[i] * (k == l ? p * (1 - p) : -p * curvatures_[l][i]);
  }

  // The lower triangle of ∂²J: for each pair of outputs a Gram matrix of the columns.
  void make_hessian(std::vector<double>& hessian) {
    const std::size_t size = columns_ * outputs_;
    for (std::size_t k = 0; k < outputs_; ++k)
      for (std::size_t l = 0; l <= k; ++l) {
        make_block(k, l);
        for (std::size_t j = 0; j < columns_; ++j)
          for (std::size_t i = 0; i <= j; ++i) {
            hessian[(j * outputs_ + k) * size + i * outputs_ + l] = -block_[j][i];
            hessian[(j * outputs_ + l) * size + i * outputs_ + k] = -block_[j][i];
          }
      }
    for (std::size_t j = 0; is_smooth() && j < n_regularized(); ++j) hessian[j * (size + 1)] += penalty_.l2;
    if (free_) stiffen(hessian);
  }

  // block = −Σ_i h_i x_i x_iᵀ, the lower triangle; rows without curvature are left out.
  void make_block(std::size_t k, std::size_t l) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < n_; ++i)
      if (const double h = curvature(i, k, l); h != 0) {
        kept_.resize(std::max(kept_.size(), count + 1));
        kept_[count++] = {i, h};
      }
    Planes& packed = count < n_ ? pack(count) : x_;
    for (std::size_t j = 0; j < columns_; ++j)
      for (std::size_t i = 0; i < count; ++i) scaled_[j][i] = kept_[i].h * packed[j][i];
    std::fill(block_.numbers.begin(), block_.numbers.end(), 0.0);
    for (std::size_t j = 0; j < columns_; j += kTile)
      for (std::size_t i = 0; i <= j; i += kTile) dense_tile(scaled_[j], packed[i], block_[j] + i, stride_, count);
  }

  Planes& pack(std::size_t count) {
    if (packed_.numbers.empty()) packed_ = Planes(padded(columns_, kTile), stride_);
    for (std::size_t j = 0; j < columns_; ++j)
      for (std::size_t i = 0; i < count; ++i) packed_[j][i] = x_[j][kept_[i].row];
    return packed_;
  }

  // Where no score has a curvature, and along a shift of all scores of a softmax, a free intercept has none either.
  void stiffen(std::vector<double>& hessian) const {
    const std::size_t size = columns_ * outputs_, first = size - outputs_;
    double mean = 0;
    for (std::size_t k = first; k < size; ++k) mean += hessian[k * (size + 1)] / static_cast<double>(outputs_);
    for (std::size_t k = first; k < size; ++k) {
      hessian[k * (size + 1)] += 1e-14 * mean;
      for (std::size_t l = first; outputs_ > 1 && l <= k; ++l)
        hessian[k * size + l] += mean / static_cast<double>(outputs_);
    }
  }

  // The step to the minimum of the model; false where the matrix has none.
  bool solve(std::vector<double>& hessian, const std::vector<double>& gradient, std::vector<double>& step) const {
    std::transform(gradient.begin(), gradient.end(), step.begin(), [](double g) { return -g; });
    if (!cholesky(hessian.data(), step.size())) return false;
    substitute(hessian.data(), step.size(), step.data());
    return true;
  }

  // The same with an L1 part or weights that may not be negative. A free intercept is the best one for the weights:
  // what it does for them is taken away from the matrix.
  bool descend(const std::vector<double>& hessian, const std::vector<double>& gradient, const double* theta, double tol,
               std::vector<double>& step) const {
    const std::size_t size = columns_, n = n_regularized();
    const double* edge = hessian.data() + n * size;
    const double inverse = free_ && edge[n] > 0 ? 1 / edge[n] : 0.0;
    std::vector<double> gram(n * n), slopes(n), w(theta, theta + n);
    for (std::size_t j = 0; j < n; ++j) {
      slopes[j] = gradient[j] - penalty_.l2 * theta[j] - (free_ ? edge[j] * gradient[n] * inverse : 0.0);
      for (std::size_t i = 0; i <= j; ++i)
        gram[j * n + i] = gram[i * n + j] = hessian[j * size + i] - (free_ ? edge[j] * edge[i] * inverse : 0.0);
    }
    GramModel model{gram.data(), n, slopes.data()};
    Descent(model, w.data(), {penalty_.l1, penalty_.l2, penalty_.nonnegative})
        .run(0.1 * kPart * tol * penalty_.l1, 0.01 * tol, kMostSweeps);
    for (std::size_t j = 0; j < n; ++j) step[j] = w[j] - theta[j];
    if (free_) step[n] = -inverse * (gradient[n] + dense_dot(edge, step.data(), n));
    return true;
  }

  // What J falls by along the step, were it as flat as at its beginning.
  double promise(const double* theta, const std::vector<double>& gradient, const std::vector<double>& step) const {
    double sum = dense_dot(gradient.data(), step.data(), step.size());
    for (std::size_t j = 0; penalty_.l1 > 0 && j < n_regularized(); ++j)
      sum += penalty_.l1 * (std::fabs(theta[j] + step[j]) - std::fabs(theta[j]));
    return sum;
  }

  // Goes along the step until J is lower by enough; false when it cannot be lowered.
  bool move(double* theta, const std::vector<double>& gradient, const std::vector<double>& step, double& value) {
    const double slope = promise(theta, gradient, step);
    if (!(slope < 0)) return false;
    scores(step.data(), way_);
    std::vector<double> tried(step.size());
    const double noise = -slope <= kNoise * std::fabs(value) && n_blind_ < kMostBlind ? kNoise * std::fabs(value) : 0.0;
    n_blind_ += noise > 0;
    for (double t = 1; -t * slope > kLost * std::fabs(value) || (noise > 0 && t == 1);) {
      for (std::size_t k = 0; k < step.size(); ++k) tried[k] = theta[k] + t * step[k];
      for (std::size_t k = 0; k < z_.numbers.size(); ++k) moved_.numbers[k] = z_.numbers[k] + t * way_.numbers[k];
      const double there = losses(moved_) + cost(tried.data());
      if (there <= value + kSufficient * t * slope + noise) {
        std::copy(tried.begin(), tried.end(), theta);
        std::swap(z_, moved_);
        value = there;
        return true;
      }
      const double parabola = -slope * t * t / (2 * (there - value - slope * t));
      t = std::isfinite(parabola) ? std::clamp(parabola, 0.1 * t, 0.5 * t) : 0.1 * t;
    }
    return false;
  }

  struct Kept {
    std::size_t row;
    double h;
  };

  std::size_t n_, outputs_, columns_, free_, stride_;
  const double *y_, *costs_;
  std::string loss_;
  Parameters parameters_;
  Penalty penalty_;
  Planes x_, scaled_, block_, z_, moved_, way_, slopes_, curvatures_, packed_{0, 0};
  std::vector<Kept> kept_;
  int n_blind_ = 0;
};

std::size_t small_newton(const RowArrays& arrays, Vector y, Vector costs, const std::string& loss,
                         const Parameters& parameters, std::tuple<double, double, std::size_t> penalty,
                         const std::string& intercept, Output theta, double tol, std::size_t most) {
  const bool constant = intercept != "none";
  const std::size_t columns = arrays.n_features + constant, n = arrays.n_rows();
  if (y.size() != n || costs.size() != n) throw std::invalid_argument("there must be a label and a cost a row");
  if (columns == 0 || theta.size() % columns != 0) throw std::invalid_argument("theta has a wrong size");
  const std::size_t outputs = theta.size() / columns;
  for (std::size_t i = 0; outputs > 1 && i < n; ++i)
    if (!(y.data()[i] >= 0 && y.data()[i] < static_cast<double>(outputs)))
      throw std::invalid_argument("a label is no class number");
  const auto [l1, l2, nonnegative] = penalty;
  if (outputs > 1 && (l1 > 0 || nonnegative > 0)) throw std::invalid_argument("several scores take L2 alone");
  nb::gil_scoped_release release;
  SmallNewton newton(arrays, y, costs, loss, parameters, {l1, l2, nonnegative}, outputs, constant, intercept == "free");
  return newton.run(theta.data(), tol, most);
}

}  // namespace

void bind_newton(nb::module_& m) {
  m.def("small_newton", &small_newton, "rows"_a, "y"_a, "costs"_a, "loss"_a, "parameters"_a, "penalty"_a, "intercept"_a,
        "theta"_a.noconvert(), "tol"_a, "most"_a);
}

}  // namespace beeline
