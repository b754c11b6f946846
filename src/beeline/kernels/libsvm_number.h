// Numbers in LIBSVM text: exact, and fast where they are short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define BEELINE_INLINE inline __attribute__((always_inline))

namespace beeline::libsvm {

// The number written by the `n` digits before `end`, 1 ≤ n ≤ 8. Reads eight bytes, whatever follows the digits: all
// are handled at once, so that the time does not depend on how many there are.
BEELINE_INLINE std::uint64_t digits_before(const char* end, std::size_t n) {
  std::uint64_t x;
  std::memcpy(&x, end - n, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  x = __builtin_bswap64(x);
#endif
  x <<= 64 - 8 * n;
  x = (x & 0x0F0F0F0F0F0F0F0F) * 2561 >> 8;                // pairs of digits:  10 a + b
  x = (x & 0x00FF00FF00FF00FF) * 6553601 >> 16;            // pairs of those:  100 a + b
  return (x & 0x0000FFFF0000FFFF) * 42949672960001 >> 32;  // and again:  10000 a + b
}

// The same for 1 ≤ n ≤ 16.
BEELINE_INLINE std::uint64_t many_digits_before(const char* end, std::size_t n) {
  if (n <= 8) return digits_before(end, n);
  return digits_before(end - 8, n - 8) * 100'000'000 + digits_before(end, 8);
}

// 1 for a minus, 0 for other bytes. By arithmetic, because an instruction that sets one byte of a register waits for
// whatever was in the register before, which may be the number before.
BEELINE_INLINE std::uint32_t is_minus(char c) {
  return ((static_cast<std::uint32_t>(static_cast<unsigned char>(c)) ^ '-') - 1) >> 31;
}

// x, or −x without a branch: signs come in no order that a processor could learn.
BEELINE_INLINE double with_sign(double x, std::uint32_t negative) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, 8);
  bits ^= std::uint64_t{negative} << 63;
  std::memcpy(&x, &bits, 8);
  return x;
}

// Powers of ten that float64 holds exactly, and as integers as far as these go.
extern const double kTens[23];
extern const std::uint64_t kWholeTens[19];

constexpr std::uint64_t kExact = std::uint64_t{1} << 53;

enum class Reading { number, nonfinite, garbage };

// A decimal number, or nan, inf, infinity in any case, that fills the text from `begin` to `end` exactly. Rounded
// to the nearest float64, as Python's float() does; a number too large for float64 is `nonfinite`.
Reading read_number(const char* begin, const char* end, double& out);

// Whether float32 keeps x, written from `begin` to `end`: exactly, or so that the same text can be written again, as it
// can for numbers of up to six digits in float32's range. What is not finite is kept.
bool kept_by_single(const char* begin, const char* end, double x);

constexpr std::uint64_t kSixDigits = 999'999;

// An index or query id: digits only, at most kMostWhole.
constexpr std::int64_t kMostWhole = 999'999'999'999'999'999;
enum class Whole { number, too_large, garbage };
Whole read_whole(const char* begin, const char* end, std::int64_t& out);

}  // namespace beeline::libsvm
