// The hinge of all pairs of a positive and a negative row, and its slopes, without looking at pairs.
//
// A pair costs 1 − (f_i − f_j) where that is positive. The rows of the smaller class are sorted; a row of the other
// finds by a table how many of them it makes a pair with that costs something, and what these cost together is a
// sum that was made on the way up the sorted scores. All of its terms are positive, so that nothing cancels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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

constexpr std::size_t kPerTask = 1 << 14;
constexpr std::size_t kNear = 8;  // up to so many scores are looked at one after the other

// The rows of a class with their scores, or with the scores' opposites, and what they weigh.
struct Side {
  std::vector<Scored> items;
  const double* costs;
  double equal;           // what every row weighs; negative: as its cost says
  double last;            // what the last one weighs; negative: like the others
  bool in_order = false;  // whether they lie as they are to be sorted

  double weight(std::size_t i) const {
    if (last >= 0 && i + 1 == items.size()) return last;
    return equal >= 0 ? equal : costs[items[i].row];
  }
};

// A score, the weight of the rows up to it, and what the rows below cost a row that stands a hair above it.
struct Rung {
  double score, weight, below;
};

// Sorted scores, and a table that leads near any of them.
class Ladder {
 public:
  explicit Ladder(const Side& side) : rungs_(side.items.size()), first_(rungs_.size() + 1) {
    double weight = 0, below = 0;
    for (std::size_t i = 0; i < rungs_.size(); ++i) {
      if (i > 0) below += weight * (side.items[i].score - side.items[i - 1].score);
      weight += side.weight(i);
      rungs_[i] = {side.items[i].score, weight, below};
    }
    low_ = rungs_.front().score;
    const double width = rungs_.back().score - low_;
    scale_ = static_cast<double>(rungs_.size()) / width;
    if (!(scale_ > 0 && std::isfinite(scale_))) scale_ = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i < rungs_.size(); ++i)
      for (const std::size_t bucket = bucket_of(rungs_[i].score); next <= bucket; ++next)
        first_[next] = static_cast<std::uint32_t>(i);
    for (; next < first_.size(); ++next) first_[next] = static_cast<std::uint32_t>(rungs_.size());
  }

  // How many scores lie below x.
  std::size_t rank(double x) const {
    if (!(x > low_)) return 0;
    if (x > rungs_.back().score) return rungs_.size();
    const std::size_t bucket = bucket_of(x);
    std::size_t begin = first_[bucket];
    const std::size_t end = first_[bucket + 1];
    if (end - begin > kNear) {
      const auto found = std::lower_bound(rungs_.begin() + begin, rungs_.begin() + end, x,
                                          [](const Rung& rung, double score) { return rung.score < score; });
      return found - rungs_.begin();
    }
    while (begin < end && rungs_[begin].score < x) ++begin;
    return begin;
  }

  const Rung& below(std::size_t rank) const { return rungs_[rank - 1]; }

 private:
  std::size_t bucket_of(double x) const {
    return std::min(static_cast<std::size_t>((x - low_) * scale_), rungs_.size() - 1);
  }

  std::vector<Rung> rungs_;
  std::vector<std::uint32_t> first_;
  double low_, scale_;
};

// Keeps the negative rows with the highest scores, of so much weight, in the order of the opposites of their scores; of
// the last one only a part may be left.
void keep_highest(Side& side, double weight, int threads) {
  for (Scored& item : side.items) item.score = -item.score;
  sort_scored(side.items, threads);
  for (Scored& item : side.items) item.score = -item.score;
  double sum = 0;
  for (std::size_t i = 0; i < side.items.size(); ++i) {
    const double own = side.weight(i);
    if (sum + own >= weight) {
      side.last = weight - sum;
      side.items.resize(i + 1);
      break;
    }
    sum += own;
  }
  side.in_order = true;
}

// (Σ over pairs of weights times hinges; the slopes of that, times `scale`, in `slopes`).
double sum_pairs(Side& sorted, const Side& other, double sign, double scale, double* slopes, int threads) {
  if (!sorted.in_order) sort_scored(sorted.items, threads);
  const Ladder ladder(sorted);
  const std::size_t n = other.items.size(), n_tasks = (n + kPerTask - 1) / kPerTask;
  std::vector<std::uint32_t> ranks(n);
  std::vector<double> sums(n_tasks);
  parallel_for(n_tasks, [&](std::size_t task) {
    double sum = 0;
    for (std::size_t i = task * kPerTask, end = std::min(n, i + kPerTask); i < end; ++i) {
      const double x = 1.0 + other.items[i].score, weight = other.weight(i);
      const std::size_t rank = ladder.rank(x);
      ranks[i] = static_cast<std::uint32_t>(rank);
      double slope = 0;
      if (rank > 0) {
        const Rung& rung = ladder.below(rank);
        sum += weight * (rung.below + rung.weight * (x - rung.score));
        slope = sign * scale * weight * rung.weight;
      }
      slopes[other.items[i].row] = slope;
    }
    sums[task] = sum;
  }, threads);
  std::vector<double> above(sorted.items.size() + 1, 0.0);
  for (std::size_t i = 0; i < n; ++i) above[ranks[i]] += other.weight(i);
  double sum = 0, weight = 0;
  for (std::size_t i = sorted.items.size(); i-- > 0;) {
    weight += above[i + 1];
    slopes[sorted.items[i].row] = -sign * scale * sorted.weight(i) * weight;
  }
  for (const double part : sums) sum += part;
  return sum;
}

// (the mean hinge of the pairs, the mean cost of a row); the slopes are those of their product. With `max_fpr` below 1
// only the negative rows with the highest scores are looked at, of that part of the weight.
std::pair<double, double> roc_area(Vector z, Vector y, Vector c, double max_fpr, Output slopes, int threads) {
  const std::size_t n = z.size();
  if (y.size() != n || c.size() != n || slopes.size() != n)
    throw std::invalid_argument("there must be one number a row");
  if (!(max_fpr > 0 && max_fpr <= 1)) throw std::invalid_argument("the part of the negative rows must lie in (0, 1]");
  nb::gil_scoped_release release;
  TwoClasses rows = split_classes(z.data(), y.data(), c.data(), n, slopes.data(), threads);
  const double cost = rows.mean_cost();
  if (!rows.finite || rows.positive.empty() || rows.negative.empty()) {
    std::fill(slopes.data(), slopes.data() + n, 0.0);
    return {rows.finite ? 0.0 : std::numeric_limits<double>::quiet_NaN(), cost};
  }
  const double equal = rows.equal ? rows.cost : -1.0, negative_weight = max_fpr * rows.negative_weight;
  Side positive{std::move(rows.positive), c.data(), equal, -1.0};
  Side negative{std::move(rows.negative), c.data(), equal, -1.0};
  if (max_fpr < 1) {
    for (const Scored& item : negative.items) slopes.data()[item.row] = 0.0;
    keep_highest(negative, negative_weight, threads);
  }
  const double pairs = rows.positive_weight * negative_weight, scale = cost / pairs;
  const bool few_positive = positive.items.size() <= negative.items.size();
  if (few_positive) return {sum_pairs(positive, negative, 1.0, scale, slopes.data(), threads) / pairs, cost};
  for (Side* side : {&positive, &negative})
    for (Scored& item : side->items) item.score = -item.score;
  return {sum_pairs(negative, positive, -1.0, scale, slopes.data(), threads) / pairs, cost};
}

}  // namespace

void bind_roc_area(nb::module_& m) {
  m.def("roc_area", &roc_area, "z"_a, "y"_a, "c"_a, "max_fpr"_a, "slopes"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
