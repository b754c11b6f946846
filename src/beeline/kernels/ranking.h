// What losses within queries share: the documents of one query, and their levels of relevance.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace beeline {

// The documents of one query: scores, relevances and weights.
struct Query {
  const double *z, *y, *w;
  std::size_t n;
};

// Documents in order of falling relevance, cut into levels of equal relevance. Memory is kept from query to query.
struct Levels {
  std::vector<std::uint32_t> order;
  std::vector<std::size_t> starts;  // where levels begin in `order`, and behind the last one where it ends

  std::size_t count() const { return starts.size() - 1; }
  std::size_t size(std::size_t level) const { return starts[level + 1] - starts[level]; }

  void sort(const Query& q) {
    order.resize(q.n);
    if (!count_levels(q)) {
      std::iota(order.begin(), order.end(), 0u);
      std::sort(order.begin(), order.end(),
                [&](std::uint32_t i, std::uint32_t j) { return q.y[i] != q.y[j] ? q.y[i] > q.y[j] : i < j; });
    }
    starts.assign(1, 0);
    for (std::size_t i = 1; i < q.n; ++i)
      if (q.y[order[i]] != q.y[order[i - 1]]) starts.push_back(i);
    starts.push_back(q.n);
  }

  // Within each level by falling scores.
  void sort_levels(const double* z) {
    for (std::size_t level = 0; level < count(); ++level)
      std::sort(order.begin() + static_cast<std::ptrdiff_t>(starts[level]),
                order.begin() + static_cast<std::ptrdiff_t>(starts[level + 1]),
                [&](std::uint32_t i, std::uint32_t j) { return z[i] != z[j] ? z[i] > z[j] : i < j; });
  }

 private:
  // Relevances are small whole numbers nearly everywhere, and need no comparisons then.
  bool count_levels(const Query& q) {
    constexpr std::uint32_t kLevels = 32;
    std::uint32_t counts[kLevels] = {};
    below_.resize(q.n);
    for (std::size_t i = 0; i < q.n; ++i) {
      if (!(q.y[i] >= 0 && q.y[i] < static_cast<double>(kLevels))) return false;
      const auto level = static_cast<std::uint32_t>(q.y[i]);
      if (static_cast<double>(level) != q.y[i]) return false;
      ++counts[below_[i] = static_cast<std::uint8_t>(kLevels - 1 - level)];
    }
    std::exclusive_scan(counts, counts + kLevels, counts, 0u);
    for (std::size_t i = 0; i < q.n; ++i) order[counts[below_[i]]++] = static_cast<std::uint32_t>(i);
    return true;
  }

  std::vector<std::uint8_t> below_;  // how far from the largest level that is counted
};

}  // namespace beeline
