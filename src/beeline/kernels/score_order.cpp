#include "score_order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "threads.h"

namespace beeline {
namespace {

constexpr std::size_t kPerTask = kRowsOfTask;
constexpr std::size_t kBuckets = 1 << 10;
constexpr std::size_t kGroup = 16;  // buckets that one task sorts
constexpr std::size_t kFew = 24;    // that are sorted by insertion
constexpr int kDeepest = 4;

bool before(const Scored& a, const Scored& b) { return a.score < b.score || (a.score == b.score && a.row < b.row); }

// A monotone map from scores to buckets.
struct Spread {
  double low, scale;
  std::size_t last;
  Spread(double low, double high, std::size_t buckets)
      : low(low), scale(static_cast<double>(buckets) / (high - low)), last(buckets - 1) {}
  bool works() const { return scale > 0 && std::isfinite(scale); }
  std::size_t operator()(double score) const { return std::min(static_cast<std::size_t>((score - low) * scale), last); }
};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(double score) {
    low = std::min(low, score);
    high = std::max(high, score);
  }
};

void sort_by_insertion(Scored* items, std::size_t n) {
  for (std::size_t i = 1; i < n; ++i) {
    const Scored moved = items[i];
    std::size_t j = i;
    for (; j > 0 && items[j - 1].score > moved.score; --j) items[j] = items[j - 1];
    items[j] = moved;
  }
}

// Sorts in place what lies in the cache; `room` is as long.
void sort_part(Scored* items, Scored* room, std::size_t n, int depth) {
  if (n <= kFew) return sort_by_insertion(items, n);
  Range range;
  for (std::size_t i = 0; i < n; ++i) range.take(items[i].score);
  if (range.low == range.high) return;
  const std::size_t buckets = std::min(n / 4, kBuckets);
  const Spread bucket(range.low, range.high, buckets);
  if (depth == kDeepest || !bucket.works()) {
    std::sort(items, items + n, before);
    return;
  }
  std::array<std::uint32_t, kBuckets + 1> ends{};
  for (std::size_t i = 0; i < n; ++i) ++ends[bucket(items[i].score) + 1];
  for (std::size_t b = 0; b < buckets; ++b) ends[b + 1] += ends[b];
  std::copy(items, items + n, room);
  for (std::size_t i = 0; i < n; ++i) items[ends[bucket(room[i].score)]++] = room[i];
  for (std::size_t b = 0, begin = 0; b < buckets; begin = ends[b++])
    if (ends[b] - begin > 1) sort_part(items + begin, room + begin, ends[b] - begin, depth + 1);
}

}  // namespace

void sort_scored(std::vector<Scored>& items, int threads) {
  const std::size_t n = items.size(), n_tasks = (n + kPerTask - 1) / kPerTask;
  std::vector<Scored> room(n);
  if (n_tasks <= 1) return sort_part(items.data(), room.data(), n, 0);
  std::vector<Range> ranges(n_tasks);
  const auto each = [&](std::size_t task, auto of_item) {
    for (std::size_t i = task * kPerTask, end = std::min(n, i + kPerTask); i < end; ++i) of_item(items[i]);
  };
  parallel_for(n_tasks, [&](std::size_t task) {
    each(task, [&](const Scored& item) { ranges[task].take(item.score); });
  }, threads);
  Range range;
  for (const Range& part : ranges) {
    range.take(part.low);
    range.take(part.high);
  }
  const Spread bucket(range.low, range.high, kBuckets);
  if (range.low == range.high) return;
  if (!bucket.works()) {
    std::sort(items.begin(), items.end(), before);
    return;
  }
  // Where the next item of a bucket goes, for each task.
  std::vector<std::size_t> places(n_tasks * kBuckets, 0), ends(kBuckets + 1, 0);
  parallel_for(n_tasks, [&](std::size_t task) {
    each(task, [&](const Scored& item) { ++places[task * kBuckets + bucket(item.score)]; });
  }, threads);
  std::size_t sum = 0;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    for (std::size_t task = 0; task < n_tasks; ++task) {
      const std::size_t count = places[task * kBuckets + b];
      places[task * kBuckets + b] = sum;
      sum += count;
    }
    ends[b + 1] = sum;
  }
  parallel_for(n_tasks, [&](std::size_t task) {
    each(task, [&](const Scored& item) { room[places[task * kBuckets + bucket(item.score)]++] = item; });
  }, threads);
  parallel_for(kBuckets / kGroup, [&](std::size_t group) {
    for (std::size_t b = group * kGroup; b < (group + 1) * kGroup; ++b)
      if (ends[b + 1] - ends[b] > 1) sort_part(room.data() + ends[b], items.data() + ends[b], ends[b + 1] - ends[b], 1);
  }, threads);
  items.swap(room);
}

TwoClasses sum_classes(const double* z, const double* y, const double* c, std::size_t n, ClassStarts& starts,
                       std::size_t& positive, std::size_t& negative, int threads) {
  if (n > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("so many rows cannot be numbered");
  struct Part {
    std::size_t positive = 0, negative = 0;
    double positive_weight = 0, negative_weight = 0;
    double least = std::numeric_limits<double>::infinity(), most = 0;
    double sum = 0;  // of scores times nothing: no number where one of them is not finite
  };
  const std::size_t n_tasks = (n + kPerTask - 1) / kPerTask;
  std::vector<Part> parts(n_tasks);
  parallel_for(n_tasks, [&](std::size_t task) {
    Part part;
    for (std::size_t i = task * kPerTask, end = std::min(n, i + kPerTask); i < end; ++i) {
      const bool here = c[i] > 0, up = here && y[i] > 0;
      const double weight = here ? c[i] : 0.0;
      part.positive += up;
      part.negative += here && !up;
      part.positive_weight += up ? weight : 0.0;
      part.negative_weight += up ? 0.0 : weight;
      part.least = std::min(part.least, here ? c[i] : part.least);
      part.most = std::max(part.most, weight);
      part.sum += here ? 0.0 * z[i] : 0.0;
    }
    parts[task] = part;
  }, threads);
  TwoClasses rows;
  starts.positive.resize(n_tasks);
  starts.negative.resize(n_tasks);
  double least = std::numeric_limits<double>::infinity(), most = 0;
  positive = negative = 0;
  for (std::size_t task = 0; task < n_tasks; ++task) {
    const Part& part = parts[task];
    starts.positive[task] = positive;
    starts.negative[task] = negative;
    positive += part.positive;
    negative += part.negative;
    rows.positive_weight += part.positive_weight;
    rows.negative_weight += part.negative_weight;
    least = std::min(least, part.least);
    most = std::max(most, part.most);
    rows.finite = rows.finite && part.sum == 0;
  }
  rows.equal = !(least < most);
  rows.cost = most;
  if (rows.equal) {  // sums of many equal numbers are not exact
    rows.positive_weight = most * static_cast<double>(positive);
    rows.negative_weight = most * static_cast<double>(negative);
  }
  return rows;
}

TwoClasses split_classes(const double* z, const double* y, const double* c, std::size_t n, double* slopes,
                         int threads) {
  ClassStarts starts;
  std::size_t positive = 0, negative = 0;
  TwoClasses rows = sum_classes(z, y, c, n, starts, positive, negative, threads);
  const std::size_t n_tasks = starts.positive.size();
  rows.positive.resize(positive);
  rows.negative.resize(negative);
  parallel_for(n_tasks, [&](std::size_t task) {
    Scored *up = rows.positive.data() + starts.positive[task], *down = rows.negative.data() + starts.negative[task];
    for (std::size_t i = task * kPerTask, end = std::min(n, i + kPerTask); i < end; ++i) {
      const Scored item{z[i], static_cast<std::uint32_t>(i)};
      if (!(c[i] > 0)) {
        slopes[i] = 0.0;
      } else if (y[i] > 0) {
        *up++ = item;
      } else {
        *down++ = item;
      }
    }
  }, threads);
  return rows;
}

}  // namespace beeline
