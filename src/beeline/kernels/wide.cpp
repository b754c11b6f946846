#include "wide.h"

#include "simd.h"

namespace beeline {
namespace {

#define BEELINE_INLINE inline __attribute__((always_inline))

// The indices of a dense row.
struct Counting {
  std::size_t operator[](std::size_t p) const { return p; }
};

// One stretch of columns, so many that they fit the registers; a fixed number lets the compiler unroll the inner loop.
template <std::size_t kWidth, class Indices, class Value>
BEELINE_INLINE void dot_stretch(Indices indices, const Value* values, std::size_t n, const double* w,
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

template <std::size_t kWidth, class Indices, class Value>
BEELINE_INLINE void axpy_stretch(Indices indices, const Value* values, std::size_t n, const double* u,
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

// All columns, stretch by stretch: sixteen at a time, then what is left in powers of two.
template <class Indices, class Value>
BEELINE_INLINE void dots(Indices indices, const Value* values, std::size_t n, const double* w, std::size_t columns,
                         double* z) {
  std::size_t k = 0;
  for (; k + 16 <= columns; k += 16) dot_stretch<16>(indices, values, n, w + k, columns, z + k);
  if (columns & 8) dot_stretch<8>(indices, values, n, w + k, columns, z + k), k += 8;
  if (columns & 4) dot_stretch<4>(indices, values, n, w + k, columns, z + k), k += 4;
  if (columns & 2) dot_stretch<2>(indices, values, n, w + k, columns, z + k), k += 2;
  if (columns & 1) dot_stretch<1>(indices, values, n, w + k, columns, z + k);
}

template <class Indices, class Value>
BEELINE_INLINE void axpys(Indices indices, const Value* values, std::size_t n, const double* u, std::size_t columns,
                          double* out) {
  std::size_t k = 0;
  for (; k + 16 <= columns; k += 16) axpy_stretch<16>(indices, values, n, u + k, columns, out + k);
  if (columns & 8) axpy_stretch<8>(indices, values, n, u + k, columns, out + k), k += 8;
  if (columns & 4) axpy_stretch<4>(indices, values, n, u + k, columns, out + k), k += 4;
  if (columns & 2) axpy_stretch<2>(indices, values, n, u + k, columns, out + k), k += 2;
  if (columns & 1) axpy_stretch<1>(indices, values, n, u + k, columns, out + k);
}

}  // namespace

#define BEELINE_WIDE(Index, Value)                                                                         \
  BEELINE_CLONES void wide_dot(const Index* indices, const Value* values, std::size_t n, const double* w,  \
                               std::size_t columns, double* z) {                                           \
    dots(indices, values, n, w, columns, z);                                                               \
  }                                                                                                        \
  BEELINE_CLONES void wide_axpy(const Index* indices, const Value* values, std::size_t n, const double* u, \
                                std::size_t columns, double* out) {                                        \
    axpys(indices, values, n, u, columns, out);                                                            \
  }

#define BEELINE_WIDE_DENSE(Value)                                                                                     \
  BEELINE_CLONES void wide_dot(const Value* values, std::size_t n, const double* w, std::size_t columns, double* z) { \
    dots(Counting{}, values, n, w, columns, z);                                                                       \
  }                                                                                                                   \
  BEELINE_CLONES void wide_axpy(const Value* values, std::size_t n, const double* u, std::size_t columns,             \
                                double* out) {                                                                        \
    axpys(Counting{}, values, n, u, columns, out);                                                                    \
  }

BEELINE_WIDE(std::uint16_t, float)
BEELINE_WIDE(std::uint16_t, double)
BEELINE_WIDE(std::int32_t, float)
BEELINE_WIDE(std::int32_t, double)
BEELINE_WIDE(std::int64_t, float)
BEELINE_WIDE(std::int64_t, double)
BEELINE_WIDE_DENSE(float)
BEELINE_WIDE_DENSE(double)

}  // namespace beeline
