// Sums over the paths and the subtrees of a label tree, for many rows.
//
// Columns are nodes: the classes first, then the inner nodes without the root, each behind its parent. parents[v] is
// the column of v's parent, or −1 for the root's children.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <vector>

#include "rows.h"
#include "threads.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace beeline {
namespace {

using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kNumbersPerTask = 1 << 16;

template <class Each>
void for_rows(std::size_t n, std::size_t nodes, int threads, Each each) {
  const std::size_t per_task = std::max<std::size_t>(1, kNumbersPerTask / std::max<std::size_t>(1, nodes));
  parallel_for((n + per_task - 1) / per_task, [&](std::size_t task) {
    std::vector<double> room(nodes);
    for (std::size_t i = task * per_task, end = std::min(n, i + per_task); i < end; ++i) each(i, room.data());
  }, threads);
}

// out_k = the sum of z over the nodes on the path from the root to class k.
void sum_paths(const double* z, const std::int64_t* parents, std::size_t n, std::size_t nodes, std::size_t classes,
               double* out, int threads) {
  for_rows(n, nodes, threads, [&](std::size_t i, double* sum) {
    const double* own = z + i * nodes;
    for (std::size_t v = classes; v < nodes; ++v) sum[v] = own[v] + (parents[v] < 0 ? 0.0 : sum[parents[v]]);
    for (std::size_t k = 0; k < classes; ++k) out[i * classes + k] = own[k] + (parents[k] < 0 ? 0.0 : sum[parents[k]]);
  });
}

// out_v = the sum of a over the classes below node v, or v itself.
void sum_subtrees(const double* a, const std::int64_t* parents, std::size_t n, std::size_t nodes, std::size_t classes,
                  double* out, int threads) {
  for_rows(n, nodes, threads, [&](std::size_t i, double*) {
    double* sum = out + i * nodes;
    std::copy_n(a + i * classes, classes, sum);
    std::fill(sum + classes, sum + nodes, 0.0);
    for (std::size_t k = 0; k < classes; ++k)
      if (parents[k] >= 0) sum[parents[k]] += sum[k];
    for (std::size_t v = nodes; v-- > classes;)
      if (parents[v] >= 0) sum[parents[v]] += sum[v];
  });
}

// Columns that name their parents wrongly would be read from anywhere.
void check(std::size_t nodes, std::size_t classes, const Longs& parents) {
  bool right = parents.size() == nodes && classes <= nodes;
  for (std::size_t v = 0; right && v < nodes; ++v) {
    const std::int64_t above = parents.data()[v];
    const auto last = static_cast<std::int64_t>(v < classes ? nodes : v);
    right = above == -1 || (above >= static_cast<std::int64_t>(classes) && above < last);
  }
  if (!right) throw nb::value_error("the parents are no tree of these columns");
}

}  // namespace

void bind_label_trees(nb::module_& m) {
  m.def("sum_paths", [](Vector z, Longs parents, Output out, int threads) {
    const std::size_t n = out.shape(0), classes = out.shape(1), nodes = parents.size();
    check(nodes, classes, parents);
    if (z.size() != n * nodes) throw nb::value_error("the scores do not fit the tree");
    nb::gil_scoped_release release;
    sum_paths(z.data(), parents.data(), n, nodes, classes, out.data(), threads);
  }, "z"_a, "parents"_a, "out"_a.noconvert(), "threads"_a = 0);
  m.def("sum_subtrees", [](Vector a, Longs parents, std::size_t classes, Output out, int threads) {
    const std::size_t n = out.shape(0), nodes = parents.size();
    check(nodes, classes, parents);
    if (out.shape(1) != nodes || a.size() != n * classes) throw nb::value_error("the slopes do not fit the tree");
    nb::gil_scoped_release release;
    sum_subtrees(a.data(), parents.data(), n, nodes, classes, out.data(), threads);
  }, "a"_a, "parents"_a, "classes"_a, "out"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
