#include "dense_batch.h"

#include <algorithm>

#include "simd.h"

namespace beeline {
namespace {

#define BEELINE_INLINE inline __attribute__((always_inline))

// So many columns that the sums of all rows fit the registers of AVX2.
constexpr std::size_t kWidth = 8;

// The sums of kRows rows over a tile of columns.
template <std::size_t kRows, std::size_t kColumns, class Value>
BEELINE_INLINE void dot_tile(const Value* const* rows, std::size_t n, const double* w, std::size_t columns, double* z) {
  double sums[kRows][kColumns] = {};
  for (std::size_t j = 0; j < n; ++j) {
    const double* weights = w + j * columns;
    for (std::size_t r = 0; r < kRows; ++r) {
      const double x = static_cast<double>(rows[r][j]);
#pragma omp simd
      for (std::size_t k = 0; k < kColumns; ++k) sums[r][k] += x * weights[k];
    }
  }
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t k = 0; k < kColumns; ++k) z[r * columns + k] = sums[r][k];
}

// Columns side by side in a register, or in a part of one.
template <std::size_t kColumns>
struct Lanes {
  static constexpr std::size_t kCount = kColumns < 4 ? kColumns : 4;
  typedef double type __attribute__((vector_size(kCount * sizeof(double)), aligned(sizeof(double)), may_alias));
};

// The sums stay in registers by their type: of an array the compiler makes memory here, which every row then waits for.
template <std::size_t kRows, std::size_t kColumns, class Value>
BEELINE_INLINE void axpy_tile(const Value* const* rows, std::size_t n, const double* u, std::size_t columns,
                              double* out) {
  using Part = typename Lanes<kColumns>::type;
  constexpr std::size_t kLanes = Lanes<kColumns>::kCount, kParts = kColumns / kLanes;
  Part held[kRows][kParts];
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t p = 0; p < kParts; ++p) held[r][p] = *reinterpret_cast<const Part*>(u + r * columns + p * kLanes);
  for (std::size_t j = 0; j < n; ++j) {
    Part* target = reinterpret_cast<Part*>(out + j * columns);
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kParts; ++p) {
      Part sums = target[p];
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kRows; ++r) sums += static_cast<double>(rows[r][j]) * held[r][p];
      target[p] = sums;
    }
  }
}

struct Dot {
  template <std::size_t kRows, std::size_t kColumns, class Value>
  static BEELINE_INLINE void tile(const Value* const* rows, std::size_t n, const double* w, std::size_t columns,
                                  std::size_t k, double* z) {
    dot_tile<kRows, kColumns>(rows, n, w + k, columns, z + k);
  }
};

struct Axpy {
  template <std::size_t kRows, std::size_t kColumns, class Value>
  static BEELINE_INLINE void tile(const Value* const* rows, std::size_t n, const double* u, std::size_t columns,
                                  std::size_t k, double* out) {
    axpy_tile<kRows, kColumns>(rows, n, u + k, columns, out + k);
  }
};

// All columns, tile by tile: eight at a time, then what is left in powers of two.
template <class Verb, std::size_t kRows, class Value>
BEELINE_INLINE void all_columns(const Value* const* rows, std::size_t n, const double* in, std::size_t columns,
                                double* out) {
  std::size_t k = 0;
  for (; k + kWidth <= columns; k += kWidth) Verb::template tile<kRows, kWidth>(rows, n, in, columns, k, out);
  if (columns & 4) Verb::template tile<kRows, 4>(rows, n, in, columns, k, out), k += 4;
  if (columns & 2) Verb::template tile<kRows, 2>(rows, n, in, columns, k, out), k += 2;
  if (columns & 1) Verb::template tile<kRows, 1>(rows, n, in, columns, k, out);
}

// Four rows at once, or what there is one by one.
template <class Value>
BEELINE_INLINE void dots(const Value* const* rows, std::size_t count, std::size_t n, const double* w,
                         std::size_t columns, double* z) {
  if (count == kBatch) return all_columns<Dot, kBatch>(rows, n, w, columns, z);
  for (std::size_t r = 0; r < count; ++r) all_columns<Dot, 1>(rows + r, n, w, columns, z + r * columns);
}

template <class Value>
BEELINE_INLINE void axpys(const Value* const* rows, std::size_t count, std::size_t n, const double* u,
                          std::size_t columns, double* out) {
  if (count == kBatch) return all_columns<Axpy, kBatch>(rows, n, u, columns, out);
  for (std::size_t r = 0; r < count; ++r) all_columns<Axpy, 1>(rows + r, n, u + r * columns, columns, out);
}

// A tile of kLines lines and kWidth columns of Σ_r scale_r rows_r rows_rᵀ.
template <std::size_t kLines, std::size_t kColumns, class Value>
BEELINE_INLINE void outer_tile(const Value* const* rows, const double* scale, std::size_t count, std::size_t n,
                               std::size_t line, std::size_t column, double* out) {
  double sums[kLines][kColumns] = {};
  for (std::size_t r = 0; r < count; ++r) {
    const Value* row = rows[r];
    for (std::size_t l = 0; l < kLines; ++l) {
      const double x = scale[r] * static_cast<double>(row[line + l]);
#pragma omp simd
      for (std::size_t k = 0; k < kColumns; ++k) sums[l][k] += x * static_cast<double>(row[column + k]);
    }
  }
  for (std::size_t l = 0; l < kLines; ++l) {
    double* target = out + (line + l) * n + column;
#pragma omp simd
    for (std::size_t k = 0; k < kColumns; ++k) target[k] += sums[l][k];
  }
}

// Lines of tiles from the left up to the diagonal, and over it where a whole tile fits.
template <std::size_t kLines, class Value>
BEELINE_INLINE void outer_lines(const Value* const* rows, const double* scale, std::size_t count, std::size_t n,
                                std::size_t line, double* out) {
  const std::size_t end = line + kLines;
  std::size_t column = 0;
  for (; column < end && column + kWidth <= n; column += kWidth)
    outer_tile<kLines, kWidth>(rows, scale, count, n, line, column, out);
  for (; column < end; ++column) outer_tile<kLines, 1>(rows, scale, count, n, line, column, out);
}

template <class Value>
BEELINE_INLINE void outers(const Value* const* rows, const double* scale, std::size_t count, std::size_t n,
                           double* out) {
  std::size_t line = 0;
  for (; line + kBatch <= n; line += kBatch) outer_lines<kBatch>(rows, scale, count, n, line, out);
  for (; line < n; ++line) outer_lines<1>(rows, scale, count, n, line, out);
}

}  // namespace

#define BEELINE_BATCH(Value)                                                                                       \
  BEELINE_CLONES void batch_dot(const Value* const* rows, std::size_t count, std::size_t n, const double* w,       \
                                std::size_t columns, double* z) {                                                  \
    dots(rows, count, n, w, columns, z);                                                                           \
  }                                                                                                                \
  BEELINE_CLONES void batch_axpy(const Value* const* rows, std::size_t count, std::size_t n, const double* u,      \
                                 std::size_t columns, double* out) {                                               \
    axpys(rows, count, n, u, columns, out);                                                                        \
  }                                                                                                                \
  BEELINE_CLONES void batch_outer(const Value* const* rows, const double* scale, std::size_t count, std::size_t n, \
                                  double* out) {                                                                   \
    outers(rows, scale, count, n, out);                                                                            \
  }

BEELINE_BATCH(float)
BEELINE_BATCH(double)

}  // namespace beeline
