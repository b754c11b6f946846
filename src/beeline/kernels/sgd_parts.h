// What kernels of stochastic steps share: losses whose form is known when they are made, the rows in the order of their
// visits, sums of progressive validation, step sizes, what Ω does to a weight between two visits, and averages.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>

#include "entries.h"
#include "losses.h"

namespace beeline {

using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A compiled loss of one score behind a pointer: its call costs far less than a row, and 26 losses would make as many
// copies of every loop.
class ScalarForm {
 public:
  ScalarForm(const std::string& name, const Parameters& parameters) {
    // Of the others the least value is zero, or is neared from above.
    has_floor_ = name == "cross_entropy" || name == "soft_epsilon_insensitive" || name == "soft_quantile";
    is_perceptron_ = name == "perceptron" || name == "squared_perceptron";
    with_loss(name, parameters, [&](auto loss) {
      using Loss = decltype(loss);
      static_assert(std::is_trivially_copyable_v<Loss> && sizeof(Loss) <= sizeof(room_));
      new (room_) Loss(loss);
      at_ = [](const void* room, double z, double y) { return static_cast<const Loss*>(room)->at(z, y); };
      conjugate_ = [](const void* room, double y) { return static_cast<const Loss*>(room)->conjugate(0, y, 1); };
      return 0;
    });
  }

  Derivatives at(double z, double y) const { return at_(room_, z, y); }

  // What a step goes by: the same, but for a perceptron's tie, which goes against the right class (M9). From zero
  // weights it would never begin.
  Derivatives at_step(double z, double y) const { return is_perceptron_ && z == 0 ? Derivatives{1, -y, 0} : at(z, y); }

  // min over z of l(z, y) = −ψ(0).
  double floor(double y) const { return has_floor_ ? -conjugate_(room_, y) : 0.0; }

 private:
  alignas(double) unsigned char room_[2 * sizeof(double)];
  Derivatives (*at_)(const void*, double, double) = nullptr;
  double (*conjugate_)(const void*, double) = nullptr;
  bool has_floor_ = false, is_perceptron_ = false;
};

// Σ c l and Σ c [wrong] over rows as they were before they were learned from, and Σ c of those that were scored.
struct Progress {
  double losses = 0, errors = 0, total = 0;

  void add(double loss, double wrong, double cost) {
    losses += cost * loss;
    errors += cost * wrong;
    total += cost;
  }
  std::tuple<double, double, double> parts() const { return {losses, errors, total}; }
};

// Of a label ±1; a score of zero is half wrong.
inline double wrong_sign(double z, double y) { return y * z < 0 ? 1.0 : y * z > 0 ? 0.0 : 0.5; }

// Rows in the order in which they are learned from.
struct Visits {
  Visits(const RowArrays& arrays, Longs order, Vector y, Vector costs)
      : arrays(arrays), order(order.data()), n(order.size()), y(y.data()), costs(costs.data()) {}

  static constexpr std::size_t kPrefetch = 4;  // rows whose entries are fetched ahead

  Span span(std::size_t k) const { return span_of(arrays, static_cast<std::size_t>(order[k])); }

  template <class Entries>
  void prefetch(const Entries& entries, std::size_t k) const {
    if (k + kPrefetch < n) entries.prefetch(span(k + kPrefetch));
  }

  const RowArrays& arrays;
  const std::int64_t* order;
  std::size_t n;
  const double *y, *costs;  // by the places of the rows
};

// Ω in units of a row, and how long steps are: (λ₂, λ₁, η, κ, a) with η_t = η/(1 + κt)^a.
using Settings = std::tuple<double, double, double, double, double>;

// What Ω does to a weight while no row has its feature: dw/dh = −p(λ₂w + λ₁ sign w), h being Σ η_t over the rows that
// went by. Two times in a row are as one over their sum, so that a weight may wait until it is seen.
struct Decay {
  double l2 = 0, l1 = 0;

  double at(double w, double p_times_h) const {
    const double x = l2 * p_times_h;
    if (l1 == 0) return w * shrunk(x);
    const double size = std::fabs(w), loss = l1 * p_times_h;
    if (x < 1e-12) return size > loss ? std::copysign(size - loss, w) : 0.0;
    const double left = size + (size + l1 / l2) * (shrunk(x) - 1);
    return left > 0 ? std::copysign(left, w) : 0.0;
  }

  // exp(−x); most x are tiny.
  static double shrunk(double x) { return x < 1e-4 ? 1 - x * (1 - x * (0.5 - x / 6)) : std::exp(-x); }
};

// w̄ ← (1 − c_n)w̄ + c_n w with c_n = 4/(n + 3), kept as w̄ = A·F + B·w: what leaves w̄ as it is while w changes is a
// change of F in the other direction, B/A times as large.
struct Averages {
  static constexpr double kLeast = 1e-12;  // of A
  double n = 0, a = 1, b = 1;

  double back() const { return b / a; }

  // Takes w in; true where F has to be made anew: zero at first, and a·F where A has become small, which is 1 then.
  bool next(double* factor) {
    n += 1;
    if (n == 1) {
      *factor = 0;
      return true;
    }
    const double part = 4 / (n + 3);
    a *= 1 - part;
    b += part * (1 - b);
    if (a >= kLeast) return false;
    *factor = a;
    a = 1;
    return true;
  }
};

}  // namespace beeline
