// A copy of picked rows with narrower values and indices, for kernels whose limit is the memory's speed.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "entries.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<nb::c_contig, nb::device::cpu>;

constexpr std::size_t kRowsPerTask = 1 << 11;

template <class From>
void copy_values(const From* from, std::size_t count, const Writable& out, std::size_t at) {
  if (out.dtype() == nb::dtype<float>()) {
    std::transform(from, from + count, static_cast<float*>(out.data()) + at,
                   [](From x) { return static_cast<float>(x); });
  } else {
    std::copy_n(from, count, static_cast<double*>(out.data()) + at);
  }
}

template <class From>
void copy_indices(const From* from, std::size_t count, const Writable& out, std::size_t at) {
  if (out.dtype() == nb::dtype<std::uint16_t>()) {
    std::transform(from, from + count, static_cast<std::uint16_t*>(out.data()) + at,
                   [](From j) { return static_cast<std::uint16_t>(j); });
  } else {
    std::transform(from, from + count, static_cast<std::int32_t*>(out.data()) + at,
                   [](From j) { return static_cast<std::int32_t>(j); });
  }
}

// Row k of the copy is row picked[k]. Values become float32 or float64, indices uint16 or int32, as the outputs are.
void pack_rows(const RowArrays& arrays, Longs picked, std::optional<Longs> out_indptr,
               std::optional<Writable> out_indices, Writable out_values, int threads) {
  nb::gil_scoped_release release;
  const std::size_t n = picked.size();
  with_entries(arrays, [&](auto entries) {
    parallel_for((n + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task) {
      for (std::size_t k = task * kRowsPerTask, end = std::min(n, k + kRowsPerTask); k < end; ++k) {
        const Span row = span_of(arrays, static_cast<std::size_t>(picked.data()[k]));
        const std::size_t at =
            out_indptr ? static_cast<std::size_t>(out_indptr->data()[k]) : k * static_cast<std::size_t>(row.count);
        copy_values(entries.values + row.begin, row.count, out_values, at);
        if constexpr (decltype(entries)::kSparse)
          copy_indices(entries.indices + row.begin, row.count, *out_indices, at);
      }
    }, threads);
  });
}

// Whether float32 holds every value as it is; or, with `roughly`, to its precision.
bool fits_single(const RowArrays& arrays, bool roughly, int threads) {
  nb::gil_scoped_release release;
  const std::size_t n = arrays.values.size();
  return with_float(arrays.values, [&](auto* values) {
    constexpr std::size_t kPerTask = 1 << 16;
    std::vector<char> fits((n + kPerTask - 1) / kPerTask, 1);
    parallel_for(fits.size(), [&](std::size_t task) {
      bool good = true;
      for (std::size_t p = task * kPerTask, end = std::min(n, p + kPerTask); p < end; ++p) {
        const double x = static_cast<double>(values[p]), size = std::fabs(x);
        good &= roughly ? size == 0 || (size > 1e-30 && size < 1e30) : static_cast<double>(static_cast<float>(x)) == x;
      }
      fits[task] = good;
    }, threads);
    return std::all_of(fits.begin(), fits.end(), [](char good) { return good != 0; });
  });
}

}  // namespace

void bind_packed(nb::module_& m) {
  m.def("pack_rows", &pack_rows, "rows"_a, "picked"_a, "out_indptr"_a.none(), "out_indices"_a.none().noconvert(),
        "out_values"_a.noconvert(), "threads"_a = 0);
  m.def("fits_single", &fits_single, "rows"_a, "roughly"_a, "threads"_a = 0);
}

}  // namespace beeline
