// Rows put in an order in which neighbours are alike, and cut into leaves.
//
// A node is halved by where its rows lie along a direction: the one that separates two rows far from each other, turned
// towards the direction in which a sample of the rows varies most. Leaves are full but for the last one of a group. All
// that is random follows from the seed and from where a node begins, so that the same rows give the same leaves, with
// any number of threads.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "entries.h"
#include "random.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Longs = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kSample = 128;  // rows of a node by which its direction is found
constexpr int kTurns = 2;             // of that direction towards the widest one
constexpr std::size_t kRowsPerTask = 1 << 12;

struct Node {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

template <class Entries>
class Halving {
 public:
  Halving(const RowArrays& arrays, const Entries& entries, std::int64_t* order, std::size_t leaf, std::uint64_t seed)
      : arrays_(arrays), entries_(entries), order_(order), leaf_(leaf), seed_(seed) {}

  // Orders the rows of all groups; returns where leaves end.
  std::vector<std::int64_t> leaves(std::vector<Node> nodes, std::size_t n_rows, int threads) {
    keys_.resize(n_rows);
    std::vector<std::int64_t> ends;
    while (!nodes.empty()) {
      std::vector<std::pair<Node, Node>> halves(nodes.size());
      // A few large nodes are shared row by row, many small ones node by node.
      if (nodes.size() < kShared) {
        for (std::size_t k = 0; k < nodes.size(); ++k) halves[k] = halved(nodes[k], threads);
      } else {
        parallel_for(nodes.size(), [&](std::size_t k) { halves[k] = halved(nodes[k], 1); }, threads);
      }
      std::vector<Node> next;
      for (const auto& [left, right] : halves)
        for (const Node& node : {left, right}) {
          if (node.size() > leaf_) {
            next.push_back(node);
          } else if (node.size()) {
            ends.push_back(static_cast<std::int64_t>(node.end));
          }
        }
      nodes = std::move(next);
    }
    std::sort(ends.begin(), ends.end());
    return ends;
  }

 private:
  static constexpr std::size_t kShared = 8;

  Span span(std::size_t at) const { return span_of(arrays_, static_cast<std::size_t>(order_[at])); }

  std::pair<Node, Node> halved(const Node& node, int threads) {
    Random random(seed_ + 0x9e3779b97f4a7c15u * node.begin);
    if (node.size() <= leaf_) {
      random.shuffle(order_ + node.begin, node.size());  // the first rows of a leaf are a fair sample of it
      return {node, {node.end, node.end}};
    }
    const std::vector<double> direction = widest(node, random);
    project(node, direction.data(), threads);
    // Whole leaves on either side.
    const std::size_t n_leaves = (node.size() + leaf_ - 1) / leaf_, middle = node.begin + leaf_ * ((n_leaves + 1) / 2);
    std::nth_element(keys_.begin() + node.begin, keys_.begin() + middle, keys_.begin() + node.end);
    for (std::size_t at = node.begin; at < node.end; ++at) order_[at] = keys_[at].second;
    for (const Node& half : {Node{node.begin, middle}, Node{middle, node.end}})
      if (half.size() <= leaf_) {
        std::sort(order_ + half.begin, order_ + half.end);
        random.shuffle(order_ + half.begin, half.size());
      }
    return {{node.begin, middle}, {middle, node.end}};
  }

  // A direction along which the rows of a node differ much.
  std::vector<double> widest(const Node& node, Random& random) const {
    std::vector<std::size_t> sample(std::min(kSample, node.size()));
    for (std::size_t& at : sample) at = node.begin + random.below(static_cast<std::uint32_t>(node.size()));
    std::vector<double> v(arrays_.n_features, 0.0), squares(sample.size()), t(sample.size());
    for (std::size_t k = 0; k < sample.size(); ++k)
      entries_.each(span(sample[k]), [&](std::size_t, double x) { squares[k] += x * x; });
    const std::size_t one = farthest(sample, squares, 0, v, t), other = farthest(sample, squares, one, v, t);
    entries_.axpy(span(sample[other]), 1.0, v.data());
    entries_.axpy(span(sample[one]), -1.0, v.data());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (std::size_t k = 0; k < sample.size(); ++k) t[k] = entries_.dot(span(sample[k]), v.data());
      const double mean = std::accumulate(t.begin(), t.end(), 0.0) / static_cast<double>(t.size());
      double size = 0;
      for (double& along : t) size += (along -= mean) * along;
      if (!(size > 0)) break;  // rows that are all the same
      // Σ t_k x_k with Σ t_k = 0: the sample's covariance times v.
      std::fill(v.begin(), v.end(), 0.0);
      for (std::size_t k = 0; k < sample.size(); ++k) entries_.axpy(span(sample[k]), t[k] / std::sqrt(size), v.data());
    }
    return v;
  }

  // The row of a sample that is farthest from another one; `v` is zero, and is so again.
  std::size_t farthest(const std::vector<std::size_t>& sample, const std::vector<double>& squares, std::size_t from,
                       std::vector<double>& v, std::vector<double>& t) const {
    const Span there = span(sample[from]);
    entries_.axpy(there, 1.0, v.data());
    for (std::size_t k = 0; k < sample.size(); ++k) t[k] = squares[k] - 2 * entries_.dot(span(sample[k]), v.data());
    entries_.each(there, [&](std::size_t j, double) { v[j] = 0; });
    return static_cast<std::size_t>(std::max_element(t.begin(), t.end()) - t.begin());
  }

  // Where each row lies along a direction; of rows that lie at the same place the number decides.
  void project(const Node& node, const double* direction, int threads) {
    const std::size_t n_tasks = (node.size() + kRowsPerTask - 1) / kRowsPerTask;
    const auto task = [&](std::size_t k) {
      const std::size_t begin = node.begin + k * kRowsPerTask, end = std::min(begin + kRowsPerTask, node.end);
      for (std::size_t at = begin; at < end; ++at) {
        if (at + 4 < end) entries_.prefetch(span(at + 4));
        keys_[at] = {entries_.dot(span(at), direction), order_[at]};
      }
    };
    if (threads == 1 || n_tasks == 1) {
      for (std::size_t k = 0; k < n_tasks; ++k) task(k);
    } else {
      parallel_for(n_tasks, task, threads);
    }
  }

  const RowArrays& arrays_;
  const Entries& entries_;
  std::int64_t* order_;
  std::size_t leaf_;
  std::uint64_t seed_;
  std::vector<std::pair<double, std::int64_t>> keys_;
};

// Puts the row numbers `order`, which come in groups that end at `groups`, in an order in which neighbours are alike;
// no leaf has rows of two groups. Returns where leaves end.
std::vector<std::int64_t> order_rows(const RowArrays& arrays, Longs order, std::vector<std::int64_t> groups,
                                     std::size_t leaf, std::uint64_t seed, int threads) {
  nb::gil_scoped_release release;
  std::vector<Node> nodes;
  std::size_t begin = 0;
  for (const std::int64_t end : groups) {
    if (static_cast<std::size_t>(end) > begin) nodes.push_back({begin, static_cast<std::size_t>(end)});
    begin = static_cast<std::size_t>(end);
  }
  return with_entries(arrays, [&](auto entries) {
    return Halving<decltype(entries)>(arrays, entries, order.data(), leaf, seed)
        .leaves(std::move(nodes), order.size(), threads);
  });
}

}  // namespace

void bind_row_trees(nb::module_& m) {
  m.def("order_rows", &order_rows, "rows"_a, "order"_a.noconvert(), "groups"_a, "leaf"_a, "seed"_a, "threads"_a = 0);
}

}  // namespace beeline
