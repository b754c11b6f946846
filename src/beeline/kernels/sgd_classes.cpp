// Averaged truncated steps for losses of K scores a row, all classes of a feature side by side. See sgd.cpp.
//
// The rule is that of sgd_averaged.cpp, with vectors in the place of numbers. It works on columns that are scaled: with
// x̃_j = r_j(x_j − μ_j), r_j² the size of steps along feature j, and weights w̃ = w/r,
//
//   W̃_j ← W̃_j − min(η_t c, (l − min l)/(‖g‖² q)) · x̃_j · g,   q = ‖x̃‖².
//
// Weights are float32, so that they may be small or large only by what a scaled problem asks for. A row becomes a list
// of its entries, scaled, with the intercept as the last and with all columns that are centred; from there on nothing
// depends on how rows are laid out. While one row is worked on, the weights of the next are fetched.
//
// Ω makes all weights decay exactly (`Decay`) once in some rows: as seldom as each decays by less than a hundredth, and
// no more often than once in s rows. With L1 each also decays whenever a row has its feature. Averages are of the
// weights as they were when they last decayed.
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
#include "sgd_tiles.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Weights = nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;    // (rows, 2, classes and padding)
using Columns2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // (rows, 2)

class ClassSteps {
 public:
  // `weights` has for each feature, and in the end for the intercept, the K weights that the steps begin from and K
  // numbers F, both padded to a multiple of eight by zeros; `columns` has for each of them r and the h up to which its
  // weights have decayed. Both are changed in place. `means` has μ, or is empty. `stride`: of the rows of a block every
  // so many are scored by the averages. `skip` is s.
  ClassSteps(Weights weights, Columns2 columns, Vector means, std::size_t n_outputs, const std::string& intercept,
             const std::string& loss, const Parameters& parameters, const Settings& settings, std::size_t stride,
             std::size_t skip)
      : weights_(weights),
        columns_(columns),
        k_(n_outputs),
        padded_(weights.shape(2)),
        loss_(loss, parameters),
        stride_(stride),
        skip_(skip) {
    std::tie(decay_.l2, decay_.l1, rate_, fading_, power_) = settings;
    eta_ = step_size();
    rows_ = weights.shape(0);
    d_ = rows_ - (intercept == "none" ? 0 : 1);
    n_shrunk_ = intercept == "free" ? d_ : rows_;
    for (std::size_t j = 0; j < means.size(); ++j) {
      if (means.data()[j] == 0) continue;
      centre_places_.resize(d_, -1);
      centre_places_[j] = static_cast<std::int32_t>(centres_.size());
      const double mean = means.data()[j];
      centres_.push_back({static_cast<std::uint32_t>(j), static_cast<float>(-root(j) * mean), mean});
    }
    z_.assign(padded_, 0);
    zf_.assign(padded_, 0);
    g_.assign(padded_, 0);
    move_.assign(padded_, 0);
    move_f_.assign(padded_, 0);
    for (std::size_t j = 0; j < n_shrunk_; ++j) largest_ = std::max(largest_, root(j) * root(j));
    fetches_ = rows_ * padded_ * 2 * sizeof(float) > kNear;
  }

  // (Σ c l, Σ c [wrong], Σ c) by the averages, of the rows that were scored before they were learned from.
  std::tuple<double, double, double> learn(const RowArrays& rows, Longs order, Vector y, Vector costs) {
    nb::gil_scoped_release release;
    const Visits visits(rows, order, y, costs);
    const auto sums = with_entries(rows, [&](auto entries) { return learn_rows(entries, visits); });
    if (decay_.l1 > 0) catch_up_all();
    return sums;
  }

  // The averages, K for each feature and for the intercept, of weights for rows as they come.
  void copy_weights(Output out) const {
    nb::gil_scoped_release release;
    constexpr std::size_t kTask = 1 << 16;  // weights
    const std::size_t each = std::max<std::size_t>(1, kTask / padded_);
    parallel_for((rows_ + each - 1) / each, [&](std::size_t task) {
      for (std::size_t j = task * each, end = std::min(rows_, j + each); j < end; ++j) {
        const float* w = row(j);
        const double a = root(j) * mean_.a, b = root(j) * mean_.b;
        for (std::size_t k = 0; k < k_; ++k)
          out.data()[j * k_ + k] = a * static_cast<double>(w[padded_ + k]) + b * static_cast<double>(w[k]);
      }
    });
    for (const Centre& centre : centres_)
      for (std::size_t k = 0; k < k_; ++k) out.data()[d_ * k_ + k] -= centre.mean * out.data()[centre.feature * k_ + k];
  }

  std::tuple<double, double, double, double, double, double, double, double> progress() const {
    return {t_, static_cast<double>(since_), eta_, gone_, mean_.n, mean_.a, mean_.b, swept_};
  }
  void resume(const std::tuple<double, double, double, double, double, double, double, double>& progress) {
    double since;
    std::tie(t_, since, eta_, gone_, mean_.n, mean_.a, mean_.b, swept_) = progress;
    since_ = static_cast<std::size_t>(since);
  }
  void begin_at(double t) {
    t_ = t;
    eta_ = step_size();
  }
  double steps() const { return t_; }

 private:
  static constexpr std::size_t kSteady = 64;          // rows with the same η_t
  static constexpr std::size_t kNear = 1 << 19;       // bytes that are near anyway
  static constexpr std::size_t kTile = 6;             // registers of eight classes that hold sums
  static constexpr double kLump = 0.01;               // what weights may decay by at a time, if that is not too often
  static constexpr float kNothing = 1.0f / 8192;      // the probability of all wrong classes that is none
  static constexpr float kLeastSlope = 1.0f / 65536;  // of a class: where a register has none as large, it stays

  double step_size() const { return rate_ / std::pow(1 + fading_ * t_, power_); }
  float* row(std::size_t j) const { return weights_.data() + j * 2 * padded_; }
  double root(std::size_t j) const { return columns_.data()[2 * j]; }
  double& decayed(std::size_t j) const { return columns_.data()[2 * j + 1]; }
  bool decays() const { return decay_.l1 > 0 || decay_.l2 > 0; }

  template <class Entries>
  std::tuple<double, double, double> learn_rows(const Entries& entries, const Visits& visits) {
    Progress progress;
    ScaledRow rows[2];
    std::size_t k = 0, current = 0;
    bool more = next_scaled(entries, visits, k, rows[current]);
    while (more) {
      more = next_scaled(entries, visits, k, rows[1 - current]);
      learn_row(rows[current], progress);
      current = 1 - current;
    }
    return progress.parts();
  }

  // Makes a list of the next row that costs something; false where there is none.
  template <class Entries>
  bool next_scaled(const Entries& entries, const Visits& visits, std::size_t& k, ScaledRow& out) const {
    for (; k < visits.n; ++k) {
      visits.prefetch(entries, k);
      const std::int64_t i = visits.order[k];
      if (visits.costs[i] <= 0) continue;
      const Span span = visits.span(k++);
      out.reserve(span.count + centres_.size() + 2);
      out.n = 0;
      out.place = static_cast<std::size_t>(i);
      out.y = visits.y[i];
      out.cost = visits.costs[i];
      if (centres_.empty())
        entries.each(span,
                     [&](std::size_t j, double value) { out.add(j, root(j) * value, Entries::kSparse || value != 0); });
      else
        add_centred(entries, span, out);
      if (d_ < rows_) out.add(d_, root(d_));
      out.measure();
      if (fetches_) fetch(out);
      return true;
    }
    return false;
  }

  template <class Entries>
  void add_centred(const Entries& entries, Span span, ScaledRow& out) const {
    for (const Centre& centre : centres_) {
      out.index[out.n] = centre.feature;
      out.x[out.n++] = centre.offset;
    }
    entries.each(span, [&](std::size_t j, double value) {
      const std::int32_t centre = centre_places_[j];
      const bool is_centred = centre >= 0;
      const std::size_t at = is_centred ? static_cast<std::size_t>(centre) : out.n;
      out.x[at] = (is_centred ? out.x[at] : 0.0f) + static_cast<float>(root(j) * value);
      out.index[at] = static_cast<std::uint32_t>(j);
      out.n += !is_centred & (Entries::kSparse || value != 0);
    });
  }

  void fetch(const ScaledRow& of) const {
    const std::size_t both = loss_.has_few_slopes() ? 1 : 2;
    const std::size_t bytes = std::min<std::size_t>(both * padded_ * sizeof(float), 512);
    for (std::size_t p = 0; p < of.n; ++p) {
      const char* at = reinterpret_cast<const char*>(row(of.index[p]));
      for (std::size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(at + offset, 1, 2);
    }
  }

  void learn_row(const ScaledRow& x, Progress& progress) {
    if (decay_.l1 > 0)
      for (std::size_t p = 0; p < x.n; ++p) catch_up(x.index[p]);
    const std::size_t y = class_number(x.y, k_);
    const bool scored = x.place % stride_ == 0;
    scores(x, scored);
    if (scored) {
      const float a = static_cast<float>(mean_.a), b = static_cast<float>(mean_.b);
      for (std::size_t k = 0; k < k_; ++k) zf_[k] = a * zf_[k] + b * z_[k];
      progress.add(loss_.value(zf_.data(), k_, y, g_.data()), wrong_class(zf_.data(), k_, y), x.cost);
    }
    const ClassSlopes slopes = loss_.slopes(z_.data(), k_, y, g_.data());
    if (!slopes.none && x.norm > 0 && !(loss_.is_softmax() && -g_[y] < kNothing)) step(x, slopes, y);
    next_row();
  }

  void scores(const ScaledRow& x, bool both) {
    for (std::size_t k = 0; k < padded_;) {
      const std::size_t left = (padded_ - k) / kLanes;
      k += kLanes * (left >= kTile ? tile<kTile>(x, k, both)
                     : left >= 4   ? tile<4>(x, k, both)
                     : left >= 2   ? tile<2>(x, k, both)
                                   : tile<1>(x, k, both));
    }
  }

  template <std::size_t T>
  std::size_t tile(const ScaledRow& x, std::size_t k, bool both) {
    const float* w = weights_.data() + k;
    if (both && T <= 4)
      tile_both<(T <= 4 ? T : 1)>(x.index.data(), x.x.data(), x.n, w, 2 * padded_, padded_, z_.data() + k,
                                  zf_.data() + k);
    else
      tile_scores<T>(x.index.data(), x.x.data(), x.n, w, 2 * padded_, z_.data() + k);
    if (both && T > 4) tile_scores<T>(x.index.data(), x.x.data(), x.n, w + padded_, 2 * padded_, zf_.data() + k);
    return T;
  }

  void step(const ScaledRow& x, const ClassSlopes& slopes, std::size_t y) {
    const float back = static_cast<float>(mean_.back());
    if (slopes.few) {
      double norm = 0;
      for (std::size_t s = 0; s < slopes.few; ++s) norm += square(g_[slopes.classes[s]]);
      for (std::size_t s = 0; s < slopes.few; ++s) {
        const std::size_t k = slopes.classes[s];
        push(x, k, length(slopes.value, norm, x, k, y) * -g_[k], back);
      }
      return;
    }
    double norm = 0;
    if (!loss_.one_against_rest())
      for (std::size_t k = 0; k < k_; ++k) norm += square(g_[k]);
    const double same = loss_.one_against_rest() ? 0.0 : length(slopes.value, norm, x, 0, y);
    groups_.clear();
    for (std::size_t k = 0; k < k_; ++k) {
      if (std::fabs(g_[k]) >= kLeastSlope && (groups_.empty() || groups_.back() + kLanes <= k))
        groups_.push_back(k / kLanes * kLanes);
      const double by = loss_.one_against_rest() ? (g_[k] != 0 ? length(0, 0, x, k, y) : 0.0) : same;
      move_[k] = static_cast<float>(by) * -g_[k];
      move_f_[k] = -back * move_[k];
    }
    push_groups(x.index.data(), x.x.data(), x.n, weights_.data(), padded_, move_.data(), move_f_.data(), groups_);
  }

  static double square(double value) { return value * value; }

  // How long a step along the slopes is: of all classes together, or of class k against the rest.
  double length(double value, double norm, const ScaledRow& x, std::size_t k, std::size_t y) const {
    if (loss_.one_against_rest()) {
      value = std::max(0.0, loss_.above(z_[k], k == y));
      norm = square(g_[k]);
    }
    // A perceptron's step from a tie (M9) has no loss to be truncated by.
    const double most = eta_ * x.cost, enough = value / (norm * x.norm);
    return loss_.is_perceptron() && value <= 0 ? std::min(most, 1 / (norm * x.norm)) : std::min(most, enough);
  }

  // One class's weights of a row's features.
  void push(const ScaledRow& x, std::size_t k, double move, float back) {
    const float by = static_cast<float>(move), by_f = -back * by;
    for (std::size_t p = 0; p < x.n; ++p) {
      float* at = row(x.index[p]) + k;
      at[0] += by * x.x[p];
      at[padded_] += by_f * x.x[p];
    }
  }

  void next_row() {
    t_ += 1;
    since_ += 1;
    gone_ += eta_;
    if (decays() && since_ % skip_ == 0 && is_due()) catch_up_all();
    if (since_ % kSteady == 0) eta_ = step_size();
    double factor;
    if (!mean_.next(&factor)) return;
    const float by = static_cast<float>(factor);
    for (std::size_t j = 0; j < rows_; ++j) {
      float* f = row(j) + padded_;
      for (std::size_t k = 0; k < padded_; ++k) f[k] *= by;
    }
  }

  bool is_due() const { return decay_.l1 > 0 || decay_.l2 * largest_ * (gone_ - swept_) >= kLump; }

  // Lets the weights of a feature decay up to now.
  void catch_up(std::size_t j) {
    if (j >= n_shrunk_) return;
    const double size = root(j) * root(j), h = size * (gone_ - decayed(j));
    if (decay_.l1 == 0) {
      shrink_row(row(j), padded_, static_cast<float>(decay_.at(1.0, h)), static_cast<float>(mean_.back()));
    } else {
      const double back = mean_.back(), r = root(j);
      float* w = row(j);
      for (std::size_t k = 0; k < k_; ++k) {
        if (w[k] == 0) continue;
        const float to = static_cast<float>(decay_.at(r * static_cast<double>(w[k]), h) / r);
        w[padded_ + k] -= static_cast<float>(back * (static_cast<double>(to) - w[k]));
        w[k] = to;
      }
    }
    decayed(j) = gone_;
  }

  void catch_up_all() {
    constexpr std::size_t kTask = 1 << 15;  // weights
    const std::size_t each = std::max<std::size_t>(1, kTask / padded_), tasks = (n_shrunk_ + each - 1) / each;
    parallel_for(tasks, [&](std::size_t task) {
      for (std::size_t j = task * each, end = std::min(n_shrunk_, j + each); j < end; ++j) catch_up(j);
    });
    swept_ = gone_;
  }

  struct Centre {
    std::uint32_t feature;
    float offset;  // −r_j μ_j
    double mean;
  };

  Weights weights_;
  Columns2 columns_;
  std::size_t k_, padded_, rows_ = 0, d_ = 0, n_shrunk_ = 0;
  ClassForm loss_;
  std::size_t stride_, skip_, since_ = 0;
  std::vector<Centre> centres_;
  std::vector<std::int32_t> centre_places_;  // where a feature is among them, or −1
  std::vector<float> z_, zf_, g_, move_, move_f_;
  std::vector<std::size_t> groups_;  // of classes that a step moves
  bool fetches_ = false;
  Decay decay_;
  double rate_ = 0, fading_ = 0, power_ = 0, t_ = 0, eta_ = 0, gone_ = 0, swept_ = 0, largest_ = 0;
  Averages mean_;
};

}  // namespace

void bind_sgd_classes(nb::module_& m) {
  nb::class_<ClassSteps>(m, "ClassSteps")
      .def(nb::init<Weights, Columns2, Vector, std::size_t, const std::string&, const std::string&, const Parameters&,
                    const Settings&, std::size_t, std::size_t>(),
           "weights"_a.noconvert(), "columns"_a.noconvert(), "means"_a, "n_outputs"_a, "intercept"_a, "loss"_a,
           "parameters"_a, "settings"_a, "stride"_a, "skip"_a)
      .def("learn", &ClassSteps::learn, "rows"_a, "order"_a, "y"_a, "costs"_a)
      .def("copy_weights", &ClassSteps::copy_weights, "out"_a.noconvert())
      .def("progress", &ClassSteps::progress)
      .def("resume", &ClassSteps::resume, "progress"_a)
      .def("begin_at", &ClassSteps::begin_at, "t"_a)
      .def_prop_ro("steps", &ClassSteps::steps);
}

}  // namespace beeline
