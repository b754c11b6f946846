// Losses within queries. Each query is worked on by one thread, so that their number does not show in the result.
#include "ranking.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "pairs.h"
#include "places.h"
#include "threads.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Starts = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kRowsPerTask = 1 << 12;

// Runs of whole queries with about as many rows each.
std::vector<std::size_t> cut_tasks(const std::int64_t* starts, std::size_t n_queries) {
  std::vector<std::size_t> tasks{0};
  for (std::size_t g = 1; g < n_queries; ++g)
    if (static_cast<std::size_t>(starts[g] - starts[tasks.back()]) >= kRowsPerTask) tasks.push_back(g);
  tasks.push_back(n_queries);
  return tasks;
}

// What a query costs whose scores are not all numbers: they cannot be ordered.
bool off_the_line(const Query& q, double& value, double* slopes) {
  double sizes[4] = {};  // of one sum all additions would wait for each other
  for (std::size_t i = 0; i < q.n; ++i) sizes[i & 3] += std::fabs(q.z[i]);
  const double size = (sizes[0] + sizes[1]) + (sizes[2] + sizes[3]);
  if (std::isfinite(size) || std::all_of(q.z, q.z + q.n, [](double z) { return std::isfinite(z); })) return false;
  value = std::isnan(size) ? size : std::numeric_limits<double>::infinity();
  std::fill(slopes, slopes + q.n, 0.0);
  return true;
}

template <class MakeLoss>
void run_queries(const Query& all, const Starts& starts, const Output& values, const Output& slopes, int threads,
                 MakeLoss make_loss) {
  const std::size_t n_queries = starts.size() - 1;
  if (n_queries == 0) return;
  const std::vector<std::size_t> tasks = cut_tasks(starts.data(), n_queries);
  parallel_for(tasks.size() - 1, [&](std::size_t task) {
    auto loss = make_loss();
    for (std::size_t g = tasks[task]; g < tasks[task + 1]; ++g) {
      const auto begin = static_cast<std::size_t>(starts.data()[g]);
      const auto end = static_cast<std::size_t>(starts.data()[g + 1]);
      const Query q{all.z + begin, all.y + begin, all.w + begin, end - begin};
      double &value = values.data()[g], *slope = slopes.data() + begin;
      if (!off_the_line(q, value, slope)) value = loss(q, slope);
    }
  }, threads);
}

void check_starts(const Starts& starts, std::size_t n) {
  const std::int64_t* s = starts.data();
  if (starts.size() == 0 || s[0] != 0 || s[starts.size() - 1] != static_cast<std::int64_t>(n))
    throw std::invalid_argument("queries must begin at the first row and end behind the last");
  for (std::size_t g = 1; g < starts.size(); ++g)
    if (s[g] <= s[g - 1]) throw std::invalid_argument("every query must have a row");
}

// The loss of every query and its slopes by every score. `discounts` are those of the first places, the rest is zero.
void query_losses(const std::string& name, Vector z, Vector y, Vector w, Starts starts, Vector discounts, Output values,
                  Output slopes, int threads) {
  const std::size_t n = z.size();
  if (y.size() != n || w.size() != n || slopes.size() != n)
    throw std::invalid_argument("there must be one number a row");
  check_starts(starts, n);
  if (values.size() + 1 != starts.size()) throw std::invalid_argument("there must be one value a query");
  const Query all{z.data(), y.data(), w.data(), n};
  nb::gil_scoped_release release;
  const auto run = [&](auto make_loss) { run_queries(all, starts, values, slopes, threads, make_loss); };
  if (name == "ndcg" || name == "rank_utility") {
    run([&] { return PlacesLoss(discounts.data(), discounts.size(), name == "ndcg"); });
  } else if (name == "map") {
    run([] { return AveragePrecisionLoss(); });
  } else if (name == "mrr") {
    run([] { return ReciprocalRankLoss(); });
  } else if (name == "pairwise_hinge") {
    run([] { return PairwiseHingeLoss(); });
  } else if (name == "pairwise_logistic") {
    run([] { return PairwiseLogisticLoss(); });
  } else if (name == "listnet") {
    run([] { return ListNetLoss(); });
  } else {
    throw std::invalid_argument("no such loss of queries");
  }
}

}  // namespace

void bind_ranking(nb::module_& m) {
  m.def("query_losses", &query_losses, "name"_a, "z"_a, "y"_a, "weights"_a, "starts"_a, "discounts"_a,
        "values"_a.noconvert(), "slopes"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
