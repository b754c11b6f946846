// A batch of Arrow columns, taken over through the Arrow C data interface, as sources of numbers and category codes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace beeline {

namespace nb = nanobind;

// The two structures of the Arrow C data interface; the layout is fixed by its specification.
struct ArrowSchema {
  const char *format, *name, *metadata;
  std::int64_t flags, n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

enum class ValueType { boolean, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64 };

// One bit a row, 1 where the row is not null; `bits` is null when no row is.
struct Validity {
  const std::uint8_t* bits = nullptr;
  std::size_t offset = 0;
  bool at(std::size_t i) const { return !bits || (bits[(offset + i) >> 3] >> ((offset + i) & 7) & 1); }
};

// One column: numbers (`width` of them a row), or codes that `lookup` turns into category numbers (-1: none).
struct ColumnSource {
  ValueType type;
  const void* values;
  std::size_t offset;  // of row 0, in values
  std::size_t width;
  Validity rows, entries;
  bool categories = false;
  const std::int32_t* lookup = nullptr;
  std::size_t n_codes = 0;
};

using Lookup = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class ArrowBatch {
 public:
  // Takes over what the capsules hold. `lookups` has an entry a column: none for numbers.
  ArrowBatch(nb::capsule schema, nb::capsule array, std::vector<std::optional<Lookup>> lookups);
  ~ArrowBatch();
  ArrowBatch(const ArrowBatch&) = delete;
  ArrowBatch& operator=(const ArrowBatch&) = delete;

  std::size_t n_rows() const { return n_rows_; }
  const std::vector<ColumnSource>& columns() const { return columns_; }

 private:
  ArrowArray array_{};
  std::size_t n_rows_ = 0;
  std::vector<std::optional<Lookup>> lookups_;
  std::vector<ColumnSource> columns_;
};

enum class Fetched { zeros, finite, any };

// Numbers begin … begin+n-1 of a column's place `lane`, missing ones as NaN. Says what is known of them without a look
// at each; `zeros` are not written to out.
Fetched fetch_numbers(const ColumnSource& column, std::size_t lane, std::size_t begin, std::size_t n, double* out);

// Categories begin … begin+n-1 of a column: their number, kUnknown or kMissing.
constexpr std::int32_t kUnknown = -1, kMissing = -2;
void fetch_categories(const ColumnSource& column, std::size_t begin, std::size_t n, std::int32_t* out);

}  // namespace beeline
