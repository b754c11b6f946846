#include "libsvm_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace beeline::libsvm {
namespace {

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

bool same_letters(const char* begin, const char* end, const char* word) {
  for (; begin < end && *word; ++begin, ++word)
    if ((*begin | 0x20) != *word) return false;
  return begin == end && !*word;
}

// Digits, one point at most, an exponent: what is allowed is said here and not left to the library.
bool is_decimal(const char* p, const char* end) {
  const char* start = p;
  while (p < end && is_digit(*p)) ++p;
  std::ptrdiff_t digits = p - start;
  if (p < end && *p == '.') {
    start = ++p;
    while (p < end && is_digit(*p)) ++p;
    digits += p - start;
  }
  if (digits == 0) return false;
  if (p == end) return true;
  if ((*p | 0x20) != 'e') return false;
  ++p;
  if (p < end && (*p == '+' || *p == '-')) ++p;
  return p < end && std::all_of(p, end, is_digit);
}

// Whether a decimal that float64 cannot hold is too large; if not, it is too small.
bool is_huge(const char* p, const char* end) {
  // Where the first digit that is not 0 stands: 0 for d.ddd, 1 for dd.dd, -1 for 0.d
  std::int64_t place = -1;
  const char* point = std::find_if(p, end, [](char c) { return !is_digit(c); });
  const char* lead = std::find_if(p, point, [](char c) { return c != '0'; });
  if (lead != point) {
    place = point - lead - 1;
  } else if (point < end && *point == '.') {
    place = -1 - (std::find_if(point + 1, end, [](char c) { return c != '0'; }) - point - 1);
  }
  const char* e = std::find_if(point, end, [](char c) { return (c | 0x20) == 'e'; });
  if (e == end) return place > 0;
  const bool negative = e[1] == '-';
  e += 1 + (e[1] == '-' || e[1] == '+');
  std::int64_t exponent = 0;
  for (; e < end && exponent < (std::int64_t{1} << 55); ++e) exponent = 10 * exponent + (*e - '0');
  return place + (negative ? -exponent : exponent) > 0;
}

}  // namespace

const double kTens[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

const std::uint64_t kWholeTens[19] = {1,
                                      10,
                                      100,
                                      1'000,
                                      10'000,
                                      100'000,
                                      1'000'000,
                                      10'000'000,
                                      100'000'000,
                                      1'000'000'000,
                                      10'000'000'000,
                                      100'000'000'000,
                                      1'000'000'000'000,
                                      10'000'000'000'000,
                                      100'000'000'000'000,
                                      1'000'000'000'000'000,
                                      10'000'000'000'000'000,
                                      100'000'000'000'000'000,
                                      1'000'000'000'000'000'000};

Reading read_number(const char* begin, const char* end, double& out) {
  const char* p = begin;
  const bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) ++p;
  double x;
  if (is_decimal(p, end)) {
    const auto [stop, error] = std::from_chars(p, end, x);
    (void)stop;
    if (error != std::errc()) x = is_huge(p, end) ? std::numeric_limits<double>::infinity() : 0.0;
  } else if (same_letters(p, end, "nan")) {
    x = std::numeric_limits<double>::quiet_NaN();
  } else if (same_letters(p, end, "inf") || same_letters(p, end, "infinity")) {
    x = std::numeric_limits<double>::infinity();
  } else {
    return Reading::garbage;
  }
  out = negative ? -x : x;
  return std::isfinite(x) ? Reading::number : Reading::nonfinite;
}

bool kept_by_single(const char* begin, const char* end, double x) {
  const auto single = static_cast<float>(x);
  if (static_cast<double>(single) == x || !std::isfinite(x)) return true;
  if (!std::isfinite(single) || std::abs(x) < static_cast<double>(std::numeric_limits<float>::min())) return false;
  int digits = 0;
  for (const char* p = begin; p < end && *p != 'e' && *p != 'E'; ++p)
    if (is_digit(*p) && (digits > 0 || *p != '0')) ++digits;
  return digits <= std::numeric_limits<float>::digits10;
}

Whole read_whole(const char* begin, const char* end, std::int64_t& out) {
  if (begin == end || !std::all_of(begin, end, is_digit)) return Whole::garbage;
  out = 0;
  for (; begin < end; ++begin) {
    if (out > kMostWhole / 10) return Whole::too_large;
    out = 10 * out + (*begin - '0');
  }
  return out <= kMostWhole ? Whole::number : Whole::too_large;
}

}  // namespace beeline::libsvm
