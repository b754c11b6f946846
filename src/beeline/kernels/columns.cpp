// The rows with only some of their features: first how many each row keeps, then the rows themselves.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rows.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;

using Places = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Locals = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Positions = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<nb::c_contig, nb::device::cpu>;

template <class Rows, class Task>
void each_row(const Rows& rows, int threads, Task task) {
  const std::size_t parts =
      std::clamp<std::size_t>(rows.work() / (1 << 16) + 1, 1, std::max<std::size_t>(1, rows.n_rows));
  parallel_for(parts, [&](std::size_t part) {
    for (std::size_t i = rows.n_rows * part / parts, end = rows.n_rows * (part + 1) / parts; i < end; ++i) task(i);
  }, threads);
}

// place[j] is where feature j goes, −1 where it is left out.
template <class Position, class Index, class Value>
void count_kept(const CsrRows<Position, Index, Value>& rows, const std::int32_t* place, std::int64_t* out,
                int threads) {
  each_row(rows, threads, [&](std::size_t i) {
    std::int64_t kept = 0;
    for (std::size_t p = rows.indptr[i], end = rows.indptr[i + 1]; p < end; ++p) kept += place[rows.indices[p]] >= 0;
    out[i] = kept;
  });
}

template <class Value>
void count_kept(const DenseRows<Value>&, const std::int32_t*, std::int64_t*, int) {
  throw std::invalid_argument("dense rows keep the same number of features each");
}

// Writes the kept entries of row i from position indptr[i]; where the row has room for one more, a feature of value 1
// ends it.
template <class Position, class Index, class Value>
void keep(const CsrRows<Position, Index, Value>& rows, const std::int32_t* place, std::size_t kept,
          const std::int64_t* indptr, std::int32_t* indices, void* values, int threads) {
  each_row(rows, threads, [&](std::size_t i) {
    std::int64_t to = indptr[i];
    for (std::size_t p = rows.indptr[i], end = rows.indptr[i + 1]; p < end; ++p) {
      const std::int32_t j = place[rows.indices[p]];
      if (j < 0) continue;
      indices[to] = j;
      static_cast<Value*>(values)[to++] = rows.values[p];
    }
    if (to < indptr[i + 1]) {
      indices[to] = static_cast<std::int32_t>(kept) - 1;
      static_cast<Value*>(values)[to] = 1;
    }
  });
}

template <class Value>
void keep(const DenseRows<Value>& rows, const std::int32_t* place, std::size_t kept, const std::int64_t*, std::int32_t*,
          void* values, int threads) {
  each_row(rows, threads, [&](std::size_t i) {
    Value* out = static_cast<Value*>(values) + i * kept;
    const Value* row = rows.row(i);
    if (kept > 0) out[kept - 1] = 1;
    for (std::size_t j = 0; j < rows.n_features; ++j)
      if (place[j] >= 0) out[place[j]] = row[j];
  });
}

}  // namespace

void bind_columns(nb::module_& m) {
  m.def("count_kept", [](const RowArrays& self, Places place, Counts out, int threads) {
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) { count_kept(rows, place.data(), out.data(), threads); });
  }, "rows"_a, "place"_a, "out"_a.noconvert(), "threads"_a = 0);
  m.def("keep_features",
        [](const RowArrays& self, Places place, std::size_t kept, std::optional<Positions> indptr,
           std::optional<Locals> indices, Writable values, int threads) {
    nb::gil_scoped_release release;
    self.with_rows([&](auto rows) {
      keep(rows, place.data(), kept, indptr ? indptr->data() : nullptr, indices ? indices->data() : nullptr,
           values.data(), threads);
    });
  },
        "rows"_a, "place"_a, "kept"_a, "indptr"_a.none(), "indices"_a.none().noconvert(), "values"_a.noconvert(),
        "threads"_a = 0);
}

}  // namespace beeline
