// Rows of two classes by their scores: what measures of all rows together begin with.
//
// To sort costs more than all that follows. Scores are spread over buckets by a linear map, which is monotone under
// rounding too, and buckets are sorted in the cache, by the same map as long as it helps: five passes over the scores
// in place of twenty. Rows with the same score keep their order, so that the result depends on nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace beeline {

struct Scored {
  double score;
  std::uint32_t row;
};

// Sorts by score, rows of the same score by their number; scores must be finite, and rows come in increasing order.
void sort_scored(std::vector<Scored>& items, int threads);

// The rows of both classes that count, in their order.
struct TwoClasses {
  std::vector<Scored> positive, negative;
  double positive_weight = 0, negative_weight = 0;
  bool equal = true;   // whether all of them cost the same
  bool finite = true;  // whether all of their scores are finite
  double cost = 0;     // what they cost; where all cost the same, one of them

  std::size_t size() const { return positive.size() + negative.size(); }
  double total() const { return positive_weight + negative_weight; }
  double mean_cost() const { return size() == 0 ? 0.0 : equal ? cost : total() / static_cast<double>(size()); }
};

// Where the rows of a run of them, of which each is a task, come among those of their class.
struct ClassStarts {
  std::vector<std::size_t> positive, negative;
};

// How many rows of both classes count, and what they weigh, without the rows themselves.
TwoClasses sum_classes(const double* z, const double* y, const double* c, std::size_t n, ClassStarts& starts,
                       std::size_t& n_positive, std::size_t& n_negative, int threads);

// How many rows a task of these has.
constexpr std::size_t kRowsOfTask = 1 << 15;

// Splits rows by their label, −1 or +1; those that cost nothing are absent, and get the slope 0.
TwoClasses split_classes(const double* z, const double* y, const double* c, std::size_t n, double* slopes, int threads);

}  // namespace beeline
