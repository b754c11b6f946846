// LIBSVM text, from memory or from a file, into growing CSR arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "libsvm_fill.h"
#include "libsvm_line.h"
#include "pages.h"

namespace beeline::libsvm {

// A text of known size. A file is read by its descriptor, never mapped: one that shrinks meanwhile is an error here
// and not the end of the process.
struct Source {
  const char* data = nullptr;
  int descriptor = -1;
  std::int64_t size = 0;

  void read(std::int64_t at, char* to, std::size_t n) const;
};

// A file could not be read; `code` is errno, or 0 when it ended too early.
struct ReadError : std::runtime_error {
  explicit ReadError(int code) : std::runtime_error("read error"), code(code) {}
  int code;
};

struct Room {
  std::int64_t rows = 0, entries = 0, labels = 0;
};

// How a call of `parse` ended.
struct Outcome {
  std::int64_t end = 0;  // the first byte that was not parsed: the begin of a line
  bool full = false;     // there was no room for all lines; `wanted` is room for a few more
  Room wanted;
  Findings findings;  // lines count from the start of the file
};

struct Arrays {
  Pages values, indices, positions, labels, label_positions, queries;
  Room used;
};

// Rows are appended to arrays that `reserve` enlarges and `take` hands out. Work is cut in chunks of bytes; a chunk
// has the lines that begin in it. For each, bounds are counted and its stretch of the arrays is set aside, in order;
// then it is parsed, in parallel with others. Gaps, where bounds were not exact, are closed at the end.
class Parser {
 public:
  Parser(const Dialect& dialect, std::size_t chunk_bytes);

  // Makes room for so many rows, entries and labels in all; `budget` bytes may be used of it (0: all).
  void reserve(const Room& room, std::int64_t budget);

  // Parses the lines that begin between `begin`, itself the begin of a line, and `end`. Stops when the room is full.
  // After a flaw that ends the reading the arrays hold nothing of use.
  Outcome parse(const Source& source, std::int64_t begin, std::int64_t end, int threads);

  // The rows so far; then there are none, and no room.
  Arrays take();

  const Dialect dialect;
  std::int64_t line = 0;         // lines of the current file that were parsed
  std::int64_t last_index = -1;  // the largest index seen, as written
  bool several = false;          // whether a row had more than one label
  const Room& used() const { return arrays_.used; }
  // Bytes that so many rows, entries and labels take.
  std::int64_t cost(const Room& room) const;

 private:
  template <class Value, class Index>
  friend class Walk;

  struct Scratch {
    std::vector<char> text;
    std::vector<std::uint32_t> stops;
  };
  template <class Value>
  Outcome parse_as(const Source& source, std::int64_t begin, std::int64_t end, int threads);
  std::unique_ptr<Scratch> borrow();
  void give_back(std::unique_ptr<Scratch> scratch);
  std::int64_t value_bytes() const { return dialect.single_precision ? 4 : 8; }
  std::int64_t index_bytes() const { return dialect.index_bits / 8; }

  const std::size_t chunk_bytes_;
  Arrays arrays_;
  Room room_;
  std::int64_t budget_ = 0;
  std::mutex scratch_mutex_;
  std::vector<std::unique_ptr<Scratch>> scratch_;
};

}  // namespace beeline::libsvm
