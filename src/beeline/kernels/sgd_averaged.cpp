// Averaged truncated steps, one row after the other, for losses of one score. See sgd.cpp.
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
namespace {

using namespace nb::literals;

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
//   w ← w − min(η_t, (l − min l)/(c g² q)) · c g · p∘x̃,   q = Σ p_j x̃_j²,   η_t = η/(1 + κt)^a,
//
// where g is the slope of the loss l: no step goes beyond where the loss's tangent is at its least value (Asi & Duchi
// 2019). L2 makes w_j/(1 + s·η_t·λ·p_j) of each weight once in s rows; with L1 each weight decays exactly (`Decay`)
// when a row has its feature, and all of them where rows end. The averages (`Averages`) are of the weights as they were
// when they were last seen. Rows are scored by w̄ before they are learned from.
class AveragedSteps {
 public:
  // `w` has the weights that the steps begin from, `f` zeros; both are changed in place. `sizes` has p. All three have
  // the intercept in the end where there is one; "free" says that Ω leaves it alone. `means` has μ, or is empty.
  // `skip` is s. `last` has for each weight the h up to which L1 has made it decay, or is empty where there is no L1.
  AveragedSteps(Output w, Output f, Output last, Vector sizes, Vector means, const std::string& intercept,
                const std::string& loss, const Parameters& parameters, const Settings& settings, std::size_t skip)
      : w_(w), f_(f), last_(last), p_(sizes.data(), sizes.data() + sizes.size()), loss_(loss, parameters), skip_(skip) {
    std::tie(decay_.l2, decay_.l1, rate_, fading_, power_) = settings;
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

  // (Σ c l, Σ c [wrong], Σ c) by w̄, of rows before they were learned from.
  std::tuple<double, double, double> learn(const RowArrays& rows, Longs order, Vector y, Vector costs) {
    nb::gil_scoped_release release;
    const Visits visits(rows, order, y, costs);
    recentre();
    const auto sums = with_entries(rows, [&](auto entries) { return learn_rows(entries, visits); });
    if (lazy()) catch_up_all();
    return sums;
  }

  // w̄, with the intercept of rows that are not centred in the end where there is one.
  void copy_weights(Output out) const {
    for (std::size_t j = 0; j < w_.size(); ++j) out.data()[j] = mean_.a * f_.data()[j] + mean_.b * w_.data()[j];
    for (const Centre& centre : centres_) out.data()[d_] -= centre.mean * out.data()[centre.feature];
  }

  // Where the steps are, beside their arrays, and going on from there.
  std::tuple<double, double, double, double, double, double, double> progress() const {
    return {t_, static_cast<double>(since_), eta_, gone_, mean_.n, mean_.a, mean_.b};
  }
  void resume(const std::tuple<double, double, double, double, double, double, double>& progress) {
    double since;
    std::tie(t_, since, eta_, gone_, mean_.n, mean_.a, mean_.b) = progress;
    since_ = static_cast<std::size_t>(since);
  }
  // As if so many rows had been learned from before.
  void begin_at(double t) {
    t_ = t;
    eta_ = step_size();
  }

  double steps() const { return t_; }

 private:
  static constexpr std::size_t kSteady = 64;  // rows with the same η_t: a power costs as much as a short row

  struct Centre {
    std::size_t feature;
    double mean;
  };

  bool lazy() const { return decay_.l1 > 0; }

  template <class Entries>
  std::tuple<double, double, double> learn_rows(const Entries& entries, const Visits& visits) {
    Progress progress;
    for (std::size_t k = 0; k < visits.n; ++k) {
      visits.prefetch(entries, k);
      const std::int64_t i = visits.order[k];
      const double cost = visits.costs[i], y = visits.y[i];
      if (cost <= 0) continue;
      const Span span = visits.span(k);
      if (lazy()) catch_up(entries, span);
      const double z = entries.dot(span, w_.data()) + offset(w_) - shift_;
      const double average = mean_.a * (entries.dot(span, f_.data()) + offset(f_) - shift_f_) + mean_.b * z;
      progress.add(loss_.at(average, y).value, wrong_sign(average, y), cost);
      const Derivatives here = loss_.at_step(z, y);
      if (here.slope != 0) step(entries, span, here.value - loss_.floor(y), cost * here.slope, cost);
      next_row();
    }
    return progress.parts();
  }

  double offset(const Output& weights) const { return d_ < weights.size() ? weights.data()[d_] : 0.0; }

  template <class Entries>
  void step(const Entries& entries, Span span, double above, double slope, double cost) {
    double q = mean_norm_ + (d_ < w_.size() ? p_[d_] : 0.0) + scaled_norm(entries, span, p_.data()), crossed = 0;
    if (!centres_.empty()) {
      crossed = entries.dot(span, push_.data());
      q -= 2 * crossed;
    }
    if (!(q > 0) || !(above > 0)) return;
    const double move = -std::min(eta_, cost * above / (slope * slope * q)) * slope;
    const double move_f = -move * mean_.back();  // which leaves w̄ as it is
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

  // What belongs to no row: Ω, the averages, and the step size of the rows to come.
  void next_row() {
    t_ += 1;
    since_ += 1;
    gone_ += eta_;
    if (since_ % skip_ == 0) lazy() ? catch_up_all() : shrink();
    if (since_ % kSteady == 0) eta_ = step_size();
    double factor;
    if (!mean_.next(&factor)) return;
    for (std::size_t j = 0; j < f_.size(); ++j) f_.data()[j] *= factor;
    shift_f_ *= factor;
  }

  double step_size() const { return rate_ / std::pow(1 + fading_ * t_, power_); }

  void change(std::size_t j, double to) {
    const double by = to - w_.data()[j];
    w_.data()[j] = to;
    f_.data()[j] -= mean_.back() * by;
  }

  void shrink() {
    const double force = static_cast<double>(skip_) * eta_ * decay_.l2, ratio = mean_.back();
    double *w = w_.data(), *f = f_.data();
    for (std::size_t j = 0; j < n_shrunk_; ++j) {
      const double change = -w[j] * (force * p_[j] / (1 + force * p_[j]));
      w[j] += change;
      f[j] -= ratio * change;
    }
    recentre();
  }

  void catch_up(std::size_t j) {
    const double w = w_.data()[j];
    if (w != 0) change(j, decay_.at(w, p_[j] * (gone_ - last_.data()[j])));
    last_.data()[j] = gone_;
  }

  // The weights of a row's features, and of all features that are centred: these are part of every score.
  template <class Entries>
  void catch_up(const Entries& entries, Span span) {
    entries.each(span, [&](std::size_t j, double) { catch_up(j); });
    for (const Centre& centre : centres_) catch_up(centre.feature);
    if (n_shrunk_ > d_) catch_up(d_);
    if (!centres_.empty()) recentre();
  }

  void catch_up_all() {
    for (std::size_t j = 0; j < n_shrunk_; ++j) catch_up(j);
  }

  // Makes μᵀw and μᵀF anew, of which steps keep track with a rounding each.
  void recentre() {
    shift_ = shift_f_ = 0;
    for (const Centre& centre : centres_) {
      shift_ += centre.mean * w_.data()[centre.feature];
      shift_f_ += centre.mean * f_.data()[centre.feature];
    }
  }

  Output w_, f_, last_;
  std::vector<double> p_, push_;  // p, and p∘μ
  std::vector<Centre> centres_;
  ScalarForm loss_;
  std::size_t skip_, d_ = 0, n_shrunk_ = 0, since_ = 0;
  Decay decay_;
  double rate_ = 0, fading_ = 0, power_ = 0, mean_norm_ = 0;  // the last is Σ p_j μ_j²
  double t_ = 0, eta_ = 0, gone_ = 0;                         // rows, the step size, and the sum of all of them
  Averages mean_;
  double shift_ = 0, shift_f_ = 0;  // μᵀw and μᵀF
};

}  // namespace

void bind_sgd_averaged(nb::module_& m) {
  nb::class_<AveragedSteps>(m, "AveragedSteps")
      .def(nb::init<Output, Output, Output, Vector, Vector, const std::string&, const std::string&, const Parameters&,
                    const Settings&, std::size_t>(),
           "w"_a.noconvert(), "f"_a.noconvert(), "last"_a.noconvert(), "sizes"_a, "means"_a, "intercept"_a, "loss"_a,
           "parameters"_a, "settings"_a, "skip"_a)
      .def("learn", &AveragedSteps::learn, "rows"_a, "order"_a, "y"_a, "costs"_a)
      .def("copy_weights", &AveragedSteps::copy_weights, "out"_a.noconvert())
      .def("progress", &AveragedSteps::progress)
      .def("resume", &AveragedSteps::resume, "progress"_a)
      .def("begin_at", &AveragedSteps::begin_at, "t"_a)
      .def_prop_ro("steps", &AveragedSteps::steps);
}

}  // namespace beeline
