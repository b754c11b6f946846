// Max-margin losses of the places of documents: max_π Σ_i c_i (f_π(i) − f_σ(i)) + 1 − measure(π), where σ is an order
// by falling relevance, and what is found for the worst order π.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "assignment.h"
#include "level_assignment.h"
#include "ranking.h"

namespace beeline {

// A measure that is a sum over places, Σ_i a_i g_π(i) over its largest value: NDCG, expected rank utility.
//
// c_i is the gain that belongs at place i, over the sum of all gains: so it is the same for documents that are equally
// relevant, and their order costs nothing. The worst order is then an assignment of documents to places with values
// c_i f_d − a_i b_d, b the gains over the best sum. Whoever has the least relevance is worth b = 0 (a constant is taken
// off all), so that at most as many of them as there are better ones leave the last places, those with the highest
// scores; what better documents come down to is then the very last places. Only these take part.
class PlacesLoss {
 public:
  PlacesLoss(const double* discounts, std::size_t n_discounts, bool exponential)
      : discounts_(discounts), n_discounts_(n_discounts), exponential_(exponential) {}

  double operator()(const Query& q, double* slopes) {
    levels_.sort(q);
    std::fill(slopes, slopes + q.n, 0.0);
    if (levels_.count() < 2) return 0;
    levels_.sort_levels(q.z);
    scale_gains(q);
    const std::size_t better = levels_.starts[levels_.count() - 1];
    return levels_.count() == 2 ? swap_two_levels(q, better, slopes) : assign(q, better, slopes);
  }

 private:
  double discount(std::size_t place) const { return place < n_discounts_ ? discounts_[place] : 0.0; }

  // c and b of every level.
  void scale_gains(const Query& q) {
    const std::size_t n = levels_.count();
    const double most = q.y[levels_.order[0]];
    weight_.resize(n);
    worth_.resize(n);
    double total = 0, best = 0;
    for (std::size_t level = 0; level < n; ++level) {
      const double y = q.y[levels_.order[levels_.starts[level]]];
      // (2^y − 1)/2^most, which is finite whatever the relevances are, and not zero if they are tiny.
      weight_[level] = exponential_ ? -std::exp2(y - most) * std::expm1(-y * kLog2) : y / most;
      total += weight_[level] * static_cast<double>(levels_.size(level));
      for (std::size_t i = levels_.starts[level]; i < levels_.starts[level + 1]; ++i)
        best += discount(i) * weight_[level];
    }
    for (std::size_t level = 0; level < n; ++level) worth_[level] = (weight_[level] - weight_[n - 1]) / best;
    for (double& weight : weight_) weight /= total;
  }

  // Of two levels the best order has t of each on the places of the other: worse ones with the highest scores first,
  // better ones with the lowest scores last. What the t-th of them adds falls with t, so that the first that adds
  // nothing ends it.
  double swap_two_levels(const Query& q, std::size_t better, double* slopes) {
    const double weight = weight_[0] - weight_[1];
    double value = 0;
    const std::size_t most = std::min(better, q.n - better);
    for (std::size_t t = 0; t < most; ++t) {
      const std::uint32_t up = levels_.order[better + t], down = levels_.order[better - 1 - t];
      const double more = weight * (q.z[up] - q.z[down]) + worth_[0] * (discount(t) - discount(q.n - 1 - t));
      if (!(more > 0)) break;
      value += more;
      slopes[up] = weight;
      slopes[down] = -weight;
    }
    return value;
  }

  // Who takes part: all better documents and the `moving` ones after them, on the first and on the last places.
  double assign(const Query& q, std::size_t better, double* slopes) {
    const std::size_t moving = std::min(better, q.n - better), n = better + moving, shift = q.n - n;
    places_.resize(n);
    scores_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      places_[i] = discount(i < better ? i : i + shift);
      scores_[i] = q.z[levels_.order[i]];
    }
    double size = 0;
    for (const double z : scores_) size += std::fabs(z);
    if (!std::isfinite(size)) return size;
    starts_ = levels_.starts;
    starts_.back() = n;
    return std::max(levels_are_faster(n) ? by_levels(slopes) : one_by_one(slopes), 0.0);
  }

  double by_levels(double* slopes) {
    by_levels_.solve({starts_, weight_, worth_, scores_, places_});
    double value = 0;
    for (std::size_t level = 0; level < levels_.count(); ++level) {
      for (std::size_t j = starts_[level]; j < starts_[level + 1]; ++j) {
        const double slope = weight_[by_levels_.block_of(level, j - starts_[level])] - weight_[level];
        slopes[levels_.order[j]] = slope;
        value += slope * scores_[j];
      }
      for (std::size_t i = starts_[level]; i < starts_[level + 1]; ++i)
        value += places_[i] * (worth_[level] - worth_[by_levels_.level_at(level, i - starts_[level])]);
    }
    return value;
  }

  double one_by_one(double* slopes) {
    const std::size_t n = scores_.size();
    for (auto* column : {&weights_, &worths_}) column->resize(n);
    for (std::size_t level = 0; level < levels_.count(); ++level)
      for (std::size_t i = starts_[level]; i < starts_[level + 1]; ++i) {
        weights_[i] = weight_[level];
        worths_[i] = worth_[level];
      }
    one_by_one_.solve({weights_, places_, scores_, worths_});
    double value = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t j = one_by_one_.document_at(i);
      const double slope = weights_[i] - weights_[j];
      slopes[levels_.order[j]] = slope;
      value += slope * scores_[j] + places_[i] * (worths_[i] - worths_[j]);
    }
    return value;
  }

  // By what both take, in nanoseconds of some machine.
  bool levels_are_faster(std::size_t n) const {
    const auto documents = static_cast<double>(n), levels = static_cast<double>(levels_.count());
    const double paths = std::min(0.6 * documents, static_cast<double>(n_discounts_));
    const double together = (20 + 2 * levels) * documents * levels * levels;
    const double single = 0.6 * documents * documents * paths;
    if (std::min(together, single) > kMostTime)
      throw std::runtime_error("a query has " + std::to_string(levels_.starts.back()) + " documents of " +
                               std::to_string(levels_.count()) + " different relevances");
    return together < single;
  }

  // Half a minute for one value of a query: training would look like a program that hangs.
  static constexpr double kMostTime = 3e10;
  static constexpr double kLog2 = 0.69314718055994530942;

  const double* discounts_;
  std::size_t n_discounts_;
  bool exponential_;
  Levels levels_;
  LevelAssignment by_levels_;
  Assignment one_by_one_;
  std::vector<double> weight_, worth_, places_, scores_;  // by level; by place and by document
  std::vector<double> weights_, worths_;                  // c of every place and b of every document
  std::vector<std::size_t> starts_;
};

// Relevant documents, those of a relevance above zero, and the others, each by falling scores.
struct TwoSides {
  std::vector<std::uint32_t> relevant, others;

  void sort(const Query& q) {
    relevant.clear();
    others.clear();
    for (std::size_t i = 0; i < q.n; ++i) (q.y[i] > 0 ? relevant : others).push_back(static_cast<std::uint32_t>(i));
    for (auto* side : {&relevant, &others})
      std::sort(side->begin(), side->end(),
                [&](std::uint32_t i, std::uint32_t j) { return q.z[i] != q.z[j] ? q.z[i] > q.z[j] : i < j; });
  }
};

// max_π the mean over pairs of (f_j − f_i where j, irrelevant, is above i, relevant; else 0) + 1 − AP(π).
//
// The q-th irrelevant document from above lowers the precision at the i-th relevant one, if it is above that, from
// i/(i + q − 1) to i/(i + q), whatever the others do. So each finds its place by itself; a later one gains less
// everywhere, so that its place is not above (Yue, Finley, Radlinski and Joachims 2007).
class AveragePrecisionLoss {
 public:
  double operator()(const Query& q, double* slopes) {
    sides_.sort(q);
    std::fill(slopes, slopes + q.n, 0.0);
    const std::size_t m = sides_.relevant.size(), others = sides_.others.size();
    if (m == 0 || others == 0) return 0;
    const double each = 1 / static_cast<double>(m), pair = each / static_cast<double>(others);
    double value = 0;
    for (std::size_t o = 0; o < others; ++o) {
      const double z = q.z[sides_.others[o]];
      double gain = 0, best = 0;
      std::size_t place = m;
      for (std::size_t i = m; i-- > 0;) {
        const double rank = static_cast<double>(i + 1), below = rank + static_cast<double>(o);
        gain += each * rank / (below * (below + 1)) + pair * (z - q.z[sides_.relevant[i]]);
        if (gain > best) {
          best = gain;
          place = i;
        }
      }
      if (place == m) break;  // the next ones gain nothing either
      value += best;
      slopes[sides_.others[o]] = pair * static_cast<double>(m - place);
      for (std::size_t i = place; i < m; ++i) slopes[sides_.relevant[i]] -= pair;
    }
    return value;
  }

 private:
  TwoSides sides_;
};

// max_π the mean score of the first m places less that of the m relevant documents + 1 − 1/(the place of the first).
//
// If t irrelevant documents are on the first m places, the first relevant one is on place t + 1 at worst; if all of the
// first places are theirs, all irrelevant ones may be above it.
class ReciprocalRankLoss {
 public:
  double operator()(const Query& q, double* slopes) {
    sides_.sort(q);
    std::fill(slopes, slopes + q.n, 0.0);
    const std::size_t m = sides_.relevant.size(), others = sides_.others.size();
    if (m == 0 || others == 0) return 0;
    const double each = 1 / static_cast<double>(m);
    double moved = 0, value = 0;
    std::size_t swaps = 0;
    for (std::size_t t = 1; t <= std::min(m, others); ++t) {
      moved += each * (q.z[sides_.others[t - 1]] - q.z[sides_.relevant[m - t]]);
      const double found = moved + 1 - 1 / static_cast<double>((t == m ? others : t) + 1);
      if (found > value) {
        value = found;
        swaps = t;
      }
    }
    for (std::size_t t = 0; t < swaps; ++t) {
      slopes[sides_.others[t]] = each;
      slopes[sides_.relevant[m - 1 - t]] = -each;
    }
    return value;
  }

 private:
  TwoSides sides_;
};

}  // namespace beeline
