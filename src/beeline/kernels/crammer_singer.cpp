// Dual coordinate descent for the multi-class SVM of Crammer & Singer, one sweep at a time (Keerthi et al. 2008).
//
// Primal:  min over W, b of  λ/2 Σ_k ‖w_k‖² + Σ c_i max_k (z_ik + Δ(y_i, k) − z_iy),  z_ik = x_iᵀw_k + b_k.
// Dual:    max over p    of  −‖Σ_i x_i a_iᵀ‖²/(2λ) + Σ_ik p_ik Δ(y_i, k),   a_ik = c_i [k = y_i] − p_ik,
// with p_i in the simplex p_ik ≥ 0, Σ_k p_ik = c_i, and w_k = Σ a_ik x_i/λ. p_i says which classes compete in row i:
// all of it lies at one class, usually y_i, in a row that is settled. With g_k = z_ik + Δ(y_i, k), and q = ‖x_i‖²/λ,
// the best p_i is the point of the simplex nearest to p_i + g/q. Margins are Δ(y, k) = [k ≠ y] unless others are set.
//
// Two more multi-class hinges have the same a_ik with other sets of p_i, class_problems.h: there p_ik is β_ik for the
// other classes, and p_iy = c_i − Σ β_ik, so that a_i is what it is above.
//
// An intercept that costs nothing adds the constraints s_k = Σ_i a_ik = 0: the method of multipliers, with the rows
// centred in effect, as dual_cd.cpp explains for one class.
//
// The weights of a feature lie side by side. With few classes a row is scored against all of them, by vectors; with
// many, against those that may compete in the row, which is shrinking inside a row.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "class_problems.h"
#include "class_rows.h"
#include "pages.h"
#include "random.h"
#include "simplex.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;
using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Marks = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint16_t kMixed = 0xffff;  // no class has all of p_i
constexpr std::size_t kFewClasses = 32;   // are all scored, always
constexpr double kBold =
    0.3;  // of the usual violation: enough to leave by, since gap checks bring back what left too early
constexpr double kStill = 1e-13;  // violations that rounding makes

// Everything about a row but p_i, in one cache line.
struct alignas(64) ClassRowState {
  double q;  // ‖x_i − μ‖²/λ + ρ
  double cost;
  double mean;  // m_i = μᵀx_i
  Span span;
  std::uint32_t number;  // of the row in the caller's order
  std::uint32_t slot;    // of p_i and of the row's list of classes
  std::uint16_t y;
  std::uint16_t owner;   // the class that has all of p_i, or kMixed
  std::uint16_t listed;  // how many classes may compete
  bool leaving;          // from the active rows, after the sweep
};

// What a sweep saw of violations: their root mean square decides who may leave.
struct Violations {
  double squares = 0;
  std::size_t count = 0;

  void add(double violation) {
    squares += violation * violation;
    ++count;
  }
  double usual() const { return count ? std::sqrt(squares / static_cast<double>(count)) : kInfinity; }
};

template <class Weight>
class ClassSweeps {
 public:
  // The rows in the order of the visits; `copied`: `arrays` holds them in that order, not in their own. A row that
  // costs nothing is left out. At the start no class competes: a = 0.
  ClassSweeps(const RowArrays& arrays, Longs order, bool copied, Longs y, Vector costs, std::size_t n_classes,
              std::uint64_t seed)
      : arrays_(arrays), n_classes_(n_classes), stride_(padded(n_classes)), simplex_(n_classes), random_(seed) {
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t i = static_cast<std::size_t>(order.data()[k]);
      if (costs.data()[i] <= 0) continue;
      const auto label = static_cast<std::uint16_t>(y.data()[i]);
      rows_.push_back({0, costs.data()[i], 0, span_of(arrays, copied ? k : i), static_cast<std::uint32_t>(i),
                       static_cast<std::uint32_t>(rows_.size()), label, label, static_cast<std::uint16_t>(n_classes),
                       false});
    }
    active_ = rows_.size();
    p_.assign(rows_.size() * n_classes, 0.0);
    for (const ClassRowState& row : rows_) p_of(row)[row.y] = row.cost;
    if (n_classes > kFewClasses) lists_.resize(rows_.size() * n_classes);
    identity_.resize(n_classes);
    for (std::size_t k = 0; k < n_classes; ++k) identity_[k] = static_cast<std::uint16_t>(k);
    weights_.reserve(sizeof(Weight) * stride_ * arrays.n_features);
    for (auto* buffer : {&g_, &next_, &slacks_, &centre_, &total_, &means_, &base_, &slope_})
      buffer->assign(stride_, 0.0);
    scores_.resize(stride_);
    change_.resize(stride_);
    changed_.resize(stride_);
  }

  // Sets Δ; zero for the right class.
  void set_margins(Matrix margins) { margins_.assign(margins.data(), margins.data() + n_classes_ * n_classes_); }

  // Makes the loss that of Weston & Watkins, or, where there are costs of mistakes, the one of scaled slacks.
  void set_hinges(Matrix costs) {
    kind_ = costs.size() ? Kind::kScaled : Kind::kSeparate;
    deltas_.assign(costs.data(), costs.data() + costs.size());
    lists_.clear();
    for (ClassRowState& row : rows_) row.owner = kMixed;
  }

  // Sets ‖x_i − μ‖² and m_i = μᵀx_i of every row, 1/λ, ρ and ‖μ‖².
  void measure(Vector norms, Vector means, double inverse_strength, double rho, double mean_norm) {
    inverse_strength_ = inverse_strength, rho_ = rho, mean_norm_ = mean_norm;
    centred_ = means.size() != 0;
    for (ClassRowState& row : rows_) {
      row.q = norms.data()[row.number] * inverse_strength + rho;
      row.mean = centred_ ? means.data()[row.number] : 0.0;
    }
    resum();
  }

  // One pass over the rows that have not been shrunk: (growth of the dual, the rows' gaps when they were visited,
  // entries visited, entries times classes scored).
  std::tuple<double, double, double, double> sweep() {
    nb::gil_scoped_release release;
    return with_entries(arrays_, [&](auto entries) { return sweep_rows(entries); });
  }

  // The method of multipliers' step: the intercepts found so far become the centre.
  void recentre() {
    for (std::size_t k = 0; k < n_classes_; ++k) centre_[k] += rho_ * total_[k];
    rebase_all();
  }

  void set_centre(Vector b) {
    std::copy_n(b.data(), n_classes_, centre_.begin());
    rebase_all();
  }

  // Looks at every row with its scores (by number): one that could move comes back, one that is settled leaves, and
  // so do classes inside a row. Shrinking may therefore err.
  void update_active_set(Matrix z) {
    nb::gil_scoped_release release;
    active_ = rows_.size();
    for (ClassRowState& row : rows_) {
      const double* scores = z.data() + row.number * n_classes_;
      for (std::size_t k = 0; k < n_classes_; ++k) g_[k] = scores[k] + margin(row, k);
      if (kind_ != Kind::kBest) {
        row.leaving = with_problem([&](auto& problem) { return problem.settled(hinges(row), limit_); });
        continue;
      }
      const double low = least_owned(row, identity_.data(), n_classes_);
      row.leaving = row.owner != kMixed && low - highest_but(row.owner, identity_.data(), n_classes_) > limit_;
      list_classes(row, identity_.data(), n_classes_, low);
    }
    remove_leaving();
  }

  // p_i for scores z near the optimum: the nearest point of the simplex to c_i g/width.
  void start(Matrix z, double width) {
    for (ClassRowState& row : rows_) {
      double* p = p_of(row);
      const double* scores = z.data() + row.number * n_classes_;
      if (kind_ != Kind::kBest) {
        for (std::size_t k = 0; k < n_classes_; ++k) g_[k] = scores[k] + margin(row, k);
        with_problem([&](auto& problem) { return problem.start(hinges(row), width, next_.data()), 0; });
        own_rest(row);
        std::copy_n(next_.begin(), n_classes_, p);
        continue;
      }
      for (std::size_t k = 0; k < n_classes_; ++k) p[k] = scores[k] + margin(row, k);
      simplex_.solve(p, n_classes_, width / row.cost, row.cost);
    }
  }

  // The same problem among other rows, whose p stay as they are: a of these rows (by number), the weights of all rows,
  // s and μᵀ Σ a_ik x_i of all rows.
  void take(Matrix a, Matrix weights, Vector totals, Vector means) {
    for (ClassRowState& row : rows_) {
      double* p = p_of(row);
      const double* from = a.data() + row.number * n_classes_;
      for (std::size_t k = 0; k < n_classes_; ++k) p[k] = (k == row.y ? row.cost : 0.0) - from[k];
      row.owner = owner(row);
    }
    Weight* w = weights_.template as<Weight>();
    for (std::size_t j = 0; j < arrays_.n_features; ++j)
      for (std::size_t k = 0; k < n_classes_; ++k)
        w[j * stride_ + k] = static_cast<Weight>(weights.data()[j * n_classes_ + k]);
    std::copy_n(totals.data(), n_classes_, total_.begin());
    std::copy_n(means.data(), n_classes_, means_.begin());
    rebase_all();
  }

  // a of every row, by number; those of rows that cost nothing are zero.
  void copy_dual(OutMatrix out) const {
    std::fill(out.data(), out.data() + out.size(), 0.0);
    for (const ClassRowState& row : rows_)
      for (std::size_t k = 0; k < n_classes_; ++k)
        out.data()[row.number * n_classes_ + k] = (k == row.y ? row.cost : 0.0) - p_of(row)[k];
  }

  // 1 for every row, by number, that has not been shrunk.
  void copy_active(Marks out) const {
    std::fill(out.data(), out.data() + out.size(), std::uint8_t{0});
    for (std::size_t i = 0; i < active_; ++i) out.data()[rows_[i].number] = 1;
  }

  // F_yk: the sum of p_ik over the rows of class y.
  void flows(OutMatrix out) const {
    std::fill(out.data(), out.data() + n_classes_ * n_classes_, 0.0);
    for (const ClassRowState& row : rows_)
      for (std::size_t k = 0; k < n_classes_; ++k) out.data()[row.y * n_classes_ + k] += p_of(row)[k];
  }

  // Multiplies p_ik, k ≠ y_i, by factors of (y_i, k), none above 1; what is taken away goes to the row's own class.
  void reduce(Matrix factors) {
    for (ClassRowState& row : rows_) {
      double* p = p_of(row);
      double rest = row.cost;
      for (std::size_t k = 0; k < n_classes_; ++k) {
        if (k == row.y) continue;
        p[k] *= factors.data()[row.y * n_classes_ + k];
        rest -= p[k];
      }
      p[row.y] = kind_ == Kind::kBest ? std::max(0.0, rest) : rest;
    }
  }

  // The weights and the sums of the present p.
  void refresh() {
    nb::gil_scoped_release release;
    for (ClassRowState& row : rows_) row.owner = owner(row);
    Weight* w = weights_.template as<Weight>();
    std::fill(w, w + arrays_.n_features * stride_, Weight{0});
    with_entries(arrays_, [&](auto entries) {
      for (const ClassRowState& row : rows_) {
        const std::size_t n = dual_of(row, nullptr, inverse_strength_, change_.data());
        using Row = decltype(row_of(entries, row.span));
        ClassRow<Row, Weight>::add_of(row_of(entries, row.span), change_.data(), changed_.data(), n, stride_, w);
      }
    });
    resum();
  }

  // out = Σ_i x_i a_iᵀ and totals = Σ_i a_i in float64, over the rows as they are; p_ik, k ≠ y_i, multiplied by factors
  // of (y_i, k) where they are given. Returns Σ p_ik Δ(y_i, k).
  double product(const RowArrays& arrays, Matrix factors, OutMatrix out, Output totals) {
    nb::gil_scoped_release release;
    std::fill(out.data(), out.data() + out.size(), 0.0);
    std::fill(totals.data(), totals.data() + n_classes_, 0.0);
    std::vector<double> change(n_classes_);
    double gain = 0;
    with_entries(arrays, [&](auto entries) {
      for (const ClassRowState& row : rows_) {
        if (row.owner == row.y) continue;
        const double* scale = factors.size() ? factors.data() + row.y * n_classes_ : nullptr;
        const std::size_t n = dual_of(row, scale, 1.0, change.data());
        const Span span = span_of(arrays, row.number);
        using Row = decltype(row_of(entries, span));
        ClassRow<Row, double>::add_of(row_of(entries, span), change.data(), changed_.data(), n, n_classes_, out.data());
        for (std::size_t m = 0; m < n; ++m) totals.data()[changed_[m]] += change[m];
        for (std::size_t m = 0; m + 1 < n; ++m) gain -= change[m] * margin(row, changed_[m]);
      }
    });
    return gain;
  }

  // Σ_ik (p_ik Δ(y_i, k) − a_ik z_ik): with λ/2‖W‖² it is the Lagrangian, for scores z of any W.
  double lagrangian(Matrix z) const {
    nb::gil_scoped_release release;
    double sum = 0;
    for (const ClassRowState& row : rows_) {
      if (row.owner == row.y) continue;
      const double* p = p_of(row);
      const double* scores = z.data() + row.number * n_classes_;
      for (std::size_t k = 0; k < n_classes_; ++k)
        if (k != row.y && p[k] != 0) sum += p[k] * (margin(row, k) + scores[k] - scores[row.y]);
    }
    return sum;
  }

  // Moves an average of the weights towards the present ones by a share.
  void average_weights(double share, OutMatrix out) const {
    nb::gil_scoped_release release;
    const Weight* w = weights_.template as<Weight>();
    for (std::size_t j = 0; j < arrays_.n_features; ++j) {
      double* to = out.data() + j * n_classes_;
      for (std::size_t k = 0; k < n_classes_; ++k) to[k] += share * (static_cast<double>(w[j * stride_ + k]) - to[k]);
    }
  }

  void copy_intercepts(Output out) const { std::copy_n(base_.begin(), n_classes_, out.data()); }
  void copy_totals(Output out) const { std::copy_n(total_.begin(), n_classes_, out.data()); }
  void copy_means(Output out) const { std::copy_n(means_.begin(), n_classes_, out.data()); }
  std::size_t active() const { return active_; }
  std::size_t size() const { return rows_.size(); }

 private:
  static constexpr std::size_t kRun = 8;       // neighbouring rows visited together
  static constexpr std::size_t kPrefetch = 3;  // rows whose entries are fetched ahead

  template <class Entries>
  std::tuple<double, double, double, double> sweep_rows(const Entries& entries) {
    Violations seen;
    double growth = 0, gap = 0, n_entries = 0, n_scored = 0;
    bool any_leaves = false;
    shuffle_runs();
    for (std::size_t r = 0; r < order_.size(); ++r) {
      const std::size_t begin = order_[r] * kRun, end = std::min(begin + kRun, active_);
      const std::size_t next = r + 1 < order_.size() ? order_[r + 1] * kRun : begin;
      prefetch_states(next);
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t prefetched = i + kPrefetch < end ? i + kPrefetch : next + (i + kPrefetch - end);
        if (prefetched < active_) prefetch(entries, rows_[prefetched]);
        ClassRowState& row = rows_[i];
        const bool all = scores_all(row);
        const std::size_t n = all ? n_classes_ : row.listed;
        const std::uint16_t* classes = all ? identity_.data() : list_of(row);
        score(entries, row, classes, all);
        n_entries += row.span.count;
        n_scored += static_cast<double>(row.span.count) * static_cast<double>(n);
        if (kind_ != Kind::kBest) {
          with_problem([&](auto& problem) { return visit(entries, row, problem, seen, growth, gap), 0; });
          any_leaves |= row.leaving;
          continue;
        }
        const double low = least_owned(row, classes, n), high = highest(n), violation = high - low;
        if (violation > kStill * (1 + std::fabs(high))) {
          seen.add(violation);
          gap += row_gap(row, classes, n, high);
          growth += step(entries, row, classes, n, high);
        } else if (row.owner != kMixed && low - highest_but(row.owner, classes, n) > limit_) {
          row.leaving = any_leaves = true;
        }
        list_classes(row, classes, n, low);
      }
    }
    if (any_leaves) remove_leaving();
    limit_ = kBold * seen.usual();
    return {growth, gap, n_entries, n_scored};
  }

  // A visit to a row of another hinge than the best other class's: all classes are scored.
  template <class Entries, class Problem>
  void visit(const Entries& entries, ClassRowState& row, Problem& problem, Violations& seen, double& growth,
             double& gap) {
    const HingeRow hinge = hinges(row);
    const double violation = problem.violation(hinge);
    if (violation > kStill * (1 + std::fabs(highest(n_classes_)))) {
      seen.add(violation);
      gap += problem.gap(hinge);
      problem.solve(hinge, next_.data());
      own_rest(row);
      growth += move(entries, row, identity_.data(), n_classes_, 0.0);
    } else if (problem.settled(hinge, limit_)) {
      row.leaving = true;
    }
  }

  // The row's problem: slacks from the scores in g_.
  HingeRow hinges(const ClassRowState& row) {
    const double own = g_[row.y];
    for (std::size_t k = 0; k < n_classes_; ++k) slacks_[k] = g_[k] - own;
    const double* delta = kind_ == Kind::kScaled ? deltas_.data() + row.y * n_classes_ : nullptr;
    return {n_classes_, row.y, row.q, row.cost, slacks_.data(), p_of(row), delta};
  }

  template <class Visit>
  auto with_problem(Visit visit) {
    return kind_ == Kind::kScaled ? visit(scaled_) : visit(separate_);
  }

  void own_rest(const ClassRowState& row) {
    next_[row.y] = 0;
    double sum = 0;
    for (std::size_t k = 0; k < n_classes_; ++k) sum += next_[k];
    next_[row.y] = row.cost - sum;
  }

  bool scores_all(const ClassRowState& row) const { return lists_.empty() || row.listed > stride_ / kLanes; }

  double margin(const ClassRowState& row, std::size_t k) const {
    return margins_.empty() ? (k == row.y ? 0.0 : 1.0) : margins_[row.y * n_classes_ + k];
  }

  // g_m = z_ik + Δ(y_i, k) for the classes k = classes[m].
  template <class Entries>
  void score(const Entries& entries, const ClassRowState& row, const std::uint16_t* classes, bool all) {
    const auto entry = row_of(entries, row.span);
    using Verbs = ClassRow<std::remove_const_t<decltype(entry)>, Weight>;
    const Weight* w = weights_.template as<Weight>();
    const std::size_t n = all ? n_classes_ : row.listed;
    if (all) {
      Verbs::scores(entry, w, stride_, scores_.data());
      for (std::size_t k = 0; k < n; ++k) g_[k] = static_cast<double>(scores_[k]);
    } else {
      Verbs::scores_of(entry, w, stride_, classes, n, scores_.data());
      for (std::size_t m = 0; m < n; ++m) g_[m] = static_cast<double>(scores_[m]);
    }
    if (margins_.empty()) {
      for (std::size_t m = 0; m < n; ++m) g_[m] += classes[m] != row.y;
    } else {
      const double* margins = margins_.data() + row.y * n_classes_;
      for (std::size_t m = 0; m < n; ++m) g_[m] += margins[classes[m]];
    }
    if (rho_ == 0) return;
    for (std::size_t m = 0; m < n; ++m) g_[m] += base_[classes[m]] + slope_[classes[m]] * row.mean;
  }

  // Solves the row's problem over the classes and moves the weights; returns the growth of the dual.
  template <class Entries>
  double step(const Entries& entries, ClassRowState& row, const std::uint16_t* classes, std::size_t n, double high) {
    double* p = p_of(row);
    for (std::size_t m = 0; m < n; ++m) next_[m] = g_[m] + row.q * p[classes[m]];
    const std::size_t support = simplex_.solve(next_.data(), n, row.q, row.cost);
    row.owner = kMixed;
    for (std::size_t m = 0; m < n && support == 1; ++m)
      if (next_[m] > 0) row.owner = classes[m];
    return move(entries, row, classes, n, high);
  }

  // Moves p_i to what next_ says, and the weights with it; returns the growth of the dual.
  template <class Entries>
  double move(const Entries& entries, ClassRowState& row, const std::uint16_t* classes, std::size_t n, double high) {
    double* p = p_of(row);
    double growth = 0;
    std::size_t n_changed = 0;
    for (std::size_t m = 0; m < n; ++m) {
      const std::uint16_t k = classes[m];
      const double change = next_[m] - p[k];
      if (change == 0) continue;
      p[k] = next_[m];
      growth += change * (g_[m] - high - 0.5 * row.q * change);  // changes sum to 0: `high` only saves digits
      move_sums(row, k, -change);
      changed_[n_changed] = k;
      change_[n_changed++] = static_cast<Weight>(-change * inverse_strength_);
    }
    const auto entry = row_of(entries, row.span);
    using Verbs = ClassRow<std::remove_const_t<decltype(entry)>, Weight>;
    if (stride_ <= kFewClasses) {
      std::fill(scores_.begin(), scores_.end(), Weight{0});
      for (std::size_t m = 0; m < n_changed; ++m) scores_[changed_[m]] = change_[m];
      Verbs::add(entry, scores_.data(), stride_, weights_.template as<Weight>());
    } else {
      Verbs::add_of(entry, change_.data(), changed_.data(), n_changed, stride_, weights_.template as<Weight>());
    }
    return growth;
  }

  // The classes that stay in the row's list: those with a part of p_i, and those not clearly below them.
  void list_classes(ClassRowState& row, const std::uint16_t* classes, std::size_t n, double low) {
    if (lists_.empty()) return;
    const double* p = p_of(row);
    std::uint16_t* list = list_of(row);
    std::size_t count = 0;
    for (std::size_t m = 0; m < n; ++m) {
      const std::uint16_t k = classes[m];
      if (p[k] > 0 || g_[m] >= low - limit_) list[count++] = k;
    }
    row.listed = static_cast<std::uint16_t>(count);
  }

  double highest(std::size_t n) const { return *std::max_element(g_.begin(), g_.begin() + static_cast<long>(n)); }

  double highest_but(std::uint16_t owner, const std::uint16_t* classes, std::size_t n) const {
    double top = -kInfinity;
    for (std::size_t m = 0; m < n; ++m)
      if (classes[m] != owner) top = std::max(top, g_[m]);
    return top;
  }

  // min g over the classes with a part of p_i: equal to max g at the optimum.
  double least_owned(const ClassRowState& row, const std::uint16_t* classes, std::size_t n) const {
    const double* p = p_of(row);
    double low = kInfinity;
    for (std::size_t m = 0; m < n; ++m)
      if (row.owner == kMixed ? p[classes[m]] > 0 : classes[m] == row.owner) low = std::min(low, g_[m]);
    return low;
  }

  // c_i max g − Σ_k p_ik g_k: what the row adds to the duality gap.
  double row_gap(const ClassRowState& row, const std::uint16_t* classes, std::size_t n, double high) const {
    const double* p = p_of(row);
    double sum = 0;
    for (std::size_t m = 0; m < n; ++m) sum += p[classes[m]] * (high - g_[m]);
    return sum;
  }

  std::uint16_t owner(const ClassRowState& row) const {
    const double* p = p_of(row);
    if (kind_ != Kind::kBest) return kMixed;
    const auto positive = std::count_if(p, p + n_classes_, [](double x) { return x > 0; });
    if (positive != 1) return kMixed;
    return static_cast<std::uint16_t>(std::max_element(p, p + n_classes_) - p);
  }

  // The classes with a_ik ≠ 0 in `changed_`, the row's own last, and scale · a_ik in `out`.
  template <class T>
  std::size_t dual_of(const ClassRowState& row, const double* factors, double scale, T* out) {
    const double* p = p_of(row);
    double own = 0;
    std::size_t n = 0;
    for (std::size_t k = 0; k < n_classes_; ++k) {
      if (k == row.y || p[k] == 0) continue;
      const double part = factors ? factors[k] * p[k] : p[k];
      changed_[n] = static_cast<std::uint16_t>(k);
      out[n++] = static_cast<T>(-scale * part);
      own += part;
    }
    changed_[n] = row.y;
    out[n++] = static_cast<T>(scale * own);
    return n;
  }

  void move_sums(const ClassRowState& row, std::size_t k, double a) {
    if (rho_ == 0) return;
    total_[k] += a;
    means_[k] += a * row.mean;
    rebase(k);
  }

  void resum() {
    std::fill(total_.begin(), total_.end(), 0.0);
    std::fill(means_.begin(), means_.end(), 0.0);
    for (const ClassRowState& row : rows_)
      for (std::size_t k = 0; k < n_classes_; ++k) {
        const double a = (k == row.y ? row.cost : 0.0) - p_of(row)[k];
        total_[k] += a;
        means_[k] += a * row.mean;
      }
    rebase_all();
  }

  // What a row with m_i = 0 and x_i = 0 scores, and how its score falls with m_i.
  void rebase(std::size_t k) {
    base_[k] = centre_[k] + rho_ * total_[k] - inverse_strength_ * (means_[k] - total_[k] * mean_norm_);
    slope_[k] = centred_ ? -inverse_strength_ * total_[k] : 0.0;
  }

  void rebase_all() {
    for (std::size_t k = 0; k < n_classes_; ++k) rebase(k);
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

  template <class Entries>
  void prefetch(const Entries& entries, const ClassRowState& row) const {
    entries.prefetch(row.span);
    if (row.owner == kMixed) __builtin_prefetch(p_of(row));
    if (!lists_.empty()) __builtin_prefetch(lists_.data() + row.slot * n_classes_);
  }

  double* p_of(const ClassRowState& row) { return p_.data() + row.slot * n_classes_; }
  const double* p_of(const ClassRowState& row) const { return p_.data() + row.slot * n_classes_; }
  std::uint16_t* list_of(const ClassRowState& row) { return lists_.data() + row.slot * n_classes_; }

  enum class Kind { kBest, kSeparate, kScaled };  // which other classes count: the best one, each, each by its cost

  RowArrays arrays_;
  Kind kind_ = Kind::kBest;
  SeparateHinges separate_;
  ScaledSlacks scaled_;
  std::size_t n_classes_, stride_;
  double inverse_strength_ = 1, rho_ = 0, mean_norm_ = 0;
  bool centred_ = false;
  std::vector<ClassRowState> rows_;
  std::size_t active_ = 0;
  std::vector<double> p_, margins_, deltas_;
  std::vector<std::uint16_t> lists_, identity_;
  Pages weights_;
  std::vector<double> centre_, total_, means_;  // b₀, s and μᵀ Σ a_ik x_i, a class each
  std::vector<double> base_, slope_;
  std::vector<double> g_, next_, slacks_;
  std::vector<Weight> scores_, change_;
  std::vector<std::uint16_t> changed_;
  std::vector<std::uint32_t> order_;
  double limit_ = kInfinity;
  SimplexProblem simplex_;
  Random random_;
};

template <class Weight>
void bind_sweeps(nb::module_& m, const char* name) {
  using Sweeps = ClassSweeps<Weight>;
  nb::class_<Sweeps>(m, name)
      .def(nb::init<const RowArrays&, Longs, bool, Longs, Vector, std::size_t, std::uint64_t>(), "rows"_a, "order"_a,
           "copied"_a, "y"_a, "costs"_a, "n_classes"_a, "seed"_a)
      .def("set_margins", &Sweeps::set_margins, "margins"_a)
      .def("set_hinges", &Sweeps::set_hinges, "costs"_a)
      .def("measure", &Sweeps::measure, "norms"_a, "means"_a, "inverse_strength"_a, "rho"_a, "mean_norm"_a)
      .def("sweep", &Sweeps::sweep)
      .def("recentre", &Sweeps::recentre)
      .def("set_centre", &Sweeps::set_centre, "b"_a)
      .def("update_active_set", &Sweeps::update_active_set, "z"_a)
      .def("start", &Sweeps::start, "z"_a, "width"_a)
      .def("flows", &Sweeps::flows, "out"_a.noconvert())
      .def("reduce", &Sweeps::reduce, "factors"_a)
      .def("refresh", &Sweeps::refresh)
      .def("product", &Sweeps::product, "rows"_a, "factors"_a, "out"_a.noconvert(), "totals"_a.noconvert())
      .def("lagrangian", &Sweeps::lagrangian, "z"_a)
      .def("average_weights", &Sweeps::average_weights, "share"_a, "out"_a.noconvert())
      .def("copy_intercepts", &Sweeps::copy_intercepts, "out"_a.noconvert())
      .def("copy_totals", &Sweeps::copy_totals, "out"_a.noconvert())
      .def("copy_means", &Sweeps::copy_means, "out"_a.noconvert())
      .def("copy_dual", &Sweeps::copy_dual, "out"_a.noconvert())
      .def("copy_active", &Sweeps::copy_active, "out"_a.noconvert())
      .def("take", &Sweeps::take, "a"_a, "weights"_a, "totals"_a, "means"_a)
      .def_prop_ro("active", &Sweeps::active)
      .def_prop_ro("size", &Sweeps::size);
}

}  // namespace

void bind_crammer_singer(nb::module_& m) {
  bind_sweeps<float>(m, "RoughClassSweeps");
  bind_sweeps<double>(m, "ClassSweeps");
}

}  // namespace beeline
