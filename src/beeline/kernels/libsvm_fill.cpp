#include "libsvm_fill.h"

#include <algorithm>
#include <cstring>

#include "libsvm_plain.h"
#include "libsvm_scan.h"

namespace beeline::libsvm {

namespace {

#ifdef BEELINE_SMALL_WINDOWS  // for the fuzzer: short texts reach every case
constexpr std::size_t kWindow = 1 << 7, kLongestWindow = 1 << 9;
#else
// Stops are found for stretches of about this many bytes, so that they stay in the first-level cache.
constexpr std::size_t kWindow = 1 << 14;
// A line longer than this is parsed without them: they take four bytes for each of its bytes.
constexpr std::size_t kLongestWindow = 1 << 24;
#endif
constexpr std::size_t kMostText = 40;

template <class Value, class Index>
class Filler {
 public:
  Filler(const char* text, std::size_t n, const Dialect& dialect, Slot<Value, Index>& slot)
      : text_(text), end_(text + n), dialect_(dialect), slot_(slot), parse_plain_(choose(dialect)) {}

  Findings run(std::vector<std::uint32_t>& stops) {
    for (const char* begin = text_; begin < end_ && go_on();) {
      const char* end = parse_plain_ ? window_end(begin) : line_end(begin) + 1;
      const auto n = static_cast<std::size_t>(end - begin);
      if (!parse_plain_ || n > kLongestWindow) {
        parse_strictly(begin, end - 1);
      } else {
        stops.resize(std::max(stops.size(), n + 2 * kPadding));
        find_stops(begin, n, stops.data());
        run_window(begin, static_cast<std::uint32_t>(n), stops.data());
      }
      begin = end;
    }
    return std::move(findings_);
  }

 private:
  using ParsePlain = std::uint32_t (*)(const char*, std::uint32_t, std::uint32_t, const std::uint32_t*&, const Dialect&,
                                       Slot<Value, Index>&);

  // Null when no line can be plain.
  static ParsePlain choose(const Dialect& dialect) {
    if (dialect.queries == Queries::unknown) return nullptr;
#if defined(__x86_64__)
    if (instructions() >= Instructions::avx512) return avx512::parse_plain_lines<Value, Index>;
    if (instructions() >= Instructions::avx2) return avx2::parse_plain_lines<Value, Index>;
#endif
    return baseline::parse_plain_lines<Value, Index>;
  }

  bool go_on() const { return findings_.first.flaw == Flaw::none; }

  // Whole lines: as many as fit into a window, and at least one.
  const char* window_end(const char* begin) const {
    if (end_ - begin <= static_cast<std::ptrdiff_t>(kWindow)) return end_;
    for (const char* p = begin + kWindow; p > begin; --p)
      if (p[-1] == '\n') return p;
    return line_end(begin + kWindow) + 1;
  }

  const char* line_end(const char* p) const {
    return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end_ - p)));
  }

  void run_window(const char* text, std::uint32_t n, const std::uint32_t* stop) {
    for (std::uint32_t at = 0; (at = parse_plain_(text, at, n, stop, dialect_, slot_)) < n;) {
      const char* end = line_end(text + at);
      parse_strictly(text + at, end);
      if (!go_on()) return;
      at = static_cast<std::uint32_t>(end - text) + 1;
      if (at == n) return;
      while (*stop < at) ++stop;
    }
  }

  void parse_strictly(const char* begin, const char* end) {
    const char *at, *stop;
    const Flaw flaw = parse_line(begin, end, dialect_, slot_, at, stop);
    if (flaw == Flaw::none) return;
    const bool skip = dialect_.skip_bad_lines && flaw < Flaw::asks_sets;
    if (skip && ++findings_.n_skipped > static_cast<std::int64_t>(kKeptProblems)) return;
    const auto line = 1 + std::count(text_, begin, '\n');
    Problem problem{flaw, line, at - begin + 1, std::string(at, std::min<std::size_t>(stop - at, kMostText))};
    if (skip) {
      findings_.skipped.push_back(std::move(problem));
    } else {
      findings_.first = std::move(problem);
    }
  }

  const char *text_, *end_;
  const Dialect& dialect_;
  Slot<Value, Index>& slot_;
  ParsePlain parse_plain_;
  Findings findings_;
};

}  // namespace

template <class Value, class Index>
Findings fill(const char* text, std::size_t n, const Dialect& dialect, Slot<Value, Index>& slot,
              std::vector<std::uint32_t>& stops) {
  return Filler<Value, Index>(text, n, dialect, slot).run(stops);
}

template Findings fill(const char*, std::size_t, const Dialect&, Slot<float, std::uint16_t>&,
                       std::vector<std::uint32_t>&);
template Findings fill(const char*, std::size_t, const Dialect&, Slot<float, std::int32_t>&,
                       std::vector<std::uint32_t>&);
template Findings fill(const char*, std::size_t, const Dialect&, Slot<float, std::int64_t>&,
                       std::vector<std::uint32_t>&);
template Findings fill(const char*, std::size_t, const Dialect&, Slot<double, std::uint16_t>&,
                       std::vector<std::uint32_t>&);
template Findings fill(const char*, std::size_t, const Dialect&, Slot<double, std::int32_t>&,
                       std::vector<std::uint32_t>&);
template Findings fill(const char*, std::size_t, const Dialect&, Slot<double, std::int64_t>&,
                       std::vector<std::uint32_t>&);

}  // namespace beeline::libsvm
