// Dual coordinate descent, one sweep at a time (Hsieh et al. 2008; Yu, Huang & Lin 2011 for logistic; Ho & Lin 2012 for
// regression).
//
// Primal:  min over w, b of  λ/2‖w‖² + Σ c_i l(z_i, y_i),  z_i = x_iᵀw + b.
// Dual:    max over a    of  −‖Σ a_i x_i‖²/(2λ) − Σ ψ_i(a_i),  ψ_i(a) = max over z of −az − c_i l(z, y_i),
// with w = Σ a_i x_i/λ; an intercept that costs nothing adds the constraint s = Σ a_i = 0.
//
// The constraint is met by the method of multipliers: maximise the dual minus b₀s + ρs²/2, then move b₀ to b₀ + ρs,
// which is the intercept found so far. Since s = 0 at the end, every x_i may be replaced by x_i − μ. With μ the mean of
// the rows the intercept no longer pulls at the weights, which is what makes the multiplier converge in a few sweeps.
// Nothing is subtracted from the data: with m_i = μᵀx_i the score of a row under w̃ = w − sμ/λ needs only m_i, s, μᵀw
// and ‖μ‖². With μ = 0, b₀ = 0 and ρ = 1/λ the intercept is regularized like any weight; with ρ = 0 there is none.
//
// What limits the speed is the latency of rows in random order: everything about a row lies in one cache line, rows are
// visited in runs of neighbours (the caller has shuffled them), and what comes next is fetched ahead.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dual_state.h"
#include "loss_loops.h"
#include "random.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutLongs = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Marks = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The primal point of a run: the best one between the last one and the average of the weights since then.
struct Primal {
  Primal(std::size_t n_rows, double* w, std::size_t d, double strength, bool free, double enough)
      : w(w),
        d(d),
        strength(strength),
        free(free),
        enough(enough),
        y(n_rows),
        costs(n_rows),
        z(n_rows),
        next_z(n_rows),
        next(d) {}

  // Takes weights into the average; later ones weigh more.
  void average(const double* weights, double intercept, double total) {
    const double part = 4 / static_cast<double>(++n_averaged + 3);
    for (std::size_t j = 0; j < d; ++j) next[j] += part * (weights[j] - next[j]);
    next_b += part * (intercept - next_b);
    next_total += part * (total - next_total);
  }

  // The average of the weights of centred rows.
  void centre(const double* mean, double inverse_strength) {
    if (free) dense_axpy(-next_total * inverse_strength, mean, next.data(), d);
    n_averaged = 0;
  }

  // Goes from the last point towards the average, and a little beyond it, to where J is least.
  template <class Loss>
  void step(const Loss& loss) {
    std::vector<double> way(d);
    for (std::size_t j = 0; j < d; ++j) way[j] = next[j] - w[j];
    for (std::size_t i = 0; i < z.size(); ++i) next_z[i] -= z[i];
    const double turn = next_b - b, squares[3] = {norm(w, b), dense_dot(w, way.data(), d) + (free ? 0.0 : b * turn),
                                                  norm(way.data(), turn)};
    const double t = least([&](double t) {
      const Pair sum = along_part(loss, z.data(), next_z.data(), t, y.data(), costs.data(), z.size());
      return Pair{sum.value + 0.5 * strength * (squares[0] + t * (2 * squares[1] + t * squares[2])),
                  sum.slope + strength * (squares[1] + t * squares[2])};
    });
    dense_axpy(t, way.data(), w, d);
    b += t * turn;
    for (std::size_t i = 0; i < z.size(); ++i) z[i] += t * next_z[i];
    losses = value - 0.5 * strength * norm(w, b);
    is_first = false;
  }

  double norm(const double* a, double intercept) const {
    return dense_norm(a, d) + (free ? 0.0 : intercept * intercept);
  }

  // Where J is least between 0 and a little beyond 1, roughly: tangents at the ends of a bracket meet there.
  template <class At>
  double least(At at) {
    constexpr int kMost = 6;
    constexpr double kFarthest = 1.5;
    Pair right = at(1.0), left;
    value = right.value;
    if (is_first) return 1;
    double best = 1, low = 0, high = 1;
    const auto note = [&](double t, const Pair& found) {
      if (found.value < value) {
        value = found.value;
        best = t;
      }
      (found.slope < 0 ? left : right) = found;
      (found.slope < 0 ? low : high) = t;
    };
    if (right.slope < 0) {
      left = right;
      low = 1;
      high = kFarthest;
    }
    const double other = right.slope < 0 ? kFarthest : 0.0;
    (other > 0 ? right : left) = at(other);
    if ((other > 0 ? right : left).value < value) {
      value = (other > 0 ? right : left).value;
      best = other;
    }
    for (int k = 0; k < kMost && left.slope < 0 && right.slope > 0; ++k) {
      const double width = high - low;
      const double meet = (left.value - right.value + right.slope * width) / (right.slope - left.slope);
      const double t = low + std::clamp(meet, 0.05 * width, 0.95 * width);
      if (!(value - (left.value + left.slope * meet) > enough * std::fabs(value))) break;
      note(t, at(t));
    }
    return best;
  }

  double* w;
  std::size_t d;
  double strength;
  bool free;
  double enough;                        // of J, that a line search may miss
  std::vector<double> y, costs;         // of the rows, in the caller's order
  std::vector<double> z, next_z, next;  // the scores; those of the average, and its weights
  double b = 0, next_b = 0, next_total = 0, value = 0, losses = 0;
  std::size_t n_averaged = 0;
  bool is_first = true;
};

class DualSweeps {
 public:
  // The rows in the order of the visits, with the dual variables to start from and w = Σ a_i x_i/λ, which is kept up to
  // date. `copied`: `arrays` holds the rows in that order, not in their own. A row that costs nothing has a = 0 for
  // ever and is left out.
  DualSweeps(const RowArrays& arrays, Longs order, bool copied, Vector y, Vector costs, Vector start, Output w,
             const std::string& loss, const Parameters& parameters, std::uint64_t seed)
      : arrays_(arrays), w_(w), loss_(loss), parameters_(parameters), random_(seed) {
    rows_.reserve(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t i = static_cast<std::size_t>(order.data()[k]);
      if (costs.data()[i] <= 0) continue;
      RowState row;
      row.a = start.data()[i];
      row.cost = costs.data()[i];
      row.y = y.data()[i];
      row.span = span_of(arrays, copied ? k : i);
      row.number = static_cast<std::uint32_t>(i);
      row.leaving = false;
      rows_.push_back(row);
    }
    active_ = rows_.size();
  }

  // Sets ‖x_i − μ‖² and m_i = μᵀx_i of every row, 1/λ, ρ and ‖μ‖². The sums become those of these rows.
  void measure(Vector norms, Vector means, double inverse_strength, double rho, double mean_norm) {
    geometry_ = {inverse_strength, rho, mean_norm};
    sums_ = {};
    for (RowState& row : rows_) {
      row.q = norms.data()[row.number] * inverse_strength + rho;
      row.mean = means.size() ? means.data()[row.number] : 0.0;
      sums_.add(row.a, row);
    }
  }

  // Sets s and μᵀ Σ a_i x_i where there are other rows than these, whose a_i stay as they are.
  void set_sums(double total, double means) { sums_ = {total, means}; }

  // One pass over the rows that have not been shrunk: (largest violation, growth of the dual, entries visited).
  std::tuple<double, double, std::size_t> sweep() {
    nb::gil_scoped_release release;
    return with_entries(arrays_, [&](auto entries) {
      return with_dual(loss_, parameters_, [&](auto dual) { return sweep_rows(entries, dual); });
    });
  }

  // Sweeps, each followed by a step of the multiplier where the intercept is `free`, until a primal value is likely to
  // be within `tol` of the dual one, relatively, or they have visited `most` times all entries: where rows are few, all
  // of that takes less time than the caller needs between two sweeps. `w` becomes the primal weights; returns (sweeps,
  // entries visited, the intercept). The caller certifies the gap.
  std::tuple<std::size_t, std::size_t, double> run(Output w, Vector mean, bool free, double tol, std::size_t most) {
    nb::gil_scoped_release release;
    Primal primal(rows_.size() ? largest_number() + 1 : 0, w.data(), w.size(), 1 / geometry_.inverse_strength, free,
                  kFine * tol);
    for (const RowState& row : rows_) {
      primal.y[row.number] = row.y;
      primal.costs[row.number] = row.cost;
    }
    return with_entries(arrays_, [&](auto entries) {
      return with_dual(loss_, parameters_, [&](auto dual) {
        const std::size_t whole = std::max<std::size_t>(1, entries_of_rows());
        std::size_t visited = 0, sweeps = 0, since = 0;  // entries of all sweeps, and since the last gap check
        double ratio = kInfinity, grown = 0;             // of the gap to the growth of the dual; the growth since then
        while (visited < most * whole && sweeps < kMostSweeps) {
          const auto [_, growth, count] = sweep_rows(entries, dual);
          primal.average(w_.data(), intercept(), sums_.total);
          if (free) recentre();
          ++sweeps;
          visited += count;
          since += count;
          grown += growth;
          const bool hopeful = ratio * growth <= kPart * tol * primal.value, still = growth <= kStill * grown;
          const bool due =
              growth == 0 || since >= kCheckEvery * whole || ((hopeful || still) && kRarely * since >= whole);
          if (!due && visited < most * whole) continue;
          const double gap = check_gap(entries, dual, mean, primal), rest = kPart * tol * std::fabs(primal.value) - gap;
          if (rest >= 0) break;
          if (grown == 0) break;  // nothing moves any more
          ratio = growth > 0 ? gap / growth : kInfinity;
          primal.enough = std::max(kFine * tol, kFine * gap / std::fabs(primal.value));
          since = 0;
          grown = 0;
        }
        return std::make_tuple(sweeps, visited, primal.b);
      });
    });
  }

  // The method of multipliers' step: the intercept found so far becomes the centre.
  void recentre() { centre_ += geometry_.rho * sums_.total; }

  // Looks at every row with its score: one that could move comes back, one that is settled at a bound leaves. Shrinking
  // may therefore err.
  void update_active_set(Vector z) {
    nb::gil_scoped_release release;
    with_dual(loss_, parameters_, [&](auto dual) {
      const auto settled = [&](const RowState& row) { return dual.settled(row, z.data()[row.number], limits_); };
      const std::size_t before = active_;
      for (std::size_t i = before; i < rows_.size(); ++i)
        if (!settled(rows_[i])) std::swap(rows_[i], rows_[active_++]);
      for (std::size_t i = 0; i < before; ++i) rows_[i].leaving = settled(rows_[i]);
      remove_leaving();
    });
  }

  // Σ ψ_i(a_i).
  double conjugate() const {
    nb::gil_scoped_release release;
    return with_dual(loss_, parameters_, [&](auto dual) {
      double sum = 0;
      for (const RowState& row : rows_) sum += dual.conjugate(row);
      return sum;
    });
  }

  // Σ |a_i| ‖x_i‖, or more.
  double weighted_norm() const {
    nb::gil_scoped_release release;
    double sum = 0;
    for (const RowState& row : rows_) sum += std::fabs(row.a) * std::sqrt(row.q);
    return sum / std::sqrt(geometry_.inverse_strength);
  }

  void copy_dual(Output out) const {
    std::fill(out.data(), out.data() + out.size(), 0.0);
    for (const RowState& row : rows_) out.data()[row.number] = row.a;
  }

  // 1 for every row, by number, that has not been shrunk.
  void copy_active(Marks out) const {
    std::fill(out.data(), out.data() + out.size(), std::uint8_t{0});
    for (std::size_t i = 0; i < active_; ++i) out.data()[rows_[i].number] = 1;
  }

  // The numbers of the rows as they lie here, the active ones first.
  void copy_order(OutLongs out) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) out.data()[i] = rows_[i].number;
  }

  // What a sweep goes on from beside w, the variables and their order: how many rows are active, where the random
  // numbers are, the limits of shrinking, b₀, s and μᵀ Σ a_i x_i.
  using Progress = std::tuple<std::size_t, std::uint64_t, double, double, double, double, double>;

  Progress progress() const {
    return {active_, random_.state(), limits_.low, limits_.high, centre_, sums_.total, sums_.means};
  }

  // Goes on where other sweeps over the same rows, with the same variables, were.
  void resume(Longs order, const Progress& progress) {
    constexpr std::size_t kNowhere = ~std::size_t{0};
    std::vector<std::size_t> places(rows_.size() ? largest_number() + 1 : 0, kNowhere);
    for (std::size_t i = 0; i < rows_.size(); ++i) places[rows_[i].number] = i;
    std::vector<RowState> rows;
    rows.reserve(rows_.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto number = static_cast<std::size_t>(order.data()[k]);
      if (number >= places.size() || places[number] == kNowhere) throw std::invalid_argument("these are other rows");
      rows.push_back(rows_[places[number]]);
      places[number] = kNowhere;
    }
    if (rows.size() != rows_.size() || std::get<0>(progress) > rows.size())
      throw std::invalid_argument("these are other rows");
    rows_ = std::move(rows);
    active_ = std::get<0>(progress);
    random_ = Random(std::get<1>(progress));
    limits_ = {std::get<2>(progress), std::get<3>(progress)};
    centre_ = std::get<4>(progress);
    sums_ = {std::get<5>(progress), std::get<6>(progress)};
  }

  double intercept() const { return centre_ + geometry_.intercept(sums_); }
  void set_centre(double b) { centre_ = b; }
  double total() const { return sums_.total; }
  double means() const { return sums_.means; }
  std::size_t active() const { return active_; }
  std::size_t size() const { return rows_.size(); }

 private:
  static constexpr std::size_t kRun = 8;       // neighbouring rows visited together
  static constexpr std::size_t kPrefetch = 3;  // rows whose entries are fetched ahead
  // Of `run`: a gap check after three whole sweeps, but none before a quarter of one.
  static constexpr std::size_t kCheckEvery = 3, kRarely = 4, kMostSweeps = 2000;
  static constexpr double kFine = 0.05;   // of the tolerance, or of the gap, that a line search may miss
  static constexpr double kPart = 0.8;    // of the tolerance, that it leaves to the gap
  static constexpr double kStill = 1e-3;  // of the growth since the last gap check, that is as good as none

  template <class Entries, class Dual>
  std::tuple<double, double, std::size_t> sweep_rows(const Entries& entries, const Dual& dual) {
    ShrinkLimits seen{0, 0};
    double growth = 0, squares = 0;
    bool any_leaves = false;
    std::size_t n_entries = 0, n_violating = 0;
    shuffle_runs();
    for (std::size_t k = 0; k < order_.size(); ++k) {
      const std::size_t begin = order_[k] * kRun, end = std::min(begin + kRun, active_);
      const std::size_t next = k + 1 < order_.size() ? order_[k + 1] * kRun : begin;
      prefetch_states(next);
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t prefetched = i + kPrefetch < end ? i + kPrefetch : next + (i + kPrefetch - end);
        if (prefetched < active_) entries.prefetch(rows_[prefetched].span);
        RowState& row = rows_[i];
        n_entries += row.span.count;
        const double z = centre_ + geometry_.score(entries, row, w_.data(), sums_);
        const DualStep out = dual.step(row, z);
        seen.low = std::min(seen.low, out.violation);
        seen.high = std::max(seen.high, out.violation);
        squares += out.violation * out.violation;
        n_violating += out.violation != 0;
        const double change = out.a - row.a;
        if (change != 0) {
          entries.axpy(row.span, change * geometry_.inverse_strength, w_.data());
          sums_.add(change, row);
          row.a = out.a;
          growth += 0.5 * std::fabs(change * out.violation);  // exact unless a bound cut the step short
        } else if (Dual::kShrinks && dual.settled(row, z, limits_)) {
          row.leaving = true;
          any_leaves = true;
        }
      }
    }
    if (any_leaves) remove_leaving();
    const double largest = std::max(-seen.low, seen.high);
    // Hsieh et al. take the largest violations as the limits. A few rows decide these, and most rows would stay for
    // long; since gap checks bring back what left too early, the usual violation is enough.
    const double usual = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, n_violating)));
    limits_.high = seen.high > 0 ? std::min(seen.high, usual) : kInfinity;
    limits_.low = seen.low < 0 ? std::max(seen.low, -usual) : -kInfinity;
    return {largest, growth, n_entries};
  }

  std::size_t entries_of_rows() const {
    return std::accumulate(rows_.begin(), rows_.end(), std::size_t{0},
                           [](std::size_t sum, const RowState& row) { return sum + row.span.count; });
  }

  std::size_t largest_number() const {
    return std::max_element(rows_.begin(), rows_.end(), [](const RowState& a, const RowState& b) {
      return a.number < b.number;
    })->number;
  }

  // The gap between the dual value and a primal point that is better than the last one, or as good. Rows leave and come
  // back as their scores say.
  template <class Entries, class Dual>
  double check_gap(const Entries& entries, const Dual& dual, Vector mean, Primal& primal) {
    const double shift = sums_.total * geometry_.inverse_strength;
    primal.centre(mean.data(), geometry_.inverse_strength);
    double conjugate = 0, costs = 0;
    const std::size_t before = active_;
    for (RowState& row : rows_) {
      const double z = primal.next_b + entries.dot(row.span, primal.next.data());
      primal.next_z[row.number] = z;
      conjugate += dual.conjugate(row);
      costs += row.cost;
      row.leaving = dual.settled(row, z, limits_);
    }
    primal.step(dual.loss());
    for (std::size_t i = before; i < rows_.size(); ++i)
      if (!rows_[i].leaving) std::swap(rows_[i], rows_[active_++]);
    remove_leaving();
    double square = dense_norm(w_.data(), w_.size());
    if (primal.free) {
      square += shift * (shift * geometry_.mean_norm - 2 * dense_dot(w_.data(), mean.data(), w_.size()));
    } else {
      square += geometry_.rho * geometry_.inverse_strength * sums_.total * sums_.total;
    }
    // Variables that do not sum to zero yet: what they gain by that, and what it costs to take a part of them away.
    const double imbalance =
        primal.free ? primal.b * sums_.total + std::fabs(sums_.total) * (primal.losses / std::max(costs, 1e-300)) : 0.0;
    return primal.value + 0.5 * square / geometry_.inverse_strength + conjugate + imbalance;
  }

  void shuffle_runs() {
    order_.resize((active_ + kRun - 1) / kRun);
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    random_.shuffle(order_.data(), order_.size());
  }

  // Rows that leave move behind the active ones, which keep their order: neighbours in memory stay neighbours.
  void remove_leaving() {
    std::size_t to = 0;
    for (std::size_t i = 0; i < active_; ++i) {
      if (rows_[i].leaving) {
        rows_[i].leaving = false;
        continue;
      }
      if (to != i) std::swap(rows_[to], rows_[i]);
      ++to;
    }
    active_ = to;
  }

  void prefetch_states(std::size_t begin) const {
    for (std::size_t i = begin, end = std::min(begin + kRun, active_); i < end; ++i) __builtin_prefetch(&rows_[i]);
  }

  RowArrays arrays_;
  Output w_;
  std::string loss_;
  Parameters parameters_;
  Geometry geometry_;
  double centre_ = 0;  // b₀
  Sums sums_;
  std::vector<RowState> rows_;
  std::vector<std::uint32_t> order_;
  std::size_t active_ = 0;
  ShrinkLimits limits_;
  Random random_;
};

}  // namespace

void bind_dual_cd(nb::module_& m) {
  nb::class_<DualSweeps>(m, "DualSweeps")
      .def(nb::init<const RowArrays&, Longs, bool, Vector, Vector, Vector, Output, const std::string&,
                    const Parameters&, std::uint64_t>(),
           "rows"_a, "order"_a, "copied"_a, "y"_a, "costs"_a, "start"_a, "w"_a.noconvert(), "loss"_a, "parameters"_a,
           "seed"_a)
      .def("measure", &DualSweeps::measure, "norms"_a, "means"_a, "inverse_strength"_a, "rho"_a, "mean_norm"_a)
      .def("set_sums", &DualSweeps::set_sums, "total"_a, "means"_a)
      .def("sweep", &DualSweeps::sweep)
      .def("run", &DualSweeps::run, "w"_a.noconvert(), "mean"_a, "free"_a, "tol"_a, "most"_a)
      .def("recentre", &DualSweeps::recentre)
      .def("update_active_set", &DualSweeps::update_active_set, "z"_a)
      .def("conjugate", &DualSweeps::conjugate)
      .def("weighted_norm", &DualSweeps::weighted_norm)
      .def("copy_dual", &DualSweeps::copy_dual, "out"_a.noconvert())
      .def("copy_active", &DualSweeps::copy_active, "out"_a.noconvert())
      .def("copy_order", &DualSweeps::copy_order, "out"_a.noconvert())
      .def("progress", &DualSweeps::progress)
      .def("resume", &DualSweeps::resume, "order"_a, "progress"_a)
      .def("set_centre", &DualSweeps::set_centre, "b"_a)
      .def_prop_ro("intercept", &DualSweeps::intercept)
      .def_prop_ro("total", &DualSweeps::total)
      .def_prop_ro("means", &DualSweeps::means)
      .def_prop_ro("active", &DualSweeps::active)
      .def_prop_ro("size", &DualSweeps::size);
}

}  // namespace beeline
