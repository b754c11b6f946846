// Metric trees of pivots: a node's rows are shared out to K of them, each to the one that it is most alike (Yen, Chang,
// Lin, Lin & Lin 2013, section 4.1).
//
// The metric is the angle arccos((x̂ᵀp̂)²) of rows of length 1 as the degree-2 expansion V sees them, which is never
// made: a row goes to the pivot with the largest (x̂ᵀp̂)². It does not tell rows of one direction apart, whatever their
// lengths and signs; where a node has no others, its rows are put in order along that direction and cut into leaves.
// Rows of zeros have no direction, and leaves of their own.
//
// Pivots are rows of the node, at random. Of those with the same direction one is kept, which the paper does not say:
// where most rows of a node are equal, a pivot would have the others' rows otherwise, or none. All that is random
// follows from the seed and the number of the tree, so that the same rows give the same tree, with any number of
// threads.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "random.h"
#include "rows.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Longs = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr double kAlike = 1 - 1e-12;      // (x̂ᵀp̂)² of rows of one direction, but for rounding
constexpr std::size_t kBuffer = 1 << 18;  // numbers: weights of several pivots side by side
constexpr std::size_t kRowsPerTask = 1 << 12;

// Rows begin … end − 1 in the order.
struct Run {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

struct Pivot {
  std::size_t row;
  double norm;         // ‖p‖²
  Run run;             // the rows nearest to it
  std::int32_t child;  // the node that shares them out, or −1
};

// The rows of a leaf are about scale · p, and so far from there: the root of the mean square.
struct Leaf {
  Run run;
  float scale, spread;
};

struct Tree {
  std::vector<Leaf> leaves;
  std::int32_t n_zero_leaves = 0;
  std::vector<std::int32_t> widths;  // pivots of each node; nodes come level by level
  std::vector<Pivot> pivots;         // node by node
  std::vector<float> distances;      // √(2 − 2(p̂_kᵀp̂_q)²) of a node's pivots, q < k, line by line
};

// What is known of each row, by its number; several trees share it.
struct RowNotes {
  explicit RowNotes(std::size_t n) : norms(n), dots(n), nearest(n) {}
  std::vector<double> norms, dots;    // ‖x‖², and xᵀp with the nearest pivot p
  std::vector<std::int32_t> nearest;  // that pivot's number in its node
};

template <class Rows>
class Growing {
 public:
  Growing(const Rows& rows, RowNotes& notes, std::int64_t* order, std::size_t width, std::size_t leaf,
          std::uint64_t seed, int threads)
      : rows_(rows), notes_(notes), order_(order), width_(width), leaf_(leaf), random_(seed), threads_(threads) {}

  Tree grow(const Run& all) {
    for (std::size_t at = all.begin; at < all.end; ++at) notes_.norms[row(at)] = rows_.squared_norm(row(at));
    std::int64_t* const middle = std::stable_partition(order_ + all.begin, order_ + all.end,
                                                       [&](std::int64_t i) { return !(notes_.norms[i] > 0); });
    const Run zeros{all.begin, static_cast<std::size_t>(middle - order_)}, others{zeros.end, all.end};
    cut(zeros, nullptr);
    tree_.n_zero_leaves = static_cast<std::int32_t>(tree_.leaves.size());
    if (others.size()) nodes_.push_back(others);
    for (std::size_t k = 0; k < nodes_.size(); ++k) split(Run(nodes_[k]));
    std::sort(tree_.leaves.begin(), tree_.leaves.end(),
              [](const Leaf& a, const Leaf& b) { return a.run.begin < b.run.begin; });
    return std::move(tree_);
  }

 private:
  std::size_t row(std::size_t at) const { return static_cast<std::size_t>(order_[at]); }

  // visit(place of the row in its run, number of the first pivot, how many, the products) for all rows of a run and all
  // pivots, some pivots at a time.
  template <class RowAt, class Visit>
  void products(std::size_t n, RowAt row_at, const std::vector<std::size_t>& pivots, Visit visit) {
    const std::size_t d = std::max<std::size_t>(1, rows_.n_features);
    const std::size_t most = std::clamp<std::size_t>(kBuffer / d, 1, pivots.size());
    for (std::size_t first = 0; first < pivots.size(); first += most) {
      const std::size_t columns = std::min(most, pivots.size() - first);
      weights_.resize(std::max(weights_.size(), d * columns), 0.0);
      for (std::size_t k = 0; k < columns; ++k)
        rows_.each(pivots[first + k], [&](std::size_t j, double x) { weights_[j * columns + k] = x; });
      const auto task = [&](std::size_t t) {
        std::vector<double> z(kBatch * columns);
        for (std::size_t i = t * kRowsPerTask, end = std::min(n, i + kRowsPerTask); i < end; i += kBatch) {
          const std::size_t count = std::min(kBatch, end - i);
          std::size_t which[kBatch];
          for (std::size_t r = 0; r < count; ++r) which[r] = row_at(i + r);
          rows_.dots(which, count, weights_.data(), columns, z.data());
          for (std::size_t r = 0; r < count; ++r) visit(i + r, first, columns, z.data() + r * columns);
        }
      };
      if (n <= kRowsPerTask) {
        task(0);
      } else {
        parallel_for((n + kRowsPerTask - 1) / kRowsPerTask, task, threads_);
      }
      for (std::size_t k = 0; k < columns; ++k)
        rows_.each(pivots[first + k], [&](std::size_t j, double) { weights_[j * columns + k] = 0; });
    }
  }

  // Moves some rows of a run, at random, to its front; their numbers.
  std::vector<std::size_t> drawn(const Run& run, std::size_t count) {
    std::vector<std::size_t> found;
    for (std::size_t k = 0; k < std::min(count, run.size()); ++k) {
      const std::size_t other = run.begin + k + random_.below(static_cast<std::uint32_t>(run.size() - k));
      std::swap(order_[run.begin + k], order_[other]);
      found.push_back(row(run.begin + k));
    }
    return found;
  }

  // The first of some rows in each direction, no more than the tree is wide, and how far they are from each other.
  std::pair<std::vector<std::size_t>, std::vector<float>> distinct(const std::vector<std::size_t>& rows) {
    const std::size_t n = rows.size();
    std::vector<double> gram(n * n);
    products(n, [&](std::size_t i) { return rows[i]; }, rows,
             [&](std::size_t i, std::size_t first, std::size_t count, const double* z) {
      std::copy(z, z + count, gram.begin() + static_cast<std::ptrdiff_t>(i * n + first));
    });
    std::vector<std::size_t> kept, places;
    std::vector<float> distances;
    for (std::size_t k = 0; k < n && kept.size() < width_; ++k) {
      std::vector<float> line;
      for (const std::size_t q : places) {
        const double cosine = gram[k * n + q] * gram[k * n + q] / (notes_.norms[rows[k]] * notes_.norms[rows[q]]);
        if (!(cosine < kAlike)) break;
        line.push_back(static_cast<float>(std::sqrt(2 - 2 * cosine)));
      }
      if (line.size() < places.size()) continue;
      places.push_back(k);
      kept.push_back(rows[k]);
      distances.insert(distances.end(), line.begin(), line.end());
    }
    return {kept, distances};
  }

  // Pivots of a node, at random; one where its rows fit a leaf, or all have one direction.
  std::pair<std::vector<std::size_t>, std::vector<float>> pivots_of(const Run& node) {
    if (node.size() <= leaf_) return {drawn(node, 1), {}};
    auto found = distinct(drawn(node, 2 * width_));
    if (found.first.size() > 1) return found;
    // Nearly all rows have the direction of the first: the others are looked for.
    const std::size_t first = found.first[0];
    std::vector<char> alike(node.size());
    products(node.size(), [&](std::size_t i) { return row(node.begin + i); }, {first},
             [&](std::size_t i, std::size_t, std::size_t, const double* z) {
      alike[i] = is_alike(z[0], notes_.norms[row(node.begin + i)], notes_.norms[first]);
    });
    std::vector<std::size_t> others{};
    for (std::size_t i = 0; i < node.size(); ++i)
      if (!alike[i]) others.push_back(row(node.begin + i));
    if (others.empty()) return found;
    random_.shuffle(others.data(), others.size());
    others.resize(std::min(others.size(), 2 * width_));
    others.insert(others.begin(), first);
    return distinct(others);
  }

  static bool is_alike(double dot, double norm, double other) { return !(dot * dot < kAlike * norm * other); }

  // Shares the rows of a node out to its pivots.
  void split(const Run& node) {
    const auto [pivots, distances] = pivots_of(node);
    std::vector<double> norms;
    for (const std::size_t p : pivots) norms.push_back(notes_.norms[p]);
    products(node.size(), [&](std::size_t i) { return row(node.begin + i); }, pivots,
             [&](std::size_t i, std::size_t first, std::size_t count, const double* z) {
      assign(row(node.begin + i), norms, first, count, z);
    });
    tree_.widths.push_back(static_cast<std::int32_t>(pivots.size()));
    tree_.distances.insert(tree_.distances.end(), distances.begin(), distances.end());
    const std::vector<Run> runs = gathered(node, pivots.size());
    for (std::size_t k = 0; k < pivots.size(); ++k) {
      Pivot pivot{pivots[k], norms[k], runs[k], -1};
      if (pivots.size() == 1 || runs[k].size() <= leaf_ || one_direction(runs[k], norms[k])) {
        cut(runs[k], &pivot);
      } else {
        pivot.child = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back(runs[k]);
      }
      tree_.pivots.push_back(pivot);
    }
  }

  // The nearest of the pivots so far: that with the largest (xᵀp)²/‖p‖², of several the first.
  void assign(std::size_t i, const std::vector<double>& norms, std::size_t first, std::size_t count, const double* z) {
    std::int32_t& nearest = notes_.nearest[i];
    double& dot = notes_.dots[i];
    if (!first) {
      nearest = 0;
      dot = z[0];
    }
    double best = dot * dot / norms[static_cast<std::size_t>(nearest)];
    for (std::size_t k = 0; k < count; ++k) {
      const double value = z[k] * z[k] / norms[first + k];
      if (!(value > best)) continue;
      best = value;
      nearest = static_cast<std::int32_t>(first + k);
      dot = z[k];
    }
  }

  // Puts the rows of each pivot together.
  std::vector<Run> gathered(const Run& node, std::size_t n_pivots) {
    std::vector<std::size_t> ends(n_pivots + 1, 0);
    for (std::size_t at = node.begin; at < node.end; ++at)
      ++ends[static_cast<std::size_t>(notes_.nearest[row(at)]) + 1];
    ends[0] = node.begin;
    for (std::size_t k = 0; k < n_pivots; ++k) ends[k + 1] += ends[k];
    std::vector<Run> runs;
    for (std::size_t k = 0; k < n_pivots; ++k) runs.push_back({ends[k], ends[k + 1]});
    std::vector<std::int64_t> sorted(node.size());
    for (std::size_t at = node.begin; at < node.end; ++at)
      sorted[ends[static_cast<std::size_t>(notes_.nearest[row(at)])]++ - node.begin] = order_[at];
    std::copy(sorted.begin(), sorted.end(), order_ + node.begin);
    return runs;
  }

  bool one_direction(const Run& run, double norm) const {
    for (std::size_t at = run.begin; at < run.end; ++at)
      if (!is_alike(notes_.dots[row(at)], notes_.norms[row(at)], norm)) return false;
    return true;
  }

  // Leaves of rows that are shared out no further; several of them along the direction of their pivot.
  void cut(const Run& run, const Pivot* pivot) {
    if (pivot && run.size() > leaf_)
      std::sort(order_ + run.begin, order_ + run.end, [&](std::int64_t a, std::int64_t b) {
        return std::make_pair(notes_.dots[a], a) < std::make_pair(notes_.dots[b], b);
      });
    for (std::size_t begin = run.begin; begin < run.end; begin += leaf_) {
      const Run some{begin, std::min(begin + leaf_, run.end)};
      tree_.leaves.push_back(pivot ? measured(some, pivot->norm) : Leaf{some, 0, 0});
    }
  }

  // Σ‖x − tp‖² = Σ‖x‖² − n t²‖p‖² with t the mean of xᵀp/‖p‖².
  Leaf measured(const Run& run, double norm) const {
    double dots = 0, norms = 0;
    for (std::size_t at = run.begin; at < run.end; ++at) {
      dots += notes_.dots[row(at)];
      norms += notes_.norms[row(at)];
    }
    const double n = static_cast<double>(run.size()), scale = dots / (n * norm);
    const double square = std::max(0.0, norms / n - scale * scale * norm);
    return {run, static_cast<float>(scale), static_cast<float>(std::sqrt(square))};
  }

  const Rows& rows_;
  RowNotes& notes_;
  std::int64_t* order_;
  std::size_t width_, leaf_;
  Random random_;
  int threads_;
  Tree tree_;
  std::vector<Run> nodes_;
  std::vector<double> weights_;  // zero between two uses
};

// A vector as an array that owns it.
template <class T>
nb::object as_array(std::vector<T> numbers) {
  auto* held = new std::vector<T>(std::move(numbers));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

// An array with what a function says of each of the parts of all trees.
template <class Parts, class Function>
auto listed(const std::vector<Tree>& trees, Parts parts, Function function) {
  std::vector<decltype(function(trees[0], parts(trees[0])[0]))> found;
  for (const Tree& tree : trees)
    for (const auto& part : parts(tree)) found.push_back(function(tree, part));
  return as_array(std::move(found));
}

// The number of the first leaf of a tree at or behind a row.
std::int32_t leaf_at(const Tree& tree, std::size_t begin) {
  const auto found = std::lower_bound(tree.leaves.begin(), tree.leaves.end(), begin,
                                      [](const Leaf& leaf, std::size_t at) { return leaf.run.begin < at; });
  return static_cast<std::int32_t>(found - tree.leaves.begin());
}

nb::dict described(const std::vector<Tree>& trees) {
  const auto itself = [&](const auto& count) {
    std::vector<std::int32_t> found;
    for (const Tree& tree : trees) found.push_back(static_cast<std::int32_t>(count(tree)));
    return as_array(std::move(found));
  };
  const auto leaves = [](const Tree& tree) -> const auto& { return tree.leaves; };
  const auto pivots = [](const Tree& tree) -> const auto& { return tree.pivots; };
  nb::dict out;
  out["tree_leaves"] = itself([](const Tree& tree) { return tree.leaves.size(); });
  out["tree_zero_leaves"] = itself([](const Tree& tree) { return tree.n_zero_leaves; });
  out["tree_nodes"] = itself([](const Tree& tree) { return tree.widths.size(); });
  out["leaf_ends"] =
      listed(trees, leaves, [](const Tree&, const Leaf& leaf) { return static_cast<std::int64_t>(leaf.run.end); });
  out["leaf_scales"] = listed(trees, leaves, [](const Tree&, const Leaf& leaf) { return leaf.scale; });
  out["leaf_spreads"] = listed(trees, leaves, [](const Tree&, const Leaf& leaf) { return leaf.spread; });
  out["node_widths"] = listed(trees, [](const Tree& tree) -> const auto& { return tree.widths; },
                              [](const Tree&, std::int32_t width) { return width; });
  out["node_distances"] = listed(trees, [](const Tree& tree) -> const auto& { return tree.distances; },
                                 [](const Tree&, float distance) { return distance; });
  out["pivot_rows"] =
      listed(trees, pivots, [](const Tree&, const Pivot& pivot) { return static_cast<std::int64_t>(pivot.row); });
  out["pivot_children"] = listed(trees, pivots, [](const Tree&, const Pivot& pivot) { return pivot.child; });
  out["pivot_first_leaves"] =
      listed(trees, pivots, [](const Tree& tree, const Pivot& pivot) { return leaf_at(tree, pivot.run.begin); });
  out["pivot_leaves"] = listed(trees, pivots, [](const Tree& tree, const Pivot& pivot) {
    return leaf_at(tree, pivot.run.end) - leaf_at(tree, pivot.run.begin);
  });
  return out;
}

// Grows a tree over each run of the row numbers `order`, which end at `ends`, and puts them in the order of its leaves.
// Numbers of nodes and leaves count from 0 in each tree.
nb::dict grow_pivot_trees(const RowArrays& arrays, Longs order, std::vector<std::int64_t> ends,
                          std::vector<std::int64_t> numbers, std::size_t width, std::size_t leaf, std::uint64_t seed,
                          int threads) {
  std::vector<Tree> trees(ends.size());
  {
    nb::gil_scoped_release release;
    RowNotes notes(arrays.n_rows());
    arrays.with_rows([&](auto rows) {
      parallel_for(trees.size(), [&](std::size_t k) {
        const Run run{k ? static_cast<std::size_t>(ends[k - 1]) : 0, static_cast<std::size_t>(ends[k])};
        const std::uint64_t own = Random(seed).next() ^ Random(static_cast<std::uint64_t>(numbers[k])).next();
        trees[k] = Growing(rows, notes, order.data(), width, leaf, own, threads).grow(run);
      }, threads);
      return 0;
    });
  }
  return described(trees);
}

}  // namespace

void bind_pivot_trees(nb::module_& m) {
  m.def("grow_pivot_trees", &grow_pivot_trees, "rows"_a, "order"_a.noconvert(), "ends"_a, "numbers"_a, "width"_a,
        "leaf"_a, "seed"_a, "threads"_a = 0);
}

}  // namespace beeline
