// Where the records of a CSV text begin and end (RFC 4180), without reading its fields.
//
// A quote opens a quoted field only at the beginning of a field; within it, two quotes stand for one. Quotes are rare
// in tables of numbers, so the search jumps from quote to quote and leaves the rest to memchr.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace beeline {
namespace {

struct Text {
  const char *begin, *end;
  char delimiter;

  const char* find(char c, const char* from) const {
    const auto* found = static_cast<const char*>(std::memchr(from, c, static_cast<std::size_t>(end - from)));
    return found ? found : end;
  }

  // The opening quote of the next quoted field from `from`, or the end.
  const char* opening(const char* from) const {
    for (const char* quote = find('"', from); quote != end; quote = find('"', quote + 1))
      if (quote == begin || quote[-1] == delimiter || quote[-1] == '\n' || quote[-1] == '\r') return quote;
    return end;
  }

  // Just behind the quote that closes the field opened at `quote`, or null when it is not closed.
  const char* closing(const char* quote) const {
    for (const char* next = find('"', quote + 1); next != end; next = find('"', next + 2)) {
      if (next + 1 == end || next[1] != '"') return next + 1;
      if (next + 2 == end) break;
    }
    return nullptr;
  }
};

// Calls plain(from, to) for each stretch outside of quotes and quoted(from, to) for each quoted field. Returns where
// a quoted field begins that is not closed, or the end.
template <class Plain, class Quoted>
const char* walk(const Text& text, Plain plain, Quoted quoted) {
  const char* at = text.begin;
  while (at != text.end) {
    const char* open = text.opening(at);
    plain(at, open);
    if (open == text.end) break;
    const char* close = text.closing(open);
    if (!close) return open;
    quoted(open, close);
    at = close;
  }
  return text.end;
}

// (bytes up to the end of the last whole record, whether a quoted field holds a newline, where an unclosed quoted
// field begins or -1)
std::tuple<std::size_t, bool, std::int64_t> last_record_end(nb::bytes bytes, char delimiter) {
  const Text text{bytes.c_str(), bytes.c_str() + bytes.size(), delimiter};
  nb::gil_scoped_release release;
  const char* cut = text.begin;
  bool newlines = false;
  const char* open = walk(text, [&](const char* from, const char* to) {
    const void* last = memrchr(from, '\n', static_cast<std::size_t>(to - from));
    if (last) cut = static_cast<const char*>(last) + 1;
  }, [&](const char* from, const char* to) {
    newlines = newlines || std::memchr(from, '\n', static_cast<std::size_t>(to - from)) ||
               std::memchr(from, '\r', static_cast<std::size_t>(to - from));
  });
  return {static_cast<std::size_t>(cut - text.begin), newlines, open == text.end ? -1 : open - text.begin};
}

// The (byte offset, line counted from 0) at which each record begins.
std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>> record_starts(nb::bytes bytes, char delimiter) {
  const Text text{bytes.c_str(), bytes.c_str() + bytes.size(), delimiter};
  std::vector<std::int64_t> offsets, lines;
  std::int64_t line = 0;
  if (text.begin != text.end) offsets.push_back(0), lines.push_back(0);
  const auto each_newline = [&](const char* from, const char* to, bool ends_record) {
    for (const char* at = from; (at = static_cast<const char*>(std::memchr(at, '\n', to - at))) != nullptr;) {
      ++line, ++at;
      if (ends_record && at != text.end) offsets.push_back(at - text.begin), lines.push_back(line);
      if (at == to) break;
    }
  };
  walk(text, [&](const char* from, const char* to) { each_newline(from, to, true); },
       [&](const char* from, const char* to) { each_newline(from, to, false); });
  return {std::move(offsets), std::move(lines)};
}

}  // namespace

void bind_records(nb::module_& m) {
  using namespace nb::literals;
  m.def("last_record_end", &last_record_end, "text"_a, "delimiter"_a);
  m.def("record_starts", &record_starts, "text"_a, "delimiter"_a);
}

}  // namespace beeline
