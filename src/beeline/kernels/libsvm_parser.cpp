#include "libsvm_parser.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <utility>

#include "libsvm_scan.h"
#include "threads.h"

namespace beeline::libsvm {
namespace {

// A chunk's last line reaches beyond the chunk; most lines end within this many bytes.
#ifdef BEELINE_SMALL_WINDOWS
constexpr std::size_t kTail = 1 << 4;
#else
constexpr std::size_t kTail = 1 << 12;
#endif
constexpr std::int64_t kLongestLine = std::int64_t{1} << 30;
constexpr std::size_t kKeptScratch = std::size_t{1} << 24;

// The lines that begin in a chunk, in scratch memory.
struct Lines {
  const char* text = nullptr;
  std::size_t n = 0;
  std::int64_t end = 0;   // where they end in the source
  bool too_long = false;  // a line of more than kLongestLine bytes follows
};

// Reads the lines that begin in [begin, end) of a source. Unless `at_line`, the first of them begins after a '\n'
// at or after begin - 1.
class Loader {
 public:
  Loader(const Source& source, std::vector<char>& buffer) : source_(source), buffer_(buffer) {}

  Lines load(std::int64_t begin, std::int64_t end, bool at_line) {
    origin_ = at_line ? begin : begin - 1;
    extend_to(std::min<std::int64_t>(source_.size, end + static_cast<std::int64_t>(kTail)));
    Lines lines;
    lines.end = begin;
    std::int64_t first = begin;
    if (!at_line && (first = find_newline(begin - 1, end - 1) + 1) == end) return lines;
    const std::int64_t line_end = end_of_line(first, end - 1, lines);
    lines.text = at(first);
    lines.n = static_cast<std::size_t>(line_end - first);
    lines.end = std::min(line_end, source_.size);
    std::memset(at(line_end), '\n', kPadding);
    return lines;
  }

 private:
  char* at(std::int64_t position) { return buffer_.data() + kPadding + (position - origin_); }

  void extend_to(std::int64_t end) {
    const auto wanted = static_cast<std::size_t>(end - origin_) + 2 * kPadding + 1;
    if (buffer_.size() < wanted) buffer_.resize(std::max(wanted, 2 * buffer_.size()));
    source_.read(loaded(), at(loaded()), static_cast<std::size_t>(end - loaded()));
    n_ = end - origin_;
  }

  std::int64_t loaded() const { return origin_ + n_; }

  // The position of the first '\n' in [from, to), or `to`.
  std::int64_t find_newline(std::int64_t from, std::int64_t to) {
    if (from >= to) return to;
    const void* found = std::memchr(at(from), '\n', static_cast<std::size_t>(to - from));
    return found ? from + (static_cast<const char*>(found) - at(from)) : to;
  }

  // One past the first '\n' at or after `from`; the source's last line gets one when it has none.
  std::int64_t end_of_line(std::int64_t first, std::int64_t from, Lines& lines) {
    for (std::int64_t step = kTail;; step *= 2) {
      const std::int64_t newline = find_newline(from, loaded());
      if (newline < loaded()) return newline + 1;
      if (loaded() == source_.size) {
        *at(loaded()) = '\n';
        return loaded() + 1;
      }
      if (loaded() - first > kLongestLine) {
        lines.too_long = true;
        while (from > first && *at(from - 1) != '\n') --from;
        return from;
      }
      from = loaded();
      extend_to(std::min(source_.size, loaded() + std::max<std::int64_t>(step, n_)));
    }
  }

  const Source& source_;
  std::vector<char>& buffer_;
  std::int64_t origin_ = 0, n_ = 0;
};

}  // namespace

void Source::read(std::int64_t at, char* to, std::size_t n) const {
  if (descriptor < 0) {
    if (n) std::memcpy(to, data + at, n);
    return;
  }
  while (n > 0) {
    const ssize_t got = ::pread(descriptor, to, n, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw ReadError(got < 0 ? errno : 0);
    to += got;
    at += got;
    n -= static_cast<std::size_t>(got);
  }
}

// One call of `parse`.
template <class Value, class Index>
class Walk {
 public:
  Walk(Parser& parser, const Source& source, std::int64_t begin, std::int64_t end)
      : parser_(parser),
        source_(source),
        begin_(begin),
        end_(end),
        done_(n_chunks()),
        stop_at_(done_.size()),
        next_room_(parser.used()),
        next_line_(parser.line),
        next_byte_(begin) {}

  Outcome run(int threads) {
    parallel_for(done_.size(), [&](std::size_t chunk) {
      try {
        auto scratch = parser_.borrow();
        work(chunk, *scratch);
        parser_.give_back(std::move(scratch));
      } catch (...) {
        stop(chunk);  // nobody must wait for this chunk
        throw;
      }
    }, threads);
    Outcome outcome;
    outcome.end = next_byte_;
    outcome.full = full_;
    outcome.wanted = wanted_;
    gather_findings(outcome.findings);
    close_gaps();
    parser_.line = next_line_;
    return outcome;
  }

 private:
  struct Done {
    Room from, to;  // its stretch of the arrays: where it begins, and where its rows end
    Findings findings;
    std::int64_t last_index = -1;
    bool several = false;
  };

  std::size_t n_chunks() const {
    const auto size = static_cast<std::int64_t>(parser_.chunk_bytes_);
    return static_cast<std::size_t>((end_ - begin_ + size - 1) / size);
  }

  // Chunks from this one on are not to be parsed.
  void stop(std::size_t chunk) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_at_ = std::min(stop_at_, chunk);
    }
    turn_.notify_all();
  }

  void work(std::size_t chunk, typename Parser::Scratch& scratch) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stop_at_ <= chunk) return;
    }
    const auto size = static_cast<std::int64_t>(parser_.chunk_bytes_);
    const std::int64_t begin = begin_ + static_cast<std::int64_t>(chunk) * size;
    const Lines lines = Loader(source_, scratch.text).load(begin, std::min(end_, begin + size), chunk == 0);
    const Bounds bounds = lines.n ? count(lines.text, lines.n) : Bounds{};
    std::int64_t line;
    if (!set_aside(chunk, lines, bounds, line)) return;
    Done& done = done_[chunk];
    Slot<Value, Index> slot = slot_from(done.from);
    if (lines.n) done.findings = fill(lines.text, lines.n, parser_.dialect, slot, scratch.stops);
    if (lines.too_long && done.findings.first.flaw == Flaw::none)
      done.findings.first = {Flaw::long_line, bounds.lines + 1, 1, ""};
    done.to = {slot.row, slot.entry, slot.label};
    done.last_index = slot.last_index;
    done.several = slot.several;
    done.findings.first.line += line;
    for (Problem& problem : done.findings.skipped) problem.line += line;
    if (done.findings.first.flaw != Flaw::none) stop(chunk + 1);
  }

  // Waits for this chunk's turn, then takes room for it. The chunks before it have been started, and reach
  // their turn without parsing: the wait is short. False: there is no room, or an earlier chunk ended the walk.
  bool set_aside(std::size_t chunk, const Lines& lines, const Bounds& bounds, std::int64_t& line) {
    std::unique_lock<std::mutex> lock(mutex_);
    turn_.wait(lock, [&] { return next_ == chunk || stop_at_ <= chunk; });
    if (stop_at_ <= chunk) return false;
    const Room from = next_room_;
    const Room to{from.rows + bounds.lines, from.entries + bounds.entries,
                  from.labels + bounds.lines + (parser_.dialect.sets ? bounds.commas : 0)};
    const Room& room = parser_.room_;
    const bool fits = to.rows <= room.rows && to.entries <= room.entries && to.labels <= room.labels &&
                      (parser_.budget_ == 0 || parser_.cost(to) <= parser_.budget_);
    if (fits) {
      done_[chunk].from = done_[chunk].to = from;
      line = next_line_;
      next_room_ = to;
      next_line_ += bounds.lines;
      next_byte_ = std::max(next_byte_, lines.end);
      ++next_;
    } else {
      full_ = true;
      wanted_ = to;
      stop_at_ = chunk;
    }
    lock.unlock();
    turn_.notify_all();
    return fits;
  }

  Slot<Value, Index> slot_from(const Room& from) {
    const Arrays& arrays = parser_.arrays_;
    const bool sets = parser_.dialect.sets;
    return {arrays.values.as<Value>(),
            arrays.indices.as<Index>(),
            arrays.positions.as<std::int64_t>() + 1,
            parser_.dialect.queries == Queries::none ? nullptr : arrays.queries.as<std::int64_t>(),
            arrays.labels.as<double>(),
            sets ? arrays.label_positions.as<std::int64_t>() + 1 : nullptr,
            from.rows,
            from.entries,
            from.labels};
  }

  void gather_findings(Findings& all) {
    for (std::size_t chunk = 0; chunk < next_; ++chunk) {
      Findings& some = done_[chunk].findings;
      parser_.last_index = std::max(parser_.last_index, done_[chunk].last_index);
      parser_.several |= done_[chunk].several;
      all.n_skipped += some.n_skipped;
      for (Problem& problem : some.skipped)
        if (all.skipped.size() < kKeptProblems) all.skipped.push_back(std::move(problem));
      if (some.first.flaw != Flaw::none) {
        all.first = std::move(some.first);
        return;
      }
    }
  }

  // Moves the rows of every chunk to the end of the rows before it.
  void close_gaps() {
    Room to = parser_.used();
    Slot<Value, Index> slot = slot_from(to);
    for (std::size_t chunk = 0; chunk < next_; ++chunk) {
      const Room &from = done_[chunk].from, &end = done_[chunk].to;
      if (from.rows != to.rows || from.entries != to.entries || from.labels != to.labels) move(slot, from, end, to);
      to.rows += end.rows - from.rows;
      to.entries += end.entries - from.entries;
      to.labels += end.labels - from.labels;
    }
    parser_.arrays_.used = to;
  }

  static void move(Slot<Value, Index>& slot, const Room& from, const Room& end, const Room& to) {
    shift(slot.values, from.entries, end.entries, to.entries);
    shift(slot.indices, from.entries, end.entries, to.entries);
    shift(slot.labels, from.labels, end.labels, to.labels);
    shift(slot.queries, from.rows, end.rows, to.rows);
    shift(slot.ends, from.rows, end.rows, to.rows);
    shift(slot.label_ends, from.rows, end.rows, to.rows);
    for (std::int64_t row = to.rows; row < to.rows + end.rows - from.rows; ++row) {
      slot.ends[row] -= from.entries - to.entries;
      if (slot.label_ends) slot.label_ends[row] -= from.labels - to.labels;
    }
  }

  template <class T>
  static void shift(T* array, std::int64_t from, std::int64_t end, std::int64_t to) {
    if (array) std::memmove(array + to, array + from, static_cast<std::size_t>(end - from) * sizeof(T));
  }

  Parser& parser_;
  const Source& source_;
  const std::int64_t begin_, end_;
  std::vector<Done> done_;

  // Guarded by mutex_ while threads are at work:
  std::mutex mutex_;
  std::condition_variable turn_;
  std::size_t next_ = 0;  // whose turn it is
  std::size_t stop_at_;
  Room next_room_, wanted_;
  std::int64_t next_line_, next_byte_;
  bool full_ = false;
};

Parser::Parser(const Dialect& d, std::size_t chunk_bytes)
    : dialect(d), chunk_bytes_(std::max<std::size_t>(1, chunk_bytes)) {}

std::int64_t Parser::cost(const Room& room) const {
  const std::int64_t row = 8 + (dialect.sets ? 8 : 0) + (dialect.queries == Queries::none ? 0 : 8);
  return room.rows * row + room.entries * (value_bytes() + index_bytes()) + room.labels * 8;
}

void Parser::reserve(const Room& room, std::int64_t budget) {
  const bool fresh = arrays_.positions.size() == 0;
  const auto grow = [](Pages& pages, std::int64_t count, std::int64_t bytes) {
    pages.reserve(static_cast<std::size_t>(count * bytes));
  };
  grow(arrays_.values, room.entries, value_bytes());
  grow(arrays_.indices, room.entries, index_bytes());
  grow(arrays_.positions, room.rows + 1, 8);
  grow(arrays_.labels, room.labels, 8);
  if (dialect.sets) grow(arrays_.label_positions, room.rows + 1, 8);
  if (dialect.queries != Queries::none) grow(arrays_.queries, room.rows, 8);
  if (fresh) {
    *arrays_.positions.as<std::int64_t>() = 0;
    if (dialect.sets) *arrays_.label_positions.as<std::int64_t>() = 0;
  }
  room_ = room;
  budget_ = budget;
}

Outcome Parser::parse(const Source& source, std::int64_t begin, std::int64_t end, int threads) {
  if (begin >= end) return {end, false, {}, {}};
  return dialect.single_precision ? parse_as<float>(source, begin, end, threads)
                                  : parse_as<double>(source, begin, end, threads);
}

template <class Value>
Outcome Parser::parse_as(const Source& source, std::int64_t begin, std::int64_t end, int threads) {
  switch (dialect.index_bits) {
    case 16:
      return Walk<Value, std::uint16_t>(*this, source, begin, end).run(threads);
    case 64:
      return Walk<Value, std::int64_t>(*this, source, begin, end).run(threads);
    default:
      return Walk<Value, std::int32_t>(*this, source, begin, end).run(threads);
  }
}

Arrays Parser::take() {
  if (arrays_.positions.size() == 0) reserve({}, 0);
  Arrays taken = std::exchange(arrays_, Arrays{});
  room_ = {};
  taken.values.trim(static_cast<std::size_t>(taken.used.entries * value_bytes()));
  taken.indices.trim(static_cast<std::size_t>(taken.used.entries * index_bytes()));
  taken.positions.trim(static_cast<std::size_t>(taken.used.rows + 1) * 8);
  taken.labels.trim(static_cast<std::size_t>(taken.used.labels) * 8);
  if (dialect.sets) taken.label_positions.trim(static_cast<std::size_t>(taken.used.rows + 1) * 8);
  if (dialect.queries != Queries::none) taken.queries.trim(static_cast<std::size_t>(taken.used.rows) * 8);
  return taken;
}

std::unique_ptr<Parser::Scratch> Parser::borrow() {
  std::lock_guard<std::mutex> lock(scratch_mutex_);
  if (scratch_.empty()) return std::make_unique<Scratch>();
  auto scratch = std::move(scratch_.back());
  scratch_.pop_back();
  return scratch;
}

void Parser::give_back(std::unique_ptr<Scratch> scratch) {
  if (scratch->text.size() + 4 * scratch->stops.size() > kKeptScratch) return;
  std::lock_guard<std::mutex> lock(scratch_mutex_);
  scratch_.push_back(std::move(scratch));
}

}  // namespace beeline::libsvm
