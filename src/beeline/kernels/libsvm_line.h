// One line of LIBSVM text: the grammar, said once.
//
//   line    = [labels] [qid:whole] { index:value } [# comment]
//   labels  = number { , number }          one number unless the labels are sets; sets may be empty
//
// Fields are separated by spaces and tabs; a line ends with LF or CRLF. Lines without any field hold no row. Indices
// are whole numbers, strictly increasing within a line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace beeline::libsvm {

// What is wrong with a line. The numbers are known to the Python side, which has the sentences.
enum class Flaw : int {
  none = 0,
  bad_label = 1,       // not a number
  missing_label = 2,   // a line that begins with index:value, though labels are single
  several_labels = 3,  // a comma, though labels are single
  nonfinite_label = 4,
  bad_query = 5,         // qid: not followed by a whole number
  missing_query = 6,     // other rows have a query id
  unexpected_query = 7,  // other rows have none
  no_colon = 8,          // a field that is not index:value
  bad_index = 9,         // not a whole number
  zero_index = 10,       // index 0, though features count from 1
  repeated_index = 11,
  unsorted_index = 12,
  index_beyond = 13,  // over the given number of features
  huge_index = 14,    // over what an index may be at all
  bad_value = 15,     // not a number
  nonfinite_value = 16,
  long_line = 17,
  // Lines that are good, but not in the dialect that was guessed:
  asks_sets = 32,        // a comma
  asks_empty_sets = 33,  // no label
  asks_zero_based = 34,
  asks_wide = 35,    // an index that needs more bits
  asks_double = 36,  // a value that float32 would not keep
};

constexpr std::int64_t kNoQuery = -1;

enum class Queries : int { unknown = -1, none = 0, each = 1 };

struct Dialect {
  std::int64_t base = 1;        // the index of the first feature
  bool base_guessed = false;    // an index 0 says that the guess was wrong, and is no flaw
  bool sets = false;            // labels are sets
  bool sets_guessed = false;    // a comma or a missing label says that the guess was wrong, and is no flaw
  std::int64_t last_index = 0;  // the largest index allowed, as written
  Queries queries = Queries::unknown;
  bool allow_nonfinite = false;
  bool skip_bad_lines = false;
  // How the rows are stored:
  int index_bits = 32;            // 16, 32 or 64
  bool single_precision = false;  // float32 values
  bool faithful = false;          // float32 values must keep numbers as they are written, see `kept_by_single`
};

struct Problem {
  Flaw flaw = Flaw::none;
  std::int64_t line = 0;    // counted from 1
  std::int64_t column = 0;  // bytes, counted from 1
  std::string text;         // the field in question, shortened
};

// Where rows are written: a stretch of the final arrays. Positions count from the start of the arrays.
template <class Value, class Index>
struct Slot {
  Value* values;
  Index* indices;
  std::int64_t* ends;     // ends[i]: where the entries of row i end
  std::int64_t* queries;  // kNoQuery for a row without one; null when it is known that no row has one
  double* labels;
  std::int64_t* label_ends;  // where the labels of row i end, when labels are sets; else null
  std::int64_t row, entry, label;
  std::int64_t last_index = -1;  // the largest index so far, as written
  bool several = false;          // whether a row had more than one label
};

// Parses the line from `begin` to its '\n' at `end` into the slot. Returns the flaw, with `at` and `stop` around the
// text in question; nothing of a flawed line stays in the slot. A line without a row leaves the slot as it is.
template <class Value, class Index>
Flaw parse_line(const char* begin, const char* end, const Dialect& dialect, Slot<Value, Index>& slot, const char*& at,
                const char*& stop);

}  // namespace beeline::libsvm
