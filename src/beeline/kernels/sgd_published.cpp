// MCID and K-Pegasos: published stochastic steps for losses of K scores a row. See sgd.cpp.
//
// Algorithm 1 of MCID (M3): w ← ((t − 1)/t)·w − (1/(λtr)) Σ c ∂l(w^(t−1)) over a batch of r rows, all gradients at the
// weights before it (M4). With U = t·w that is U ← U − (1/(λr)) Σ c ∂l, sparse and without a rescaling (M5). K-Pegasos
// is the same for the sum of K binary losses, each perhaps kept in its own ball ‖w_k‖ ≤ 1/√λ: what the ball takes from
// U_k is a factor beside it, U_k = scale_k·V_k.
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

#include "sgd_forms.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

class McidSteps {
 public:
  // `v` has V = 0, or t times the weights that the steps begin from, K for each feature and in the end for the
  // intercept where there is one; `balls` has scale_k and ‖V_k‖² for each class. Both are changed in place.
  McidSteps(Table v, Table balls, bool intercept, const std::string& loss, const Parameters& parameters,
            double strength, std::size_t batch, bool projects, double t)
      : v_(v),
        balls_(balls),
        k_(v.shape(1)),
        d_(v.shape(0) - (intercept ? 1 : 0)),
        loss_(loss, parameters),
        strength_(strength),
        batch_(batch),
        projects_(projects),
        t_(t) {
    z_.assign(k_, 0);
    room_.assign(k_, 0);
  }

  // Learns from rows; the last batch may be a smaller one.
  std::tuple<double, double, double> learn(const RowArrays& rows, Longs order, Vector y, Vector costs) {
    nb::gil_scoped_release release;
    const Visits visits(rows, order, y, costs);
    return with_entries(rows, [&](auto entries) { return learn_rows(entries, visits); });
  }

  // w = U/t.
  void copy_weights(Output out) const {
    for (std::size_t j = 0; j < v_.shape(0); ++j)
      for (std::size_t k = 0; k < k_; ++k) out.data()[j * k_ + k] = t_ > 0 ? scale(k) / t_ * v_.data()[j * k_ + k] : 0;
  }

  double steps() const { return t_; }

 private:
  static constexpr double kLeast = 1e-100;  // of a factor beside V

  double& scale(std::size_t k) const { return balls_.data()[k]; }
  double& norm(std::size_t k) const { return balls_.data()[k_ + k]; }

  template <class Entries, class Visit>
  void each(const Entries& entries, Span span, Visit visit) const {
    entries.each(span, visit);
    if (d_ < v_.shape(0)) visit(d_, 1.0);
  }

  template <class Entries>
  std::tuple<double, double, double> learn_rows(const Entries& entries, const Visits& visits) {
    Progress progress;
    std::vector<Span> spans;
    std::vector<double> slopes;  // c ∂l of the batch's rows, K each
    for (std::size_t next = 0; next < visits.n;) {
      spans.clear();
      slopes.clear();
      std::size_t count = 0;
      for (; next < visits.n && count < batch_; ++next) {
        visits.prefetch(entries, next);
        const std::int64_t i = visits.order[next];
        if (visits.costs[i] <= 0) continue;
        ++count;
        const Span span = visits.span(next);
        if (look(entries, span, class_number(visits.y[i], k_), visits.costs[i], progress)) {
          spans.push_back(span);
          slopes.insert(slopes.end(), room_.begin(), room_.end());
        }
      }
      if (count) step(entries, spans, slopes, static_cast<double>(count));
    }
    return progress.parts();
  }

  // Scores a row at the weights as they are; c ∂l is in room_ then. False where all of it is zero.
  template <class Entries>
  bool look(const Entries& entries, Span span, std::size_t y, double cost, Progress& progress) {
    std::fill(z_.begin(), z_.end(), 0.0);
    each(entries, span, [&](std::size_t j, double value) {
      const double* v = v_.data() + j * k_;
      for (std::size_t k = 0; k < k_; ++k) z_[k] += value * v[k];
    });
    for (std::size_t k = 0; k < k_; ++k) z_[k] *= t_ > 0 ? scale(k) / t_ : 0.0;
    progress.add(loss_.value(z_.data(), k_, y, room_.data()), wrong_class(z_.data(), k_, y), cost);
    std::fill(room_.begin(), room_.end(), 0.0);
    const ClassSlopes found = loss_.slopes(z_.data(), k_, y, room_.data());
    for (double& slope : room_) slope *= cost;
    return !found.none;
  }

  template <class Entries>
  void step(const Entries& entries, const std::vector<Span>& spans, const std::vector<double>& slopes, double count) {
    t_ += 1;
    for (std::size_t r = 0; r < spans.size(); ++r) {
      for (std::size_t k = 0; k < k_; ++k) room_[k] = -slopes[r * k_ + k] / (strength_ * count * scale(k));
      if (projects_) follow_norms(entries, spans[r]);
      each(entries, spans[r], [&](std::size_t j, double value) {
        double* v = v_.data() + j * k_;
        for (std::size_t k = 0; k < k_; ++k) v[k] += value * room_[k];
      });
    }
    if (projects_)
      for (std::size_t k = 0; k < k_; ++k) project(k);
  }

  // ‖V_k + move·x‖².
  template <class Entries>
  void follow_norms(const Entries& entries, Span span) {
    double square = 0;
    std::fill(z_.begin(), z_.end(), 0.0);
    each(entries, span, [&](std::size_t j, double value) {
      square += value * value;
      for (std::size_t k = 0; k < k_; ++k) z_[k] += value * v_.data()[j * k_ + k];
    });
    for (std::size_t k = 0; k < k_; ++k) norm(k) += room_[k] * (2 * z_[k] + room_[k] * square);
  }

  // Back into the ball: λ‖w_k‖² = λ‖U_k‖²/t² is to be at most 1.
  void project(std::size_t k) {
    const double outside = scale(k) * std::sqrt(strength_ * std::max(norm(k), 0.0)) / t_;
    if (!(outside > 1)) return;
    scale(k) /= outside;
    if (scale(k) >= kLeast) return;
    double sum = 0;
    for (std::size_t j = 0; j < v_.shape(0); ++j) {
      double& v = v_.data()[j * k_ + k];
      v *= scale(k);
      sum += v * v;
    }
    norm(k) = sum;
    scale(k) = 1;
  }

  Table v_, balls_;
  std::size_t k_, d_;
  ClassForm loss_;
  double strength_;
  std::size_t batch_;
  bool projects_;
  double t_;
  std::vector<double> z_, room_;
};

}  // namespace

void bind_sgd_published(nb::module_& m) {
  nb::class_<McidSteps>(m, "McidSteps")
      .def(nb::init<Table, Table, bool, const std::string&, const Parameters&, double, std::size_t, bool, double>(),
           "v"_a.noconvert(), "balls"_a.noconvert(), "intercept"_a, "loss"_a, "parameters"_a, "strength"_a, "batch"_a,
           "projects"_a, "t"_a)
      .def("learn", &McidSteps::learn, "rows"_a, "order"_a, "y"_a, "costs"_a)
      .def("copy_weights", &McidSteps::copy_weights, "out"_a.noconvert())
      .def_prop_ro("steps", &McidSteps::steps);
}

}  // namespace beeline
