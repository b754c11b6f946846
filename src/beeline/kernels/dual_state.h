// What dual coordinate descent keeps: the rows with their dual variables, and the scores that these give.
#pragma once

#include <cstdint>

#include "dual_steps.h"
#include "entries.h"

namespace beeline {

// Everything about a row, in one cache line.
struct alignas(64) RowState : DualRow {
  double mean;  // m_i = μᵀx_i
  Span span;
  std::uint32_t number;  // of the row in the caller's order
  bool leaving;          // from the active rows, after the sweep
};

// s = Σ a_i and μᵀ Σ a_i x_i.
struct Sums {
  double total = 0, means = 0;

  void add(double a, const RowState& row) {
    total += a;
    means += a * row.mean;
  }
};

// How the intercept enters: 1/λ, ρ and ‖μ‖².
struct Geometry {
  double inverse_strength = 1, rho = 0, mean_norm = 0;

  // The score of a row under Σ a_i (x_i − μ)/λ and the intercept ρs, where w = Σ a_i x_i/λ.
  template <class Entries>
  double score(const Entries& entries, const RowState& row, const double* w, const Sums& sums) const {
    return entries.dot(row.span, w) - inverse_strength * sums.total * row.mean + intercept(sums);
  }

  // What a row with m_i = 0 and x_i = 0 scores.
  double intercept(const Sums& sums) const {
    return rho * sums.total - inverse_strength * (sums.means - sums.total * mean_norm);
  }
};

}  // namespace beeline
