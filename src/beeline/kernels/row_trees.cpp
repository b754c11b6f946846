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
constexpr std::size_t kNear = 1 << 18;  // bytes of a node whose rows are copied, to lie side by side

struct Node {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

// A row on its way: where it lies along the direction of its node, its number, and where its entries are.
struct Item {
  double along;
  std::int64_t row;
  Span span;
};

// Of rows that lie at the same place the number decides.
inline bool operator<(const Item& a, const Item& b) {
  return a.along < b.along || (a.along == b.along && a.row < b.row);
}

// A copy of some rows, one behind the other, as entries of the same kind.
template <class Entries>
class Copy;

template <class Index, class Value>
class Copy<SparseEntries<Index, Value>> {
 public:
  SparseEntries<Index, Value> of(const SparseEntries<Index, Value>& entries, Item* items, std::size_t n) {
    indices_.clear();
    values_.clear();
    for (std::size_t k = 0; k < n; ++k) {
      const Span from = items[k].span;
      items[k].span.begin = static_cast<std::int64_t>(values_.size());
      indices_.insert(indices_.end(), entries.indices + from.begin, entries.indices + from.begin + from.count);
      values_.insert(values_.end(), entries.values + from.begin, entries.values + from.begin + from.count);
    }
    return {indices_.data(), values_.data()};
  }

 private:
  std::vector<Index> indices_;
  std::vector<Value> values_;
};

template <class Value>
class Copy<DenseEntries<Value>> {
 public:
  DenseEntries<Value> of(const DenseEntries<Value>& entries, Item* items, std::size_t n) {
    values_.clear();
    for (std::size_t k = 0; k < n; ++k) {
      const Span from = items[k].span;
      items[k].span.begin = static_cast<std::int64_t>(values_.size());
      values_.insert(values_.end(), entries.values + from.begin, entries.values + from.begin + from.count);
    }
    return {values_.data()};
  }

 private:
  std::vector<Value> values_;
};

template <class Entries>
class Halving {
 public:
  Halving(const RowArrays& arrays, const Entries& entries, std::size_t leaf, std::uint64_t seed)
      : entries_(entries), n_features_(arrays.n_features), leaf_(leaf), seed_(seed) {}

  // Orders the rows of all groups; returns where leaves end.
  std::vector<std::int64_t> leaves(const RowArrays& arrays, std::int64_t* order, std::size_t n_rows,
                                   std::vector<Node> nodes, int threads) {
    items_.resize(n_rows);
    for (std::size_t at = 0; at < n_rows; ++at)
      items_[at] = {0.0, order[at], span_of(arrays, static_cast<std::size_t>(order[at]))};
    std::vector<std::vector<std::int64_t>> ends(1);
    // A few large nodes are shared row by row; then there are enough of them to share.
    while (!nodes.empty() && nodes.size() < kShared) {
      std::vector<Node> next;
      for (const Node& node : nodes) step(entries_, node, next, ends[0], threads);
      nodes = std::move(next);
    }
    ends.resize(nodes.size() + 1);
    parallel_for(nodes.size(), [&](std::size_t k) { descend(nodes[k], ends[k + 1]); }, threads);
    for (std::size_t at = 0; at < n_rows; ++at) order[at] = items_[at].row;
    std::vector<std::int64_t> all;
    for (const auto& some : ends) all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  static constexpr std::size_t kShared = 8;

  // All that is below a node. Its rows lie anywhere; those of one that is small enough are brought together first.
  void descend(const Node& top, std::vector<std::int64_t>& ends) {
    std::vector<Node> nodes{top};
    while (!nodes.empty()) {
      const Node node = nodes.back();
      nodes.pop_back();
      std::size_t bytes = 0;
      for (std::size_t at = node.begin; at < node.end && bytes <= kNear; ++at) bytes += 8 * items_[at].span.count;
      if (bytes <= kNear) {
        Copy<Entries> copy;
        const Entries near = copy.of(entries_, items_.data() + node.begin, node.size());
        std::vector<Node> below{node};
        while (!below.empty()) {
          const Node next = below.back();
          below.pop_back();
          step(near, next, below, ends);
        }
      } else {
        step(entries_, node, nodes, ends);
      }
    }
  }

  // Halves a node: what is left to be halved goes to `nodes`, where leaves end to `ends`.
  void step(const Entries& entries, const Node& node, std::vector<Node>& nodes, std::vector<std::int64_t>& ends,
            int threads = 1) {
    const auto [left, right] = halved(entries, node, threads);
    for (const Node& half : {left, right}) {
      if (half.size() > leaf_) {
        nodes.push_back(half);
      } else if (half.size()) {
        ends.push_back(static_cast<std::int64_t>(half.end));
      }
    }
  }

  std::pair<Node, Node> halved(const Entries& entries, const Node& node, int threads) {
    Random random(seed_ + 0x9e3779b97f4a7c15u * node.begin);
    Item* items = items_.data();
    if (node.size() <= leaf_) {
      random.shuffle(items + node.begin, node.size());  // the first rows of a leaf are a fair sample of it
      return {node, {node.end, node.end}};
    }
    const std::vector<double> direction = widest(entries, node, random);
    project(entries, node, direction.data(), threads);
    // Whole leaves on either side.
    const std::size_t n_leaves = (node.size() + leaf_ - 1) / leaf_, middle = node.begin + leaf_ * ((n_leaves + 1) / 2);
    std::nth_element(items + node.begin, items + middle, items + node.end);
    for (const Node& half : {Node{node.begin, middle}, Node{middle, node.end}})
      if (half.size() <= leaf_) {
        std::sort(items + half.begin, items + half.end, [](const Item& a, const Item& b) { return a.row < b.row; });
        random.shuffle(items + half.begin, half.size());
      }
    return {{node.begin, middle}, {middle, node.end}};
  }

  // A direction along which the rows of a node differ much.
  std::vector<double> widest(const Entries& entries, const Node& node, Random& random) const {
    std::vector<Span> sample(std::min(kSample, node.size()));
    for (Span& span : sample) span = items_[node.begin + random.below(static_cast<std::uint32_t>(node.size()))].span;
    std::vector<double> v(n_features_, 0.0), squares(sample.size()), t(sample.size());
    for (std::size_t k = 0; k < sample.size(); ++k)
      entries.each(sample[k], [&](std::size_t, double x) { squares[k] += x * x; });
    const std::size_t one = farthest(entries, sample, squares, 0, v, t);
    const std::size_t other = farthest(entries, sample, squares, one, v, t);
    entries.axpy(sample[other], 1.0, v.data());
    entries.axpy(sample[one], -1.0, v.data());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (std::size_t k = 0; k < sample.size(); ++k) t[k] = entries.dot(sample[k], v.data());
      const double mean = std::accumulate(t.begin(), t.end(), 0.0) / static_cast<double>(t.size());
      double size = 0;
      for (double& along : t) {
        along -= mean;
        size += along * along;
      }
      if (!(size > 0)) break;  // rows that are all the same
      // Σ t_k x_k with Σ t_k = 0: the sample's covariance times v.
      std::fill(v.begin(), v.end(), 0.0);
      for (std::size_t k = 0; k < sample.size(); ++k) entries.axpy(sample[k], t[k] / std::sqrt(size), v.data());
    }
    return v;
  }

  // The row of a sample that is farthest from another one; `v` is zero, and is so again.
  std::size_t farthest(const Entries& entries, const std::vector<Span>& sample, const std::vector<double>& squares,
                       std::size_t from, std::vector<double>& v, std::vector<double>& t) const {
    entries.axpy(sample[from], 1.0, v.data());
    for (std::size_t k = 0; k < sample.size(); ++k) t[k] = squares[k] - 2 * entries.dot(sample[k], v.data());
    entries.each(sample[from], [&](std::size_t j, double) { v[j] = 0; });
    return static_cast<std::size_t>(std::max_element(t.begin(), t.end()) - t.begin());
  }

  // Where each row lies along a direction.
  void project(const Entries& entries, const Node& node, const double* direction, int threads) {
    const std::size_t n_tasks = (node.size() + kRowsPerTask - 1) / kRowsPerTask;
    const auto task = [&](std::size_t k) {
      const std::size_t begin = node.begin + k * kRowsPerTask, end = std::min(begin + kRowsPerTask, node.end);
      for (std::size_t at = begin; at < end; ++at) {
        if (at + 4 < end) entries.prefetch(items_[at + 4].span);
        items_[at].along = entries.dot(items_[at].span, direction);
      }
    };
    if (threads == 1 || n_tasks == 1) {
      for (std::size_t k = 0; k < n_tasks; ++k) task(k);
    } else {
      parallel_for(n_tasks, task, threads);
    }
  }

  const Entries& entries_;
  std::size_t n_features_, leaf_;
  std::uint64_t seed_;
  std::vector<Item> items_;
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
    return Halving<decltype(entries)>(arrays, entries, leaf, seed)
        .leaves(arrays, order.data(), order.size(), std::move(nodes), threads);
  });
}

}  // namespace

void bind_row_trees(nb::module_& m) {
  m.def("order_rows", &order_rows, "rows"_a, "order"_a.noconvert(), "groups"_a, "leaf"_a, "seed"_a, "threads"_a = 0);
}

}  // namespace beeline
