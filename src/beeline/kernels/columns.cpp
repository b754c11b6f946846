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
using Begins = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<nb::c_contig, nb::device::cpu>;

// task(i, end) for every row; the rows before `end` are this thread's.
template <class Rows, class Task>
void each_row(const Rows& rows, int threads, Task task) {
  const std::size_t parts =
      std::clamp<std::size_t>(rows.work() / (1 << 16) + 1, 1, std::max<std::size_t>(1, rows.n_rows));
  parallel_for(parts, [&](std::size_t part) {
    const std::size_t end = rows.n_rows * (part + 1) / parts;
    for (std::size_t i = rows.n_rows * part / parts; i < end; ++i) task(i, end);
  }, threads);
}

// place[j] is where feature j goes, −1 where it is left out.
template <class Index, class Value>
void count_kept(const CsrRows<Index, Value>& rows, const std::int32_t* place, std::int64_t* out, int threads) {
  each_row(rows, threads, [&](std::size_t i, std::size_t) {
    std::int64_t left_out = 0;
    for (std::size_t p = rows.indptr[i], end = rows.indptr[i + 1]; p < end; ++p)
      left_out += place[rows.indices[p]] >> 31;  // −1 for each: no branch to mispredict
    out[i] = static_cast<std::int64_t>(rows.count(i)) + left_out;
  });
}

template <class Value>
void count_kept(const DenseRows<Value>&, const std::int32_t*, std::int64_t*, int) {
  throw std::invalid_argument("dense rows keep the same number of features each");
}

// Writes the kept entries of row i from position indptr[i]; where the row has room for one more, a feature of value 1
// ends it. An entry that is left out is written too, and then written over by the next one: no branch to mispredict.
// Beyond the end of the row that spoils what follows, which this thread has yet to write.
template <class Index, class Value>
void keep(const CsrRows<Index, Value>& rows, const std::int32_t* place, std::size_t kept, const std::int64_t* indptr,
          std::int32_t* indices, void* values, int threads) {
  Value* out = static_cast<Value*>(values);
  each_row(rows, threads, [&](std::size_t i, std::size_t end_of_part) {
    std::int64_t to = indptr[i];
    const std::int64_t stop = indptr[i + 1], limit = indptr[end_of_part];
    for (std::size_t p = rows.indptr[i], end = rows.indptr[i + 1]; p < end; ++p) {
      if (to == limit) break;
      const std::int32_t j = place[rows.indices[p]];
      indices[to] = j;
      out[to] = rows.values[p];
      to += j >= 0;
    }
    if (to < stop) {
      indices[to] = static_cast<std::int32_t>(kept) - 1;
      out[to] = 1;
    }
  });
}

template <class Value>
void keep(const DenseRows<Value>& rows, const std::int32_t* place, std::size_t kept, const std::int64_t*, std::int32_t*,
          void* values, int threads) {
  each_row(rows, threads, [&](std::size_t i, std::size_t) {
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
        [](const RowArrays& self, Places place, std::size_t kept, std::optional<Begins> indptr,
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
