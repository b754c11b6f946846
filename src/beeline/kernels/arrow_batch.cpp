#include "arrow_batch.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "simd.h"

namespace beeline {
namespace {

ValueType type_of(const char* format) {
  static constexpr char kLetters[] = "bcCsSiIlLfg";
  const char* found = *format && !format[1] ? std::strchr(kLetters, *format) : nullptr;
  if (!found) throw std::invalid_argument(std::string("Arrow format ") + format + " is not a number");
  return static_cast<ValueType>(found - kLetters);
}

Validity validity_of(const ArrowArray& array, std::size_t offset) {
  if (array.null_count == 0 || !array.buffers[0]) return {};
  return {static_cast<const std::uint8_t*>(array.buffers[0]), offset};
}

ColumnSource flat_column(const ArrowSchema& schema, const ArrowArray& array, std::size_t offset) {
  return {type_of(schema.format), array.buffers[1], offset, 1, validity_of(array, offset), {}};
}

// A column of lists that all have the same length: that many numbers a row.
ColumnSource list_column(const ArrowSchema& schema, const ArrowArray& array, std::size_t offset) {
  const std::size_t width = std::strtoull(schema.format + 3, nullptr, 10);
  const ArrowArray& child = *array.children[0];
  const std::size_t first = offset * width + static_cast<std::size_t>(child.offset);
  ColumnSource column = flat_column(*schema.children[0], child, first);
  column.width = width;
  column.entries = column.rows;
  column.rows = validity_of(array, offset);
  return column;
}

ColumnSource column_of(const ArrowSchema& schema, const ArrowArray& array, const std::optional<Lookup>& lookup,
                       std::size_t offset) {
  if (std::strncmp(schema.format, "+w:", 3) == 0) return list_column(schema, array, offset);
  ColumnSource column = flat_column(schema, array, offset);
  if (!lookup) {
    if (schema.dictionary) throw std::invalid_argument("a column of categories needs a lookup");
    return column;
  }
  if (!schema.dictionary) throw std::invalid_argument("a column of numbers cannot have a lookup");
  column.categories = true;
  column.lookup = lookup->data();
  column.n_codes = lookup->size();
  return column;
}

template <class Value>
inline __attribute__((always_inline)) void convert(const Value* from, std::size_t step, std::size_t n, double* out) {
  if (step == 1) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(from[i]);
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(from[i * step]);
  }
}

// visit(pointer to the column's values)
template <class Visit>
void with_values(const ColumnSource& column, Visit visit) {
  switch (column.type) {
    case ValueType::int8:
      return visit(static_cast<const std::int8_t*>(column.values));
    case ValueType::uint8:
      return visit(static_cast<const std::uint8_t*>(column.values));
    case ValueType::int16:
      return visit(static_cast<const std::int16_t*>(column.values));
    case ValueType::uint16:
      return visit(static_cast<const std::uint16_t*>(column.values));
    case ValueType::int32:
      return visit(static_cast<const std::int32_t*>(column.values));
    case ValueType::uint32:
      return visit(static_cast<const std::uint32_t*>(column.values));
    case ValueType::int64:
      return visit(static_cast<const std::int64_t*>(column.values));
    case ValueType::uint64:
      return visit(static_cast<const std::uint64_t*>(column.values));
    case ValueType::float32:
      return visit(static_cast<const float*>(column.values));
    case ValueType::float64:
      return visit(static_cast<const double*>(column.values));
    case ValueType::boolean:
      throw std::invalid_argument("codes cannot be booleans");
  }
}

BEELINE_CLONES void fetch(const ColumnSource& column, std::size_t at, std::size_t n, double* out) {
  if (column.type == ValueType::boolean) {
    const auto* bits = static_cast<const std::uint8_t*>(column.values);
    for (std::size_t i = 0; i < n; ++i, at += column.width) out[i] = bits[at >> 3] >> (at & 7) & 1;
    return;
  }
  with_values(column, [&](auto* values) { convert(values + at, column.width, n, out); });
}

std::size_t size_of(ValueType type) {
  static constexpr std::size_t kSizes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return kSizes[static_cast<int>(type)];
}

// Tables are full of columns that are zero for long runs; a run of zero bytes needs no conversion.
bool all_zero(const ColumnSource& column, std::size_t at, std::size_t n) {
  const std::size_t size = size_of(column.type);
  if (size == 0) return false;
  const char* bytes = static_cast<const char*>(column.values) + at * size;
  const char* end = bytes + n * size;
  for (; bytes + 32 <= end; bytes += 32) {
    std::uint64_t words[4];
    std::memcpy(words, bytes, 32);
    if (words[0] | words[1] | words[2] | words[3]) return false;
  }
  for (; bytes != end; ++bytes)
    if (*bytes) return false;
  return true;
}

}  // namespace

ArrowBatch::ArrowBatch(nb::capsule schema, nb::capsule array, std::vector<std::optional<Lookup>> lookups)
    : lookups_(std::move(lookups)) {
  if (std::strcmp(schema.name(), "arrow_schema") != 0 || std::strcmp(array.name(), "arrow_array") != 0)
    throw std::invalid_argument("expected the capsules of the Arrow C data interface");
  const auto& form = *static_cast<const ArrowSchema*>(schema.data());
  auto* given = static_cast<ArrowArray*>(array.data());
  if (!given->release || std::strcmp(form.format, "+s") != 0)
    throw std::invalid_argument("expected a record batch that nobody has taken");
  if (static_cast<std::size_t>(form.n_children) != lookups_.size())
    throw std::invalid_argument("expected one lookup a column");
  array_ = *given;
  given->release = nullptr;  // ours from here on, as the interface asks
  n_rows_ = array_.length;
  try {
    for (std::size_t k = 0; k < lookups_.size(); ++k) {
      const ArrowArray& child = *array_.children[k];
      columns_.push_back(
          column_of(*form.children[k], child, lookups_[k], static_cast<std::size_t>(array_.offset + child.offset)));
    }
  } catch (...) {
    array_.release(&array_);
    throw;
  }
}

ArrowBatch::~ArrowBatch() {
  if (array_.release) array_.release(&array_);
}

Fetched fetch_numbers(const ColumnSource& column, std::size_t lane, std::size_t begin, std::size_t n, double* out) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const std::size_t at = column.offset + begin * column.width + lane;
  const bool complete = !column.rows.bits && !column.entries.bits;
  if (complete && column.width == 1 && all_zero(column, at, n)) return Fetched::zeros;
  fetch(column, at, n, out);
  if (column.rows.bits)
    for (std::size_t i = 0; i < n; ++i)
      if (!column.rows.at(begin + i)) out[i] = kNaN;
  if (column.entries.bits)
    for (std::size_t i = 0; i < n; ++i)
      if (!column.entries.at((begin + i) * column.width + lane)) out[i] = kNaN;
  return complete && column.type < ValueType::float32 ? Fetched::finite : Fetched::any;
}

void fetch_categories(const ColumnSource& column, std::size_t begin, std::size_t n, std::int32_t* out) {
  with_values(column, [&](auto* codes) {
    for (std::size_t i = 0; i < n; ++i) {
      if (!column.rows.at(begin + i)) {
        out[i] = kMissing;
        continue;
      }
      // A code outside its dictionary would be a broken file: it is read as unknown rather than beyond the end.
      const auto code = static_cast<std::uint64_t>(codes[column.offset + begin + i]);
      out[i] = code < column.n_codes ? column.lookup[code] : kUnknown;
    }
  });
}

}  // namespace beeline
