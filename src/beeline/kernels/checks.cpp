// A look at every entry of a run of rows: what would crash a product, or make it wrong.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "rows.h"
#include "threads.h"

namespace beeline {
namespace {

constexpr std::size_t kWorkPerTask = 1 << 16;
constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// Block's sentences about flaws go by these numbers.
enum class Flaw : int { none, positions, index_range, not_increasing, nonfinite, repeated };
constexpr std::size_t kFlaws = 6;

// The smallest and the largest of at least one value; NaN where one of them is.
template <class Value>
inline __attribute__((always_inline)) std::pair<Value, Value> range_of(const Value* values, std::size_t n) {
  Value low = values[0], high = values[0];
  std::size_t missing = 0;
#pragma omp simd reduction(min : low) reduction(max : high) reduction(+ : missing)
  for (std::size_t i = 0; i < n; ++i) {
    low = values[i] < low ? values[i] : low;
    high = values[i] > high ? values[i] : high;
    missing += values[i] != values[i];
  }
  constexpr Value kMissing = std::numeric_limits<Value>::quiet_NaN();
  return missing ? std::pair{kMissing, kMissing} : std::pair{low, high};
}

BEELINE_CLONES std::pair<float, float> range_part(const float* values, std::size_t n) { return range_of(values, n); }
BEELINE_CLONES std::pair<double, double> range_part(const double* values, std::size_t n) { return range_of(values, n); }

// What is asked of the indices of a row, beyond their range. For scores alone they may repeat.
enum class Order : int { any, distinct, increasing };

struct Demands {
  bool finite;
  Order order;
};

// Whether the indices of a row are distinct, in any order. Sorting would take longer than a pass of training: a bit for
// each feature tells as much. Where there are very many features, some share a bit, and a row that meets a bit twice is
// sorted after all.
class Distinct {
 public:
  explicit Distinct(std::size_t n_features) {
    while (bits_ < kMostBits && bits_ < n_features) bits_ *= 2;
  }

  // Before the first index of a row; only where a row needs the bits are there any.
  void start() { words_.resize(bits_ / 64); }

  void add(std::int64_t j) {
    const std::size_t at = static_cast<std::size_t>(j) & (bits_ - 1);
    const std::uint64_t word = words_[at / 64], bit = std::uint64_t{1} << at % 64;
    met_ |= word & bit;
    words_[at / 64] = word | bit;
  }

  // Whether all indices that were added are distinct, which are these; all bits are cleared.
  template <class Index>
  bool finish(const Index* indices, std::size_t n) {
    for (std::size_t p = 0; p < n; ++p) words_[(static_cast<std::size_t>(indices[p]) & (bits_ - 1)) / 64] = 0;
    const bool met = met_ != 0;
    met_ = 0;
    return !met || distinct_when_sorted(indices, n);
  }

 private:
  static constexpr std::size_t kMostBits = std::size_t{1} << 22;  // 512 KB

  template <class Index>
  bool distinct_when_sorted(const Index* indices, std::size_t n) {
    sorted_.assign(indices, indices + n);
    std::sort(sorted_.begin(), sorted_.end());
    return std::adjacent_find(sorted_.begin(), sorted_.end()) == sorted_.end();
  }

  std::size_t bits_ = 64;  // a power of two
  std::uint64_t met_ = 0;  // bits that were set before
  std::vector<std::uint64_t> words_;
  std::vector<std::int64_t> sorted_;
};

template <class Index, class Value>
Flaw entry_flaw(const CsrRows<Index, Value>& rows, std::size_t p, bool finite) {
  const std::int64_t j = rows.indices[p];
  if (j < 0 || j >= static_cast<std::int64_t>(rows.n_features)) return Flaw::index_range;
  return finite && !std::isfinite(rows.values[p]) ? Flaw::nonfinite : Flaw::none;
}

template <class Index, class Value>
Flaw row_flaw(const CsrRows<Index, Value>& rows, std::size_t i, Demands demands, Distinct& distinct) {
  const std::size_t begin = rows.indptr[i], end = rows.indptr[i + 1];
  std::size_t p = begin;
  for (std::int64_t previous = -1; p < end && rows.indices[p] > previous; previous = rows.indices[p++])
    if (const Flaw flaw = entry_flaw(rows, p, demands.finite); flaw != Flaw::none) return flaw;
  if (p == end) return Flaw::none;
  // The rest of a row that is not in order.
  const bool marks = demands.order == Order::distinct;
  if (marks) {
    distinct.start();
    for (std::size_t q = begin; q < p; ++q) distinct.add(rows.indices[q]);
  }
  Flaw found = Flaw::none;
  for (; p < end; ++p) {
    if (const Flaw flaw = entry_flaw(rows, p, demands.finite); flaw != Flaw::none && found == Flaw::none) found = flaw;
    if (marks) distinct.add(rows.indices[p]);
  }
  const bool repeated = marks && !distinct.finish(rows.indices + begin, end - begin);
  if (found != Flaw::none || demands.order == Order::any) return found;
  if (marks) return repeated ? Flaw::repeated : Flaw::none;
  return Flaw::not_increasing;
}

template <class Value>
Flaw row_flaw(const DenseRows<Value>& rows, std::size_t i, Demands demands, Distinct&) {
  if (!demands.finite) return Flaw::none;
  for (std::size_t j = 0; j < rows.n_features; ++j)
    if (!std::isfinite(rows.row(i)[j])) return Flaw::nonfinite;
  return Flaw::none;
}

template <class Index, class Value>
bool positions_hold(const CsrRows<Index, Value>& rows, std::size_t stored) {
  if (rows.indptr[0] < 0) return false;
  for (std::size_t i = 0; i < rows.n_rows; ++i)
    if (rows.indptr[i + 1] < rows.indptr[i]) return false;
  return static_cast<std::size_t>(rows.indptr[rows.n_rows]) <= stored;
}

template <class Value>
bool positions_hold(const DenseRows<Value>&, std::size_t) {
  return true;
}

// The first row with each flaw.
struct Found {
  std::size_t row[kFlaws];
  Found() { std::fill(row, row + kFlaws, kNowhere); }
};

// The gravest flaw decides: what would crash a product comes before what would make it wrong.
template <class Rows>
std::tuple<int, std::size_t> first_flaw(const Rows& rows, std::size_t stored, Demands demands, int threads) {
  if (!positions_hold(rows, stored)) return {static_cast<int>(Flaw::positions), 0};
  const std::size_t parts =
      std::clamp<std::size_t>(rows.work() / kWorkPerTask + 1, 1, std::max<std::size_t>(1, rows.n_rows));
  std::vector<Found> found(parts);
  parallel_for(parts, [&](std::size_t part) {
    Distinct distinct(rows.n_features);
    for (std::size_t i = rows.n_rows * part / parts, end = rows.n_rows * (part + 1) / parts; i < end; ++i) {
      auto& row = found[part].row[static_cast<int>(row_flaw(rows, i, demands, distinct))];
      row = std::min(row, i);
    }
  }, threads);
  for (Flaw flaw : {Flaw::index_range, Flaw::nonfinite, Flaw::not_increasing, Flaw::repeated})
    for (const Found& f : found)
      if (f.row[static_cast<int>(flaw)] != kNowhere) return {static_cast<int>(flaw), f.row[static_cast<int>(flaw)]};
  return {static_cast<int>(Flaw::none), 0};
}

// The smallest and the largest value; NaN where one of them is.
template <class Value>
std::pair<double, double> value_range(const Value* values, std::size_t n, int threads) {
  if (n == 0) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  constexpr std::size_t kValuesPerTask = 1 << 18;
  const std::size_t parts = n / kValuesPerTask + 1;
  std::vector<std::pair<Value, Value>> found(parts);
  parallel_for(parts, [&](std::size_t part) {
    const std::size_t begin = n * part / parts, end = n * (part + 1) / parts;
    found[part] = range_part(values + begin, end - begin);
  }, threads);
  std::pair<Value, Value> whole = found[0];
  for (const auto& [low, high] : found) {
    if (low != low) return {low, high};
    whole = {std::min(whole.first, low), std::max(whole.second, high)};
  }
  return whole;
}

}  // namespace

void bind_checks(nb::module_& m) {
  using namespace nb::literals;

  m.def("first_flaw", [](const RowArrays& self, bool finite, int order, int threads) {
    const Demands demands{finite, static_cast<Order>(order)};
    nb::gil_scoped_release release;
    return self.with_rows([&](auto rows) { return first_flaw(rows, self.values.size(), demands, threads); });
  }, "rows"_a, "finite"_a, "order"_a, "threads"_a = 0);
  m.def("value_range", [](Array values, int threads) {
    return with_float(values, [&](auto* value) {
      nb::gil_scoped_release release;
      return value_range(value, values.size(), threads);
    });
  }, "values"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
