// The nearest point of a simplex: the problem of one row of the Crammer–Singer dual.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace beeline {

// Finds p ≥ 0, Σ p = total, that maximises Σ d_m p_m − q/2 Σ p_m²: p_m = max(0, d_m − β)/q with the one β that gives
// the total (Crammer & Singer 2001, section 5). No d below max d − q·total can take part; of the others those below
// the mean that the total leaves go, until none does (Michelot 1986).
class SimplexProblem {
 public:
  explicit SimplexProblem(std::size_t n) : members_(n) {}

  // Replaces d by p; returns how many p are positive.
  std::size_t solve(double* d, std::size_t n, double q, double total) {
    const double top = *std::max_element(d, d + n), room = q * total;
    std::size_t count = 0;
    double sum = 0;
    for (std::size_t m = 0; m < n; ++m) {
      members_[count] = m;
      const bool takes_part = d[m] > top - room;
      count += takes_part;
      sum += takes_part ? d[m] : 0.0;
    }
    if (count == 0) return vertex(d, n, top, total);  // room is lost in rounding
    double beta = (sum - room) / static_cast<double>(count);
    while (const std::size_t left = drop_below(d, beta, count, sum)) {
      if (left == count) break;
      count = left;
      beta = (sum - room) / static_cast<double>(count);
    }
    if (count == 1) return vertex(d, n, top, total);
    return fill(d, n, beta, count, total);
  }

 private:
  std::size_t drop_below(const double* d, double beta, std::size_t count, double& sum) {
    std::size_t left = 0;
    for (std::size_t j = 0; j < count; ++j) {
      const std::size_t m = members_[j];
      if (d[m] > beta) {
        members_[left++] = m;
      } else {
        sum -= d[m];
      }
    }
    return left;
  }

  static std::size_t vertex(double* d, std::size_t n, double top, double total) {
    const std::size_t at = static_cast<std::size_t>(std::find(d, d + n, top) - d);
    std::fill(d, d + n, 0.0);
    d[at] = total;
    return 1;
  }

  // Sums to the total exactly, also where d − β has lost digits.
  std::size_t fill(double* d, std::size_t n, double beta, std::size_t count, double total) {
    double sum = 0;
    shares_.resize(members_.size());
    for (std::size_t j = 0; j < count; ++j) sum += shares_[j] = d[members_[j]] - beta;
    std::fill(d, d + n, 0.0);
    for (std::size_t j = 0; j < count; ++j) d[members_[j]] = shares_[j] * (total / sum);
    return count;
  }

  std::vector<std::size_t> members_;
  std::vector<double> shares_;
};

}  // namespace beeline
