// Stochastic gradient steps, one row or a small batch of rows after the other.
//
// Problem:  min over w, b of  λ₂/2‖w‖² + λ₁‖w‖₁ + mean of c_i l(z_i, y_i),  z_i = x_iᵀw + b, with costs c_i whose mean
// is 1. `sgd_averaged.cpp` has the steps that need no tuning for one score a row, `sgd_classes.cpp` those for several,
// and this file the published ones.
//
// A step on a sparse row costs as much as its entries: what changes in every weight at every step (the shrinking by Ω,
// the averages) is kept in numbers that all weights share, or is done when a weight is next seen, or once in many rows.
// Rows that cost nothing are passed over. Every row is scored before it is learned from: the sums of these losses and
// errors are a progressive validation.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "sgd_parts.h"

namespace beeline {

void bind_sgd_averaged(nb::module_& m);
void bind_sgd_classes(nb::module_& m);
void bind_sgd_published(nb::module_& m);

namespace {

using namespace nb::literals;

// Pegasos (Shalev-Shwartz, Singer, Srebro & Cotter 2011, figures 1 and 2): w ← (1 − 1/t)w − (1/(λtr)) Σ c ∂l over a
// batch of r rows, all of them at the w before, then perhaps back into the ball ‖w‖ ≤ 1/√λ. With U = λ·t·w that is
// U ← U − (1/r) Σ c ∂l, sparse and without a rescaling. What the ball takes from U is a factor beside it: U = scale·V.
class PegasosSteps {
 public:
  // `v` has V = 0, or λ·t times the weights that the steps begin from, with the intercept in the end where there is
  // one, and is changed in place; `t` steps were made before.
  PegasosSteps(Output v, bool intercept, const std::string& loss, const Parameters& parameters, double strength,
               std::size_t batch, bool projects, double t)
      : v_(v),
        intercept_(intercept),
        loss_(loss, parameters),
        strength_(strength),
        batch_(batch),
        projects_(projects),
        t_(t) {
    norm_ = dense_norm(v.data(), v.size());
  }

  // Learns from rows; the last batch may be a smaller one.
  std::tuple<double, double, double> learn(const RowArrays& rows, Longs order, Vector y, Vector costs) {
    nb::gil_scoped_release release;
    const Visits visits(rows, order, y, costs);
    return with_entries(rows, [&](auto entries) { return learn_rows(entries, visits); });
  }

  // w = U/(λt), with the intercept in the end where there is one.
  void copy_weights(Output out) const {
    const double scale = factor();
    for (std::size_t j = 0; j < v_.size(); ++j) out.data()[j] = scale * v_.data()[j];
  }

  // Where the steps are, beside V, and going on from there.
  std::tuple<double, double, double> progress() const { return {t_, scale_, norm_}; }
  void resume(const std::tuple<double, double, double>& progress) { std::tie(t_, scale_, norm_) = progress; }

  double steps() const { return t_; }

 private:
  static constexpr double kLeast = 1e-100;  // of the factor beside V

  struct Change {
    Span span;
    double score, slope;  // under V, and c ∂l
  };

  double factor() const { return t_ > 0 ? scale_ / (strength_ * t_) : 0.0; }

  template <class Entries>
  std::tuple<double, double, double> learn_rows(const Entries& entries, const Visits& visits) {
    Progress progress;
    std::vector<Change> changes;
    for (std::size_t k = 0; k < visits.n;) {
      const double scale = factor();
      std::size_t count = 0;
      changes.clear();
      for (; k < visits.n && count < batch_; ++k) {
        visits.prefetch(entries, k);
        const std::int64_t i = visits.order[k];
        const double cost = visits.costs[i], y = visits.y[i];
        if (cost <= 0) continue;
        ++count;
        const Span span = visits.span(k);
        const double score = entries.dot(span, v_.data()) + (intercept_ ? v_.data()[v_.size() - 1] : 0.0);
        progress.add(loss_.at(scale * score, y).value, wrong_sign(scale * score, y), cost);
        const double slope = loss_.at_step(scale * score, y).slope;
        if (slope != 0) changes.push_back({span, score, cost * slope});
      }
      if (count) step(entries, changes, static_cast<double>(count));
    }
    return progress.parts();
  }

  template <class Entries>
  void step(const Entries& entries, const std::vector<Change>& changes, double count) {
    t_ += 1;
    for (const Change& change : changes) {
      const double move = -change.slope / (count * scale_);
      // The rows of a batch may share features: the norm needs the score as it is by now.
      const double score = changes.size() == 1 ? change.score : dot(entries, change.span);
      if (projects_) norm_ += move * (2 * score + move * squared_norm(entries, change.span));
      entries.axpy(change.span, move, v_.data());
      if (intercept_) v_.data()[v_.size() - 1] += move;
    }
    if (projects_) project();
  }

  // Back into the ball: λ‖w‖² = ‖U‖²/(λt²) is to be at most 1.
  void project() {
    const double outside = scale_ * std::sqrt(std::max(norm_, 0.0)) / (std::sqrt(strength_) * t_);
    if (!(outside > 1)) return;
    scale_ /= outside;
    if (scale_ >= kLeast) return;
    for (std::size_t j = 0; j < v_.size(); ++j) v_.data()[j] *= scale_;
    norm_ = dense_norm(v_.data(), v_.size());
    scale_ = 1;
  }

  template <class Entries>
  double dot(const Entries& entries, Span span) const {
    return entries.dot(span, v_.data()) + (intercept_ ? v_.data()[v_.size() - 1] : 0.0);
  }

  template <class Entries>
  double squared_norm(const Entries& entries, Span span) const {
    double sum = intercept_ ? 1.0 : 0.0;
    entries.each(span, [&](std::size_t, double value) { sum += value * value; });
    return sum;
  }

  Output v_;
  bool intercept_;
  ScalarForm loss_;
  double strength_;
  std::size_t batch_;
  bool projects_;
  double t_, scale_ = 1, norm_ = 0;  // steps so far; U = scale·V; ‖V‖²
};

}  // namespace

void bind_sgd(nb::module_& m) {
  bind_sgd_averaged(m);
  bind_sgd_classes(m);
  bind_sgd_published(m);
  nb::class_<PegasosSteps>(m, "PegasosSteps")
      .def(nb::init<Output, bool, const std::string&, const Parameters&, double, std::size_t, bool, double>(),
           "v"_a.noconvert(), "intercept"_a, "loss"_a, "parameters"_a, "strength"_a, "batch"_a, "projects"_a, "t"_a)
      .def("learn", &PegasosSteps::learn, "rows"_a, "order"_a, "y"_a, "costs"_a)
      .def("copy_weights", &PegasosSteps::copy_weights, "out"_a.noconvert())
      .def("progress", &PegasosSteps::progress)
      .def("resume", &PegasosSteps::resume, "progress"_a)
      .def_prop_ro("steps", &PegasosSteps::steps);
}

}  // namespace beeline
