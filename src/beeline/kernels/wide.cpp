#include "wide.h"

#include "simd.h"

namespace beeline {
namespace {

#define BEELINE_INLINE inline __attribute__((always_inline))

// One tile of columns, so many that they fit the registers; a fixed number lets the compiler unroll the inner loop.
template <std::size_t kWidth, class Index, class Value>
BEELINE_INLINE void dot_tile(const Index* indices, const Value* values, std::size_t n, const double* w,
                             std::size_t columns, double* z) {
  double even[kWidth] = {}, odd[kWidth] = {};
  std::size_t p = 0;
  for (; p + 1 < n; p += 2) {
    const double *first = w + static_cast<std::size_t>(indices[p]) * columns,
                 *second = w + static_cast<std::size_t>(indices[p + 1]) * columns;
    const double x = static_cast<double>(values[p]), y = static_cast<double>(values[p + 1]);
#pragma omp simd
    for (std::size_t k = 0; k < kWidth; ++k) even[k] += x * first[k];
#pragma omp simd
    for (std::size_t k = 0; k < kWidth; ++k) odd[k] += y * second[k];
  }
  if (p < n) {
    const double* first = w + static_cast<std::size_t>(indices[p]) * columns;
    const double x = static_cast<double>(values[p]);
#pragma omp simd
    for (std::size_t k = 0; k < kWidth; ++k) even[k] += x * first[k];
  }
#pragma omp simd
  for (std::size_t k = 0; k < kWidth; ++k) z[k] = even[k] + odd[k];
}

template <std::size_t kWidth, class Index, class Value>
BEELINE_INLINE void axpy_tile(const Index* indices, const Value* values, std::size_t n, const double* u,
                              std::size_t columns, double* out) {
  double held[kWidth];
#pragma omp simd
  for (std::size_t k = 0; k < kWidth; ++k) held[k] = u[k];
  for (std::size_t p = 0; p < n; ++p) {
    double* target = out + static_cast<std::size_t>(indices[p]) * columns;
    const double x = static_cast<double>(values[p]);
#pragma omp simd
    for (std::size_t k = 0; k < kWidth; ++k) target[k] += x * held[k];
  }
}

struct Dot {
  template <std::size_t kWidth, class Index, class Value>
  static BEELINE_INLINE void tile(const Index* indices, const Value* values, std::size_t n, const double* w,
                                  std::size_t columns, std::size_t k, double* z) {
    dot_tile<kWidth>(indices, values, n, w + k, columns, z + k);
  }
};

struct Axpy {
  template <std::size_t kWidth, class Index, class Value>
  static BEELINE_INLINE void tile(const Index* indices, const Value* values, std::size_t n, const double* u,
                                  std::size_t columns, std::size_t k, double* out) {
    axpy_tile<kWidth>(indices, values, n, u + k, columns, out + k);
  }
};

// All columns, tile by tile: sixteen at a time, then eight, then the rest at once, since each tile goes
// through all entries of the row: with five columns (five folds) that is one walk, not two.
template <class Verb, class Index, class Value>
BEELINE_INLINE void all_columns(const Index* indices, const Value* values, std::size_t n, const double* in,
                                std::size_t columns, double* out) {
  std::size_t k = 0;
  for (; k + 16 <= columns; k += 16) Verb::template tile<16>(indices, values, n, in, columns, k, out);
  if (columns & 8) Verb::template tile<8>(indices, values, n, in, columns, k, out), k += 8;
  switch (columns & 7) {
    case 1:
      return Verb::template tile<1>(indices, values, n, in, columns, k, out);
    case 2:
      return Verb::template tile<2>(indices, values, n, in, columns, k, out);
    case 3:
      return Verb::template tile<3>(indices, values, n, in, columns, k, out);
    case 4:
      return Verb::template tile<4>(indices, values, n, in, columns, k, out);
    case 5:
      return Verb::template tile<5>(indices, values, n, in, columns, k, out);
    case 6:
      return Verb::template tile<6>(indices, values, n, in, columns, k, out);
    case 7:
      return Verb::template tile<7>(indices, values, n, in, columns, k, out);
  }
}

}  // namespace

#define BEELINE_WIDE(Index, Value)                                                                         \
  BEELINE_CLONES void wide_dot(const Index* indices, const Value* values, std::size_t n, const double* w,  \
                               std::size_t columns, double* z) {                                           \
    all_columns<Dot>(indices, values, n, w, columns, z);                                                   \
  }                                                                                                        \
  BEELINE_CLONES void wide_axpy(const Index* indices, const Value* values, std::size_t n, const double* u, \
                                std::size_t columns, double* out) {                                        \
    all_columns<Axpy>(indices, values, n, u, columns, out);                                                \
  }

BEELINE_WIDE(std::uint16_t, float)
BEELINE_WIDE(std::uint16_t, double)
BEELINE_WIDE(std::int32_t, float)
BEELINE_WIDE(std::int32_t, double)
BEELINE_WIDE(std::int64_t, float)
BEELINE_WIDE(std::int64_t, double)

}  // namespace beeline
