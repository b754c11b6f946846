// The Python face of the LIBSVM parser.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "libsvm_number.h"
#include "libsvm_parser.h"
#include "libsvm_scan.h"

namespace beeline {
namespace {

namespace nb = nanobind;
using namespace libsvm;

using Column = nb::ndarray<nb::numpy>;

// An array that owns the pages it lies in.
Column column(Pages&& pages, std::int64_t size, nb::dlpack::dtype type) {
  auto* owned = new Pages(std::move(pages));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Pages*>(p); });
  const auto length = static_cast<std::size_t>(size);
  return Column(owned->as<void>(), 1, &length, owner, nullptr, type);
}

nb::object optional_column(Pages&& pages, std::int64_t size, nb::dlpack::dtype type) {
  return pages.size() ? nb::cast(column(std::move(pages), size, type)) : nb::none();
}

nb::tuple take(Parser& parser) {
  Arrays a = parser.take();
  const bool single = parser.dialect.single_precision;
  const auto longs = nb::dtype<std::int64_t>();
  const auto ints = parser.dialect.index_bits == 64   ? longs
                    : parser.dialect.index_bits == 16 ? nb::dtype<std::uint16_t>()
                                                      : nb::dtype<std::int32_t>();
  return nb::make_tuple(column(std::move(a.values), a.used.entries, single ? nb::dtype<float>() : nb::dtype<double>()),
                        column(std::move(a.indices), a.used.entries, ints),
                        column(std::move(a.positions), a.used.rows + 1, longs),
                        column(std::move(a.labels), a.used.labels, nb::dtype<double>()),
                        optional_column(std::move(a.label_positions), a.used.rows + 1, longs),
                        optional_column(std::move(a.queries), a.used.rows, longs));
}

nb::tuple as_tuple(const Problem& problem) {
  return nb::make_tuple(static_cast<int>(problem.flaw), problem.line, problem.column,
                        nb::bytes(problem.text.data(), problem.text.size()));
}

nb::tuple as_tuple(const Room& room) { return nb::make_tuple(room.rows, room.entries, room.labels); }

// A dialect's field as a property; enums are numbers in Python.
void bind_dialect(nb::module_& m) {
  nb::class_<Dialect>(m, "LibsvmDialect")
      .def(nb::init<>())
      .def_rw("base", &Dialect::base)
      .def_rw("base_guessed", &Dialect::base_guessed)
      .def_rw("sets", &Dialect::sets)
      .def_rw("sets_guessed", &Dialect::sets_guessed)
      .def_rw("last_index", &Dialect::last_index)
      .def_prop_rw("queries", [](const Dialect& d) { return static_cast<int>(d.queries); },
                   [](Dialect& d, int queries) { d.queries = static_cast<Queries>(queries); })
      .def_rw("allow_nonfinite", &Dialect::allow_nonfinite)
      .def_rw("skip_bad_lines", &Dialect::skip_bad_lines)
      .def_rw("index_bits", &Dialect::index_bits)
      .def_rw("single_precision", &Dialect::single_precision)
      .def_rw("faithful", &Dialect::faithful);
}

void bind_outcome(nb::module_& m) {
  nb::class_<Outcome>(m, "LibsvmOutcome")
      .def_ro("end", &Outcome::end)
      .def_ro("full", &Outcome::full)
      .def_prop_ro("wanted", [](const Outcome& o) { return as_tuple(o.wanted); })
      .def_prop_ro("n_skipped", [](const Outcome& o) { return o.findings.n_skipped; })
      .def_prop_ro("problem", [](const Outcome& o) -> nb::object {
    return o.findings.first.flaw == Flaw::none ? nb::none() : nb::object(as_tuple(o.findings.first));
  }).def_prop_ro("skipped", [](const Outcome& o) {
    nb::list problems;
    for (const Problem& problem : o.findings.skipped) problems.append(as_tuple(problem));
    return problems;
  });
}

}  // namespace

void bind_libsvm(nb::module_& m) {
  using namespace nb::literals;
  m.attr("LIBSVM_MOST_INDEX") = kMostWhole;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const ReadError& error) {
      PyErr_SetObject(PyExc_OSError,
                      nb::make_tuple(error.code, error.code ? std::strerror(error.code)
                                                            : "the file became shorter while it was read")
                          .ptr());
    }
  });
  m.def("limit_libsvm_instructions", [](int most) { limit_instructions(static_cast<Instructions>(most)); }, "most"_a);
  bind_dialect(m);
  bind_outcome(m);
  nb::class_<Parser>(m, "LibsvmParser")
      .def(nb::init<const Dialect&, std::size_t>(), "dialect"_a, "chunk_bytes"_a)
      .def("reserve",
           [](Parser& self, std::int64_t rows, std::int64_t entries, std::int64_t labels, std::int64_t budget) {
    self.reserve({rows, entries, labels}, budget);
  }, "rows"_a, "entries"_a, "labels"_a, "budget"_a = 0)
      .def("parse_file",
           [](Parser& self, int descriptor, std::int64_t begin, std::int64_t end, std::int64_t size, int threads) {
    nb::gil_scoped_release release;
    return self.parse({nullptr, descriptor, size}, begin, end, threads);
  }, "descriptor"_a, "begin"_a, "end"_a, "size"_a, "threads"_a = 0)
      .def("parse_bytes",
           [](Parser& self, nb::bytes text, std::int64_t begin, std::int64_t end, int threads) {
    const Source source{text.c_str(), -1, end};
    nb::gil_scoped_release release;
    return self.parse(source, begin, end, threads);
  }, "text"_a, "begin"_a, "end"_a, "threads"_a = 0)
      .def("take", &take)
      .def("cost",
           [](const Parser& self, std::int64_t rows, std::int64_t entries, std::int64_t labels) {
    return self.cost({rows, entries, labels});
  }, "rows"_a, "entries"_a, "labels"_a)
      .def_prop_ro("used", [](const Parser& self) { return as_tuple(self.used()); })
      .def_rw("line", &Parser::line)
      .def_ro("last_index", &Parser::last_index)
      .def_ro("several", &Parser::several);
}

}  // namespace beeline
