// Losses of the pairs of a query, of which one document is more relevant than the other, and of ListNet.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
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

// Σ log(1 + e_j/e_i) over the documents i of all levels but the last, and j of lower ones; slopes are added to. Behind
// e_j there are zeros up to a whole number of lanes: such a pair changes nothing.
//
// Logarithms are taken of products of up to `most` factors 1 + e_j/e_i in each lane.
BEELINE_CLONES inline double logistic_pairs(const double* e, const double* inverse, const std::size_t* lower,
                                            std::size_t n_upper, std::size_t n, std::size_t most, double* slopes) {
  double products[kLanes], value = 0;
  std::fill(products, products + kLanes, 1.0);
  std::size_t factors = 0;
  for (std::size_t i = 0; i < n_upper; ++i) {
    double down[kLanes] = {};
    const double scale = inverse[i];
    for (std::size_t j = lower[i]; j < n; j += kLanes) {
#pragma omp simd
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double odds = e[j + lane] * scale, factor = 1 + odds, slope = odds / factor;
        products[lane] *= factor;
        slopes[j + lane] += slope;
        down[lane] += slope;
      }
      if (++factors == most) {
        for (double& product : products) value += std::log(product);
        std::fill(products, products + kLanes, 1.0);
        factors = 0;
      }
    }
    slopes[i] -= ((down[0] + down[4]) + (down[1] + down[5])) + ((down[2] + down[6]) + (down[3] + down[7]));
  }
  for (const double product : products) value += std::log(product);
  return value;
}

// The mean of log(1 + exp(−(f_i − f_j))) over the pairs with y_i > y_j, weighted by w_i w_j: O(n²).
//
// Exponentials are taken once a document, and logarithms of products of many pairs. Where scores differ by more than
// 300, or weights at all, each pair has its own.
class PairwiseLogisticLoss {
 public:
  double operator()(const Query& q, double* slopes) {
    levels_.sort(q);
    std::fill(slopes, slopes + q.n, 0.0);
    if (levels_.count() < 2) return 0;
    lower_.resize(q.n);
    for (std::size_t level = 0; level < levels_.count(); ++level)
      std::fill(lower_.begin() + static_cast<std::ptrdiff_t>(levels_.starts[level]),
                lower_.begin() + static_cast<std::ptrdiff_t>(levels_.starts[level + 1]), levels_.starts[level + 1]);
    const auto [low, high] = std::minmax_element(q.z, q.z + q.n);
    const bool alike = std::all_of(q.w, q.w + q.n, [&](double w) { return w == q.w[0]; });
    const double scale = 1 / pair_weight(q, levels_), range = *high - *low;
    if (!alike || range > kMostRange) return scale * pair_by_pair(q, scale, slopes);
    return scale * q.w[0] * q.w[0] * by_products(q, scale * q.w[0] * q.w[0], *low + range / 2, range, slopes);
  }

 private:
  static constexpr double kMostRange = 300;

  double by_products(const Query& q, double scale, double middle, double range, double* slopes) {
    const std::size_t upper = levels_.starts[levels_.count() - 1];
    e_.assign(q.n + kLanes, 0.0);
    room_.assign(q.n + kLanes, 0.0);
    inverse_.resize(upper);
    for (std::size_t i = 0; i < q.n; ++i) e_[i] = std::exp(q.z[levels_.order[i]] - middle);
    for (std::size_t i = 0; i < upper; ++i) inverse_[i] = 1 / e_[i];
    const auto most = static_cast<std::size_t>(1000 / std::log2(1 + std::exp(range)));
    const double value = logistic_pairs(e_.data(), inverse_.data(), lower_.data(), upper, q.n,
                                        std::max<std::size_t>(most, 1), room_.data());
    for (std::size_t i = 0; i < q.n; ++i) slopes[levels_.order[i]] = scale * room_[i];
    return value;
  }

  double pair_by_pair(const Query& q, double scale, double* slopes) {
    double value = 0;
    for (std::size_t a = 0; a < levels_.starts[levels_.count() - 1]; ++a) {
      const std::uint32_t i = levels_.order[a];
      for (std::size_t b = lower_[a]; b < q.n; ++b) {
        const std::uint32_t j = levels_.order[b];
        const double t = q.z[j] - q.z[i], small = std::exp(-std::fabs(t)), weight = q.w[i] * q.w[j];
        const double slope = scale * weight * (t > 0 ? 1 / (1 + small) : small / (1 + small));
        value += weight * (std::max(t, 0.0) + std::log1p(small));
        slopes[i] -= slope;
        slopes[j] += slope;
      }
    }
    return value;
  }

  Levels levels_;
  std::vector<std::size_t> lower_;
  std::vector<double> e_, inverse_, room_;
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
