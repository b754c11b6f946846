// Documents of several levels to places of several levels, at the highest value.
//
// A document d of level m on place i of level l is worth c_l f_d − a_i b_m. Levels are counted from the best, so that c
// and b fall with them, and the discounts a fall with places. Two documents of the same level change places freely, so
// that those with higher scores are on places of better levels; and on the places of one level, worse documents are
// before better ones. What is left are the numbers n_ml of documents of level m on places of level l. With the sums
// S_ml = Σ_k≤l n_mk and T_ml = Σ_k≥m n_kl the value is, up to a constant,
//
//   Σ_m Σ_l (c_l − c_l+1)·(the sum of the S_ml highest scores of level m)
//     + Σ_l Σ_m≥1 (b_m−1 − b_m)·(the sum of the first T_ml discounts of level l),
//
// which is concave in every S and every T. So it is the cost of a flow: in row m along R_m,r−1 → … → R_m0, of which
// S_ml passes from R_m,l+1 to R_ml; n_ml from R_ml to C_ml; and in column l along C_r−1,l → … → C_0l, of which T_ml
// passes from C_ml to C_m−1,l. Documents are added one by one, each on the path of the largest gain through what is
// there: then no other flow is better (successive shortest paths). Such a path takes a few sweeps over r² nodes, r the
// number of levels: n·r² for a query where an assignment takes n³.
//
// Gains are whole numbers, of a unit so small that only rounding differs: sums of doubles would find paths in a circle,
// each time round a little longer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace beeline {

class LevelAssignment {
 public:
  // Where the levels of documents and of places begin, c and b by level, the scores of documents, falling in each
  // level, and the discounts of places.
  struct Problem {
    const std::vector<std::size_t>& starts;
    const std::vector<double>&c, &b, &scores, &discounts;
  };

  void solve(const Problem& p) {
    r_ = p.c.size();
    for (auto* counts : {&n_, &s_, &t_}) counts->assign(r_ * r_, 0);
    gain_r_.resize(r_ * r_);
    gain_c_.resize(r_ * r_);
    from_r_.resize(r_ * r_);
    from_c_.resize(r_ * r_);
    scale_ = units(p);
    for (std::size_t m = 0; m < r_; ++m)
      for (std::size_t d = p.starts[m]; d < p.starts[m + 1]; ++d) add(p, m);
  }

  // The level of the place that the d-th document of level m is on.
  std::size_t block_of(std::size_t m, std::size_t d) const {
    std::size_t l = 0;
    while (s_[m * r_ + l] <= d) ++l;
    return l;
  }

  // The level of the document on the i-th place of level l.
  std::size_t level_at(std::size_t l, std::size_t i) const {
    std::size_t m = r_ - 1;
    while (t_[m * r_ + l] <= i) --m;
    return m;
  }

 private:
  // From where a path comes to a node: along its row or column as the flow goes, against it, or across.
  enum From : char { kNowhere, kAlong, kAgainst, kAcross };

  // A path through all nodes gains less than 2⁶⁰, and one to where nothing leads less than half of this.
  static constexpr std::int64_t kNone = -(std::int64_t{1} << 62);

  // How many units a gain of 1 has.
  double units(const Problem& p) const {
    double size = 0, c = 0, b = 0;
    for (const double f : p.scores) size = std::max(size, std::fabs(f));
    for (std::size_t l = 1; l < r_; ++l) {
      c = std::max(c, p.c[l - 1] - p.c[l]);
      b = std::max(b, p.b[l - 1] - p.b[l]);
    }
    const double most = std::max(size * c, p.discounts[0] * b);
    return most > 0 ? std::ldexp(1.0, 59) / (static_cast<double>(r_ * r_) * most) : 0.0;
  }

  // Falls with the score, or the discount, as the gain itself.
  std::int64_t whole(double gain) const { return static_cast<std::int64_t>(scale_ * gain); }

  void add(const Problem& p, std::size_t m) {
    std::fill(gain_r_.begin(), gain_r_.end(), kNone);
    std::fill(gain_c_.begin(), gain_c_.end(), kNone);
    gain_r_[m * r_ + r_ - 1] = 0;
    from_r_[m * r_ + r_ - 1] = kNowhere;
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::size_t row = 0; row < r_; ++row) changed |= sweep_row(p, row);
      for (std::size_t l = 0; l < r_; ++l) changed |= sweep_column(p, l);
    }
    std::size_t end = r_;
    for (std::size_t l = 0; l < r_; ++l)
      if (t_[l] < p.starts[l + 1] - p.starts[l] && (end == r_ || gain_c_[l] > gain_c_[end])) end = l;
    ++t_[end];
    ++s_[m * r_ + r_ - 1];
    follow(end);
  }

  static bool improve(std::int64_t gain, From from, std::int64_t& best, char& best_from) {
    if (gain <= best || gain < kNone / 2) return false;
    best = gain;
    best_from = from;
    return true;
  }

  bool sweep_row(const Problem& p, std::size_t m) {
    const std::size_t size = p.starts[m + 1] - p.starts[m];
    const double* scores = p.scores.data() + p.starts[m];
    std::int64_t* gain = gain_r_.data() + m * r_;
    char* from = from_r_.data() + m * r_;
    const std::size_t* s = s_.data() + m * r_;
    bool changed = false;
    for (std::size_t l = 0; l < r_; ++l)
      if (n_[m * r_ + l] > 0) changed |= improve(gain_c_[m * r_ + l], kAcross, gain[l], from[l]);
    for (std::size_t l = r_ - 1; l-- > 0;)
      if (s[l] < size)
        changed |= improve(gain[l + 1] + whole((p.c[l] - p.c[l + 1]) * scores[s[l]]), kAlong, gain[l], from[l]);
    for (std::size_t l = 1; l < r_; ++l)
      if (s[l - 1] > 0)
        changed |=
            improve(gain[l - 1] - whole((p.c[l - 1] - p.c[l]) * scores[s[l - 1] - 1]), kAgainst, gain[l], from[l]);
    return changed;
  }

  bool sweep_column(const Problem& p, std::size_t l) {
    const std::size_t size = p.starts[l + 1] - p.starts[l];
    const double* discounts = p.discounts.data() + p.starts[l];
    bool changed = false;
    for (std::size_t m = 0; m < r_; ++m) {
      const std::size_t at = m * r_ + l;
      changed |= improve(gain_r_[at], kAcross, gain_c_[at], from_c_[at]);
    }
    for (std::size_t m = r_ - 1; m > 0; --m) {
      const std::size_t at = m * r_ + l, to = at - r_;
      if (t_[at] < size)
        changed |=
            improve(gain_c_[at] + whole((p.b[m - 1] - p.b[m]) * discounts[t_[at]]), kAlong, gain_c_[to], from_c_[to]);
    }
    for (std::size_t m = 1; m < r_; ++m) {
      const std::size_t at = m * r_ + l, before = at - r_;
      if (t_[at] > 0)
        changed |= improve(gain_c_[before] - whole((p.b[m - 1] - p.b[m]) * discounts[t_[at] - 1]), kAgainst,
                           gain_c_[at], from_c_[at]);
    }
    return changed;
  }

  // Sends one more along the path that ends in C_0l.
  void follow(std::size_t l) {
    std::size_t at = l;
    for (bool in_column = true; in_column || from_r_[at] != kNowhere;) {
      const char from = in_column ? from_c_[at] : from_r_[at];
      if (from == kAcross) {
        if (in_column)
          ++n_[at];
        else
          --n_[at];
        in_column = !in_column;
      } else if (in_column) {
        if (from == kAlong)
          ++t_[at += r_];
        else
          --t_[at], at -= r_;
      } else {
        if (from == kAlong)
          ++s_[at], ++at;
        else
          --s_[--at];
      }
    }
  }

  std::size_t r_ = 0;
  double scale_ = 0;
  std::vector<std::size_t> n_, s_, t_;  // n_ml, S_ml and T_ml
  std::vector<std::int64_t> gain_r_, gain_c_;
  std::vector<char> from_r_, from_c_;
};

}  // namespace beeline
