// Dual coordinate descent, one sweep at a time (Hsieh et al. 2008; Yu, Huang & Lin 2011 for logistic; Ho & Lin 2012 for
// regression).
//
// Primal:  min over w, b of  λ/2‖w‖² + Σ c_i l(z_i, y_i),  z_i = x_iᵀw + b.
// Dual:    max over a    of  −‖Σ a_i x_i‖²/(2λ) − Σ ψ_i(a_i) (−ρ/2 (Σ a_i)² − b₀ Σ a_i),  ψ_i(a) = (c_i l)*(−a),
// with w = (1/λ) Σ a_i x_i. The intercept is a feature of value 1 whose weight costs 1/ρ: b = b₀ + ρ Σ a_i. ρ = 1/λ, b₀
// = 0 regularizes it like any weight; moving b₀ to b after each sweep is the method of multipliers for Σ a_i = 0, which
// is the dual of an intercept that costs nothing; ρ = 0 leaves it out.
//
// A step on row i minimises ½ q (a − a_i)² + z_i (a − a_i) + ψ_i(a) exactly, q = ‖x_i‖²/λ + ρ. What limits the speed
// is the latency of rows in random order: everything about a row lies in one cache line, rows are visited in
// runs of neighbours (the caller has shuffled them), and what comes next is fetched ahead.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "rows.h"

namespace beeline {
namespace {

using namespace nb::literals;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a sweep needs of a row, in one cache line.
struct alignas(64) RowState {
  double a, q, cost, y;
  std::int64_t row;
};

// How a step came out: the new a, and how far the old one was from optimal (the projected gradient, signed).
struct StepOutcome {
  double a, violation;
  bool shrink;
};

// Rows at a bound leave the sweep when their gradient points outwards by more than the worst violation of the last
// sweep.
struct ShrinkLimits {
  double low = -kInfinity, high = kInfinity;
};

// ψ(a) = −α + D α²/2 with α = ya in [0, U]: hinge D = 0, U = c; squared hinge D = 1/(2c), U = ∞.
template <bool kSquared>
struct MarginDual {
  StepOutcome step(const RowState& row, double z, const ShrinkLimits& limits) const {
    const double diagonal = kSquared ? 0.5 / row.cost : 0.0, upper = kSquared ? kInfinity : row.cost;
    const double alpha = row.y * row.a, gradient = row.y * z - 1 + diagonal * alpha;
    if (alpha <= 0 && gradient >= 0) return {row.a, 0, gradient > limits.high};
    if (alpha >= upper && gradient <= 0) return {row.a, 0, gradient < limits.low};
    const double next = std::clamp(alpha - gradient / (row.q + diagonal), 0.0, upper);
    return {row.y * next, gradient, false};
  }
};

// ψ(a) = −ya + ε|a| + D a²/2 with |a| ≤ U: ε-insensitive D = 0, U = c; squared D = 1/(2c), U = ∞.
template <bool kSquared>
struct TubeDual {
  double epsilon;

  StepOutcome step(const RowState& row, double z, const ShrinkLimits& limits) const {
    const double diagonal = kSquared ? 0.5 / row.cost : 0.0, upper = kSquared ? kInfinity : row.cost;
    const double gradient = z - row.y + diagonal * row.a;
    const double up = gradient + epsilon, down = gradient - epsilon;  // slopes to the right and to the left of 0
    if (row.a == 0) {
      if (up >= 0 && down <= 0) return {0, 0, up > limits.high && -down > limits.high};
    } else if (row.a >= upper && up <= 0) {
      return {row.a, 0, up < -limits.high};
    } else if (row.a <= -upper && down >= 0) {
      return {row.a, 0, down > limits.high};
    }
    const double q = row.q + diagonal;
    double next = 0;
    if (up < q * row.a) {
      next = row.a - up / q;
    } else if (down > q * row.a) {
      next = row.a - down / q;
    }
    const double violation = row.a > 0 ? up : row.a < 0 ? down : up < 0 ? up : down;
    return {std::clamp(next, -upper, upper), violation, false};
  }
};

// ψ(a) = α log α + (c − α) log(c − α) − c log c with α = ya in (0, c). Newton's method in the smaller of α and c − α,
// where the logarithm bends; both ends have infinite slopes, so the minimum is always inside.
struct LogisticDual {
  StepOutcome step(const RowState& row, double z, const ShrinkLimits&) const {
    const double c = row.cost, margin = row.y * z, alpha = row.y * row.a;
    const double violation = margin + std::log(std::max(alpha, c * 1e-300) / std::max(c - alpha, c * 1e-300));
    // With s = α (or c − α) and slope ±(margin) the problem is the same; take the side where the minimum is ≤ c/2.
    const bool flip = margin - row.q * (alpha - 0.5 * c) < 0;
    const double start = flip ? c - alpha : alpha, slope = flip ? -margin : margin;
    double s = std::clamp(start, c * 1e-12, 0.5 * c);
    for (int i = 0; i < 100; ++i) {
      const double g = row.q * (s - start) + slope + std::log(s / (c - s));
      const double curvature = row.q + c / (s * (c - s));
      double next = s - g / curvature;
      if (next <= 0) next = 0.1 * s;
      if (next >= c) next = 0.5 * (s + c);
      const bool done = std::fabs(next - s) <= 1e-12 * s;
      s = next;
      if (done) break;
    }
    return {row.y * (flip ? c - s : s), violation, false};
  }
};

// ψ(a) = −ya + a²/(2c).
struct SquaredDual {
  StepOutcome step(const RowState& row, double z, const ShrinkLimits&) const {
    const double diagonal = 1 / row.cost, gradient = z - row.y + diagonal * row.a;
    return {row.a - gradient / (row.q + diagonal), gradient, false};
  }
};

template <class Visit>
auto with_dual(const std::string& name, double parameter, Visit visit) {
  if (name == "hinge") return visit(MarginDual<false>{});
  if (name == "squared_hinge") return visit(MarginDual<true>{});
  if (name == "epsilon_insensitive") return visit(TubeDual<false>{parameter});
  if (name == "squared_epsilon_insensitive") return visit(TubeDual<true>{parameter});
  if (name == "logistic") return visit(LogisticDual{});
  if (name == "squared") return visit(SquaredDual{});
  throw std::invalid_argument("dual coordinate descent has no step for the loss " + name);
}

class DualSweeps {
 public:
  DualSweeps(const RowArrays& arrays, Vector y, Vector costs, Vector norms, Vector start, Output w,
             const std::string& loss, double parameter, double strength, double rho, std::uint64_t seed)
      : arrays_(arrays),
        w_(w),
        loss_(loss),
        parameter_(parameter),
        inverse_strength_(1 / strength),
        rho_(rho),
        random_(seed) {
    const std::size_t n = arrays.n_rows();
    rows_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (costs.data()[i] <= 0) continue;  // a row that costs nothing has a = 0 for ever
      rows_.push_back({start.data()[i], norms.data()[i] * inverse_strength_ + rho, costs.data()[i], y.data()[i],
                       static_cast<std::int64_t>(i)});
      total_ += start.data()[i];
    }
    restore();
  }

  // One pass over the rows that have not been shrunk; (largest violation, rows visited, entries visited).
  std::tuple<double, std::size_t, std::size_t> sweep(bool shrink) {
    nb::gil_scoped_release release;
    return arrays_.with_rows([&](auto rows) {
      return with_dual(loss_, parameter_, [&](auto dual) { return sweep_rows(rows, dual, shrink); });
    });
  }

  // Takes every row back into the sweeps.
  void restore() {
    const std::size_t runs = (rows_.size() + kRun - 1) / kRun;
    order_.resize(runs);
    for (std::size_t i = 0; i < runs; ++i) order_[i] = static_cast<std::uint32_t>(i);
    active_ = rows_.size();
    limits_ = {};
  }

  // The method of multipliers' step: the intercept found so far becomes the centre.
  void recentre() { centre_ = intercept(); }

  double intercept() const { return rho_ > 0 ? centre_ + rho_ * total_ : 0.0; }
  void set_centre(double b) { centre_ = b; }
  std::size_t active() const { return active_; }
  std::size_t size() const { return rows_.size(); }

  void copy_dual(Output out) const {
    std::fill(out.data(), out.data() + out.size(), 0.0);
    for (const RowState& row : rows_) out.data()[row.row] = row.a;
  }

 private:
  static constexpr std::size_t kRun = 8;    // neighbouring rows visited together
  static constexpr std::size_t kAhead = 3;  // rows whose entries are fetched ahead

  template <class Rows, class Dual>
  std::tuple<double, std::size_t, std::size_t> sweep_rows(const Rows& rows, const Dual& dual, bool shrink) {
    double* w = w_.data();
    ShrinkLimits seen{kInfinity, -kInfinity};
    std::size_t visited = 0, entries = 0;
    std::shuffle(order_.begin(), order_.begin() + runs(), random_);
    // A shrunken row swaps places with the last active one; the runs of the order are then a little older than the
    // rows in them, which changes nothing but the order.
    const std::size_t n_runs = runs();
    for (std::size_t k = 0; k < n_runs; ++k) {
      const std::size_t begin = order_[k] * kRun, end = std::min(begin + kRun, active_);
      if (k + 1 < n_runs) prefetch_states(order_[k + 1] * kRun);
      for (std::size_t i = begin; i < end; ++i) {
        prefetch_ahead(rows, i, end, k + 1 < n_runs ? order_[k + 1] * kRun : begin);
        RowState& row = rows_[i];
        const std::size_t r = static_cast<std::size_t>(row.row);
        const double z = rows.dot(r, w) + (rho_ > 0 ? centre_ + rho_ * total_ : 0.0);
        const StepOutcome out = dual.step(row, z, limits_);
        ++visited;
        entries += rows.count(r);
        seen.low = std::min(seen.low, out.violation);
        seen.high = std::max(seen.high, out.violation);
        const double change = out.a - row.a;
        if (std::fabs(change) > 1e-14 * std::fabs(row.cost)) {
          rows.axpy(r, change * inverse_strength_, w);
          total_ += change;
          row.a = out.a;
        } else if (out.shrink && shrink && end > begin) {
          shrunk_.push_back(i);
        }
      }
    }
    remove_shrunk();
    limits_.high = seen.high > 0 ? seen.high : kInfinity;
    limits_.low = seen.low < 0 ? seen.low : -kInfinity;
    return {visited ? std::max(std::fabs(seen.low), std::fabs(seen.high)) : 0.0, visited, entries};
  }

  std::size_t runs() const { return (active_ + kRun - 1) / kRun; }

  // Shrunken rows move behind the active ones; order is kept, so that neighbours in memory stay neighbours.
  void remove_shrunk() {
    if (shrunk_.empty()) return;
    std::sort(shrunk_.begin(), shrunk_.end());
    std::vector<RowState> out;
    out.reserve(shrunk_.size());
    std::size_t next = 0, to = 0;
    for (std::size_t i = 0; i < active_; ++i) {
      if (next < shrunk_.size() && shrunk_[next] == i) {
        out.push_back(rows_[i]);
        ++next;
      } else {
        rows_[to++] = rows_[i];
      }
    }
    std::copy(out.begin(), out.end(), rows_.begin() + to);
    active_ = to;
    shrunk_.clear();
    order_.resize(runs());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
  }

  void prefetch_states(std::size_t begin) const {
    for (std::size_t i = begin; i < std::min(begin + kRun, active_); ++i) __builtin_prefetch(&rows_[i]);
  }

  template <class Rows>
  void prefetch_ahead(const Rows& rows, std::size_t i, std::size_t end, std::size_t next_begin) const {
    const std::size_t ahead = i + kAhead < end ? i + kAhead : next_begin + (i + kAhead - end);
    if (ahead < active_) rows.prefetch(static_cast<std::size_t>(rows_[ahead].row));
  }

  RowArrays arrays_;
  Output w_;
  std::string loss_;
  double parameter_, inverse_strength_, rho_, centre_ = 0, total_ = 0;
  std::vector<RowState> rows_;
  std::vector<std::uint32_t> order_;
  std::vector<std::size_t> shrunk_;
  std::size_t active_ = 0;
  ShrinkLimits limits_;
  std::mt19937_64 random_;
};

}  // namespace

void bind_dual_cd(nb::module_& m) {
  nb::class_<DualSweeps>(m, "DualSweeps")
      .def(nb::init<const RowArrays&, Vector, Vector, Vector, Vector, Output, const std::string&, double, double,
                    double, std::uint64_t>(),
           "rows"_a, "y"_a, "costs"_a, "norms"_a, "start"_a, "w"_a.noconvert(), "loss"_a, "parameter"_a, "strength"_a,
           "rho"_a, "seed"_a)
      .def("sweep", &DualSweeps::sweep, "shrink"_a = true)
      .def("restore", &DualSweeps::restore)
      .def("recentre", &DualSweeps::recentre)
      .def("set_centre", &DualSweeps::set_centre, "b"_a)
      .def("copy_dual", &DualSweeps::copy_dual, "out"_a.noconvert())
      .def_prop_ro("intercept", &DualSweeps::intercept)
      .def_prop_ro("active", &DualSweeps::active)
      .def_prop_ro("size", &DualSweeps::size);
}

}  // namespace beeline
