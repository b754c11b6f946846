// Dual coordinate descent, one sweep at a time (Hsieh et al. 2008; Yu, Huang & Lin 2011 for logistic; Ho & Lin 2012 for
// regression).
//
// Primal:  min over w, b of  λ/2‖w‖² + Σ c_i l(z_i, y_i),  z_i = x_iᵀw + b.
// Dual:    max over a    of  −‖Σ a_i x_i‖²/(2λ) − Σ ψ_i(a_i),  ψ_i(a) = max over z of −az − c_i l(z, y_i),
// with w = Σ a_i x_i/λ; an intercept that costs nothing adds the constraint s = Σ a_i = 0.
//
// The constraint is met by the method of multipliers: maximise the dual minus b₀s + ρs²/2, then move b₀ to b₀ + ρs, which is
// the intercept found so far. Since s = 0 at the end, every x_i may be replaced by x_i − μ. With μ the mean of the
// rows the intercept no longer pulls at the weights, which is what makes the multiplier converge in a few sweeps. Nothing
// is subtracted from the data: with m_i = μᵀx_i the score of a row under w̃ = w − sμ/λ needs only m_i, s, μᵀw and ‖μ‖².
// With μ = 0, b₀ = 0 and ρ = 1/λ the intercept is regularized like any weight; with ρ = 0 there is none.
//
// What limits the speed is the latency of rows in random order: everything about a row lies in one cache line, rows are
// visited in runs of neighbours (the caller has shuffled them), and what comes next is fetched ahead.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "dual_steps.h"
#include "entries.h"
#include "random.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// What a sweep needs of a row, in one cache line.
struct alignas(64) RowState : DualRow {
  double mean;  // m_i = μᵀx_i
  Span span;
  std::uint32_t number;  // of the row in the caller's order
};

class DualSweeps {
 public:
  // The rows in the order in which they are to lie in memory; `q` holds ‖x_i − μ‖²/λ + ρ.
  DualSweeps(const RowArrays& arrays, Longs order, Vector y, Vector costs, Vector q, Vector means, Vector start, Output w,
             const std::string& loss, double parameter, std::uint64_t seed)
      : arrays_(arrays), w_(w), loss_(loss), parameter_(parameter), random_(seed) {
    rows_.reserve(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t i = static_cast<std::size_t>(order.data()[k]);
      if (costs.data()[i] <= 0) continue;  // a row that costs nothing has a = 0 for ever
      RowState row;
      row.a = start.data()[i];
      row.q = q.data()[i];
      row.cost = costs.data()[i];
      row.y = y.data()[i];
      row.mean = means.size() ? means.data()[i] : 0.0;
      row.span = span_of(arrays, i);
      row.number = static_cast<std::uint32_t>(i);
      rows_.push_back(row);
      sum_ += row.a;
      sum_means_ += row.a * row.mean;
    }
    active_ = rows_.size();
  }

  // How the intercept is treated: 1/λ, ρ, and ‖μ‖².
  void set_intercept(double inverse_strength, double rho, double mean_norm) {
    inverse_strength_ = inverse_strength;
    rho_ = rho;
    mean_norm_ = mean_norm;
  }

  // One pass over the rows that have not been shrunk: (largest violation, rows visited, entries visited).
  std::tuple<double, std::size_t, std::size_t> sweep(bool shrink) {
    nb::gil_scoped_release release;
    return with_entries(arrays_, [&](auto entries) {
      return with_dual(loss_, parameter_, [&](auto dual) { return sweep_rows(entries, dual, shrink); });
    });
  }

  // The method of multipliers' step: the intercept found so far becomes the centre.
  void recentre() { centre_ += rho_ * sum_; }

  // Looks at every row with its score under the current (w̃, b): a row that could move comes back, one that is settled
  // at a bound leaves. Shrinking may therefore err.
  void revise(Vector z) {
    nb::gil_scoped_release release;
    with_dual(loss_, parameter_, [&](auto dual) {
      const auto settled = [&](const RowState& row) { return dual.settled(row, z.data()[row.number], limits_); };
      const auto middle = std::stable_partition(rows_.begin(), rows_.end(), [&](const RowState& r) { return !settled(r); });
      active_ = static_cast<std::size_t>(middle - rows_.begin());
    });
  }

  // Maximises the dual over the rows strictly between their bounds, by conjugate gradients, and goes there as far as
  // the dual grows along the path that the bounds bend; (growth of the dual, entries visited).
  std::tuple<double, std::size_t> descend_face(int most) {
    nb::gil_scoped_release release;
    return with_entries(arrays_, [&](auto entries) {
      return with_dual(loss_, parameter_, [&](auto dual) { return face_step(entries, dual, most); });
    });
  }

  // Σ ψ_i(a_i).
  double conjugate() const {
    nb::gil_scoped_release release;
    return with_dual(loss_, parameter_, [&](auto dual) {
      double sum = 0;
      for (const RowState& row : rows_) sum += dual.conjugate(row);
      return sum;
    });
  }

  void copy_dual(Output out) const {
    std::fill(out.data(), out.data() + out.size(), 0.0);
    for (const RowState& row : rows_) out.data()[row.number] = row.a;
  }

  double intercept() const { return centre_ + bias(); }
  void set_centre(double b) { centre_ = b; }
  double sum() const { return sum_; }
  std::size_t active() const { return active_; }
  std::size_t size() const { return rows_.size(); }

 private:
  static constexpr std::size_t kRun = 8;    // neighbouring rows visited together
  static constexpr std::size_t kAhead = 3;  // rows whose entries are fetched ahead

  // What is added to x_iᵀw − (s/λ)m_i beside the centre to make the score: ρs − μᵀw̃.
  double bias() const { return rho_ * sum_ - inverse_strength_ * (sum_means_ - sum_ * mean_norm_); }

  template <class Entries, class Dual>
  std::tuple<double, std::size_t, std::size_t> sweep_rows(const Entries& entries, const Dual& dual, bool shrink) {
    double* w = w_.data();
    ShrinkLimits seen{0, 0};
    std::size_t n_entries = 0;
    const std::size_t visited = active_;
    shuffle_runs();
    for (std::size_t k = 0; k < order_.size(); ++k) {
      const std::size_t begin = order_[k] * kRun, end = std::min(begin + kRun, active_);
      const std::size_t next = k + 1 < order_.size() ? order_[k + 1] * kRun : begin;
      prefetch_states(next);
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t ahead = i + kAhead < end ? i + kAhead : next + (i + kAhead - end);
        if (ahead < active_) entries.prefetch(rows_[ahead].span);
        RowState& row = rows_[i];
        n_entries += row.span.count;
        const double z = entries.dot(row.span, w) - inverse_strength_ * sum_ * row.mean + centre_ + bias();
        const DualStep out = dual.step(row, z);
        seen.low = std::min(seen.low, out.violation);
        seen.high = std::max(seen.high, out.violation);
        const double change = out.a - row.a;
        if (change != 0) {
          entries.axpy(row.span, change * inverse_strength_, w);
          sum_ += change;
          sum_means_ += change * row.mean;
          row.a = out.a;
        } else if (Dual::kShrinks && shrink && dual.settled(row, z, limits_)) {
          leaving_.push_back(static_cast<std::uint32_t>(i));
        }
      }
    }
    remove_leaving();
    limits_.high = seen.high > 0 ? seen.high : kInfinity;
    limits_.low = seen.low < 0 ? seen.low : -kInfinity;
    return {std::max(-seen.low, seen.high), visited, n_entries};
  }

  // Σ p_k x_k over the free rows, centred and with the intercept: what a move p adds to the scores.
  struct Move {
    std::vector<double> w;
    double sum = 0, sum_means = 0;
  };

  template <class Entries>
  void make_move(const Entries& entries, const std::vector<double>& p, Move& move) const {
    std::fill(move.w.begin(), move.w.end(), 0.0);
    move.sum = move.sum_means = 0;
    for (std::size_t k = 0; k < free_.size(); ++k) {
      const RowState& row = rows_[free_[k]];
      entries.axpy(row.span, p[k] * inverse_strength_, move.w.data());
      move.sum += p[k];
      move.sum_means += p[k] * row.mean;
    }
  }

  template <class Entries>
  double score(const Entries& entries, const RowState& row, const double* w, double sum, double sum_means) const {
    return entries.dot(row.span, w) - inverse_strength_ * (sum * row.mean + sum_means - sum * mean_norm_) + rho_ * sum;
  }

  template <class Entries, class Dual>
  std::tuple<double, std::size_t> face_step(const Entries& entries, const Dual& dual, int most) {
    free_.clear();
    std::vector<Face> faces;
    std::size_t per_pass = 0;
    for (std::size_t i = 0; i < active_; ++i) {
      const Face face = dual.face(rows_[i]);
      if (face.low == face.high) continue;
      free_.push_back(static_cast<std::uint32_t>(i));
      faces.push_back(face);
      per_pass += rows_[i].span.count;
    }
    const std::size_t n = free_.size();
    if (n < 2) return {0.0, 0};
    std::vector<double> g(n), p(n, 0.0), r(n), v(n), qv(n);
    Move move{std::vector<double>(w_.size())};
    double rho = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const RowState& row = rows_[free_[k]];
      g[k] = score(entries, row, w_.data(), sum_, sum_means_) + centre_ + faces[k].slope;
      r[k] = -g[k];
      v[k] = r[k] / (row.q + faces[k].curvature);
      rho += r[k] * v[k];
    }
    std::size_t passes = 1;
    double best_gain = 0;
    const double first = rho;
    for (int it = 0; it < most && rho > 1e-4 * first; ++it) {
      make_move(entries, v, move);
      double vqv = 0;
      for (std::size_t k = 0; k < n; ++k) {
        qv[k] = score(entries, rows_[free_[k]], move.w.data(), move.sum, move.sum_means) + faces[k].curvature * v[k];
        vqv += v[k] * qv[k];
      }
      passes += 2;
      if (!(vqv > 0)) break;
      const double alpha = rho / vqv, gain = 0.5 * alpha * rho;
      double next = 0;
      for (std::size_t k = 0; k < n; ++k) {
        p[k] += alpha * v[k];
        r[k] -= alpha * qv[k];
        const double scaled = r[k] / (rows_[free_[k]].q + faces[k].curvature);
        next += r[k] * scaled;
      }
      for (std::size_t k = 0; k < n; ++k)
        v[k] = r[k] / (rows_[free_[k]].q + faces[k].curvature) + next / rho * v[k];
      rho = next;
      best_gain = std::max(best_gain, gain);
      if (gain < 0.01 * best_gain) break;
    }
    for (double t = 1; t > 1e-3; t *= 0.4) {
      double linear = 0, square = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const double a = rows_[free_[k]].a;
        v[k] = std::clamp(a + t * p[k], faces[k].low, faces[k].high) - a;
        linear += g[k] * v[k];
        square += faces[k].curvature * v[k] * v[k];
      }
      make_move(entries, v, move);
      passes += 1;
      double norm = 0;
      for (double x : move.w) norm += x * x;
      // ‖Σ p x̃‖²/λ with x̃ = x − μ, and what the intercept adds
      square += norm / inverse_strength_ - inverse_strength_ * move.sum * (2 * move.sum_means - move.sum * mean_norm_) +
                rho_ * move.sum * move.sum;
      const double growth = -linear - 0.5 * square;
      if (growth > 0 && growth >= -0.1 * linear) {
        for (std::size_t k = 0; k < n; ++k) rows_[free_[k]].a = v[k] + rows_[free_[k]].a;
        for (std::size_t k = 0; k < n; ++k) {
          RowState& row = rows_[free_[k]];
          row.a = std::clamp(row.a, faces[k].low, faces[k].high);
        }
        for (std::size_t j = 0; j < move.w.size(); ++j) w_.data()[j] += move.w[j];
        sum_ += move.sum;
        sum_means_ += move.sum_means;
        return {growth, passes * per_pass};
      }
    }
    return {0.0, passes * per_pass};
  }

  void shuffle_runs() {
    order_.resize((active_ + kRun - 1) / kRun);
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    random_.shuffle(order_.data(), order_.size());
  }

  // Rows that leave move behind the active ones; both keep their order, so that neighbours in memory stay neighbours.
  void remove_leaving() {
    if (leaving_.empty()) return;
    std::sort(leaving_.begin(), leaving_.end());
    std::vector<RowState> out;
    out.reserve(leaving_.size());
    std::size_t next = 0, to = 0;
    for (std::size_t i = 0; i < active_; ++i) {
      if (next < leaving_.size() && leaving_[next] == i) {
        out.push_back(rows_[i]);
        ++next;
      } else {
        rows_[to++] = rows_[i];
      }
    }
    std::copy(out.begin(), out.end(), rows_.begin() + to);
    active_ = to;
    leaving_.clear();
  }

  void prefetch_states(std::size_t begin) const {
    for (std::size_t i = begin, end = std::min(begin + kRun, active_); i < end; ++i) __builtin_prefetch(&rows_[i]);
  }

  RowArrays arrays_;
  Output w_;
  std::string loss_;
  double parameter_, inverse_strength_ = 1, rho_ = 0, mean_norm_ = 0;
  double centre_ = 0, sum_ = 0, sum_means_ = 0;  // b₀, s, μᵀ Σ a_i x_i
  std::vector<RowState> rows_;
  std::vector<std::uint32_t> order_, leaving_, free_;
  std::size_t active_ = 0;
  ShrinkLimits limits_;
  Random random_;
};

}  // namespace

void bind_dual_cd(nb::module_& m) {
  nb::class_<DualSweeps>(m, "DualSweeps")
      .def(nb::init<const RowArrays&, Longs, Vector, Vector, Vector, Vector, Vector, Output, const std::string&, double,
                    std::uint64_t>(),
           "rows"_a, "order"_a, "y"_a, "costs"_a, "q"_a, "means"_a, "start"_a, "w"_a.noconvert(), "loss"_a, "parameter"_a,
           "seed"_a)
      .def("set_intercept", &DualSweeps::set_intercept, "inverse_strength"_a, "rho"_a, "mean_norm"_a)
      .def("sweep", &DualSweeps::sweep, "shrink"_a = true)
      .def("recentre", &DualSweeps::recentre)
      .def("revise", &DualSweeps::revise, "z"_a)
      .def("descend_face", &DualSweeps::descend_face, "most"_a)
      .def("conjugate", &DualSweeps::conjugate)
      .def("copy_dual", &DualSweeps::copy_dual, "out"_a.noconvert())
      .def("set_centre", &DualSweeps::set_centre, "b"_a)
      .def_prop_ro("intercept", &DualSweeps::intercept)
      .def_prop_ro("sum", &DualSweeps::sum)
      .def_prop_ro("active", &DualSweeps::active)
      .def_prop_ro("size", &DualSweeps::size);
}

}  // namespace beeline
