// The extension module: each source file binds its own kernels.
#include <nanobind/nanobind.h>

#include "threads.h"

namespace nb = nanobind;

namespace beeline {
void bind_boxes(nb::module_& m);
void bind_checks(nb::module_& m);
void bind_columns(nb::module_& m);
void bind_crammer_singer(nb::module_& m);
void bind_dual_cd(nb::module_& m);
void bind_f_beta(nb::module_& m);
void bind_heap(nb::module_& m);
void bind_kinks(nb::module_& m);
void bind_l1_cd(nb::module_& m);
void bind_label_trees(nb::module_& m);
void bind_linalg(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_newton(nb::module_& m);
void bind_packed(nb::module_& m);
void bind_pivot_trees(nb::module_& m);
void bind_assemble(nb::module_& m);
void bind_ranking(nb::module_& m);
void bind_records(nb::module_& m);
void bind_roc_area(nb::module_& m);
void bind_level_pairs(nb::module_& m);
void bind_level_thresholds(nb::module_& m);
void bind_libsvm(nb::module_& m);
void bind_row_trees(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_scaling(nb::module_& m);
void bind_sgd(nb::module_& m);
void survive_shutdown();
}  // namespace beeline

NB_MODULE(_kernels, m) {
  using namespace nb::literals;
#ifdef BEELINE_LEVEL
  if (!__builtin_cpu_supports(BEELINE_LEVEL))
    throw nb::import_error("beeline's kernels were built for a machine with " BEELINE_LEVEL
                           " instructions, which this one does not have; build them here: make clean, then make test");
#endif
  beeline::survive_shutdown();
  m.def("num_threads", &beeline::num_threads);
  m.def("set_num_threads", &beeline::set_num_threads, "n"_a);
  m.def("shared_jobs", &beeline::shared_jobs);
  beeline::bind_boxes(m);
  beeline::bind_checks(m);
  beeline::bind_columns(m);
  beeline::bind_crammer_singer(m);
  beeline::bind_dual_cd(m);
  beeline::bind_f_beta(m);
  beeline::bind_heap(m);
  beeline::bind_kinks(m);
  beeline::bind_l1_cd(m);
  beeline::bind_label_trees(m);
  beeline::bind_linalg(m);
  beeline::bind_losses(m);
  beeline::bind_newton(m);
  beeline::bind_packed(m);
  beeline::bind_pivot_trees(m);
  beeline::bind_assemble(m);
  beeline::bind_ranking(m);
  beeline::bind_records(m);
  beeline::bind_roc_area(m);
  beeline::bind_level_pairs(m);
  beeline::bind_level_thresholds(m);
  beeline::bind_libsvm(m);
  beeline::bind_row_trees(m);
  beeline::bind_rows(m);
  beeline::bind_scaling(m);
  beeline::bind_sgd(m);
}
