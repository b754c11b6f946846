// Lines of plain LIBSVM text, compiled for several instruction sets: libsvm_plain_lines.h with different tools.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "libsvm_line.h"
#include "libsvm_number.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if !defined(__clang__)
// A false alarm about GCC 12's own header, as soon as sanitizers are on.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

namespace beeline::libsvm {

namespace baseline {
#define BEELINE_TARGET
// Two numbers of 1 to 8 digits.
struct Pair {
  BEELINE_INLINE Pair(const char* a, std::size_t a_size, const char* b, std::size_t b_size)
      : a_(digits_before(a + a_size, a_size)), b_(digits_before(b + b_size, b_size)) {}
  BEELINE_INLINE std::int64_t first() const { return static_cast<std::int64_t>(a_); }
  BEELINE_INLINE double second() const { return static_cast<double>(static_cast<std::int64_t>(b_)); }
  BEELINE_INLINE std::uint64_t second_whole() const { return b_; }
  std::uint64_t a_, b_;
};
#define BEELINE_GROUPS 0
#include "libsvm_plain_lines.h"
#undef BEELINE_TARGET
}  // namespace baseline

#if defined(__x86_64__)
namespace avx2 {
#define BEELINE_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define BEELINE_AVX2 BEELINE_TARGET inline __attribute__((always_inline))
// The same for both at once: pairs of digits become numbers below 100, pairs of those below 10,000, and again.
struct Pair {
  BEELINE_AVX2 Pair(const char* a, std::size_t a_size, const char* b, std::size_t b_size) {
    const __m128i text = _mm_set_epi64x(static_cast<long long>(load(b) << (64 - 8 * b_size)),
                                        static_cast<long long>(load(a) << (64 - 8 * a_size)));
    const __m128i digits = _mm_and_si128(text, _mm_set1_epi8(0x0F));
    const __m128i twos = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x010A));
    const __m128i fours = _mm_madd_epi16(twos, _mm_set1_epi32(0x00010064));
    numbers = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(0x00012710));
  }
  static BEELINE_AVX2 std::uint64_t load(const char* p) {
    std::uint64_t x;
    std::memcpy(&x, p, 8);
    return x;
  }
  BEELINE_AVX2 std::int64_t first() const { return _mm_cvtsi128_si32(numbers); }
  BEELINE_AVX2 double second() const { return _mm_cvtsd_f64(_mm_cvtepi32_pd(_mm_shuffle_epi32(numbers, 0x55))); }
  BEELINE_AVX2 std::uint64_t second_whole() const { return static_cast<std::uint32_t>(_mm_extract_epi32(numbers, 1)); }
  __m128i numbers;
};
#define BEELINE_GROUPS 0
#include "libsvm_plain_lines.h"
#undef BEELINE_AVX2
#undef BEELINE_TARGET
}  // namespace avx2

namespace avx512 {
#define BEELINE_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#define BEELINE_AVX512 BEELINE_TARGET inline __attribute__((always_inline))
using Pair = avx2::Pair;

// Eight numbers of 1 to 8 digits, given by where they begin in the text and by how many digits they have.
BEELINE_AVX512 __m512i eight_numbers(__m512i text, __m512i begins, __m512i sizes) {
  const __m512i spread = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0808080808080808, 0));
  const __m512i bytes = _mm512_add_epi8(_mm512_shuffle_epi8(begins, spread), _mm512_set1_epi64(0x0706050403020100));
  const __m512i ends = _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_slli_epi64(sizes, 3));
  const __m512i digits =
      _mm512_and_si512(_mm512_sllv_epi64(_mm512_permutexvar_epi8(bytes, text), ends), _mm512_set1_epi8(0x0F));
  const __m512i twos = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(0x010A));
  const __m512i fours = _mm512_madd_epi16(twos, _mm512_set1_epi32(0x00010064));
  return _mm512_add_epi64(_mm512_mul_epu32(fours, _mm512_set1_epi64(10000)), _mm512_srli_epi64(fours, 32));
}

BEELINE_AVX512 void store(std::uint16_t* to, __mmask8 which, __m512i x) {
  _mm512_mask_cvtepi64_storeu_epi16(to, which, x);
}
BEELINE_AVX512 void store(std::int32_t* to, __mmask8 which, __m512i x) {
  _mm512_mask_cvtepi64_storeu_epi32(to, which, x);
}
BEELINE_AVX512 void store(std::int64_t* to, __mmask8 which, __m512i x) { _mm512_mask_storeu_epi64(to, which, x); }
BEELINE_AVX512 void store(double* to, __mmask8 which, __m512d x) { _mm512_mask_storeu_pd(to, which, x); }
BEELINE_AVX512 void store(float* to, __mmask8 which, __m512d x) {
  _mm256_mask_storeu_ps(to, which, _mm512_cvtpd_ps(x));
}

// Up to eight entries whose numbers are whole and short, and that end within the next 64 bytes. `stop` is the blank
// before the first. Returns how many were stored, −1 when their indices do not increase; what comes next, if it is
// not the line's end, is to be looked at in another way.
template <class Value, class Index>
BEELINE_AVX512 int read_group(const char* text, const std::uint32_t* stop, std::int64_t base, std::int64_t& last,
                              Index* indices, Value* values) {
  constexpr unsigned kColons = 0x5555, kEnds = 0xAAAA;  // stops, in turn
  const __m512i window = _mm512_loadu_si512(text + *stop), origin = _mm512_set1_epi32(static_cast<int>(*stop));
  const __m512i before = _mm512_sub_epi32(_mm512_loadu_si512(stop), origin);
  const __m512i stops = _mm512_sub_epi32(_mm512_loadu_si512(stop + 1), origin);
  // The byte at each stop and the one after it.
  const __m512i pick = _mm512_add_epi32(_mm512_or_si512(stops, _mm512_slli_epi32(stops, 8)), _mm512_set1_epi32(0x100));
  const __m512i around = _mm512_permutexvar_epi8(pick, window);
  const __m512i at = _mm512_and_si512(around, _mm512_set1_epi32(0xFF));
  const unsigned colons = _mm512_cmpeq_epi32_mask(at, _mm512_set1_epi32(':'));
  const unsigned blanks = _mm512_cmpeq_epi32_mask(at, _mm512_set1_epi32(' '));
  const unsigned newlines = _mm512_cmpeq_epi32_mask(at, _mm512_set1_epi32('\n'));
  const unsigned minuses =
      _mm512_cmpeq_epi32_mask(_mm512_and_si512(around, _mm512_set1_epi32(0xFF00)), _mm512_set1_epi32('-' << 8));
  const unsigned negative = (minuses & kColons) << 1;
  const __m512i one = _mm512_set1_epi32(1);
  __m512i begins = _mm512_add_epi32(before, one);
  begins = _mm512_mask_add_epi32(begins, static_cast<__mmask16>(negative), begins, one);
  const __m512i sizes = _mm512_sub_epi32(stops, begins);
  const unsigned short_ones = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(sizes, one), _mm512_set1_epi32(8));
  const unsigned inside = _mm512_cmplt_epu32_mask(stops, _mm512_set1_epi32(64));
  const unsigned good = inside & short_ones & ((colons & kColons) | ((blanks | newlines) & kEnds));
  const unsigned bad = (~good & 0xFFFF) | (newlines & kEnds) << 1 | 0x10000;
  const int n = __builtin_ctz(bad) / 2;
  if (n == 0) return 0;
  const auto which = static_cast<__mmask8>((1u << n) - 1);

  const __m512i low = _mm512_set1_epi64(0xFFFFFFFF);
  const __m512i index = eight_numbers(window, begins, _mm512_and_si512(sizes, low));
  const __m512i previous = _mm512_alignr_epi64(index, _mm512_set1_epi64(last), 7);
  const __m512i whole = eight_numbers(window, _mm512_srli_epi64(begins, 32), _mm512_srli_epi64(sizes, 32));
  // Few numbers are longer; those are looked at one by one.
  if (sizeof(Value) == 4 && which & _mm512_cmpgt_epi64_mask(whole, _mm512_set1_epi64(kSixDigits))) return 0;
  // A branch and not a smaller n, so that the next group need not wait for these indices.
  if (which & ~_mm512_cmpgt_epi64_mask(index, previous)) return -1;
  last = _mm_cvtsi128_si64(_mm512_castsi512_si128(_mm512_permutexvar_epi64(_mm512_set1_epi64(n - 1), index)));
  store(indices, which, _mm512_sub_epi64(index, _mm512_set1_epi64(base)));

  const auto signs = static_cast<__mmask8>(_pext_u32(negative, kEnds));
  const __m512d x = _mm512_cvtepi64_pd(whole);
  store(values, which, _mm512_mask_xor_pd(x, signs, x, _mm512_set1_pd(-0.0)));
  return n;
}
#define BEELINE_GROUPS 1
#include "libsvm_plain_lines.h"
#undef BEELINE_AVX512
#undef BEELINE_TARGET
}  // namespace avx512
#endif

}  // namespace beeline::libsvm
