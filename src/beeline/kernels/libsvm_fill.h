// Whole lines of LIBSVM text into a slot, fast where lines are plain, by the grammar of `parse_line` where not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libsvm_line.h"

namespace beeline::libsvm {

// What was met in a text. Lines count from 1 at its start.
struct Findings {
  Problem first;                 // a flaw that ends the reading, or none
  std::vector<Problem> skipped;  // the first few bad lines, when bad lines are skipped
  std::int64_t n_skipped = 0;
};

constexpr std::size_t kKeptProblems = 10;

// Parses `n` bytes that end with '\n'. The text must have kPadding readable bytes before and after it, and the slot
// room for what `count` says. Stops at the first flaw unless bad lines are skipped. `stops` is scratch memory.
template <class Value, class Index>
Findings fill(const char* text, std::size_t n, const Dialect& dialect, Slot<Value, Index>& slot,
              std::vector<std::uint32_t>& stops);

}  // namespace beeline::libsvm
