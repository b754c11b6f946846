// First looks at LIBSVM text: how much of what it may hold at most, and where its numbers end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beeline::libsvm {

// What looks at text several bytes at a time may read this many bytes past its end.
constexpr std::size_t kPadding = 64;

// What the processor can do, as far as it is of use here; `limit_instructions` lets tests try the lesser ones.
enum class Instructions : int { baseline = 0, avx2 = 1, avx512 = 2 };
Instructions instructions();
void limit_instructions(Instructions most);

// Upper bounds for what a text holds. Every entry has a colon that is not preceded by a `d`, so the `qid:` of a
// row does not count; only comments and bad lines make the bounds inexact.
struct Bounds {
  std::int64_t lines = 0, entries = 0, commas = 0;
};

// The text must be preceded by one readable byte.
Bounds count(const char* text, std::size_t n);

// The positions of all bytes that are not digits, except a minus right after a colon: the bytes where numbers end.
// Knowing them beforehand frees the parser from waiting for the length of one number to find the next.
// `out` must have room for n + 2 kPadding positions; behind the last come kPadding times n − 1, so that a reader may
// look ahead. Returns how many there are.
std::size_t find_stops(const char* text, std::size_t n, std::uint32_t* out);

}  // namespace beeline::libsvm
