#include "libsvm_scan.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>

#include "libsvm_number.h"
#include "simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if !defined(__clang__)
// A false alarm about GCC 12's own header, as soon as sanitizers are on.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

namespace beeline::libsvm {
namespace {

// Sums that stay below 256, so that the compiler can count in byte-wide lanes.
BEELINE_INLINE void add(Bounds& bounds, const char* text, std::size_t n) {
  std::uint8_t lines = 0, entries = 0, commas = 0;
#pragma omp simd reduction(+ : lines, entries, commas)
  for (std::size_t i = 0; i < n; ++i) {
    lines += text[i] == '\n';
    entries += (text[i] == ':') & (text[static_cast<std::ptrdiff_t>(i) - 1] != 'd');
    commas += text[i] == ',';
  }
  bounds.lines += lines;
  bounds.entries += entries;
  bounds.commas += commas;
}

struct Kinds {
  std::uint64_t digits, colons, minuses;  // one bit a byte
};

#if defined(__x86_64__)
struct Sse2 {
  static BEELINE_INLINE Kinds classify(const char* text) {
    Kinds kinds{};
    for (int part = 0; part < 4; ++part) {
      const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text) + part);
      const __m128i above = _mm_sub_epi8(c, _mm_set1_epi8('0'));
      kinds.digits |= bits(_mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(9)), above)) << (16 * part);
      kinds.colons |= bits(_mm_cmpeq_epi8(c, _mm_set1_epi8(':'))) << (16 * part);
      kinds.minuses |= bits(_mm_cmpeq_epi8(c, _mm_set1_epi8('-'))) << (16 * part);
    }
    return kinds;
  }
  static BEELINE_INLINE std::uint64_t bits(__m128i mask) { return static_cast<std::uint32_t>(_mm_movemask_epi8(mask)); }
};

struct Avx2 {
  __attribute__((target("avx2"))) static inline Kinds classify(const char* text) {
    Kinds kinds{};
    for (int part = 0; part < 2; ++part) {
      const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text) + part);
      const __m256i above = _mm256_sub_epi8(c, _mm256_set1_epi8('0'));
      const __m256i digits = _mm256_cmpeq_epi8(_mm256_min_epu8(above, _mm256_set1_epi8(9)), above);
      const __m256i colons = _mm256_cmpeq_epi8(c, _mm256_set1_epi8(':'));
      const __m256i minuses = _mm256_cmpeq_epi8(c, _mm256_set1_epi8('-'));
      kinds.digits |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(digits))} << (32 * part);
      kinds.colons |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(colons))} << (32 * part);
      kinds.minuses |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(minuses))} << (32 * part);
    }
    return kinds;
  }
};
#endif

struct Portable {
  static BEELINE_INLINE Kinds classify(const char* text) {
    Kinds kinds{};
    for (int i = 0; i < 64; ++i) {
      kinds.digits |= std::uint64_t{static_cast<unsigned char>(text[i] - '0') <= 9} << i;
      kinds.colons |= std::uint64_t{text[i] == ':'} << i;
      kinds.minuses |= std::uint64_t{text[i] == '-'} << i;
    }
    return kinds;
  }
};

// Which bytes of a word are stops. `after_colon` carries the last byte of the word before it.
BEELINE_INLINE std::uint64_t stops_of(const Kinds& kinds, std::uint64_t& after_colon) {
  const std::uint64_t stops = ~(kinds.digits | (kinds.minuses & (kinds.colons << 1 | after_colon)));
  after_colon = kinds.colons >> 63;
  return stops;
}

// Positions past the end of the text come from its padding.
BEELINE_INLINE std::size_t without_padding(std::uint32_t* out, std::uint32_t* end, std::size_t n) {
  while (end > out && end[-1] >= n) --end;
  std::fill(end, end + kPadding, static_cast<std::uint32_t>(n - 1));
  return static_cast<std::size_t>(end - out);
}

template <class Set>
std::size_t stops_bitwise(const char* text, std::size_t n, std::uint32_t* out) {
  std::uint32_t* next = out;
  std::uint64_t after_colon = 0;
  for (std::size_t at = 0; at < n; at += 64)
    for (std::uint64_t left = stops_of(Set::classify(text + at), after_colon); left; left &= left - 1)
      *next++ = static_cast<std::uint32_t>(at) + static_cast<std::uint32_t>(__builtin_ctzll(left));
  return without_padding(out, next, n);
}

#if defined(__x86_64__)
// The positions of the bits of every byte.
struct BitTable {
  std::uint8_t positions[256][8] = {};
  constexpr BitTable() {
    for (int byte = 0; byte < 256; ++byte)
      for (int bit = 0, k = 0; bit < 8; ++bit)
        if (byte >> bit & 1) positions[byte][k++] = static_cast<std::uint8_t>(bit);
  }
};
constexpr BitTable kBits;

// Eight positions are written for every byte of the mask, as many as it may have, and `next` moves by those it has:
// no branch depends on the text.
__attribute__((target("avx2,bmi,bmi2,popcnt"))) std::size_t stops_avx2(const char* text, std::size_t n,
                                                                       std::uint32_t* out) {
  std::uint32_t* next = out;
  std::uint64_t after_colon = 0;
  for (std::size_t at = 0; at < n; at += 64) {
    const std::uint64_t stops = stops_of(Avx2::classify(text + at), after_colon);
    for (int byte = 0; byte < 8; ++byte) {
      const std::uint8_t bits = static_cast<std::uint8_t>(stops >> (8 * byte));
      const __m256i within =
          _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kBits.positions[bits])));
      const __m256i start = _mm256_set1_epi32(static_cast<int>(at) + 8 * byte);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(next), _mm256_add_epi32(within, start));
      next += __builtin_popcount(bits);
    }
  }
  return without_padding(out, next, n);
}

struct Places {
  std::uint8_t bytes[64] = {};
  constexpr Places() {
    for (int i = 0; i < 64; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  }
};

#define BEELINE_AVX512 "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt"

__attribute__((target(BEELINE_AVX512))) inline void widen(std::uint32_t* out, __m128i sixteen, __m512i start) {
  _mm512_storeu_si512(out, _mm512_add_epi32(_mm512_cvtepu8_epi32(sixteen), start));
}

// One instruction packs the positions of a whole word.
__attribute__((target(BEELINE_AVX512))) std::size_t stops_avx512(const char* text, std::size_t n, std::uint32_t* out) {
  alignas(64) static constexpr Places kPlaces;
  const __m512i places = _mm512_load_si512(kPlaces.bytes);
  std::uint32_t* next = out;
  std::uint64_t after_colon = 0;
  for (std::size_t at = 0; at < n; at += 64) {
    const __m512i c = _mm512_loadu_si512(text + at);
    const Kinds kinds{_mm512_cmple_epu8_mask(_mm512_sub_epi8(c, _mm512_set1_epi8('0')), _mm512_set1_epi8(9)),
                      _mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8(':')),
                      _mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8('-'))};
    const std::uint64_t stops = stops_of(kinds, after_colon);
    const __m512i packed = _mm512_maskz_compress_epi8(stops, places), start = _mm512_set1_epi32(static_cast<int>(at));
    const int found = __builtin_popcountll(stops);
    widen(next, _mm512_castsi512_si128(packed), start);
    widen(next + 16, _mm512_extracti32x4_epi32(packed, 1), start);
    if (found > 32) {
      widen(next + 32, _mm512_extracti32x4_epi32(packed, 2), start);
      widen(next + 48, _mm512_extracti32x4_epi32(packed, 3), start);
    }
    next += found;
  }
  return without_padding(out, next, n);
}
#endif

Instructions found_instructions() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
    return Instructions::baseline;
  for (const int has : {__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"),
                        __builtin_cpu_supports("avx512dq"), __builtin_cpu_supports("avx512vl"),
                        __builtin_cpu_supports("avx512vbmi"), __builtin_cpu_supports("avx512vbmi2")})
    if (!has) return Instructions::avx2;
  return Instructions::avx512;
#else
  return Instructions::baseline;
#endif
}

const Instructions found = found_instructions();  // when the library is loaded: no fork can come in between
std::atomic<Instructions> most_instructions{Instructions::avx512};

}  // namespace

Instructions instructions() { return std::min(found, most_instructions.load(std::memory_order_relaxed)); }

void limit_instructions(Instructions most) { most_instructions = most; }

BEELINE_CLONES Bounds count(const char* text, std::size_t n) {
  constexpr std::size_t kStep = 192;  // below 256 and a multiple of all vector sizes
  Bounds bounds;
  std::size_t at = 0;
  for (; at + kStep <= n; at += kStep) add(bounds, text + at, kStep);
  add(bounds, text + at, n - at);
  return bounds;
}

std::size_t find_stops(const char* text, std::size_t n, std::uint32_t* out) {
#if defined(__x86_64__)
  if (instructions() >= Instructions::avx512) return stops_avx512(text, n, out);
  if (instructions() >= Instructions::avx2) return stops_avx2(text, n, out);
  return stops_bitwise<Sse2>(text, n, out);
#else
  return stops_bitwise<Portable>(text, n, out);
#endif
}

}  // namespace beeline::libsvm
