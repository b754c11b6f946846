// Plain lines: the fields that nearly all lines have, with any spacing, and comments. Everything else, good or bad,
// is left to `parse_line`; what is accepted here must be what it would accept.
//
// Included once for each instruction set: BEELINE_TARGET is the attribute that every function here must have, and
// `Pair` reads two short numbers at once.

#define BEELINE_HOT BEELINE_TARGET inline __attribute__((always_inline))
#define BEELINE_LIKELY(x) __builtin_expect(!!(x), 1)

template <class Value, class Index>
class PlainLines {
 public:
  BEELINE_HOT PlainLines(const char* text, const std::uint32_t* stop, const Dialect& dialect,
                         const Slot<Value, Index>& slot)
      : text_(text),
        stop_(stop),
        base_(dialect.base),
        last_allowed_(last_allowed(dialect)),
        sets_(dialect.sets),
        has_query_(dialect.queries == Queries::each),
        may_lack_label_(sets_ && !has_query_),
        faithful_(sizeof(Value) == 4 && dialect.faithful),
        slot_(slot) {}

  // Parses the line that begins at text[at], of which stop_ is the first stop; then both belong to the line after it.
  // False: the line is not plain, and nothing has changed but stop_.
  BEELINE_HOT bool parse(std::uint32_t& at) {
    std::uint32_t p = at;
    std::int64_t query = kNoQuery, label = slot_.label, entry = slot_.entry, last = base_ - 1;
    const bool bare = may_lack_label_ && text_[*stop_] == ':';
    if (bare ? !read_first_entry(p, entry, last) : !read_labels(p, label)) return false;
    if ((has_query_ && !read_query(p, query)) || !read_entries(p, entry, last)) return false;
    if (last > last_allowed_) return false;
    if (entry > slot_.entry) slot_.last_index = std::max(slot_.last_index, last);
    if (sets_) {
      slot_.several |= label - slot_.label > 1;
      slot_.label_ends[slot_.row] = label;
    }
    slot_.label = label;
    slot_.ends[slot_.row] = slot_.entry = entry;
    if (slot_.queries) slot_.queries[slot_.row] = query;
    ++slot_.row;
    at = *stop_++ + 1;
    return true;
  }

  BEELINE_HOT const std::uint32_t* stop() const { return stop_; }
  BEELINE_HOT const Slot<Value, Index>& slot() const { return slot_; }

 private:
  static BEELINE_HOT std::int64_t last_allowed(const Dialect& dialect) {
    return std::min<std::int64_t>(dialect.last_index,
                                  std::min<std::int64_t>(kMostWhole, std::numeric_limits<Index>::max()));
  }

  static BEELINE_HOT bool ends_field(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '#'; }

  // Each reader moves `at` from the first byte of what it reads to the stop behind it, and stop_ to that stop.

  BEELINE_HOT bool read_labels(std::uint32_t& at, std::int64_t& label) {
    if (!read_label(at, slot_.labels[label++])) return false;
    while (sets_ && text_[at] == ',') {
      ++at;
      ++stop_;
      if (!read_label(at, slot_.labels[label++])) return false;
    }
    return ends_field(text_[at]);
  }

  BEELINE_HOT bool read_label(std::uint32_t& at, double& label) {
    const std::uint32_t negative = is_minus(text_[at]);
    const std::uint32_t begin = at + (negative | (text_[at] == '+'));
    stop_ += begin - at;
    at = *stop_;
    if (at - begin - 1 >= 8) return false;
    label = static_cast<double>(digits_before(text_ + at, at - begin));
    if (text_[at] == '.') {
      const std::uint32_t point = at, places = stop_[1] - point - 1;
      at = *++stop_;
      if (places > 7) return false;
      // At most 15 digits: exact up to the division.
      if (places > 0) label = (label * kTens[places] + digits_before(text_ + at, places)) / kTens[places];
    }
    label = with_sign(label, negative);
    return true;
  }

  BEELINE_HOT bool read_query(std::uint32_t& at, std::int64_t& query) {
    if (text_[at] != ' ' || std::memcmp(text_ + at + 1, "qid:", 4) != 0) return false;
    stop_ += 5;  // the blank and the letters
    const std::uint32_t begin = at + 5;
    at = *stop_;
    // A minus after a colon is not a stop.
    if (at - begin - 1 >= 16 || text_[begin] == '-' || !ends_field(text_[at])) return false;
    query = static_cast<std::int64_t>(many_digits_before(text_ + at, at - begin));
    return true;
  }

  // The entry that a line without a label begins with. It is read the slow way, so that the loop over all others may
  // rely on a blank before each.
  BEELINE_HOT bool read_first_entry(std::uint32_t& at, std::int64_t& entry, std::int64_t& last) {
    const std::uint32_t colon = *stop_, size = colon - at;
    if (size - 1 >= 8) return false;
    const auto index = static_cast<std::int64_t>(digits_before(text_ + colon, size));
    const Rare rare = read_rare(colon + 1, stop_ + 1);
    stop_ = rare.stop;
    if (!rare.good || index <= last) return false;
    last = index;
    slot_.indices[entry] = static_cast<Index>(index - base_);
    slot_.values[entry++] = static_cast<Value>(rare.x);
    at = *stop_;
    return true;
  }

  // From the end of a field to the line's '\n'.
  BEELINE_HOT bool read_entries(std::uint32_t at, std::int64_t& entry, std::int64_t& last) {
    const char* text = text_;
    const std::uint32_t* stop = stop_;
    while (text[at] != '\n') {
      if (!BEELINE_LIKELY(text[at] == ' ' || text[at] == '\t')) {
        stop = line_end(at, stop);
        if (!stop) return false;
        break;
      }
#if BEELINE_GROUPS
      if (text[stop[2]] != '.') {
        const int n = read_group(text, stop, base_, last, slot_.indices + entry, slot_.values + entry);
        if (n < 0) return false;
        if (BEELINE_LIKELY(n > 0)) {
          entry += n;
          stop += 2 * n;
          at = *stop;
          continue;
        }
      }
#endif
      const std::uint32_t begin = at + 1, colon = stop[1], end = stop[2];
      if (!BEELINE_LIKELY(text[colon] == ':')) {
        if (colon != begin) return false;
        at = begin;  // two blanks, or one at the end
        ++stop;
        continue;
      }
      const std::uint32_t negative = is_minus(text[colon + 1]);
      const std::uint32_t index_size = colon - begin, size = end - colon - 1 - negative;
      std::int64_t index;
      std::uint64_t digits = 0;
      double x;
      if (BEELINE_LIKELY((((index_size - 1) | (size - 1)) & ~7u) == 0)) {
        const Pair pair(text + colon - index_size, index_size, text + end - size, size);
        index = pair.first();
        stop += 2;
        if (text[end] != '.' && BEELINE_LIKELY(ends_field(text[end]))) {
          x = with_sign(pair.second(), negative);
          digits = pair.second_whole();
        } else if (!read_fraction(colon + 1, pair, size, negative, stop, x, digits)) {
          return false;
        }
      } else {
        if (colon - begin - 1 >= 16) return false;
        index = static_cast<std::int64_t>(many_digits_before(text + colon, colon - begin));
        const Rare rare = read_rare(colon + 1, stop + 2);
        if (!rare.good) return false;
        stop = rare.stop;
        x = rare.x;
      }
      if (index <= last) return false;
      if (faithful_ && digits > kSixDigits && static_cast<double>(static_cast<float>(x)) != x) return false;
      last = index;
      slot_.indices[entry] = static_cast<Index>(index - base_);
      slot_.values[entry++] = static_cast<Value>(x);
      at = *stop;
    }
    stop_ = stop;
    return true;
  }

  // A value that begins at `begin` with the `size` digits of a pair's second number; `stop` is where these end.
  BEELINE_HOT bool read_fraction(std::uint32_t begin, const Pair& pair, std::uint32_t size, std::uint32_t negative,
                                 const std::uint32_t*& stop, double& x, std::uint64_t& digits) const {
    const std::uint32_t point = stop[0], end = stop[1], places = end - point - 1;
    if (BEELINE_LIKELY(text_[point] == '.' && places - 1 < 16 && size + places <= 18 && ends_field(text_[end]))) {
      digits = pair.second_whole() * kWholeTens[places] + many_digits_before(text_ + end, places);
      if (BEELINE_LIKELY(digits <= kExact)) {
        ++stop;
        x = with_sign(static_cast<double>(static_cast<std::int64_t>(digits)) / kTens[places], negative);
        return true;
      }
    }
    digits = 0;
    const Rare rare = read_rare(begin, stop);
    stop = rare.stop;
    x = rare.x;
    return rare.good;
  }

  // Returned by value: what is handed out by address would have to live in memory all along, not in registers.
  struct Rare {
    bool good;
    const std::uint32_t* stop;
    double x;
  };

  // Many digits, an exponent, a plus.
  BEELINE_TARGET __attribute__((noinline)) Rare read_rare(std::uint32_t begin, const std::uint32_t* stop) const {
    while (!ends_field(text_[*stop])) ++stop;
    double x = 0;
    const bool good = read_number(text_ + begin, text_ + *stop, x) == Reading::number &&
                      (!faithful_ || kept_by_single(text_ + begin, text_ + *stop, x));
    return {good && std::isfinite(static_cast<Value>(x)), stop, x};
  }

  // The stop at the line's '\n', after a comment or a carriage return at text[at]; null when it is none of these.
  BEELINE_TARGET __attribute__((noinline)) const std::uint32_t* line_end(std::uint32_t at,
                                                                         const std::uint32_t* stop) const {
    if (text_[at] == '#') {
      while (text_[*stop] != '\n') ++stop;
      return stop;
    }
    return text_[at] == '\r' && text_[at + 1] == '\n' ? stop + 1 : nullptr;
  }

  const char* text_;
  const std::uint32_t* stop_;
  const std::int64_t base_, last_allowed_;
  const bool sets_, has_query_, may_lack_label_, faithful_;
  Slot<Value, Index> slot_;
};

// Parses plain lines from text[at] on, where `stop` is the first stop, until text[n] or a line that is not plain.
// Returns where it ended; `stop` is then somewhere at or before the first stop from there on.
template <class Value, class Index>
BEELINE_TARGET std::uint32_t parse_plain_lines(const char* text, std::uint32_t at, std::uint32_t n,
                                               const std::uint32_t*& stop, const Dialect& dialect,
                                               Slot<Value, Index>& slot) {
  PlainLines<Value, Index> lines(text, stop, dialect, slot);
  while (at < n && BEELINE_LIKELY(lines.parse(at))) {
  }
  stop = lines.stop();
  slot = lines.slot();
  return at;
}

#undef BEELINE_GROUPS
#undef BEELINE_HOT
#undef BEELINE_LIKELY
