// Losses of the pairs of a query, of which one document is more relevant than the other, and of ListNet.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "ranking.h"
#include "simd.h"

namespace beeline {

// Σ w_i w_j over all pairs of different levels.
inline double pair_weight(const Query& q, const Levels& levels) {
  double total = 0, above = 0;
  for (std::size_t level = 0; level < levels.count(); ++level) {
    double here = 0;
    for (std::size_t i = levels.starts[level]; i < levels.starts[level + 1]; ++i) here += q.w[levels.order[i]];
    total += above * here;
    above += here;
  }
  return total;
}

// Sums over the levels before one, which documents are added to: a tree of partial sums (Fenwick 1994).
class LevelSums {
 public:
  void clear(std::size_t levels) { sums_.assign(levels + 1, {0, 0}); }
  void add(std::size_t level, double weight, double weighted) {
    for (std::size_t k = level + 1; k < sums_.size(); k += k & (~k + 1)) {
      sums_[k].weight += weight;
      sums_[k].weighted += weighted;
    }
  }
  struct Sums {
    double weight, weighted;
  };
  // Of all levels before this one.
  Sums before(std::size_t level) const {
    Sums total{0, 0};
    for (std::size_t k = level; k > 0; k &= k - 1) {
      total.weight += sums_[k].weight;
      total.weighted += sums_[k].weighted;
    }
    return total;
  }

 private:
  std::vector<Sums> sums_;
};

// The mean of max(0, 1 − (f_i − f_j)) over the pairs with y_i > y_j, weighted by w_i w_j: O(n log n).
//
// A pair costs where f_i < f_j + 1. By rising scores of j, documents i are added as they begin to cost; what is asked
// for are sums over those of higher levels. For the slopes of i the same is done by falling scores.
class PairwiseHingeLoss {
 public:
  double operator()(const Query& q, double* slopes) {
    levels_.sort(q);
    std::fill(slopes, slopes + q.n, 0.0);
    if (levels_.count() < 2) return 0;
    level_.resize(q.n);
    for (std::size_t level = 0; level < levels_.count(); ++level)
      for (std::size_t i = levels_.starts[level]; i < levels_.starts[level + 1]; ++i) level_[levels_.order[i]] = level;
    by_score_.resize(q.n);
    std::iota(by_score_.begin(), by_score_.end(), 0u);
    std::sort(by_score_.begin(), by_score_.end(),
              [&](std::uint32_t i, std::uint32_t j) { return q.z[i] != q.z[j] ? q.z[i] < q.z[j] : i < j; });
    const double scale = 1 / pair_weight(q, levels_);
    const double value = rising(q, scale, slopes);
    falling(q, scale, slopes);
    return std::max(0.0, value);
  }

 private:
  double rising(const Query& q, double scale, double* slopes) {
    const double middle = q.z[by_score_[q.n / 2]];
    double value = 0;
    std::size_t next = 0;
    sums_.clear(levels_.count());
    for (const std::uint32_t j : by_score_) {
      for (; next < q.n && q.z[by_score_[next]] < q.z[j] + 1; ++next) {
        const std::uint32_t i = by_score_[next];
        sums_.add(level_[i], q.w[i], q.w[i] * (q.z[i] - middle));
      }
      const LevelSums::Sums above = sums_.before(level_[j]);
      value += q.w[j] * (above.weight * (1 + (q.z[j] - middle)) - above.weighted);
      slopes[j] += scale * q.w[j] * above.weight;
    }
    return scale * value;
  }

  void falling(const Query& q, double scale, double* slopes) {
    const std::size_t last = levels_.count() - 1;
    std::size_t next = q.n;
    sums_.clear(levels_.count());
    for (std::size_t k = q.n; k-- > 0;) {
      const std::uint32_t i = by_score_[k];
      for (; next > 0 && q.z[i] < q.z[by_score_[next - 1]] + 1; --next) {
        const std::uint32_t j = by_score_[next - 1];
        sums_.add(last - level_[j], q.w[j], 0.0);
      }
      slopes[i] -= scale * q.w[i] * sums_.before(last - level_[i]).weight;
    }
  }

  Levels levels_;
  LevelSums sums_;
  std::vector<std::size_t> level_;
  std::vector<std::uint32_t> by_score_;
};

constexpr std::size_t kLanes = 8;
constexpr std::size_t kTogether = 4;

// A product that neither overflows nor needs a logarithm before the end: powers of two are counted beside it. Lanes are
// worked on side by side.
struct LongProduct {
  double factor[kLanes];
  std::int64_t powers[kLanes];

  LongProduct() {
    std::fill(factor, factor + kLanes, 1.0);
    std::fill(powers, powers + kLanes, 0);
  }

  // Factors are positive and no subnormal numbers.
  void count_powers() {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::uint64_t bits;
      std::memcpy(&bits, &factor[lane], sizeof bits);
      powers[lane] += static_cast<std::int64_t>(bits >> 52) - 1023;
      bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
      std::memcpy(&factor[lane], &bits, sizeof bits);
    }
  }

  double log() {
    count_powers();
    double sum = 0;
    for (const double each : factor) sum += std::log(each);
    return sum +
           0.69314718055994530942 * static_cast<double>(std::accumulate(powers, powers + kLanes, std::int64_t{0}));
  }
};

// The smallest and the largest of numbers, of which there is one at least.
inline std::pair<double, double> range_of(const double* z, std::size_t n) {
  double low[kLanes], high[kLanes];
  std::fill(low, low + kLanes, z[0]);
  std::fill(high, high + kLanes, z[0]);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      low[lane] = z[i + lane] < low[lane] ? z[i + lane] : low[lane];
      high[lane] = z[i + lane] > high[lane] ? z[i + lane] : high[lane];
    }
  for (; i < n; ++i) {
    low[0] = std::min(low[0], z[i]);
    high[0] = std::max(high[0], z[i]);
  }
  return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

// What is summed for the four documents of `logistic_pairs`.
struct FourDocuments {
  double scale[kTogether], down[kTogether][kLanes];
};

// Adds to the product of 1 + e_j/e_i over the documents j from `first` on, for four documents i whose 1/e_i are given,
// to the sums of e_j/(1 + e_j/e_i) of each i, and to the slopes of j over e_j. Four quotients take one division.
BEELINE_CLONES inline void four_logistic(const double* e, std::size_t first, std::size_t n, std::size_t most,
                                         FourDocuments& four, LongProduct& product, double* slopes) {
  const double a = four.scale[0], b = four.scale[1], c = four.scale[2], d = four.scale[3];
  double factor[kLanes], sum_a[kLanes] = {}, sum_b[kLanes] = {}, sum_c[kLanes] = {}, sum_d[kLanes] = {};
  std::copy(product.factor, product.factor + kLanes, factor);
  for (std::size_t j = first; j < n;) {
    const std::size_t end = std::min(n, j + most * kLanes);
    for (; j < end; j += kLanes) {
#pragma omp simd
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double up = e[j + lane];
        const double in_a = 1 + up * a, in_b = 1 + up * b, in_c = 1 + up * c, in_d = 1 + up * d;
        const double ab = in_a * in_b, cd = in_c * in_d, all = ab * cd, inverse = 1 / all;
        const double of_ab = inverse * cd, of_cd = inverse * ab;
        const double over_a = of_ab * in_b, over_b = of_ab * in_a, over_c = of_cd * in_d, over_d = of_cd * in_c;
        factor[lane] *= all;
        slopes[j + lane] += (a * over_a + b * over_b) + (c * over_c + d * over_d);
        sum_a[lane] += up * over_a;
        sum_b[lane] += up * over_b;
        sum_c[lane] += up * over_c;
        sum_d[lane] += up * over_d;
      }
    }
    std::copy(factor, factor + kLanes, product.factor);
    product.count_powers();
    std::copy(product.factor, product.factor + kLanes, factor);
  }
  std::copy(sum_a, sum_a + kLanes, four.down[0]);
  std::copy(sum_b, sum_b + kLanes, four.down[1]);
  std::copy(sum_c, sum_c + kLanes, four.down[2]);
  std::copy(sum_d, sum_d + kLanes, four.down[3]);
}

// The mean of log(1 + exp(−(f_i − f_j))) over the pairs with y_i > y_j, weighted by w_i w_j: O(n²).
//
// Exponentials are taken once a document, and one logarithm of products of all pairs. Where scores differ by more than
// 150, or weights at all, each pair has its own.
class PairwiseLogisticLoss {
 public:
  double operator()(const Query& q, double* slopes) {
    levels_.sort(q);
    std::fill(slopes, slopes + q.n, 0.0);
    if (levels_.count() < 2) return 0;
    const auto [low, high] = range_of(q.z, q.n);
    const bool alike = std::all_of(q.w, q.w + q.n, [&](double w) { return w == q.w[0]; });
    if (!alike || high - low > kMostRange) return pair_by_pair(q, 1 / pair_weight(q, levels_), slopes);
    double pairs = 0;
    for (std::size_t level = 1; level < levels_.count(); ++level)
      pairs += static_cast<double>(levels_.starts[level]) * static_cast<double>(levels_.size(level));
    return by_products(q, 1 / pairs, low + (high - low) / 2, high - low, slopes);
  }

 private:
  static constexpr double kMostRange = 150;

  // Behind e and at its end there are zeros: such a pair changes nothing, nor does one whose 1/e_i is zero.
  double by_products(const Query& q, double scale, double middle, double range, double* slopes) {
    e_.assign(q.n + kLanes, 0.0);
    room_.assign(q.n + kLanes, 0.0);
    above_.assign(q.n, 0.0);
    for (std::size_t i = 0; i < q.n; ++i) e_[i] = std::exp(q.z[levels_.order[i]] - middle);
    const auto most =
        static_cast<std::size_t>(1000 / (static_cast<double>(kTogether) * std::log2(1 + std::exp(range))));
    LongProduct product;
    for (std::size_t level = 0; level + 1 < levels_.count(); ++level) {
      const std::size_t end = levels_.starts[level + 1];
      for (std::size_t i = levels_.starts[level]; i < end; i += kTogether) {
        FourDocuments four;
        const std::size_t here = std::min(kTogether, end - i);
        for (std::size_t k = 0; k < kTogether; ++k) four.scale[k] = k < here ? 1 / e_[i + k] : 0.0;
        four_logistic(e_.data(), end, q.n, std::max<std::size_t>(most, 1), four, product, room_.data());
        for (std::size_t k = 0; k < here; ++k)
          above_[i + k] = four.scale[k] * std::accumulate(four.down[k], four.down[k] + kLanes, 0.0);
      }
    }
    for (std::size_t i = 0; i < q.n; ++i) slopes[levels_.order[i]] = scale * (e_[i] * room_[i] - above_[i]);
    return scale * product.log();
  }

  double pair_by_pair(const Query& q, double scale, double* slopes) {
    double value = 0;
    for (std::size_t level = 0; level + 1 < levels_.count(); ++level)
      for (std::size_t a = levels_.starts[level]; a < levels_.starts[level + 1]; ++a)
        for (std::size_t b = levels_.starts[level + 1]; b < q.n; ++b) {
          const std::uint32_t i = levels_.order[a], j = levels_.order[b];
          const double t = q.z[j] - q.z[i], small = std::exp(-std::fabs(t)), weight = q.w[i] * q.w[j];
          const double slope = scale * weight * (t > 0 ? 1 / (1 + small) : small / (1 + small));
          value += weight * (std::max(t, 0.0) + std::log1p(small));
          slopes[i] -= slope;
          slopes[j] += slope;
        }
    return scale * value;
  }

  Levels levels_;
  std::vector<double> e_, room_, above_;
};

// Σ p_i log(p_i/q_i) between the parts p ∝ w·exp(y) and q ∝ w·exp(f): the cross-entropy of ListNet, less the least that
// it can be. A query whose documents are all as relevant costs nothing.
class ListNetLoss {
 public:
  double operator()(const Query& q, double* slopes) {
    std::fill(slopes, slopes + q.n, 0.0);
    const double best = *std::max_element(q.y, q.y + q.n), most = *std::max_element(q.z, q.z + q.n);
    if (*std::min_element(q.y, q.y + q.n) == best) return 0;
    wanted_.resize(q.n);
    double wanted = 0, found = 0;
    for (std::size_t i = 0; i < q.n; ++i) {
      wanted += wanted_[i] = q.w[i] * std::exp(q.y[i] - best);
      found += slopes[i] = q.w[i] * std::exp(q.z[i] - most);
    }
    const double shift = std::log(found / wanted);
    double value = 0;
    for (std::size_t i = 0; i < q.n; ++i) {
      const double part = wanted_[i] / wanted;
      value += part * ((q.y[i] - best) - (q.z[i] - most) + shift);
      slopes[i] = slopes[i] / found - part;
    }
    return std::max(value, 0.0);
  }

 private:
  std::vector<double> wanted_;
};

}  // namespace beeline
