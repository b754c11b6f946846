// Coverage-guided fuzzing of the LIBSVM parser: any bytes, in any dialect, however they are cut.
//
// The text is parsed line by line by the grammar alone, and then by the real parser in many ways: whole and in tiny
// chunks, by several threads, at once and piece by piece, with every instruction set. All must give the same rows and
// the same first flaw. The arrays have exactly the room that the parser asks for, and come from malloc
// (fuzz/exact_pages.cpp), so that the address sanitizer sees every write beyond it.
//
// The first three bytes of the input choose the dialect and the chunks; the rest is the text.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "libsvm_line.h"
#include "libsvm_number.h"
#include "libsvm_parser.h"
#include "libsvm_scan.h"

using namespace beeline::libsvm;

namespace {

using Place = std::tuple<int, std::int64_t, std::int64_t, std::string>;

struct Result {
  std::vector<std::string> columns;  // the bytes of each array
  Place first;
  std::vector<Place> skipped;
  std::int64_t n_skipped = 0, lines = 0, last_index = -1;
  bool several = false;

  bool operator==(const Result& other) const {
    if (first != other.first) return false;
    const bool same_skips = skipped == other.skipped && n_skipped == other.n_skipped;
    if (std::get<0>(first) != 0) return same_skips;  // after a flaw the arrays hold nothing of use
    return same_skips && columns == other.columns && lines == other.lines && last_index == other.last_index &&
           several == other.several;
  }
};

Place place(const Problem& p) { return {static_cast<int>(p.flaw), p.line, p.column, p.text}; }

void note(Result& result, const Findings& findings) {
  result.n_skipped += findings.n_skipped;
  for (const Problem& problem : findings.skipped)
    if (result.skipped.size() < kKeptProblems) result.skipped.push_back(place(problem));
  result.first = findings.first.flaw == Flaw::none ? Place{} : place(findings.first);
}

template <class T>
std::string bytes(const T* data, std::int64_t n) {
  return n ? std::string(reinterpret_cast<const char*>(data), static_cast<std::size_t>(n) * sizeof(T)) : std::string();
}

// By the grammar alone.
template <class Value, class Index>
Result by_lines(const std::string& text, const Dialect& dialect) {
  const std::size_t most = text.size() + 2;
  std::vector<Value> values(most);
  std::vector<Index> indices(most);
  std::vector<std::int64_t> ends(most), queries(most), label_ends(most);
  std::vector<double> labels(2 * most);
  Slot<Value, Index> slot{
      values.data(), indices.data(), ends.data(), queries.data(), labels.data(), label_ends.data(), 0, 0, 0};
  Result result;
  for (std::size_t begin = 0; begin < text.size() && std::get<0>(result.first) == 0;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const char *at, *stop;
    ++result.lines;
    const Flaw flaw = parse_line(text.data() + begin, text.data() + end, dialect, slot, at, stop);
    if (flaw != Flaw::none) {
      const Place where{static_cast<int>(flaw), result.lines, at - (text.data() + begin) + 1,
                        std::string(at, std::min<std::size_t>(40, stop - at))};
      if (!dialect.skip_bad_lines || flaw >= Flaw::asks_sets) {
        result.first = where;
      } else if (result.n_skipped++ < static_cast<std::int64_t>(kKeptProblems)) {
        result.skipped.push_back(where);
      }
    }
    begin = end + 1;
  }
  result.last_index = slot.last_index;
  result.several = slot.several;
  ends.insert(ends.begin(), 0);
  label_ends.insert(label_ends.begin(), 0);
  result.columns = {bytes(values.data(), slot.entry),
                    bytes(indices.data(), slot.entry),
                    bytes(ends.data(), slot.row + 1),
                    bytes(labels.data(), slot.label),
                    dialect.sets ? bytes(label_ends.data(), slot.row + 1) : "",
                    dialect.queries == Queries::none ? "" : bytes(queries.data(), slot.row)};
  return result;
}

template <class Value>
Result by_lines_as(const std::string& text, const Dialect& dialect) {
  if (dialect.index_bits == 16) return by_lines<Value, std::uint16_t>(text, dialect);
  return dialect.index_bits == 64 ? by_lines<Value, std::int64_t>(text, dialect)
                                  : by_lines<Value, std::int32_t>(text, dialect);
}

void collect(Result& result, Parser& parser) {
  const Dialect& d = parser.dialect;
  result.lines = parser.line;
  result.last_index = parser.last_index;
  result.several = parser.several;
  const Arrays a = parser.take();
  result.columns = {bytes(a.values.as<char>(), a.used.entries * (d.single_precision ? 4 : 8)),
                    bytes(a.indices.as<char>(), a.used.entries * (d.index_bits / 8)),
                    bytes(a.positions.as<std::int64_t>(), a.used.rows + 1),
                    bytes(a.labels.as<double>(), a.used.labels),
                    d.sets ? bytes(a.label_positions.as<std::int64_t>(), a.used.rows + 1) : "",
                    d.queries == Queries::none ? "" : bytes(a.queries.as<std::int64_t>(), a.used.rows)};
}

// By the real parser, `step` bytes a call, with no more room than it asks for.
Result by_parser(const std::string& text, const Dialect& dialect, std::size_t chunk, std::int64_t step, int threads) {
  Parser parser(dialect, chunk);
  parser.reserve({}, 0);
  Result result;
  const auto size = static_cast<std::int64_t>(text.size());
  const Source source{text.data(), -1, size};
  for (std::int64_t at = 0; at < size;) {
    const Outcome outcome = parser.parse(source, at, std::min(size, at + step), threads);
    note(result, outcome.findings);
    if (std::get<0>(result.first) != 0) break;
    if (outcome.full) {
      parser.reserve(outcome.wanted, 0);
    } else if (outcome.end <= at) {
      std::fprintf(stderr, "no progress at byte %lld\n", static_cast<long long>(at));
      std::abort();
    }
    at = outcome.end;
  }
  collect(result, parser);
  return result;
}

// By the real parser, from pieces of text that end with lines, as a stream gives them.
Result by_pieces(const std::string& text, const Dialect& dialect, std::size_t piece) {
  Parser parser(dialect, 64);
  parser.reserve({}, 0);
  Result result;
  for (std::size_t begin = 0; begin < text.size() && std::get<0>(result.first) == 0;) {
    const std::size_t newline = text.find('\n', std::min(text.size() - 1, begin + piece));
    const std::size_t end = newline == std::string::npos ? text.size() : newline + 1;
    const std::string part = text.substr(begin, end - begin);
    const Source source{part.data(), -1, static_cast<std::int64_t>(part.size())};
    for (std::int64_t at = 0; at < source.size && std::get<0>(result.first) == 0;) {
      const Outcome outcome = parser.parse(source, at, source.size, 1);
      note(result, outcome.findings);
      if (outcome.full) parser.reserve(outcome.wanted, 0);
      at = outcome.end;
    }
    begin = end;
  }
  collect(result, parser);
  return result;
}

void demand(const Result& expected, const Result& found, const char* what) {
  if (expected == found) return;
  std::fprintf(stderr, "%s differs: first flaw %d at line %lld, expected %d at line %lld\n", what,
               std::get<0>(found.first), static_cast<long long>(std::get<1>(found.first)), std::get<0>(expected.first),
               static_cast<long long>(std::get<1>(expected.first)));
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 3, size - 3);
  Dialect dialect;
  dialect.base = data[0] & 1;
  dialect.base_guessed = dialect.base == 1 && (data[0] & 2);
  dialect.sets = data[0] & 4;
  dialect.sets_guessed = !dialect.sets && (data[0] & 8);
  dialect.queries = static_cast<Queries>((data[0] >> 4) % 3 - 1);
  dialect.allow_nonfinite = data[1] & 1;
  dialect.skip_bad_lines = data[1] & 2;
  dialect.index_bits = data[1] & 4 ? 64 : data[1] & 128 ? 16 : 32;
  dialect.single_precision = data[1] & 8;
  dialect.last_index = data[1] & 16 ? 20 : kMostWhole;
  const std::size_t chunk = 1 + data[2] % 97;

  dialect.faithful = dialect.index_bits == 16;
  const Result expected =
      dialect.single_precision ? by_lines_as<float>(text, dialect) : by_lines_as<double>(text, dialect);
  for (const auto level : {Instructions::baseline, Instructions::avx2, Instructions::avx512}) {
    limit_instructions(level);
    demand(expected, by_parser(text, dialect, 1 << 20, 1 << 20, 1), "the whole text");
  }
  demand(expected, by_parser(text, dialect, chunk, 1 << 20, 1), "the text in chunks");
  demand(expected, by_parser(text, dialect, chunk, 1 << 20, 3), "the text in chunks by threads");
  demand(expected, by_parser(text, dialect, chunk, 1 + data[2], 2), "the text step by step");
  demand(expected, by_pieces(text, dialect, chunk), "the text in pieces");
  return 0;
}
