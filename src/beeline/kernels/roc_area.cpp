// The hinge of all pairs of a positive and a negative row, and its slopes, without looking at pairs.
//
// A pair costs (1 + f_j) − f_i where that is positive. So positive rows are put at f_i and negative ones at 1 + f_j, in
// one order; on the way up, what all positive rows passed so far cost a row that stands here is known. All terms of
// that are positive, so that nothing cancels.
//
// What is sorted are whole numbers: the leading bits of a place, in an order that is theirs, and the row behind them.
// NumPy sorts such numbers by the widest instructions that the machine has, faster than any sort of places and rows.
// Rows whose leading bits are the same, which are few, are put in order by their places afterwards.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
using Keys = nb::ndarray<std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kPerTask = 1 << 14;

// Bits that rise with the number that they are of.
std::uint64_t rising_bits(double x) {
  x += 0.0;  // there is but one zero
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits ^ (std::uint64_t{1} << 63 | (std::uint64_t{0} - (bits >> 63)));
}

// What a key is made of: the leading bits of the place, whether the row is positive, and its number.
class Packing {
 public:
  Packing(const double* z, std::size_t n) : z_(z) {
    while (n > std::size_t{1} << row_bits_) ++row_bits_;
  }

  std::uint64_t key(std::size_t row, bool positive) const {
    const int shift = row_bits_ + 1;
    const double x = z_[row] + static_cast<double>(!positive);
    return rising_bits(x) >> shift << shift | std::uint64_t{positive} << row_bits_ | row;
  }
  bool positive(std::uint64_t key) const { return key >> row_bits_ & 1; }
  // The same as 0 or 1: which class comes next nobody can predict, so that loops have no branches for it.
  double up(std::uint64_t key) const { return static_cast<double>(static_cast<int>(key >> row_bits_ & 1)); }
  std::size_t row(std::uint64_t key) const { return key & ((std::uint64_t{1} << row_bits_) - 1); }
  double place(std::uint64_t key) const { return z_[row(key)] + (1.0 - up(key)); }
  bool alike(std::uint64_t a, std::uint64_t b) const { return (a ^ b) >> (row_bits_ + 1) == 0; }

  // Whether one comes before the other: a negative row before a positive one at the same place.
  bool before(std::uint64_t a, std::uint64_t b) const {
    const double x = place(a), y = place(b);
    return x < y || (x == y && a < b);
  }

 private:
  const double* z_;
  int row_bits_ = 1;
};

void order_alike(std::uint64_t* keys, std::size_t n, const Packing& packing) {
  const auto before = [&](std::uint64_t a, std::uint64_t b) { return packing.before(a, b); };
  for (std::size_t i = 1; i < n; ++i) {
    if (!packing.alike(keys[i - 1], keys[i])) continue;
    const std::size_t begin = i - 1;
    while (i < n && packing.alike(keys[begin], keys[i])) ++i;
    if (!std::is_sorted(keys + begin, keys + i, before)) std::sort(keys + begin, keys + i, before);
  }
}

// What rows weigh; of negative rows only those count that lie high enough, and of one of them a part.
class Weights {
 public:
  Weights(const double* c, double equal, const Packing& packing) : c_(c), equal_(equal), packing_(packing) {}

  double own(std::uint64_t key) const { return equal_ >= 0 ? equal_ : c_[packing_.row(key)]; }
  // Of a row at that place, if it is positive, and if it is negative; 0 if it is not.
  std::pair<double, double> both(std::uint64_t key, std::size_t place) const {
    const double weight = own(key), up = packing_.up(key);
    return {up * weight, (1.0 - up) * (place > first_ ? weight : place == first_ ? of_first_ : 0.0)};
  }

  // Only the highest negative rows, of so much weight.
  void keep_highest(const std::uint64_t* keys, std::size_t n, double weight) {
    double sum = 0;
    for (std::size_t i = n; i-- > 0;) {
      if (packing_.positive(keys[i])) continue;
      const double own_weight = own(keys[i]);
      if (sum + own_weight >= weight) {
        first_ = i;
        of_first_ = weight - sum;
        return;
      }
      sum += own_weight;
    }
  }

  // All negative rows.
  void keep_all(const std::uint64_t* keys, std::size_t n) {
    for (first_ = 0; first_ < n && packing_.positive(keys[first_]);) ++first_;
    of_first_ = first_ < n ? own(keys[first_]) : 0.0;
  }

 private:
  const double* c_;
  double equal_;  // what every row weighs; negative: as its cost says
  const Packing& packing_;
  std::size_t first_ = 0;
  double of_first_ = 0;
};

// Rows that lie one after the other in the order: what they weigh, and what its positive rows cost one at their end.
struct Stretch {
  double positive = 0, negative = 0, cost = 0, end = 0;
};

// (Σ over pairs of weights times hinges; the slopes of that, times `scale`, in `slopes`).
double sum_pairs(const std::uint64_t* keys, std::size_t n, const Packing& packing, const Weights& weights, double scale,
                 double* slopes, int threads) {
  const std::size_t n_tasks = (n + kPerTask - 1) / kPerTask;
  std::vector<double> places(n), sums(n_tasks);
  std::vector<Stretch> parts(n_tasks);
  parallel_for(n_tasks, [&](std::size_t task) {
    Stretch part;
    const std::size_t begin = task * kPerTask, end = std::min(n, begin + kPerTask);
    double last = packing.place(keys[begin]);
    for (std::size_t i = begin; i < end; ++i) {
      const double x = places[i] = packing.place(keys[i]);
      part.cost += part.positive * (x - last);
      last = x;
      const auto [up, down] = weights.both(keys[i], i);
      part.positive += up;
      part.negative += down;
    }
    part.end = last;
    parts[task] = part;
  }, threads);
  // What lies below each stretch, and how much weight of negative rows above it.
  std::vector<Stretch> below(n_tasks);
  for (std::size_t task = 1; task < n_tasks; ++task) {
    const Stretch &last = below[task - 1], &own = parts[task - 1];
    const double way = task > 1 ? own.end - last.end : 0.0;
    below[task] = {last.positive + own.positive, 0, last.cost + last.positive * way + own.cost, own.end};
  }
  for (std::size_t task = n_tasks - 1; task-- > 0;)
    below[task].negative = below[task + 1].negative + parts[task + 1].negative;
  parallel_for(n_tasks, [&](std::size_t task) {
    const std::size_t begin = task * kPerTask, end = std::min(n, begin + kPerTask);
    double weight = below[task].positive, cost = below[task].cost, last = task > 0 ? below[task].end : places[begin];
    std::array<double, kPerTask> found;  // slopes, in order: so each is written to its row but once
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const auto [up, down] = weights.both(keys[i], i);
      cost += weight * (places[i] - last);
      last = places[i];
      sum += down * cost;
      found[i - begin] = down * weight;
      weight += up;
    }
    sums[task] = sum;
    weight = below[task].negative;
    for (std::size_t i = end; i-- > begin;) {
      const auto [up, down] = weights.both(keys[i], i);
      slopes[packing.row(keys[i])] = scale * (found[i - begin] - up * weight);
      weight += down;
    }
  }, threads);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

void pack(const double* y, const double* c, std::size_t n, const ClassStarts& starts, const Packing& packing,
          double* slopes, std::uint64_t* keys, int threads) {
  parallel_for(starts.positive.size(), [&](std::size_t task) {
    std::uint64_t* next = keys + starts.positive[task] + starts.negative[task];
    for (std::size_t i = task * kRowsOfTask, end = std::min(n, i + kRowsOfTask); i < end; ++i) {
      if (c[i] > 0) {
        *next++ = packing.key(i, y[i] > 0);
      } else {
        slopes[i] = 0.0;
      }
    }
  }, threads);
}

// (the mean hinge of the pairs, the mean cost of a row); the slopes are those of their product. With `max_fpr` below 1
// only the negative rows with the highest scores are looked at, of that part of the weight.
std::pair<double, double> roc_area(Vector z, Vector y, Vector c, double max_fpr, Output slopes, int threads) {
  const std::size_t n = z.size();
  if (y.size() != n || c.size() != n || slopes.size() != n)
    throw std::invalid_argument("there must be one number a row");
  if (!(max_fpr > 0 && max_fpr <= 1)) throw std::invalid_argument("the part of the negative rows must lie in (0, 1]");
  ClassStarts starts;
  std::size_t positive = 0, negative = 0;
  TwoClasses rows;
  {
    nb::gil_scoped_release release;
    rows = sum_classes(z.data(), y.data(), c.data(), n, starts, positive, negative, threads);
  }
  const std::size_t here = positive + negative;
  const double cost = here == 0 ? 0.0 : rows.equal ? rows.cost : rows.total() / static_cast<double>(here);
  if (!rows.finite || positive == 0 || negative == 0) {
    std::fill(slopes.data(), slopes.data() + n, 0.0);
    return {rows.finite ? 0.0 : std::numeric_limits<double>::quiet_NaN(), cost};
  }
  const nb::object sorted = nb::module_::import_("numpy").attr("empty")(here, "uint64");
  std::uint64_t* keys = nb::cast<Keys>(sorted).data();
  const Packing packing(z.data(), n);
  {
    nb::gil_scoped_release release;
    pack(y.data(), c.data(), n, starts, packing, slopes.data(), keys, threads);
  }
  sorted.attr("sort")();
  nb::gil_scoped_release release;
  order_alike(keys, here, packing);
  Weights weights(c.data(), rows.equal ? rows.cost : -1.0, packing);
  const double negative_weight = max_fpr * rows.negative_weight;
  if (max_fpr < 1) {
    weights.keep_highest(keys, here, negative_weight);
  } else {
    weights.keep_all(keys, here);
  }
  const double pairs = rows.positive_weight * negative_weight, scale = cost / pairs;
  return {sum_pairs(keys, here, packing, weights, scale, slopes.data(), threads) / pairs, cost};
}

}  // namespace

void bind_roc_area(nb::module_& m) {
  m.def("roc_area", &roc_area, "z"_a, "y"_a, "c"_a, "max_fpr"_a, "slopes"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
