// Rows for kernels that visit them one at a time in random order: where a row lies is kept beside the row's other
// numbers, so that finding it costs no look-up of its own, and what comes next can be fetched ahead.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rows.h"

namespace beeline {

// The entries of one row: [begin, begin + count).
struct Span {
  std::int64_t begin;
  std::uint32_t count;
};

template <class T>
inline void prefetch_lines(const T* first, std::size_t count) {
  constexpr std::size_t kMost = 512;  // bytes; the hardware follows a longer run by itself
  const char* at = reinterpret_cast<const char*>(first);
  const std::size_t bytes = count * sizeof(T) < kMost ? count * sizeof(T) : kMost;
  for (std::size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(at + offset);
}

template <class Index, class Value>
struct SparseEntries {
  static constexpr bool kSparse = true;
  const Index* indices;
  const Value* values;

  double dot(Span row, const double* w) const {
    const Index* index = indices + row.begin;
    const Value* value = values + row.begin;
    // Four sums: the additions of one chain would wait for each other.
    double sums[4] = {0, 0, 0, 0};
    std::uint32_t p = 0;
    for (; p + 4 <= row.count; p += 4)
      for (std::uint32_t k = 0; k < 4; ++k) sums[k] += static_cast<double>(value[p + k]) * w[index[p + k]];
    for (; p < row.count; ++p) sums[p & 3] += static_cast<double>(value[p]) * w[index[p]];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  void axpy(Span row, double scale, double* w) const {
    const Index* index = indices + row.begin;
    const Value* value = values + row.begin;
    for (std::uint32_t p = 0; p < row.count; ++p) w[index[p]] += scale * static_cast<double>(value[p]);
  }

  void prefetch(Span row) const {
    prefetch_lines(indices + row.begin, row.count);
    prefetch_lines(values + row.begin, row.count);
  }

  // visit(feature, value) for every stored entry of the row.
  template <class Visit>
  void each(Span row, Visit visit) const {
    for (std::int64_t p = row.begin, end = row.begin + row.count; p < end; ++p)
      visit(static_cast<std::size_t>(indices[p]), static_cast<double>(values[p]));
  }
};

template <class Value>
struct DenseEntries {
  static constexpr bool kSparse = false;
  const Value* values;

  double dot(Span row, const double* w) const { return dense_dot(values + row.begin, w, row.count); }
  void axpy(Span row, double scale, double* w) const { dense_axpy(scale, values + row.begin, w, row.count); }
  void prefetch(Span row) const { prefetch_lines(values + row.begin, row.count); }

  template <class Visit>
  void each(Span row, Visit visit) const {
    for (std::uint32_t j = 0; j < row.count; ++j) visit(std::size_t{j}, static_cast<double>(values[row.begin + j]));
  }
};

// visit(entries) with the concrete type of the entries.
template <class Visit>
auto with_entries(const RowArrays& arrays, Visit visit) {
  return with_float(arrays.values, [&](auto* value) {
    using Value = std::remove_const_t<std::remove_pointer_t<decltype(value)>>;
    if (!arrays.indptr) return visit(DenseEntries<Value>{value});
    return with_index(*arrays.indices, [&](auto* index) {
      using Index = std::remove_const_t<std::remove_pointer_t<decltype(index)>>;
      return visit(SparseEntries<Index, Value>{index, value});
    });
  });
}

// Where row i lies among the entries.
inline Span span_of(const RowArrays& arrays, std::size_t i) {
  if (!arrays.indptr)
    return {static_cast<std::int64_t>(i * arrays.n_features), static_cast<std::uint32_t>(arrays.n_features)};
  const Positions position = positions_of(*arrays.indptr);
  return {position[i], static_cast<std::uint32_t>(position[i + 1] - position[i])};
}

}  // namespace beeline
