// A copy of picked rows with narrower values and indices, for kernels whose limit is the memory's speed.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "entries.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<nb::c_contig, nb::device::cpu>;

constexpr std::size_t kRowsPerTask = 1 << 11;

// What became of values that were copied.
struct Copied {
  bool exact = true;   // none was changed
  bool single = true;  // each is within the range where float32 has its full precision

  void operator&=(const Copied& other) {
    exact &= other.exact;
    single &= other.single;
  }
};

// Without a branch, and flags as wide as the numbers: so that vector instructions can do it.
template <class From>
inline __attribute__((always_inline)) Copied narrow(const From* from, std::size_t count, float* to) {
  std::int64_t changed = 0, outside = 0;
#pragma omp simd reduction(| : changed, outside)
  for (std::size_t p = 0; p < count; ++p) {
    const double x = static_cast<double>(from[p]), size = std::fabs(x);
    const float rounded = static_cast<float>(x);
    to[p] = rounded;
    changed |= static_cast<double>(rounded) != x;
    outside |= (size != 0) & !((size > 1e-30) & (size < 1e30));
  }
  return {!changed, !outside};
}

BEELINE_CLONES Copied narrowed(const float* from, std::size_t count, float* to) { return narrow(from, count, to); }
BEELINE_CLONES Copied narrowed(const double* from, std::size_t count, float* to) { return narrow(from, count, to); }

template <class From>
Copied copy_values(const From* from, std::size_t count, const Writable& out, std::size_t at) {
  if (out.dtype() == nb::dtype<float>()) return narrowed(from, count, static_cast<float*>(out.data()) + at);
  std::copy_n(from, count, static_cast<double*>(out.data()) + at);
  return {};
}

template <class From, class To>
void copy_indices(const From* from, std::size_t count, To* to) {
  std::transform(from, from + count, to, [](From j) { return static_cast<To>(j); });
}

template <class From>
void copy_indices(const From* from, std::size_t count, const Writable& out, std::size_t at) {
  if (out.dtype() == nb::dtype<std::uint16_t>()) {
    copy_indices(from, count, static_cast<std::uint16_t*>(out.data()) + at);
  } else {
    copy_indices(from, count, static_cast<std::int32_t*>(out.data()) + at);
  }
}

// Row k of the copy is row picked[k]. Values become float32 or float64, indices uint16 or int32, as the outputs are.
// (whether all values are as they were, whether float32 has its full precision for all of them).
std::pair<bool, bool> pack_rows(const RowArrays& arrays, Longs picked, std::optional<Longs> out_indptr,
                                std::optional<Writable> out_indices, Writable out_values, int threads) {
  nb::gil_scoped_release release;
  const std::size_t n = picked.size();
  std::vector<Copied> copied((n + kRowsPerTask - 1) / kRowsPerTask);
  with_entries(arrays, [&](auto entries) {
    parallel_for(copied.size(), [&](std::size_t task) {
      for (std::size_t k = task * kRowsPerTask, end = std::min(n, k + kRowsPerTask); k < end; ++k) {
        const Span row = span_of(arrays, static_cast<std::size_t>(picked.data()[k]));
        const std::size_t at =
            out_indptr ? static_cast<std::size_t>(out_indptr->data()[k]) : k * static_cast<std::size_t>(row.count);
        copied[task] &= copy_values(entries.values + row.begin, row.count, out_values, at);
        if constexpr (decltype(entries)::kSparse)
          copy_indices(entries.indices + row.begin, row.count, *out_indices, at);
      }
    }, threads);
  });
  Copied all;
  for (const Copied& part : copied) all &= part;
  return {all.exact, all.single};
}

}  // namespace

void bind_packed(nb::module_& m) {
  m.def("pack_rows", &pack_rows, "rows"_a, "picked"_a, "out_indptr"_a.none(), "out_indices"_a.none().noconvert(),
        "out_values"_a.noconvert(), "threads"_a = 0);
}

}  // namespace beeline
