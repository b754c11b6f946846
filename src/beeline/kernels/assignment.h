// An assignment of the least cost, rows to columns, by shortest augmenting paths with potentials: O(n³) at most.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace beeline {

class Assignment {
 public:
  // cost(i, j), both from 0 to n − 1; `column_of(i)` has the column of row i then.
  template <class Cost>
  void solve(std::size_t n, Cost cost) {
    u_.assign(n + 1, 0.0);
    v_.assign(n + 1, 0.0);
    row_.assign(n + 1, n);  // the row of every column; column n stands for none
    way_.assign(n + 1, n);
    for (std::size_t i = 0; i < n; ++i) augment(n, i, cost);
    column_.resize(n);
    for (std::size_t j = 0; j < n; ++j) column_[row_[j]] = j;
  }

  std::size_t column_of(std::size_t i) const { return column_[i]; }

 private:
  template <class Cost>
  void augment(std::size_t n, std::size_t first, Cost cost) {
    least_.assign(n + 1, std::numeric_limits<double>::infinity());
    used_.assign(n + 1, 0);
    row_[n] = first;
    std::size_t at = n;
    do {
      used_[at] = 1;
      const std::size_t i = row_[at];
      double step = std::numeric_limits<double>::infinity();
      std::size_t next = n;
      for (std::size_t j = 0; j < n; ++j) {
        if (used_[j]) continue;
        const double reduced = cost(i, j) - u_[i] - v_[j];
        if (reduced < least_[j]) {
          least_[j] = reduced;
          way_[j] = at;
        }
        if (least_[j] < step) {
          step = least_[j];
          next = j;
        }
      }
      for (std::size_t j = 0; j <= n; ++j) {
        if (used_[j]) {
          u_[row_[j]] += step;
          v_[j] -= step;
        } else {
          least_[j] -= step;
        }
      }
      at = next;
    } while (row_[at] != n);
    for (; at != n; at = way_[at]) row_[at] = row_[way_[at]];
    row_[n] = n;
  }

  std::vector<double> u_, v_, least_;
  std::vector<std::size_t> row_, way_, column_;
  std::vector<char> used_;
};

}  // namespace beeline
