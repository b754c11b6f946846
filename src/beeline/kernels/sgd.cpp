// Stochastic gradient steps, one row or a small batch of rows after the other, for losses of one score.
//
// Problem:  min over w, b of  λ/2‖w‖² + mean of c_i l(z_i, y_i),  z_i = x_iᵀw + b, with costs c_i whose mean is 1.
//
// A step on a sparse row costs as much as its entries: what changes in every weight at every step (the shrinking by λ,
// the averages) is kept in numbers that all weights share, or is done once in many rows. Rows that cost nothing are
// passed over. Every row is scored before it is learned from: the sums of these losses and errors are a progressive
// validation.
//
// Weights lie as in θ, those of a feature together, so that K scores a row would take K numbers in the place of one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "entries.h"
#include "margin_losses.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// visit(loss) with the concrete type of the named loss.
template <class Visit>
auto with_margin_loss(const std::string& name, Visit visit) {
  if (name == "hinge") return visit(HingeLoss{});
  if (name == "squared_hinge") return visit(SquaredHingeLoss{});
  if (name == "logistic") return visit(LogisticLoss{});
  throw std::invalid_argument("stochastic steps have no form for the loss " + name);
}

// Σ c l and Σ c [the sign of the score is wrong] over rows as they were before they were learned from; a score of zero
// is half wrong.
struct Progress {
  double losses = 0, errors = 0;

  void add(double loss, double margin, double cost) {
    losses += cost * loss;
    errors += cost * (margin < 0 ? 1.0 : margin > 0 ? 0.0 : 0.5);
  }
  std::tuple<double, double> parts() const { return {losses, errors}; }
};

// Rows in the order in which they are learned from.
struct Visits {
  Visits(const RowArrays& arrays, Longs order, Vector y, Vector costs)
      : arrays(arrays), order(order.data()), n(order.size()), y(y.data()), costs(costs.data()) {}

  static constexpr std::size_t kPrefetch = 4;  // rows whose entries are fetched ahead

  Span span(std::size_t k) const { return span_of(arrays, static_cast<std::size_t>(order[k])); }

  template <class Entries>
  void prefetch(const Entries& entries, std::size_t k) const {
    if (k + kPrefetch < n) entries.prefetch(span(k + kPrefetch));
  }

  const RowArrays& arrays;
  const std::int64_t* order;
  std::size_t n;
  const double *y, *costs;  // by the places of the rows
};

// Pegasos (Shalev-Shwartz, Singer, Srebro & Cotter 2011, figures 1 and 2): w ← (1 − 1/t)w − (1/(λtr)) Σ c ∂l over a
// batch of r rows, all of them at the w before, then perhaps back into the ball ‖w‖ ≤ 1/√λ. With U = λ·t·w that is
// U ← U − (1/r) Σ c ∂l, sparse and without a rescaling. What the ball takes from U is a factor beside it: U = scale·V.
class PegasosSteps {
 public:
  // `v` has V = 0, or λ·t times the weights that the steps begin from, with the intercept in the end where there is
  // one, and is changed in place; `t` steps were made before.
  PegasosSteps(Output v, bool intercept, const std::string& loss, double strength, std::size_t batch, bool projects,
               double t)
      : v_(v), intercept_(intercept), loss_(loss), strength_(strength), batch_(batch), projects_(projects), t_(t) {
    norm_ = dense_norm(v.data(), v.size());
  }

  // Learns from rows; the last batch may be a smaller one.
  std::tuple<double, double> learn(const RowArrays& rows, Longs order, Vector y, Vector costs) {
    nb::gil_scoped_release release;
    const Visits visits(rows, order, y, costs);
    return with_entries(rows, [&](auto entries) {
      return with_margin_loss(loss_, [&](auto loss) { return learn_rows(entries, loss, visits); });
    });
  }

  // w = U/(λt), with the intercept in the end where there is one.
  void copy_weights(Output out) const {
    const double scale = factor();
    for (std::size_t j = 0; j < v_.size(); ++j) out.data()[j] = scale * v_.data()[j];
  }

  double steps() const { return t_; }

 private:
  static constexpr double kLeast = 1e-100;  // of the factor beside V

  struct Change {
    Span span;
    double score, slope;  // under V, and c ∂l
  };

  double factor() const { return t_ > 0 ? scale_ / (strength_ * t_) : 0.0; }

  template <class Entries, class Loss>
  std::tuple<double, double> learn_rows(const Entries& entries, const Loss& loss, const Visits& visits) {
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
        const Derivatives d = loss.at(scale * score, y);
        progress.add(d.value, y * scale * score, cost);
        if (d.slope != 0) changes.push_back({span, score, cost * d.slope});
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
  std::string loss_;
  double strength_;
  std::size_t batch_;
  bool projects_;
  double t_, scale_ = 1, norm_ = 0;  // steps so far; U = scale·V; ‖V‖²
};

// Σ p_j x_j² of a row.
template <class Value>
BEELINE_CLONES double scaled_norm(const DenseEntries<Value>& entries, Span row, const double* p) {
  const Value* x = entries.values + row.begin;
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::uint32_t j = 0; j < row.count; ++j) {
    const double value = static_cast<double>(x[j]);
    sum += p[j] * value * value;
  }
  return sum;
}

template <class Index, class Value>
double scaled_norm(const SparseEntries<Index, Value>& entries, Span row, const double* p) {
  double sums[2] = {0, 0};  // the additions of one chain would wait for each other
  std::size_t k = 0;
  entries.each(row, [&](std::size_t j, double value) { sums[k++ & 1] += p[j] * value * value; });
  return sums[0] + sums[1];
}

// w += move·p∘x and f += move_f·p∘x for a row x.
template <class Value>
BEELINE_CLONES void push_both(const DenseEntries<Value>& entries, Span row, const double* p, double move, double move_f,
                              double* w, double* f) {
  const Value* x = entries.values + row.begin;
#pragma omp simd
  for (std::uint32_t j = 0; j < row.count; ++j) {
    const double change = p[j] * static_cast<double>(x[j]);
    w[j] += move * change;
    f[j] += move_f * change;
  }
}

template <class Index, class Value>
void push_both(const SparseEntries<Index, Value>& entries, Span row, const double* p, double move, double move_f,
               double* w, double* f) {
  entries.each(row, [&](std::size_t j, double value) {
    const double change = p[j] * value;
    w[j] += move * change;
    f[j] += move_f * change;
  });
}

// Averaged truncated steps on columns that are scaled, and perhaps centred, in effect. With x̃ = x − μ and p_j the size
// of steps along feature j,
//
//   w ← w − min(η_t, l/(c g² q)) · c g · p∘x̃,   q = Σ p_j x̃_j²,   η_t = η/(1 + κt)^a,
//
// where g is the slope of the loss l: no step goes beyond where the loss's tangent is zero (Asi & Duchi 2019). L2 makes
// w_j/(1 + s·η_t·λ·p_j) of each weight once in s rows. The averages w̄ ← (1 − c_n)w̄ + c_n w, c_n = 4/(n + 3), are kept
// as w̄ = A·F + B·w, of which a step changes the row's entries only. Rows are scored by w̄ before they are learned from.
class AveragedSteps {
 public:
  // `w` has the weights that the steps begin from, `f` zeros; both are changed in place. `sizes` has p. All three have
  // the intercept in the end where there is one; `free` says that L2 leaves it alone. `means` has μ, or is empty.
  // `schedule` is (λ, η, κ, a), `skip` is s, and `t` rows were learned from before.
  AveragedSteps(Output w, Output f, Vector sizes, Vector means, const std::string& intercept, const std::string& loss,
                const std::tuple<double, double, double, double>& schedule, std::size_t skip, double t)
      : w_(w), f_(f), p_(sizes.data(), sizes.data() + sizes.size()), loss_(loss), skip_(skip), t_(t) {
    std::tie(strength_, rate_, decay_, power_) = schedule;
    eta_ = step_size();
    d_ = w.size() - (intercept == "none" ? 0 : 1);
    n_shrunk_ = intercept == "free" ? d_ : w.size();
    for (std::size_t j = 0; j < means.size(); ++j)
      if (means.data()[j] != 0) centres_.push_back({j, means.data()[j]});
    push_.assign(centres_.empty() ? 0 : d_, 0.0);
    for (const Centre& centre : centres_) {
      push_[centre.feature] = p_[centre.feature] * centre.mean;
      mean_norm_ += push_[centre.feature] * centre.mean;
    }
  }

  std::tuple<double, double> learn(const RowArrays& rows, Longs order, Vector y, Vector costs) {
    nb::gil_scoped_release release;
    const Visits visits(rows, order, y, costs);
    recentre();
    return with_entries(rows, [&](auto entries) {
      return with_margin_loss(loss_, [&](auto loss) { return learn_rows(entries, loss, visits); });
    });
  }

  // w̄, with the intercept of rows that are not centred in the end where there is one.
  void copy_weights(Output out) const {
    for (std::size_t j = 0; j < w_.size(); ++j) out.data()[j] = a_ * f_.data()[j] + b_ * w_.data()[j];
    for (const Centre& centre : centres_) out.data()[d_] -= centre.mean * out.data()[centre.feature];
  }

  double steps() const { return t_; }

 private:
  static constexpr double kLeast = 1e-12;     // of A
  static constexpr std::size_t kSteady = 64;  // rows with the same η_t: a power costs as much as a short row

  struct Centre {
    std::size_t feature;
    double mean;
  };

  template <class Entries, class Loss>
  std::tuple<double, double> learn_rows(const Entries& entries, const Loss& loss, const Visits& visits) {
    Progress progress;
    for (std::size_t k = 0; k < visits.n; ++k) {
      visits.prefetch(entries, k);
      const std::int64_t i = visits.order[k];
      const double cost = visits.costs[i], y = visits.y[i];
      if (cost <= 0) continue;
      const Span span = visits.span(k);
      const double z = entries.dot(span, w_.data()) + offset(w_) - shift_;
      const double average = a_ * (entries.dot(span, f_.data()) + offset(f_) - shift_f_) + b_ * z;
      progress.add(loss.at(average, y).value, y * average, cost);
      const Derivatives here = loss.at(z, y);
      if (here.slope != 0) step(entries, span, here, cost);
      next_row();
    }
    return progress.parts();
  }

  double offset(const Output& weights) const { return d_ < weights.size() ? weights.data()[d_] : 0.0; }

  template <class Entries>
  void step(const Entries& entries, Span span, const Derivatives& here, double cost) {
    double q = mean_norm_ + (d_ < w_.size() ? p_[d_] : 0.0) + scaled_norm(entries, span, p_.data()), crossed = 0;
    if (!centres_.empty()) {
      crossed = entries.dot(span, push_.data());
      q -= 2 * crossed;
    }
    if (!(q > 0)) return;
    const double slope = cost * here.slope;
    const double move = -std::min(eta_, cost * here.value / (slope * slope * q)) * slope;
    const double move_f = -move * b_ / a_;  // which leaves w̄ as it is
    double *w = w_.data(), *f = f_.data();
    push_both(entries, span, p_.data(), move, move_f, w, f);
    for (const Centre& centre : centres_) {
      w[centre.feature] -= move * push_[centre.feature];
      f[centre.feature] -= move_f * push_[centre.feature];
    }
    if (d_ < w_.size()) {
      w[d_] += move * p_[d_];
      f[d_] += move_f * p_[d_];
    }
    shift_ += move * (crossed - mean_norm_);
    shift_f_ += move_f * (crossed - mean_norm_);
  }

  // What belongs to no row: L2, the averages, and the step size of the rows to come.
  void next_row() {
    t_ += 1;
    n_averaged_ += 1;
    since_ += 1;
    if (since_ % skip_ == 0) shrink();
    if (since_ % kSteady == 0) eta_ = step_size();
    if (n_averaged_ == 1) {  // w̄ = w
      std::fill(f_.data(), f_.data() + f_.size(), 0.0);
      shift_f_ = 0;
      return;
    }
    const double part = 4 / (n_averaged_ + 3);
    a_ *= 1 - part;
    b_ += part * (1 - b_);
    if (a_ >= kLeast) return;
    for (std::size_t j = 0; j < f_.size(); ++j) f_.data()[j] *= a_;
    shift_f_ *= a_;
    a_ = 1;
  }

  double step_size() const { return rate_ / std::pow(1 + decay_ * t_, power_); }

  void shrink() {
    const double force = static_cast<double>(skip_) * eta_ * strength_, ratio = b_ / a_;
    double *w = w_.data(), *f = f_.data();
    for (std::size_t j = 0; j < n_shrunk_; ++j) {
      const double change = -w[j] * (force * p_[j] / (1 + force * p_[j]));
      w[j] += change;
      f[j] -= ratio * change;
    }
    recentre();
  }

  // Makes μᵀw and μᵀF anew, of which steps keep track with a rounding each.
  void recentre() {
    shift_ = shift_f_ = 0;
    for (const Centre& centre : centres_) {
      shift_ += centre.mean * w_.data()[centre.feature];
      shift_f_ += centre.mean * f_.data()[centre.feature];
    }
  }

  Output w_, f_;
  std::vector<double> p_, push_;  // p, and p∘μ
  std::vector<Centre> centres_;
  std::string loss_;
  std::size_t skip_, d_ = 0, n_shrunk_ = 0, since_ = 0;
  double strength_ = 0, rate_ = 0, decay_ = 0, power_ = 0, mean_norm_ = 0;  // the last is Σ p_j μ_j²
  double t_, n_averaged_ = 0, eta_ = 0;
  double a_ = 1, b_ = 1, shift_ = 0, shift_f_ = 0;  // A and B; μᵀw and μᵀF
};

}  // namespace

void bind_sgd(nb::module_& m) {
  nb::class_<PegasosSteps>(m, "PegasosSteps")
      .def(nb::init<Output, bool, const std::string&, double, std::size_t, bool, double>(), "v"_a.noconvert(),
           "intercept"_a, "loss"_a, "strength"_a, "batch"_a, "projects"_a, "t"_a)
      .def("learn", &PegasosSteps::learn, "rows"_a, "order"_a, "y"_a, "costs"_a)
      .def("copy_weights", &PegasosSteps::copy_weights, "out"_a.noconvert())
      .def_prop_ro("steps", &PegasosSteps::steps);
  nb::class_<AveragedSteps>(m, "AveragedSteps")
      .def(nb::init<Output, Output, Vector, Vector, const std::string&, const std::string&,
                    const std::tuple<double, double, double, double>&, std::size_t, double>(),
           "w"_a.noconvert(), "f"_a.noconvert(), "sizes"_a, "means"_a, "intercept"_a, "loss"_a, "schedule"_a, "skip"_a,
           "t"_a)
      .def("learn", &AveragedSteps::learn, "rows"_a, "order"_a, "y"_a, "costs"_a)
      .def("copy_weights", &AveragedSteps::copy_weights, "out"_a.noconvert())
      .def_prop_ro("steps", &AveragedSteps::steps);
}

}  // namespace beeline
