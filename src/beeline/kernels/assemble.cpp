// Rows from columns: the typed columns of Arrow batches become dense or CSR rows.
//
// A table lies column by column, a model wants row by row. Going through whole columns would touch every cache line
// of the result once a column. So rows are cut into tiles that fit the first-level cache, and all columns of a tile
// are placed before the next tile begins: columns are read in short sequential runs, and the tile's rows stay in cache.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <tuple>

#include "arrow_batch.h"
#include "rows.h"
#include "threads.h"

namespace beeline {
namespace {

constexpr std::size_t kTileBytes = 24 << 10;  // of dense rows
constexpr std::size_t kMostTileRows = 256;    // and what the buffers of a tile hold
constexpr std::size_t kValuesPerTask = 1 << 16;

enum class Flaw : int { none, missing, infinite, too_large };

// Which features a column becomes. Numbers also have a slot each, where missing ones are counted.
struct ColumnPlan {
  std::size_t first, width, slot;
  bool categories;
  bool fills;  // whether a missing value becomes `fill` (for categories: no indicator) instead of being a flaw
  double fill;
};

struct Plan {
  std::vector<ColumnPlan> columns;
  std::size_t n_features, n_slots;
  bool finite;  // whether NaN and infinite values are flaws
  bool any_categories;
};

// What was met on the way. The flaw of the smallest (row, column) is kept, whatever the order of the tiles.
struct Findings {
  Flaw flaw = Flaw::none;
  std::size_t row = 0, column = 0;
  std::vector<std::int64_t> missing, unknown;  // per slot of numbers, per column

  explicit Findings(const Plan& plan) : missing(plan.n_slots, 0), unknown(plan.columns.size(), 0) {}

  void note(Flaw what, std::size_t at_row, std::size_t at_column) {
    if (flaw != Flaw::none && std::tie(row, column) <= std::tie(at_row, at_column)) return;
    flaw = what, row = at_row, column = at_column;
  }
  void merge(const Findings& other) {
    if (other.flaw != Flaw::none) note(other.flaw, other.row, other.column);
    for (std::size_t j = 0; j < missing.size(); ++j) missing[j] += other.missing[j];
    for (std::size_t k = 0; k < unknown.size(); ++k) unknown[k] += other.unknown[k];
  }
};

struct Tile {
  const ArrowBatch* batch;
  std::size_t begin, n;  // rows within the batch
  std::size_t row;       // of its first row within all batches
};

// The largest finite number of the rows' type, as a double that does not yet round to infinity.
template <class Value>
double largest_value() {
  if (sizeof(Value) == 4) return 0x1.fffffefffffffp127;
  return std::numeric_limits<double>::max();
}

BEELINE_CLONES bool within(const double* x, std::size_t n, double limit) {
  int outside = 0;
  for (std::size_t i = 0; i < n; ++i) outside |= !(std::fabs(x[i]) <= limit);
  return outside == 0;
}

// Missing values are filled; what cannot stand in the rows is noted.
void settle(double* x, const Tile& tile, const ColumnPlan& plan, std::size_t lane, std::size_t column, double limit,
            bool finite, Findings& findings) {
  for (std::size_t i = 0; i < tile.n; ++i) {
    if (std::isnan(x[i])) {
      ++findings.missing[plan.slot + lane];
      if (plan.fills) {
        x[i] = plan.fill;
      } else if (finite) {
        findings.note(Flaw::missing, tile.row + i, column);
      }
    } else if (finite && !(std::fabs(x[i]) <= limit)) {
      findings.note(std::isinf(x[i]) ? Flaw::infinite : Flaw::too_large, tile.row + i, column);
    }
  }
}

// Calls numbers(feature, values; null: all zero) and categories(first feature, category numbers) for each column of a
// tile, in the order of the features.
template <class Numbers, class Categories>
void walk_tile(const Tile& tile, const Plan& plan, double limit, Findings& findings, Numbers numbers,
               Categories categories) {
  double values[kMostTileRows];
  std::int32_t codes[kMostTileRows];
  for (std::size_t k = 0; k < plan.columns.size(); ++k) {
    const ColumnPlan& to = plan.columns[k];
    const ColumnSource& from = tile.batch->columns()[k];
    if (to.categories) {
      fetch_categories(from, tile.begin, tile.n, codes);
      for (std::size_t i = 0; i < tile.n; ++i) {
        if (codes[i] >= 0) continue;
        if (codes[i] == kUnknown)
          ++findings.unknown[k];
        else if (!to.fills)
          findings.note(Flaw::missing, tile.row + i, k);
      }
      categories(to.first, codes);
      continue;
    }
    for (std::size_t lane = 0; lane < to.width; ++lane) {
      const Fetched fetched = fetch_numbers(from, lane, tile.begin, tile.n, values);
      if (fetched == Fetched::any && !within(values, tile.n, limit))
        settle(values, tile, to, lane, k, limit, plan.finite, findings);
      numbers(to.first + lane, fetched == Fetched::zeros ? nullptr : values);
    }
  }
}

template <class Value>
void place_dense(const Tile& tile, const Plan& plan, Value* out, Findings& findings) {
  const std::size_t d = plan.n_features;
  Value* rows = out + tile.row * d;
  if (plan.any_categories) std::memset(rows, 0, tile.n * d * sizeof(Value));
  walk_tile(tile, plan, largest_value<Value>(), findings, [&](std::size_t feature, const double* values) {
    Value* to = rows + feature;
    for (std::size_t i = 0; i < tile.n; ++i) to[i * d] = values ? static_cast<Value>(values[i]) : Value{0};
  }, [&](std::size_t first, const std::int32_t* codes) {
    for (std::size_t i = 0; i < tile.n; ++i)
      if (codes[i] >= 0) rows[i * d + first + codes[i]] = 1;
  });
}

// counts[row] = the number of entries that are not zero.
void count_entries(const Tile& tile, const Plan& plan, double limit, std::int64_t* counts, Findings& findings) {
  std::int64_t count[kMostTileRows] = {};
  walk_tile(tile, plan, limit, findings, [&](std::size_t, const double* values) {
    if (!values) return;
    for (std::size_t i = 0; i < tile.n; ++i) count[i] += values[i] != 0;
  }, [&](std::size_t, const std::int32_t* codes) {
    for (std::size_t i = 0; i < tile.n; ++i) count[i] += codes[i] >= 0;
  });
  std::copy_n(count, tile.n, counts + tile.row);
}

template <class Value>
void place_sparse(const Tile& tile, const Plan& plan, const std::int64_t* indptr, std::int32_t* indices, Value* out,
                  Findings& findings) {
  std::int64_t at[kMostTileRows];
  std::copy_n(indptr + tile.row, tile.n, at);
  walk_tile(tile, plan, largest_value<Value>(), findings, [&](std::size_t feature, const double* values) {
    if (!values) return;
    for (std::size_t i = 0; i < tile.n; ++i) {
      if (values[i] == 0) continue;
      indices[at[i]] = static_cast<std::int32_t>(feature);
      out[at[i]++] = static_cast<Value>(values[i]);
    }
  }, [&](std::size_t first, const std::int32_t* codes) {
    for (std::size_t i = 0; i < tile.n; ++i) {
      if (codes[i] < 0) continue;
      indices[at[i]] = static_cast<std::int32_t>(first + codes[i]);
      out[at[i]++] = 1;
    }
  });
}

using Batches = std::vector<const ArrowBatch*>;

void check_fits(const Batches& batches, const Plan& plan) {
  for (const ArrowBatch* batch : batches) {
    if (batch->columns().size() != plan.columns.size())
      throw std::invalid_argument("a batch lacks columns of the plan");
    for (std::size_t k = 0; k < plan.columns.size(); ++k) {
      const ColumnSource& column = batch->columns()[k];
      if (column.width != plan.columns[k].width && !plan.columns[k].categories)
        throw std::invalid_argument("a column has another width than the plan");
      if (column.categories != plan.columns[k].categories)
        throw std::invalid_argument("a column and the plan disagree on what is a category");
      for (std::size_t code = 0; code < column.n_codes; ++code)
        if (column.lookup[code] >= static_cast<std::int64_t>(plan.columns[k].width))
          throw std::invalid_argument("a lookup goes beyond the categories of its column");
    }
  }
}

// Calls visit(tile, findings) for every tile of every batch, threads over runs of tiles.
template <class Visit>
Findings each_tile(const Batches& batches, const Plan& plan, int threads, Visit visit) {
  check_fits(batches, plan);
  const std::size_t row_bytes = std::max<std::size_t>(1, plan.n_features * sizeof(double));
  const std::size_t tile_rows = std::clamp<std::size_t>(kTileBytes / row_bytes & ~std::size_t{7}, 16, kMostTileRows);
  const std::size_t task_rows = std::max(tile_rows, kValuesPerTask / std::max<std::size_t>(1, plan.columns.size()));
  std::vector<Tile> tasks;
  std::size_t row = 0;
  for (const ArrowBatch* batch : batches) {
    for (std::size_t begin = 0; begin < batch->n_rows(); begin += task_rows) {
      const std::size_t n = std::min(task_rows, batch->n_rows() - begin);
      tasks.push_back({batch, begin, n, row});
      row += n;
    }
  }
  Findings all(plan);
  std::mutex mutex;
  parallel_for(tasks.size(), [&](std::size_t t) {
    Findings own(plan);
    const Tile& task = tasks[t];
    for (std::size_t from = 0; from < task.n; from += tile_rows)
      visit(Tile{task.batch, task.begin + from, std::min(tile_rows, task.n - from), task.row + from}, own);
    std::lock_guard<std::mutex> lock(mutex);
    all.merge(own);
  }, threads);
  return all;
}

using Int64s = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Int32s = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<nb::c_contig, nb::device::cpu>;
using Report = std::tuple<int, std::size_t, std::size_t, std::vector<std::int64_t>, std::vector<std::int64_t>>;

Report report(const Findings& f) { return {static_cast<int>(f.flaw), f.row, f.column, f.missing, f.unknown}; }

std::size_t rows_of(const Batches& batches) {
  std::size_t n = 0;
  for (const ArrowBatch* batch : batches) n += batch->n_rows();
  return n;
}

void demand(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

// (first feature, width, is categories, fill or None) a column.
using PlanRecord = std::vector<std::tuple<std::size_t, std::size_t, bool, std::optional<double>>>;

Plan make_plan(const PlanRecord& records, std::size_t n_features, bool finite) {
  Plan plan{{}, n_features, 0, finite, false};
  for (const auto& [first, width, categories, fill] : records) {
    demand(first + width <= n_features, "a column goes beyond the last feature");
    plan.columns.push_back({first, width, plan.n_slots, categories, fill.has_value(), fill.value_or(0.0)});
    plan.any_categories |= categories;
    if (!categories) plan.n_slots += width;
  }
  return plan;
}

Report assemble_dense(const Batches& batches, const Plan& plan, Values out, int threads) {
  demand(out.size() == rows_of(batches) * plan.n_features, "out must have one place a value");
  const bool is_double = out.dtype() == nb::dtype<double>();
  demand(is_double || out.dtype() == nb::dtype<float>(), "out must be float32 or float64");
  nb::gil_scoped_release release;
  return report(each_tile(batches, plan, threads, [&](const Tile& tile, Findings& findings) {
    if (is_double)
      place_dense(tile, plan, static_cast<double*>(out.data()), findings);
    else
      place_dense(tile, plan, static_cast<float*>(out.data()), findings);
  }));
}

Report count_all(const Batches& batches, const Plan& plan, Int64s counts, bool single, int threads) {
  demand(counts.size() == rows_of(batches), "counts must have one place a row");
  const double limit = single ? largest_value<float>() : largest_value<double>();
  nb::gil_scoped_release release;
  return report(each_tile(batches, plan, threads, [&](const Tile& tile, Findings& findings) {
    count_entries(tile, plan, limit, counts.data(), findings);
  }));
}

void assemble_sparse(const Batches& batches, const Plan& plan, Int64s indptr, Int32s indices, Values out, int threads) {
  const std::size_t n = rows_of(batches);
  demand(indptr.size() == n + 1, "indptr must have one place more than rows");
  demand(indices.size() == out.size() && static_cast<std::size_t>(indptr.data()[n]) <= out.size(),
         "indices and values must have one place an entry");
  const bool is_double = out.dtype() == nb::dtype<double>();
  demand(is_double || out.dtype() == nb::dtype<float>(), "out must be float32 or float64");
  nb::gil_scoped_release release;
  each_tile(batches, plan, threads, [&](const Tile& tile, Findings& findings) {
    if (is_double)
      place_sparse(tile, plan, indptr.data(), indices.data(), static_cast<double*>(out.data()), findings);
    else
      place_sparse(tile, plan, indptr.data(), indices.data(), static_cast<float*>(out.data()), findings);
  });
}

}  // namespace

void bind_assemble(nb::module_& m) {
  using namespace nb::literals;

  nb::class_<ArrowBatch>(m, "ArrowBatch")
      .def(nb::init<nb::capsule, nb::capsule, std::vector<std::optional<Lookup>>>(), "schema"_a, "array"_a, "lookups"_a)
      .def_prop_ro("n_rows", &ArrowBatch::n_rows);
  nb::class_<Plan>(m, "AssemblyPlan")
      .def("__init__", [](Plan* self, const PlanRecord& columns, std::size_t n_features, bool finite) {
    new (self) Plan(make_plan(columns, n_features, finite));
  }, "columns"_a, "n_features"_a, "finite"_a);
  m.def("assemble_dense", &assemble_dense, "batches"_a, "plan"_a, "out"_a.noconvert(), "threads"_a = 0);
  m.def("count_entries", &count_all, "batches"_a, "plan"_a, "counts"_a.noconvert(), "single"_a, "threads"_a = 0);
  m.def("assemble_sparse", &assemble_sparse, "batches"_a, "plan"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "out"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
