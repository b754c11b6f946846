// A step over all dual variables that lie strictly between their bounds, where the dual is a parabola: conjugate
// gradients find its maximum, and a search along the path that the bounds bend finds how far to go (Moré & Toraldo 1991).
// Coordinate descent finds which variables these are; once it has, this gets in a few products what sweeps need hundreds for.
#pragma once

#include <algorithm>
#include <vector>

#include "dual_state.h"

namespace beeline {

template <class Entries, class Dual>
class FaceStep {
 public:
  // The free ones among the first `active` rows.
  FaceStep(const Entries& entries, const Dual& dual, const Geometry& geometry, std::vector<RowState>& rows,
           std::size_t active, std::size_t n_features)
      : entries_(entries), geometry_(geometry), w_(n_features) {
    for (std::size_t i = 0; i < active; ++i) {
      const Face face = dual.face(rows[i]);
      if (face.low == face.high) continue;
      free_.push_back({&rows[i], face});
      n_entries_ += rows[i].span.count;
    }
  }

  std::size_t entries_visited() const { return passes_ * n_entries_; }

  // Moves the variables, w and the sums; returns by how much the dual has grown. Does nothing where the budget of
  // entries is too small for steps that are worth it.
  double run(double* w, Sums& sums, double centre, double budget) {
    const std::size_t n = free_.size();
    const int most = static_cast<int>(std::min(50.0, budget / (2.0 * static_cast<double>(n_entries_ + 1))));
    if (n < 2 || most < 4) return 0;
    slopes_.resize(n);
    for (std::size_t k = 0; k < n; ++k)
      slopes_[k] = geometry_.score(entries_, *free_[k].row, w, sums) + centre + free_[k].face.slope;
    ++passes_;
    maximise(most);
    for (double t = 1; t > 1e-3; t *= 0.4) {
      const double growth = try_step(t);
      if (growth <= 0) continue;
      for (std::size_t k = 0; k < n; ++k) {
        const Free& f = free_[k];
        f.row->a = std::clamp(f.row->a + v_[k], f.face.low, f.face.high);
      }
      dense_axpy(1.0, w_.data(), w, w_.size());
      sums.add(sums_);
      return growth;
    }
    return 0;
  }

 private:
  struct Free {
    RowState* row;
    Face face;
    double diagonal() const { return row->q + face.curvature; }
  };

  // w_ and sums_ of the move v_.
  void make_move() {
    std::fill(w_.begin(), w_.end(), 0.0);
    sums_ = {};
    for (std::size_t k = 0; k < free_.size(); ++k) {
      entries_.axpy(free_[k].row->span, v_[k] * geometry_.inverse_strength, w_.data());
      sums_.add(v_[k], *free_[k].row);
    }
    ++passes_;
  }

  // direction_ = the maximum of the parabola, seen from the present variables; stops when a product wins little.
  void maximise(int most) {
    const std::size_t n = free_.size();
    direction_.assign(n, 0.0);
    std::vector<double> r(n), product(n);
    v_.resize(n);
    double rho = 0, best = 0;
    for (std::size_t k = 0; k < n; ++k) {
      r[k] = -slopes_[k];
      v_[k] = r[k] / free_[k].diagonal();
      rho += r[k] * v_[k];
    }
    for (int i = 0; i < most && rho > 0; ++i) {
      make_move();
      double curved = 0;
      for (std::size_t k = 0; k < n; ++k) {
        product[k] = geometry_.score(entries_, *free_[k].row, w_.data(), sums_) + free_[k].face.curvature * v_[k];
        curved += v_[k] * product[k];
      }
      ++passes_;
      if (!(curved > 0)) return;
      const double step = rho / curved, gain = step * rho;
      double next = 0;
      for (std::size_t k = 0; k < n; ++k) {
        direction_[k] += step * v_[k];
        r[k] -= step * product[k];
        next += r[k] * r[k] / free_[k].diagonal();
      }
      for (std::size_t k = 0; k < n; ++k) v_[k] = r[k] / free_[k].diagonal() + next / rho * v_[k];
      rho = next;
      best = std::max(best, gain);
      if (gain < 0.01 * best) return;
    }
  }

  // By how much the dual grows at t along the bent path, if that is a fair part of what the slope promises; else 0.
  double try_step(double t) {
    double linear = 0, square = 0;
    for (std::size_t k = 0; k < free_.size(); ++k) {
      const Free& f = free_[k];
      v_[k] = std::clamp(f.row->a + t * direction_[k], f.face.low, f.face.high) - f.row->a;
      linear += slopes_[k] * v_[k];
      square += f.face.curvature * v_[k] * v_[k];
    }
    make_move();
    const double growth = -linear - 0.5 * (square + geometry_.square(w_, sums_));
    return growth >= -0.1 * linear ? growth : 0;
  }

  const Entries& entries_;
  const Geometry& geometry_;
  std::vector<Free> free_;
  std::vector<double> slopes_, direction_, v_, w_;
  Sums sums_;
  std::size_t n_entries_ = 0, passes_ = 0;
};

}  // namespace beeline
