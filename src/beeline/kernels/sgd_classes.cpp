// Averaged truncated steps for losses of K scores a row, all classes of a feature side by side. See sgd.cpp.
//
// The rule is that of sgd_averaged.cpp, with vectors in the place of numbers. It works on columns that are scaled: with
// x̃_j = r_j(x_j − μ_j), r_j² the size of steps along feature j, and weights w̃ = w/r,
//
//   W̃_j ← W̃_j − min(η_t c, (l − min l)/(‖g‖² q)) · x̃_j · g,   q = ‖x̃‖².
//
// Weights are float32, so that they may be small or large only by what a scaled problem asks for. A row becomes a list
// of its entries, scaled, with the intercept as the last and with all columns that are centred; from there on nothing
// depends on how rows are laid out. While one row is worked on, the weights of the next are fetched.
//
// Ω makes all weights decay (`Decay`) once in some rows: as seldom as each decays by less than a tenth, and no more
// often than once in s rows. What is missing until then is made up for in the entries of a row: with c_j what L2 leaves
// of a weight, x̃_j c_j is the entry, and steps are as long as these ask for. With L1 weights decay whenever a row has
// their feature instead. Averages are of the weights as they were when they last decayed, times c.
//
// One against the rest, classes know nothing of each other: from 17 classes on they are learned in parts of at most 32,
// by walks of their own over the same rows, on threads. How they are cut depends on their number alone.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "sgd_class_walk.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;

class ClassSteps {
 public:
  // `weights` has for each feature, and in the end for the intercept, the K weights that the steps begin from and K
  // numbers F, both padded to a multiple of eight by zeros; `columns` has for each of them r and the h up to which its
  // weights have decayed. Both are changed in place. `means` has μ, or is empty. `stride`: of the rows of a block every
  // so many are scored by the averages. `skip` is s.
  ClassSteps(Weights weights, Columns2 columns, Vector means, std::size_t n_outputs, const std::string& intercept,
             const std::string& loss, const Parameters& parameters, const Settings& settings, std::size_t stride,
             std::size_t skip)
      : table_(weights, columns, means, n_outputs, intercept), loss_(loss, parameters) {
    const std::size_t registers = table_.padded / kLanes;
    // With L1 a feature's weights decay when a row has it, all of them together.
    const bool apart = loss_.one_against_rest() && registers > kLeast && std::get<1>(settings) == 0;
    const std::size_t parts = apart ? std::max<std::size_t>(2, (registers + kMost - 1) / kMost) : 1;
    for (std::size_t p = 0; p < parts; ++p) {
      const std::size_t first = registers * p / parts, last = registers * (p + 1) / parts;
      walks_.emplace_back(table_, first * kLanes, (last - first) * kLanes, loss_, settings, stride, skip);
    }
  }

  // (Σ c l, Σ c [wrong], Σ c) by the averages, of the rows that were scored before they were learned from.
  std::tuple<double, double, double> learn(const RowArrays& rows, Longs order, Vector y, Vector costs) {
    nb::gil_scoped_release release;
    const Visits visits(rows, order, y, costs);
    Progress progress;
    with_entries(rows, [&](auto entries) {
      if (walks_.size() == 1) {
        walks_[0].learn(entries, visits, progress, nullptr);
      } else {
        ScoredRows scored = rows_to_score(visits);
        parallel_for(walks_.size(), [&](std::size_t p) { walks_[p].learn(entries, visits, progress, &scored); });
        tell(scored, progress);
      }
      return 0;
    });
    return progress.parts();
  }

  // The averages, K for each feature and for the intercept, of weights for rows as they come.
  void copy_weights(Output out) const {
    nb::gil_scoped_release release;
    constexpr std::size_t kTask = 1 << 16;  // weights
    const Averages& mean = walks_[0].schedule.mean;
    const double pending = walks_[0].pending();
    const std::size_t each = std::max<std::size_t>(1, kTask / table_.padded), k_all = table_.k;
    parallel_for((table_.rows + each - 1) / each, [&](std::size_t task) {
      for (std::size_t j = task * each, end = std::min(table_.rows, j + each); j < end; ++j) {
        const float *w = table_.row(j), *f = w + table_.padded;
        const double r = table_.root(j), left = j < table_.n_shrunk ? Decay::shrunk(r * r * pending) : 1.0;
        const double a = r * left * mean.a, b = r * left * mean.b;
        for (std::size_t k = 0; k < k_all; ++k)
          out.data()[j * k_all + k] = a * static_cast<double>(f[k]) + b * static_cast<double>(w[k]);
      }
    });
    for (const ClassTable::Centre& centre : table_.centres)
      for (std::size_t k = 0; k < k_all; ++k)
        out.data()[table_.d * k_all + k] -= centre.mean * out.data()[centre.feature * k_all + k];
  }

  std::tuple<double, double, double, double, double, double, double, double> progress() const {
    const Schedule& s = walks_[0].schedule;
    return {s.t, static_cast<double>(s.since), s.eta, s.gone, s.mean.n, s.mean.a, s.mean.b, s.swept};
  }
  void resume(const std::tuple<double, double, double, double, double, double, double, double>& progress) {
    Schedule s;
    double since;
    std::tie(s.t, since, s.eta, s.gone, s.mean.n, s.mean.a, s.mean.b, s.swept) = progress;
    s.since = static_cast<std::size_t>(since);
    for (ClassWalk& walk : walks_) walk.schedule = s;
  }
  void begin_at(double t) {
    for (ClassWalk& walk : walks_) walk.begin_at(t);
  }
  double steps() const { return walks_[0].schedule.t; }

 private:
  static constexpr std::size_t kLeast = 2, kMost = 4;  // registers of one part, and of a part at most

  // Room for the scores of all rows that will be scored, in their order.
  ScoredRows rows_to_score(const Visits& visits) const {
    ScoredRows scored;
    scored.k = table_.k;
    for (std::size_t v = 0; v < visits.n; ++v) {
      const std::int64_t i = visits.order[v];
      if (!(visits.costs[i] > 0) || !walks_[0].is_scored(i)) continue;
      scored.y.push_back(visits.y[i]);
      scored.costs.push_back(visits.costs[i]);
    }
    scored.scores.resize(scored.y.size() * scored.k);
    return scored;
  }

  void tell(const ScoredRows& scored, Progress& progress) const {
    std::vector<float> room(scored.k);
    for (std::size_t s = 0; s < scored.y.size(); ++s) {
      const float* z = scored.scores.data() + s * scored.k;
      const std::size_t y = class_number(scored.y[s], scored.k);
      progress.add(loss_.value(z, scored.k, y, room.data()), wrong_class(z, scored.k, y), scored.costs[s]);
    }
  }

  ClassTable table_;
  ClassForm loss_;
  std::vector<ClassWalk> walks_;
};

}  // namespace

void bind_sgd_classes(nb::module_& m) {
  nb::class_<ClassSteps>(m, "ClassSteps")
      .def(nb::init<Weights, Columns2, Vector, std::size_t, const std::string&, const std::string&, const Parameters&,
                    const Settings&, std::size_t, std::size_t>(),
           "weights"_a.noconvert(), "columns"_a.noconvert(), "means"_a, "n_outputs"_a, "intercept"_a, "loss"_a,
           "parameters"_a, "settings"_a, "stride"_a, "skip"_a)
      .def("learn", &ClassSteps::learn, "rows"_a, "order"_a, "y"_a, "costs"_a)
      .def("copy_weights", &ClassSteps::copy_weights, "out"_a.noconvert())
      .def("progress", &ClassSteps::progress)
      .def("resume", &ClassSteps::resume, "progress"_a)
      .def("begin_at", &ClassSteps::begin_at, "t"_a)
      .def_prop_ro("steps", &ClassSteps::steps);
}

}  // namespace beeline
