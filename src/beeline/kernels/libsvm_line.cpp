#include "libsvm_line.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libsvm_number.h"

namespace beeline::libsvm {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// One line on its way into a slot. Every step returns false on a flaw.
template <class Value, class Index>
class LineParser {
 public:
  LineParser(const char* begin, const char* end, const Dialect& dialect, Slot<Value, Index>& slot)
      : p_(begin),
        end_(end),
        field_end_(begin),
        dialect_(dialect),
        slot_(slot),
        entry_(slot.entry),
        label_(slot.label) {
    if (end_ > p_ && end_[-1] == '\r') --end_;
    end_ = std::find(p_, end_, '#');
  }

  Flaw run() {
    if (!next_field()) return Flaw::none;
    if (!labels() || !query() || !entries()) return flaw_;
    if (odd_ != Flaw::none) {
      fail(odd_, odd_at_, odd_stop_);
      return flaw_;
    }
    if (asks_ != Flaw::none) return asks_;
    commit();
    return Flaw::none;
  }

  const char *at = nullptr, *stop = nullptr;  // around the text in question

 private:
  // Moves to the next field, from p_ to field_end_; at the end of the line both are there.
  bool next_field() {
    p_ = std::find_if_not(field_end_, end_, is_blank);
    field_end_ = std::find_if(p_, end_, is_blank);
    return p_ < end_;
  }

  bool fail(Flaw flaw, const char* from, const char* to) {
    flaw_ = flaw;
    at = from;
    stop = to;
    return false;
  }

  // A line that is good so far, but not in this dialect: it counts only if the rest is good as well.
  void ask(Flaw flaw, const char* from, const char* to) {
    if (asks_ != Flaw::none) return;
    asks_ = flaw;
    at = from;
    stop = to;
  }

  bool labels() {
    if (std::find(p_, field_end_, ':') != field_end_) {
      if (dialect_.sets) return true;
      if (!dialect_.sets_guessed) return fail(Flaw::missing_label, p_, field_end_);
      ask(Flaw::asks_empty_sets, p_, field_end_);
      return true;
    }
    const char* comma = std::find(p_, field_end_, ',');
    const bool keep = dialect_.sets || comma == field_end_;
    if (!keep) {
      if (!dialect_.sets_guessed) return fail(Flaw::several_labels, p_, field_end_);
      ask(Flaw::asks_sets, p_, field_end_);
    }
    for (;; comma = std::find(p_, field_end_, ',')) {
      if (!label(comma, keep)) return false;
      if (comma == field_end_) break;
      p_ = comma + 1;
    }
    next_field();
    return true;
  }

  bool label(const char* to, bool keep) {
    double y;
    switch (read_number(p_, to, y)) {
      case Reading::garbage:
        return fail(Flaw::bad_label, p_, to);
      case Reading::nonfinite:
        if (!dialect_.allow_nonfinite) return fail(Flaw::nonfinite_label, p_, to);
        break;
      case Reading::number:
        break;
    }
    if (keep) slot_.labels[label_++] = y;
    return true;
  }

  bool query() {
    static const char kWord[] = "qid:";
    const bool present = field_end_ - p_ >= 4 && std::equal(kWord, kWord + 4, p_);
    if (present && read_whole(p_ + 4, field_end_, query_) != Whole::number)
      return fail(Flaw::bad_query, p_, field_end_);
    // Rows must agree, and only a line that is good otherwise is a row.
    if (dialect_.queries != Queries::unknown && present != (dialect_.queries == Queries::each)) {
      odd_ = present ? Flaw::unexpected_query : Flaw::missing_query;
      odd_at_ = p_;
      odd_stop_ = field_end_;
    }
    if (present) next_field();
    return true;
  }

  bool entries() {
    std::int64_t last = -1;
    for (; p_ < end_; next_field()) {
      const char* colon = std::find(p_, field_end_, ':');
      std::int64_t index;
      if (colon == field_end_) return fail(Flaw::no_colon, p_, field_end_);
      if (!index_before(colon, last, index)) return false;
      double x;
      const Reading reading = read_number(colon + 1, field_end_, x);
      if (reading == Reading::garbage) return fail(Flaw::bad_value, colon + 1, field_end_);
      if (sizeof(Value) == 4 && dialect_.faithful && !kept_by_single(colon + 1, field_end_, x))
        ask(Flaw::asks_double, colon + 1, field_end_);
      else if (!dialect_.allow_nonfinite && (reading == Reading::nonfinite || !std::isfinite(static_cast<Value>(x))))
        return fail(Flaw::nonfinite_value, colon + 1, field_end_);
      slot_.values[entry_] = static_cast<Value>(x);
      slot_.indices[entry_++] = static_cast<Index>(index - dialect_.base);
      last = index;
    }
    last_ = last;
    return true;
  }

  bool index_before(const char* colon, std::int64_t last, std::int64_t& index) {
    const Whole whole = read_whole(p_, colon, index);
    if (whole == Whole::garbage) return fail(Flaw::bad_index, p_, colon);
    if (whole == Whole::too_large) return fail(Flaw::huge_index, p_, colon);
    if (index == last) return fail(Flaw::repeated_index, p_, colon);
    if (index < last) return fail(Flaw::unsorted_index, p_, colon);
    if (index > dialect_.last_index) return fail(Flaw::index_beyond, p_, colon);
    if (index < dialect_.base) {
      if (!dialect_.base_guessed) return fail(Flaw::zero_index, p_, colon);
      ask(Flaw::asks_zero_based, p_, colon);
    } else if (index - dialect_.base > std::numeric_limits<Index>::max()) {
      ask(Flaw::asks_wide, p_, colon);
    }
    return true;
  }

  void commit() {
    slot_.several |= label_ - slot_.label > 1;
    slot_.entry = entry_;
    slot_.label = label_;
    slot_.ends[slot_.row] = entry_;
    if (slot_.queries) slot_.queries[slot_.row] = query_;
    if (slot_.label_ends) slot_.label_ends[slot_.row] = label_;
    ++slot_.row;
    slot_.last_index = std::max(slot_.last_index, last_);
  }

  const char* p_;
  const char* end_;
  const char* field_end_;
  const Dialect& dialect_;
  Slot<Value, Index>& slot_;
  std::int64_t entry_, label_, last_ = -1, query_ = kNoQuery;
  Flaw flaw_ = Flaw::none, asks_ = Flaw::none, odd_ = Flaw::none;
  const char *odd_at_ = nullptr, *odd_stop_ = nullptr;
};

}  // namespace

template <class Value, class Index>
Flaw parse_line(const char* begin, const char* end, const Dialect& dialect, Slot<Value, Index>& slot, const char*& at,
                const char*& stop) {
  LineParser<Value, Index> parser(begin, end, dialect, slot);
  const Flaw flaw = parser.run();
  at = parser.at;
  stop = parser.stop;
  return flaw;
}

template Flaw parse_line(const char*, const char*, const Dialect&, Slot<float, std::uint16_t>&, const char*&,
                         const char*&);
template Flaw parse_line(const char*, const char*, const Dialect&, Slot<float, std::int32_t>&, const char*&,
                         const char*&);
template Flaw parse_line(const char*, const char*, const Dialect&, Slot<float, std::int64_t>&, const char*&,
                         const char*&);
template Flaw parse_line(const char*, const char*, const Dialect&, Slot<double, std::uint16_t>&, const char*&,
                         const char*&);
template Flaw parse_line(const char*, const char*, const Dialect&, Slot<double, std::int32_t>&, const char*&,
                         const char*&);
template Flaw parse_line(const char*, const char*, const Dialect&, Slot<double, std::int64_t>&, const char*&,
                         const char*&);

}  // namespace beeline::libsvm
