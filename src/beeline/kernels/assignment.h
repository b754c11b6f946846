// Documents to places, at the highest Σ_i c_i f_π(i) − a_i b_π(i), where c and a fall with the places.
//
// By shortest augmenting paths with potentials, each O(n²), from where a sort leads: documents in an order s would be
// the answer with potentials v that differ by ½(c_t + c_t+1)(f_s(t) − f_s(t+1)) + ½(a_t + a_t+1)(b_s(t+1) − b_s(t))
// between neighbours, if there were f alone and s its order, or b alone. Of some orders that is taken which leaves the
// fewest places open; only these need a path. So O(k n²) where a has k entries that are not zero, O(n³) at most.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace beeline {

class Assignment {
 public:
  struct Problem {
    const std::vector<double>&c, &a, &f, &b;
    double cost(std::size_t place, std::size_t document) const {
      return a[place] * b[document] - c[place] * f[document];
    }
  };

  // Afterwards `document_at(i)` has the document of place i.
  void solve(const Problem& p) {
    const std::size_t n = p.f.size();
    const std::size_t paths = n - static_cast<std::size_t>(std::count(p.a.begin(), p.a.end(), 0.0));
    std::size_t most = 0;
    const double steep = p.c[0] - p.c[n - 1], deep = p.a[0] - p.a[n - 1];
    for (const auto& [by_f, by_b] : {Mix{1, 0}, Mix{0, 1}, Mix{steep, deep}}) {
      const std::size_t placed = start(p, by_f, by_b);  // at least one
      if (placed > most) {
        most = placed;
        best_ = now_;
      }
      if (placed == n || (paths < n && placed + paths >= n)) break;
    }
    std::swap(now_, best_);
    for (std::size_t i = 0; i < n; ++i)
      if (now_.document[i] == kNone) augment(p, i);
  }

  std::size_t document_at(std::size_t place) const { return now_.document[place]; }

 private:
  struct Mix {
    double by_f, by_b;
  };
  struct State {
    std::vector<double> u, v;                    // potentials of places and documents
    std::vector<std::uint32_t> document, place;  // of each place, and of each document
  };

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  // Potentials from the order by by_f·f − by_b·b, and places at the document that is best by them; how many have one.
  std::size_t start(const Problem& p, double by_f, double by_b) {
    const std::size_t n = p.f.size();
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), 0u);
    const auto key = [&](std::uint32_t j) { return by_f * p.f[j] - by_b * p.b[j]; };
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t i, std::uint32_t j) {
      const double one = key(i), other = key(j);
      return one != other ? one > other : i < j;
    });
    now_.u.assign(n, 0.0);
    now_.v.assign(n, 0.0);
    for (std::size_t t = 0; t + 1 < n; ++t) {
      const std::uint32_t j = order_[t], next = order_[t + 1];
      now_.v[next] = now_.v[j];
      if (by_f > 0) now_.v[next] += 0.5 * (p.c[t] + p.c[t + 1]) * (p.f[j] - p.f[next]);
      if (by_b > 0) now_.v[next] += 0.5 * (p.a[t] + p.a[t + 1]) * (p.b[next] - p.b[j]);
    }
    now_.document.assign(n, kNone);
    now_.place.assign(n, kNone);
    std::size_t placed = 0;
    for (std::size_t i = 0; i < n; ++i) placed += place(p, i);
    return placed;
  }

  bool place(const Problem& p, std::size_t i) {
    const std::uint32_t own = order_[i];
    const double at_own = p.cost(i, own) - now_.v[own];
    std::uint32_t best = own;
    double least = at_own;
    for (std::size_t j = 0; j < p.f.size(); ++j) {
      const double reduced = p.cost(i, j) - now_.v[j];
      if (reduced < least) {
        least = reduced;
        best = static_cast<std::uint32_t>(j);
      }
    }
    now_.u[i] = least;
    // Of ties, which rounding hides, everyone takes its own.
    const double rounding = 4 * std::numeric_limits<double>::epsilon() * (std::fabs(at_own) + std::fabs(now_.v[own]));
    if (at_own - least <= rounding) best = own;
    if (now_.place[best] != kNone) return false;
    now_.place[best] = static_cast<std::uint32_t>(i);
    now_.document[i] = best;
    return true;
  }

  // A document for place `first`: the shortest path to one that has no place, and the potentials that make it tight.
  void augment(const Problem& p, std::size_t first) {
    const std::size_t n = p.f.size();
    length_.assign(n, kInfinity);
    from_.assign(n, kNone);
    open_.resize(n);
    std::iota(open_.begin(), open_.end(), 0u);
    done_.clear();
    std::size_t i = first, end = kNone;
    double so_far = 0;
    while (end == kNone) {
      const double base = so_far - now_.u[i];
      std::size_t nearest = 0;
      double least = kInfinity;
      for (std::size_t o = 0; o < open_.size(); ++o) {
        const std::uint32_t j = open_[o];
        const double length = base + (p.cost(i, j) - now_.v[j]);
        if (length < length_[j]) {
          length_[j] = length;
          from_[j] = static_cast<std::uint32_t>(i);
        }
        if (length_[j] < least || (length_[j] == least && now_.place[j] == kNone)) {
          least = length_[j];
          nearest = o;
        }
      }
      so_far = std::max(so_far, least);
      const std::uint32_t j = open_[nearest];
      open_[nearest] = open_.back();
      open_.pop_back();
      if (now_.place[j] == kNone) {
        end = j;
      } else {
        done_.push_back(j);
        i = now_.place[j];
      }
    }
    now_.u[first] += so_far;
    for (const std::uint32_t j : done_) {
      now_.u[now_.place[j]] += so_far - length_[j];
      now_.v[j] -= so_far - length_[j];
    }
    for (auto j = static_cast<std::uint32_t>(end); j != kNone;) {
      const std::uint32_t at = from_[j], before = now_.document[at];
      now_.document[at] = j;
      now_.place[j] = at;
      j = before;
    }
  }

  State now_, best_;
  std::vector<std::uint32_t> order_, open_, from_, done_;
  std::vector<double> length_;
};

}  // namespace beeline
