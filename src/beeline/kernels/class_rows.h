// One row against the weights of many classes. The weights of a feature lie side by side, `stride` of them (the
// classes, rounded up to a whole vector), so that one visit to an entry serves all classes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "entries.h"
#include "simd.h"

namespace beeline {

constexpr std::size_t kLanes = 8;  // classes in a vector
constexpr std::size_t kTile = 8;   // vectors whose sums fit the registers

inline std::size_t padded(std::size_t n_classes) { return (n_classes + kLanes - 1) / kLanes * kLanes; }

// The entries of one row: `feature` and `value` by position.
template <class Index, class Value>
struct SparseRow {
  const Index* indices;
  const Value* values;
  std::size_t count;
  std::size_t feature(std::size_t p) const { return static_cast<std::size_t>(indices[p]); }
};

template <class Value>
struct DenseRow {
  const Value* values;
  std::size_t count;
  std::size_t feature(std::size_t p) const { return p; }
};

template <class Index, class Value>
SparseRow<Index, Value> row_of(const SparseEntries<Index, Value>& entries, Span span) {
  return {entries.indices + span.begin, entries.values + span.begin, span.count};
}

template <class Value>
DenseRow<Value> row_of(const DenseEntries<Value>& entries, Span span) {
  return {entries.values + span.begin, span.count};
}

// The loops, compiled for several instruction sets. Weight is float or double; sums are of the same type.
template <class Row, class Weight>
class ClassRow {
 public:
  // out_k = Σ x_j w_jk for every class.
  BEELINE_CLONES static void scores(Row row, const Weight* w, std::size_t stride, Weight* out) {
    std::size_t k = 0;
    for (; k + kTile * kLanes <= stride; k += kTile * kLanes) tile<kTile>(row, w + k, stride, out + k);
    switch ((stride - k) / kLanes) {
      case 1:
        tile<1>(row, w + k, stride, out + k);
        break;
      case 2:
        tile<2>(row, w + k, stride, out + k);
        break;
      case 3:
        tile<3>(row, w + k, stride, out + k);
        break;
      case 4:
        tile<4>(row, w + k, stride, out + k);
        break;
      case 5:
        tile<5>(row, w + k, stride, out + k);
        break;
      case 6:
        tile<6>(row, w + k, stride, out + k);
        break;
      case 7:
        tile<7>(row, w + k, stride, out + k);
        break;
    }
  }

  // out_m = Σ x_j w_jk for the n classes k = classes[m].
  BEELINE_CLONES static void scores_of(Row row, const Weight* w, std::size_t stride, const std::uint16_t* classes,
                                       std::size_t n, Weight* out) {
    std::size_t m = 0;
    for (; m + 4 <= n; m += 4) few<4>(row, w, stride, classes + m, out + m);
    switch (n - m) {
      case 1:
        few<1>(row, w, stride, classes + m, out + m);
        break;
      case 2:
        few<2>(row, w, stride, classes + m, out + m);
        break;
      case 3:
        few<3>(row, w, stride, classes + m, out + m);
        break;
    }
  }

  // w_jk += x_j change_k for every class.
  BEELINE_CLONES static void add(Row row, const Weight* change, std::size_t stride, Weight* w) {
    std::size_t k = 0;
    for (; k + kTile * kLanes <= stride; k += kTile * kLanes) add_tile<kTile>(row, change + k, stride, w + k);
    switch ((stride - k) / kLanes) {
      case 1:
        add_tile<1>(row, change + k, stride, w + k);
        break;
      case 2:
        add_tile<2>(row, change + k, stride, w + k);
        break;
      case 3:
        add_tile<3>(row, change + k, stride, w + k);
        break;
      case 4:
        add_tile<4>(row, change + k, stride, w + k);
        break;
      case 5:
        add_tile<5>(row, change + k, stride, w + k);
        break;
      case 6:
        add_tile<6>(row, change + k, stride, w + k);
        break;
      case 7:
        add_tile<7>(row, change + k, stride, w + k);
        break;
    }
  }

  // w_jk += x_j change_m for the n classes k = classes[m].
  BEELINE_CLONES static void add_of(Row row, const Weight* change, const std::uint16_t* classes, std::size_t n,
                                    std::size_t stride, Weight* w) {
    for (std::size_t p = 0; p < row.count; ++p) {
      Weight* at = w + row.feature(p) * stride;
      const Weight x = static_cast<Weight>(row.values[p]);
      for (std::size_t m = 0; m < n; ++m) at[classes[m]] += x * change[m];
    }
  }

 private:
  typedef Weight Lanes __attribute__((vector_size(kLanes * sizeof(Weight)), aligned(sizeof(Weight)), may_alias));

  // Several sums for a class: the additions of one chain would wait for each other.
  template <std::size_t kVectors>
  static inline __attribute__((always_inline)) void tile(Row row, const Weight* w, std::size_t stride, Weight* out) {
    constexpr std::size_t kChains = kVectors <= 2 ? 4 : kVectors <= 4 ? 2 : 1;
    Lanes sums[kChains][kVectors] = {};
    std::size_t p = 0;
    for (; p + kChains <= row.count; p += kChains)
      for (std::size_t c = 0; c < kChains; ++c) add_entry<kVectors>(row, p + c, w, stride, sums[c]);
    for (; p < row.count; ++p) add_entry<kVectors>(row, p, w, stride, sums[0]);
    for (std::size_t v = 0; v < kVectors; ++v) {
      Lanes sum = sums[0][v];
      for (std::size_t c = 1; c < kChains; ++c) sum += sums[c][v];
      *reinterpret_cast<Lanes*>(out + v * kLanes) = sum;
    }
  }

  template <std::size_t kVectors>
  static inline __attribute__((always_inline)) void add_entry(Row row, std::size_t p, const Weight* w,
                                                              std::size_t stride, Lanes* sums) {
    const Lanes* at = reinterpret_cast<const Lanes*>(w + row.feature(p) * stride);
    const Weight x = static_cast<Weight>(row.values[p]);
    for (std::size_t v = 0; v < kVectors; ++v) sums[v] += x * at[v];
  }

  template <std::size_t kVectors>
  static inline __attribute__((always_inline)) void add_tile(Row row, const Weight* change, std::size_t stride,
                                                             Weight* w) {
    Lanes changes[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) changes[v] = *reinterpret_cast<const Lanes*>(change + v * kLanes);
    for (std::size_t p = 0; p < row.count; ++p) {
      Lanes* at = reinterpret_cast<Lanes*>(w + row.feature(p) * stride);
      const Weight x = static_cast<Weight>(row.values[p]);
      for (std::size_t v = 0; v < kVectors; ++v) at[v] += x * changes[v];
    }
  }

  template <std::size_t kCount>
  static inline __attribute__((always_inline)) void few(Row row, const Weight* w, std::size_t stride,
                                                        const std::uint16_t* classes, Weight* out) {
    Weight even[kCount] = {}, odd[kCount] = {};
    std::size_t p = 0;
    for (; p + 2 <= row.count; p += 2) {
      const Weight* at = w + row.feature(p) * stride;
      const Weight* next = w + row.feature(p + 1) * stride;
      const Weight x = static_cast<Weight>(row.values[p]), y = static_cast<Weight>(row.values[p + 1]);
      for (std::size_t m = 0; m < kCount; ++m) {
        even[m] += x * at[classes[m]];
        odd[m] += y * next[classes[m]];
      }
    }
    if (p < row.count) {
      const Weight* at = w + row.feature(p) * stride;
      for (std::size_t m = 0; m < kCount; ++m) even[m] += static_cast<Weight>(row.values[p]) * at[classes[m]];
    }
    for (std::size_t m = 0; m < kCount; ++m) out[m] = even[m] + odd[m];
  }
};

}  // namespace beeline
