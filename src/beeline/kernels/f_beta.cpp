// The largest of 1 − F_β(y′) + the mean of ½(y′ − y)·score over all labels y′ that rows could be given.
//
// For the number of positive rows that y′ gets right, the best are those with the highest scores, and so are the
// negative rows that it gets wrong. How many of these are best is a concave question: each one more costs less of the
// measure than the last. Its answer moves up and then down as the first number falls, so that one walk finds all.
//
// A row of weight w stands for w/unit copies, which y′ may label differently; with the unit 0, for as many as one
// likes. In the number of positive rows the measure is convex between two rows, so that only whole rows matter there;
// of the negative rows the last one may be called positive in part.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "score_order.h"
#include "threads.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr double kWhole = 1e-6;          // how far from a whole number a multiple may be
constexpr double kMostCopies = 1 << 20;  // of the heaviest row

// The largest weight that all are whole multiples of; 0 where there is none of some size.
double common_unit(const double* c, std::size_t n) {
  double unit = 0, most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(c[i] > 0)) continue;
    most = std::max(most, c[i]);
    if (unit == 0) unit = c[i];
    double rest = c[i];
    while (true) {  // Euclid's algorithm
      const double times = std::round(rest / unit);
      const double left = std::fabs(rest - times * unit);
      if (left <= kWhole * unit) break;
      rest = unit;
      unit = left;
      if (unit * kMostCopies < most) return 0;
    }
  }
  return unit > 0 ? most / std::round(most / unit) : 0;
}

// What rows with the highest scores weigh together, and what their weights times scores are, up to each row.
struct Sums {
  std::vector<double> weight, score;
  Sums(const std::vector<Scored>& items, const double* c) : weight(items.size() + 1), score(items.size() + 1) {
    weight[0] = score[0] = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const double own = c[items[i].row];
      weight[i + 1] = weight[i] + own;
      score[i + 1] = score[i] + own * items[i].score;
    }
  }
};

// Which negative rows to call positive when positive rows of some weight are called so, `gain` = (1 + β²)·that weight.
class Walk {
 public:
  Walk(const std::vector<Scored>& rows, const Sums& sums, double total, double unit)
      : rows_(rows), sums_(sums), total_(total), unit_(unit) {}

  struct Place {
    std::size_t rows;
    double part;   // of weight, of the row behind them
    double value;  // −F_β and the scores
  };

  // Goes from where the last answer was.
  Place best(double gain, double base) {
    while (at_ < rows_.size() && rise(at_, gain, base) > 0) ++at_;
    while (at_ > 0 && rise(at_ - 1, gain, base) < 0) --at_;
    Place best{at_, 0.0, value(at_, 0.0, gain, base)};
    if (unit_ < 0) return best;
    if (at_ > 0) consider(at_ - 1, gain, base, best);
    if (at_ < rows_.size()) consider(at_, gain, base, best);
    return best;
  }

 private:
  double value(std::size_t k, double part, double gain, double base) const {
    const double weight = sums_.weight[k] + part;
    const double scores = sums_.score[k] + (part > 0 ? part * rows_[k].score : 0.0);
    return scores / total_ - gain / (base + weight);
  }

  // By how much the value grows when row k is called positive beside those before it.
  double rise(std::size_t k, double gain, double base) const {
    const double before = base + sums_.weight[k], after = base + sums_.weight[k + 1], own = after - before;
    return own * (gain / (before * after) + rows_[k].score / total_);
  }

  // A part of row k, where that is better.
  void consider(std::size_t k, double gain, double base, Place& best) const {
    const double score = rows_[k].score, own = sums_.weight[k + 1] - sums_.weight[k];
    if (!(score < 0) || !(gain > 0)) return;
    const double most = std::sqrt(gain * total_ / -score) - base;  // where the derivative is zero
    const double first = unit_ > 0 ? std::floor(most / unit_ + kWhole) * unit_ : most;
    for (const double weight : {first, first + unit_}) {
      const double part = weight - sums_.weight[k];
      if (!(part > kWhole * unit_ && part < own - kWhole * unit_)) continue;
      const double found = value(k, part, gain, base);
      if (found > best.value) best = {k, part, found};
    }
  }

  const std::vector<Scored>& rows_;
  const Sums& sums_;
  const double total_, unit_;  // a unit below 0: no row is to be parted
  std::size_t at_ = 0;
};

// Highest scores first.
void sort_down(std::vector<Scored>& items, int threads) {
  for (Scored& item : items) item.score = -item.score;
  sort_scored(items, threads);
  for (Scored& item : items) item.score = -item.score;
}

// (the loss, the mean cost of a row); the slopes are those of their product.
std::pair<double, double> f_beta(Vector z, Vector y, Vector c, double beta, Output slopes, int threads) {
  const std::size_t n = z.size();
  if (y.size() != n || c.size() != n || slopes.size() != n)
    throw std::invalid_argument("there must be one number a row");
  nb::gil_scoped_release release;
  TwoClasses rows = split_classes(z.data(), y.data(), c.data(), n, slopes.data(), threads);
  const double cost = rows.mean_cost();
  std::fill(slopes.data(), slopes.data() + n, 0.0);
  if (!rows.finite) return {std::numeric_limits<double>::quiet_NaN(), cost};
  if (rows.positive.empty() || rows.negative.empty()) return {0.0, cost};
  sort_down(rows.positive, threads);
  sort_down(rows.negative, threads);
  const Sums up(rows.positive, c.data()), down(rows.negative, c.data());
  const double total = rows.total(), square = beta * beta;
  Walk walk(rows.negative, down, total, rows.equal ? -1.0 : common_unit(c.data(), n));
  // y′ = y costs nothing. From there on positive rows are missed, those with the lowest scores first.
  double best = 0, missed = 0;
  std::size_t found = rows.positive.size(), called = 0;
  double part = 0;
  for (std::size_t k = rows.positive.size() + 1; k-- > 0;) {
    if (k < rows.positive.size()) missed -= c.data()[rows.positive[k].row] * rows.positive[k].score;
    const double right = up.weight[k], base = square * up.weight.back() + right;
    const Walk::Place place = walk.best((1 + square) * right, base);
    const double value = 1 + (missed / total + place.value);
    if (value > best) {
      best = value;
      found = k;
      called = place.rows;
      part = place.part;
    }
  }
  const double scale = cost / total;
  for (std::size_t k = found; k < rows.positive.size(); ++k) {
    const std::uint32_t row = rows.positive[k].row;
    slopes.data()[row] = -scale * c.data()[row];
  }
  for (std::size_t k = 0; k < called; ++k) {
    const std::uint32_t row = rows.negative[k].row;
    slopes.data()[row] = scale * c.data()[row];
  }
  if (part > 0) slopes.data()[rows.negative[called].row] = scale * part;
  return {best, cost};
}

}  // namespace

void bind_f_beta(nb::module_& m) {
  m.def("f_beta", &f_beta, "z"_a, "y"_a, "c"_a, "beta"_a, "slopes"_a.noconvert(), "threads"_a = 0);
  m.def("common_unit", [](Vector c) {
    nb::gil_scoped_release release;
    return common_unit(c.data(), c.size());
  }, "c"_a);
}

}  // namespace beeline
