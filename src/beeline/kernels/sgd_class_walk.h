// Averaged truncated steps for the scores of some classes; see sgd_classes.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "sgd_forms.h"
#include "sgd_tiles.h"
#include "threads.h"

namespace beeline {

using Weights = nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;    // (rows, 2, classes and padding)
using Columns2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // (rows, 2)

// The table of weights, and how features are scaled.
struct ClassTable {
  ClassTable(Weights weights, Columns2 columns, Vector means, std::size_t n_outputs, const std::string& intercept)
      : weights(weights), columns(columns), k(n_outputs), padded(weights.shape(2)), rows(weights.shape(0)) {
    d = rows - (intercept == "none" ? 0 : 1);
    n_shrunk = intercept == "free" ? d : rows;
    roots.reserve(rows);
    for (std::size_t j = 0; j < rows; ++j) {
      roots.push_back(root(j));
      if (j < n_shrunk) largest = std::max(largest, root(j) * root(j));
    }
    for (std::size_t j = 0; j < means.size(); ++j)
      if (means.data()[j] != 0) add_centre(j, means.data()[j]);
  }

  float* row(std::size_t j) const { return weights.data() + j * 2 * padded; }
  double root(std::size_t j) const { return columns.data()[2 * j]; }
  double& decayed(std::size_t j) const { return columns.data()[2 * j + 1]; }

  struct Centre {
    std::size_t feature;
    double mean;
  };

  Weights weights;
  Columns2 columns;
  std::size_t k, padded, rows, d = 0, n_shrunk = 0;  // of the rows the first d are features, the first n_shrunk decay
  double largest = 0;                                // r² of those
  std::vector<double> roots;                         // r, close together: rows ask for them in any order
  std::vector<Centre> centres;
  std::vector<std::int32_t> centre;  // of each feature where some are centred: its place among these, or −1
  ScaledRow centred;                 // a row of zeros, by the columns that are centred

 private:
  void add_centre(std::size_t j, double mean) {
    if (centre.empty()) centre.assign(rows, -1);
    centre[j] = static_cast<std::int32_t>(centres.size());
    centres.push_back({j, mean});
    centred.reserve(centres.size());
    centred.add(j, roots[j], -mean, true);
  }
};

// How many rows there were, and what follows from that alone.
struct Schedule {
  double t = 0, eta = 0, gone = 0, swept = 0;  // rows, η_t, Σ η_t, and that when all weights have last decayed
  std::size_t since = 0;
  Averages mean;
};

// Scores of averages, K for each row that was scored, where several walks have some classes each.
struct ScoredRows {
  std::size_t k = 0;
  std::vector<float> scores;
  std::vector<double> y, costs;
};

// A walk over rows that learns the classes first … first + k − 1 of a table, `width` of them with padding.
class ClassWalk {
 public:
  ClassWalk(const ClassTable& table, std::size_t first, std::size_t width, const ClassForm& loss,
            const Settings& settings, std::size_t stride, std::size_t skip)
      : table_(table),
        first_(first),
        width_(width),
        k_(std::min(width, table.k - first)),
        loss_(loss),
        stride_(stride),
        skip_(skip) {
    std::tie(decay_.l2, decay_.l1, rate_, fading_, power_) = settings;
    begin_at(0);
    for (auto* vector : {&z_, &zf_, &g_, &move_, &move_f_}) vector->assign(width_, 0);
    fetches_ = table_.rows * table_.padded * 2 * sizeof(float) > kNear;
  }

  // Learns from rows. Those that are scored go to `progress`, or to `scored` where other walks have other classes.
  template <class Entries>
  void learn(const Entries& entries, const Visits& visits, Progress& progress, ScoredRows* scored) {
    ScaledRow rows[2];
    std::size_t k = 0, current = 0, n_scored = 0;
    bool more = next_scaled(entries, visits, k, rows[current]);
    while (more) {
      more = next_scaled(entries, visits, k, rows[1 - current]);
      ScaledRow& x = rows[current];
      if (learn_row(x)) {
        if (scored == nullptr)
          progress.add(loss_.value(zf_.data(), k_, class_of(x), g_.data()), wrong_class(zf_.data(), k_, class_of(x)),
                       x.cost);
        else
          std::copy_n(zf_.data(), k_, scored->scores.data() + n_scored++ * scored->k + first_);
      }
      current = 1 - current;
    }
    if (decay_.l1 > 0) catch_up_all();
  }

  Schedule schedule;

  void begin_at(double t) {
    schedule.t = t;
    schedule.eta = step_size();
  }

  // λ₂ Σ η_t since all weights have last decayed: times r_j² it is what a weight still has to decay by.
  double pending() const { return decay_.l1 > 0 ? 0.0 : decay_.l2 * (schedule.gone - schedule.swept); }

  bool is_scored(std::int64_t place) const { return static_cast<std::size_t>(place) % stride_ == 0; }

 private:
  static constexpr std::size_t kSteady = 64;          // rows with the same η_t
  static constexpr std::size_t kNear = 1 << 19;       // bytes that are near anyway
  static constexpr std::size_t kTile = 8;             // registers of eight classes that hold sums
  static constexpr double kLump = 0.1;                // what weights may decay by at a time, if that is not too often
  static constexpr float kNothing = 1.0f / 8192;      // the probability of all wrong classes that is none
  static constexpr float kLeastSlope = 1.0f / 65536;  // of a class: where a register has none as large, it stays

  double step_size() const { return rate_ / std::pow(1 + fading_ * schedule.t, power_); }
  float* row(std::size_t j) const { return table_.row(j) + first_; }
  std::size_t stride() const { return 2 * table_.padded; }
  bool decays() const { return decay_.l1 > 0 || decay_.l2 > 0; }
  // The number of the right class among those of the walk; a larger one than they have where it is none of them.
  std::size_t class_of(const ScaledRow& x) const { return class_number(x.y, table_.k) - first_; }

  // Makes a list of the next row that costs something; false where there is none.
  template <class Entries>
  bool next_scaled(const Entries& entries, const Visits& visits, std::size_t& k, ScaledRow& out) const {
    for (; k < visits.n; ++k) {
      visits.prefetch(entries, k);
      const std::int64_t i = visits.order[k];
      if (visits.costs[i] <= 0) continue;
      const Span span = visits.span(k++);
      out.reserve(span.count + table_.centres.size() + 2);
      out.n = 0;
      out.place = static_cast<std::size_t>(i);
      out.y = visits.y[i];
      out.cost = visits.costs[i];
      if (table_.centres.empty())
        entries.each(span, [&](std::size_t j, double value) {
          out.add(j, table_.roots[j], value, Entries::kSparse || value != 0);
        });
      else
        add_centred(entries, span, out);
      if (table_.d < table_.rows) out.add(table_.d, table_.roots[table_.d], 1.0, true, table_.d < table_.n_shrunk);
      if (fetches_) fetch(out);
      return true;
    }
    return false;
  }

  // All columns that are centred, whether the row has them or not, and the others behind them.
  template <class Entries>
  void add_centred(const Entries& entries, Span span, ScaledRow& out) const {
    const ScaledRow& centred = table_.centred;
    out.n = centred.n;
    std::copy_n(centred.index.begin(), out.n, out.index.begin());
    std::copy_n(centred.size.begin(), out.n, out.size.begin());
    std::copy_n(centred.x.begin(), out.n, out.x.begin());
    std::fill_n(out.x.begin() + out.n, span.count, 0.0f);
    entries.each(span, [&](std::size_t j, double value) {
      const double root = table_.roots[j];
      const std::int32_t centre = table_.centre[j];
      // Without a branch, which a processor could not foresee: all ones where the column is not centred.
      const std::size_t behind = -static_cast<std::size_t>(centre < 0);
      const std::size_t at = (out.n & behind) | (static_cast<std::size_t>(centre) & ~behind);
      out.x[at] += static_cast<float>(root * value);
      out.index[at] = static_cast<std::uint32_t>(j);
      out.size[at] = static_cast<float>(root * root);
      out.n += behind & static_cast<std::size_t>(Entries::kSparse || value != 0);
    });
  }

  // Weights, and of their averages what a step will change as far as that is known.
  void fetch(const ScaledRow& of) const {
    const std::size_t bytes = std::min<std::size_t>(width_ * sizeof(float), 256), y = class_of(of);
    for (std::size_t p = 0; p < of.n; ++p) {
      const float* w = row(of.index[p]);
      fetch_lines(w, bytes);
      if (!loss_.has_few_slopes())
        fetch_lines(w + table_.padded, bytes);
      else if (y < k_)
        fetch_lines(w + table_.padded + y, 1);
    }
  }

  static void fetch_lines(const float* from, std::size_t bytes) {
    const char* at = reinterpret_cast<const char*>(from);
    for (std::size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(at + offset, 1, 2);
  }

  // Whether it was scored, by the averages, which are in `zf_` then.
  bool learn_row(ScaledRow& x) {
    if (decay_.l1 > 0)
      for (std::size_t p = 0; p < x.n; ++p) catch_up(x.index[p]);
    else if (const float by = static_cast<float>(pending()); by > 0)
      shrink_entries(x.x.data(), x.size.data(), x.n, by);
    x.measure();
    const std::size_t y = class_of(x);
    const bool scored = is_scored(static_cast<std::int64_t>(x.place));
    scores(x, scored);
    if (scored) {
      const float a = static_cast<float>(schedule.mean.a), b = static_cast<float>(schedule.mean.b);
      for (std::size_t k = 0; k < k_; ++k) zf_[k] = a * zf_[k] + b * z_[k];
    }
    const ClassSlopes slopes = loss_.slopes(z_.data(), k_, y, g_.data());
    if (!slopes.none && x.norm > 0 && !(loss_.is_softmax() && -g_[y] < kNothing)) step(x, slopes, y);
    next_row();
    return scored;
  }

  void scores(const ScaledRow& x, bool both) {
    for (std::size_t k = 0; k < width_;) {
      const std::size_t registers = (width_ - k) / kLanes;
      k += kLanes * some_tiles(x, k, both, registers, std::make_index_sequence<kTile>());
    }
  }

  // The tile of as many registers as there are, or as fit.
  template <std::size_t... T>
  std::size_t some_tiles(const ScaledRow& x, std::size_t k, bool both, std::size_t registers,
                         std::index_sequence<T...>) {
    using Tile = std::size_t (ClassWalk::*)(const ScaledRow&, std::size_t, bool);
    static constexpr Tile kTiles[] = {&ClassWalk::tile<T + 1>...};
    return (this->*kTiles[std::min(registers, kTile) - 1])(x, k, both);
  }

  template <std::size_t T>
  std::size_t tile(const ScaledRow& x, std::size_t k, bool both) {
    const float* w = row(0) + k;
    if (both && T <= 4)
      tile_both<(T <= 4 ? T : 1)>(x.index.data(), x.x.data(), x.n, w, stride(), table_.padded, z_.data() + k,
                                  zf_.data() + k);
    else
      tile_scores<T>(x.index.data(), x.x.data(), x.n, w, stride(), z_.data() + k);
    if (both && T > 4) tile_scores<T>(x.index.data(), x.x.data(), x.n, w + table_.padded, stride(), zf_.data() + k);
    return T;
  }

  void step(const ScaledRow& x, const ClassSlopes& slopes, std::size_t y) {
    const float back = static_cast<float>(schedule.mean.back());
    if (slopes.few) {
      double norm = 0;
      for (std::size_t s = 0; s < slopes.few; ++s) norm += square(g_[slopes.classes[s]]);
      for (std::size_t s = 0; s < slopes.few; ++s) {
        const std::size_t k = slopes.classes[s];
        move_[s] = static_cast<float>(length(slopes.value, norm, x, k, y) * -g_[k]);
        move_f_[s] = -back * move_[s];
      }
      push_few(x, slopes);
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
    push_groups(x.index.data(), x.x.data(), x.n, row(0), table_.padded, move_.data(), move_f_.data(), groups_);
  }

  static double square(double value) { return value * value; }

  // How long a step along the slopes is: of all classes together, or of class k against the rest.
  double length(double value, double norm, const ScaledRow& x, std::size_t k, std::size_t y) const {
    if (loss_.one_against_rest()) {
      value = std::max(0.0, loss_.above(z_[k], k == y));
      norm = square(g_[k]);
    }
    // A perceptron's step from a tie (M9) has no loss to be truncated by.
    const double most = schedule.eta * x.cost, enough = value / (norm * x.norm);
    return loss_.is_perceptron() && value <= 0 ? std::min(most, 1 / (norm * x.norm)) : std::min(most, enough);
  }

  // The weights of a row's features, of the classes that are listed: feature by feature, so that what is far from the
  // processor is fetched for all of them at a time.
  void push_few(const ScaledRow& x, const ClassSlopes& slopes) {
    const std::size_t apart = table_.padded, between = stride(), n = x.n;
    float* const w = row(0);
    for (std::size_t p = 0; p < n; ++p) {
      float* at = w + x.index[p] * between;
      const float value = x.x[p];
      for (std::size_t s = 0; s < slopes.few; ++s) {
        at[slopes.classes[s]] += move_[s] * value;
        at[apart + slopes.classes[s]] += move_f_[s] * value;
      }
    }
  }

  void next_row() {
    schedule.t += 1;
    schedule.since += 1;
    schedule.gone += schedule.eta;
    if (decays() && schedule.since % skip_ == 0 && is_due()) catch_up_all();
    if (schedule.since % kSteady == 0) schedule.eta = step_size();
    double factor;
    if (!schedule.mean.next(&factor)) return;
    const float by = static_cast<float>(factor);
    for (std::size_t j = 0; j < table_.rows; ++j) {
      float* f = row(j) + table_.padded;
      for (std::size_t k = 0; k < width_; ++k) f[k] *= by;
    }
  }

  bool is_due() const {
    return decay_.l1 > 0 || decay_.l2 * table_.largest * (schedule.gone - schedule.swept) >= kLump;
  }

  // Lets the weights of a feature decay up to now. Without L1 all do at the same time, in every walk.
  void catch_up(std::size_t j) {
    if (j >= table_.n_shrunk) return;
    const double r = table_.root(j), back = schedule.mean.back();
    float *w = row(j), *f = w + table_.padded;
    if (decay_.l1 == 0) {
      const double h = r * r * (schedule.gone - schedule.swept);
      shrink_row(w, f, width_, static_cast<float>(decay_.at(1.0, h)), static_cast<float>(back));
      return;
    }
    const double h = r * r * (schedule.gone - table_.decayed(j));
    for (std::size_t k = 0; k < k_; ++k) {
      if (w[k] == 0) continue;
      const float to = static_cast<float>(decay_.at(r * static_cast<double>(w[k]), h) / r);
      f[k] -= static_cast<float>(back * (static_cast<double>(to) - w[k]));
      w[k] = to;
    }
    table_.decayed(j) = schedule.gone;
  }

  void catch_up_all() {
    constexpr std::size_t kTask = 1 << 15;  // weights
    const std::size_t each = std::max<std::size_t>(1, kTask / width_), tasks = (table_.n_shrunk + each - 1) / each;
    parallel_for(tasks, [&](std::size_t task) {
      for (std::size_t j = task * each, end = std::min(table_.n_shrunk, j + each); j < end; ++j) catch_up(j);
    });
    schedule.swept = schedule.gone;
  }

  const ClassTable& table_;
  std::size_t first_, width_, k_;
  const ClassForm& loss_;
  std::size_t stride_, skip_;
  std::vector<float> z_, zf_, g_, move_, move_f_;
  std::vector<std::size_t> groups_;  // of classes that a step moves
  bool fetches_ = false;
  Decay decay_;
  double rate_ = 0, fading_ = 0, power_ = 0;
};

}  // namespace beeline
