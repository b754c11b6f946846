// Coordinate descent on the quadratic model of a prox-Newton step (Friedman, Hastie & Tibshirani 2010; Yuan, Ho & Lin
// 2012):
//
//   min over w, b of  uᵀ dz + ½ Σ h_i dz_i² + λ₁‖w‖₁ + ½ λ₂‖w‖²,   dz = X(w − w₀) + (b − b₀),
//
// where the first so many weights may not be negative.
//
// u and h the slopes and curvatures of the losses at (w₀, b₀). For least squares the model is the problem itself.
//
// A free intercept is kept optimal at every moment without touching a row: with Σ u_i = 0 at the start, moving w_j by δ
// moves the best b by −δ e_j/H, e_j = Σ h_i x_ij and H = Σ h_i. The sum of these moves is one number, and the gradient
// of feature j is x_jᵀu' + shift · e_j with u' the slopes without the shift.
//
// The model is walked over either by its columns, at the cost of their entries, or, where rows have few entries and
// there are few features, by its Gram matrix XᵀHX, at the cost of one row of it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "columns.h"
#include "descent.h"
#include "rows.h"
#include "threads.h"

namespace beeline {
namespace {

using namespace nb::literals;

template <class Columns>
struct ColumnModel {
  const Columns& columns;
  std::size_t size;
  const double* h;
  double* u;
  const Moments* moments;
  double inverse_total;  // 1/H, 0 without an intercept
  std::size_t n_rows;
  double shift = 0;
  std::vector<double> scratch = {};

  std::size_t work(std::size_t j) const { return columns.count(j); }
  double gradient(std::size_t j) const { return columns.dot(j, u) + shift * moments[j].sum; }
  double curvature(std::size_t j) const { return moments[j].square - moments[j].sum * moments[j].sum * inverse_total; }
  void move(std::size_t j, double change) {
    columns.axpy(j, change, h, u);
    shift -= change * moments[j].sum * inverse_total;
  }

  void product(const std::vector<std::uint32_t>& features, const double* p, double* out) {
    scratch.assign(n_rows, 0.0);
    double edge = 0;
    for (std::size_t k = 0; k < features.size(); ++k) {
      columns.axpy(features[k], p[k], h, scratch.data());
      edge += moments[features[k]].sum * p[k];
    }
    for (std::size_t k = 0; k < features.size(); ++k)
      out[k] = columns.dot(features[k], scratch.data()) - moments[features[k]].sum * edge * inverse_total;
  }
};

// The entries of a run of rows, column after column.
template <class Value>
struct Storage {
  std::vector<std::int64_t> indptr;
  std::unique_ptr<std::uint32_t[]> rows;  // not a vector, which would first write zeros
  std::unique_ptr<Value[]> values;
};

constexpr std::size_t kParts = 8;

// Parts of the rows are counted and then written side by side; where each entry goes depends on the rows alone.
template <class Index, class Value>
void transpose(const CsrRows<Index, Value>& rows, Storage<Value>& out) {
  const std::size_t k = rows.n_features, parts = rows.work() > (1 << 15) && rows.work() > kParts * k ? kParts : 1;
  std::vector<std::vector<std::int64_t>> next(parts, std::vector<std::int64_t>(k, 0));
  const auto each_part = [&](auto visit) {
    parallel_for(parts, [&](std::size_t part) {
      for (std::size_t i = rows.n_rows * part / parts, end = rows.n_rows * (part + 1) / parts; i < end; ++i)
        visit(part, i);
    });
  };
  each_part([&](std::size_t part, std::size_t i) {
    for (std::size_t p = rows.indptr[i], end = rows.indptr[i + 1]; p < end; ++p) ++next[part][rows.indices[p]];
  });
  out.indptr.assign(k + 1, 0);
  std::int64_t position = 0;
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t part = 0; part < parts; ++part) {
      const std::int64_t count = next[part][j];
      next[part][j] = position;
      position += count;
    }
    out.indptr[j + 1] = position;
  }
  out.rows.reset(new std::uint32_t[position]);
  out.values.reset(new Value[position]);
  each_part([&](std::size_t part, std::size_t i) {
    for (std::size_t p = rows.indptr[i], end = rows.indptr[i + 1]; p < end; ++p) {
      const std::int64_t to = next[part][rows.indices[p]]++;
      out.rows[to] = static_cast<std::uint32_t>(i);
      out.values[to] = rows.values[p];
    }
  });
}

template <class Value>
void transpose(const DenseRows<Value>& rows, Storage<Value>& out) {
  constexpr std::size_t kTile = 64;
  const std::size_t n = rows.n_rows, k = rows.n_features;
  out.values.reset(new Value[n * k]);
  parallel_for((n + kTile - 1) / kTile, [&](std::size_t tile) {
    const std::size_t begin = tile * kTile, end = std::min(n, begin + kTile);
    for (std::size_t j = 0; j < k; ++j)
      for (std::size_t i = begin; i < end; ++i) out.values[j * n + i] = rows.row(i)[j];
  });
}

// The columns of a run of rows, kept in memory of its own.
class Columns {
 private:
  template <class Visit>
  auto with_columns(Visit visit) const {
    return single_ ? with_columns(std::get<0>(storage_), visit) : with_columns(std::get<1>(storage_), visit);
  }

  template <class Value, class Visit>
  auto with_columns(const Storage<Value>& storage, Visit visit) const {
    if (!sparse_) return visit(DenseColumns<Value>{storage.values.get(), n_rows_});
    return visit(SparseColumns<Value>{storage.indptr.data(), storage.rows.get(), storage.values.get()});
  }

 public:
  explicit Columns(const RowArrays& arrays)
      : n_rows_(arrays.n_rows()), n_columns_(arrays.n_features), sparse_(arrays.indptr.has_value()) {
    if (n_rows_ > std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("columns of too many rows");
    single_ = arrays.values.dtype() == nb::dtype<float>();
    nb::gil_scoped_release release;
    arrays.with_rows([&](auto rows) {
      using Value = std::decay_t<decltype(*rows.values)>;
      transpose(rows, std::get<Storage<Value>>(storage_));
    });
  }

  // Lowers the model over w, from slopes u and curvatures h; (first and last violation, sweeps, move of the intercept).
  std::tuple<double, double, double, double> descend(Vector u, Vector h, Output w,
                                                     std::tuple<double, double, std::size_t> penalty, double tol,
                                                     double accuracy, std::size_t most, bool free_intercept) const {
    nb::gil_scoped_release release;
    std::vector<double> slopes(u.data(), u.data() + n_rows_);
    const double total = std::accumulate(h.data(), h.data() + n_rows_, 0.0);
    return with_columns([&](auto columns) {
      std::vector<Moments> moments(n_columns_);
      constexpr std::size_t kColumnsPerTask = 16;
      parallel_for((n_columns_ + kColumnsPerTask - 1) / kColumnsPerTask, [&](std::size_t task) {
        for (std::size_t j = task * kColumnsPerTask; j < std::min(n_columns_, (task + 1) * kColumnsPerTask); ++j)
          moments[j] = columns.moments(j, h.data());
      });
      ColumnModel<decltype(columns)> model{columns,       n_columns_,     h.data(),
                                           slopes.data(), moments.data(), free_intercept && total > 0 ? 1 / total : 0.0,
                                           n_rows_};
      const auto [first, last, sweeps] = Descent(model, w.data(), penalty).run(tol, accuracy, most);
      return std::make_tuple(first, last, sweeps, model.shift);
    });
  }

 private:
  std::size_t n_rows_, n_columns_;
  bool sparse_, single_;
  std::tuple<Storage<float>, Storage<double>> storage_;  // one of the two is in use
};

using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Fills the upper triangle of a symmetric matrix from the lower one, and takes e eᵀ/H away: the model after its best
// intercept.
void complete_gram(Matrix gram, std::optional<Vector> edge, double corner) {
  nb::gil_scoped_release release;
  const std::size_t n = gram.shape(0);
  double* q = gram.data();
  const bool centre = edge && corner > 0;
  parallel_for(n, [&](std::size_t i) {
    const double scale = centre ? edge->data()[i] / corner : 0.0;
    for (std::size_t j = 0; j <= i; ++j) {
      if (centre) q[i * n + j] -= scale * edge->data()[j];
      q[j * n + i] = q[i * n + j];
    }
  });
}

// Lowers the model over w, given its Gram matrix and its slopes at w; (first and last violation, sweeps).
std::tuple<double, double, double> descend_gram(Matrix gram, Vector slopes, Output w,
                                                std::tuple<double, double, std::size_t> penalty, double tol,
                                                double accuracy, std::size_t most) {
  nb::gil_scoped_release release;
  std::vector<double> g(slopes.data(), slopes.data() + slopes.size());
  GramModel model{gram.data(), gram.shape(0), g.data()};
  return Descent(model, w.data(), penalty).run(tol, accuracy, most);
}

}  // namespace

void bind_l1_cd(nb::module_& m) {
  nb::class_<Columns>(m, "Columns")
      .def(nb::init<const RowArrays&>(), "rows"_a)
      .def("descend", &Columns::descend, "slopes"_a, "curvatures"_a, "w"_a.noconvert(), "penalty"_a, "tol"_a,
           "accuracy"_a, "most"_a, "free_intercept"_a);
  m.def("complete_gram", &complete_gram, "gram"_a.noconvert(), "edge"_a.none(), "corner"_a);
  m.def("descend_gram", &descend_gram, "gram"_a.noconvert(), "slopes"_a, "w"_a.noconvert(), "penalty"_a, "tol"_a,
        "accuracy"_a, "most"_a);
}

}  // namespace beeline
