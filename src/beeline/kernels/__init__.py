"""Compiled kernels behind a thin typed face.

The kernels release the GIL and share one thread pool. Its size is `BEELINE_NUM_THREADS`, or the number of cores
this process may use, or what `set_num_threads` says; every kernel also takes `threads=`. Results do not depend on it.
"""

from __future__ import annotations

import os

from beeline._numbers import as_whole_number
from beeline.exceptions import ParameterError
from beeline.kernels import _kernels
from beeline.kernels._kernels import (
    LIBSVM_MOST_INDEX,
    ArrowBatch,
    AssemblyPlan,
    AveragedSteps,
    ClassSteps,
    ClassSweeps,
    Columns,
    DualSweeps,
    LibsvmDialect,
    LibsvmOutcome,
    LibsvmParser,
    McidSteps,
    PegasosSteps,
    RoughClassSweeps,
    RowArrays,
    absolute_sum,
    add_scaled,
    add_statistics,
    apply_softmax_hessians,
    assemble_dense,
    assemble_sparse,
    balance,
    blend,
    box_bounds,
    cg_direction,
    cg_step,
    combine_columns,
    common_unit,
    complete_gram,
    conjugate_sum,
    count_box_features,
    count_entries,
    count_kept,
    descend_gram,
    dot,
    dot_columns,
    f_beta,
    factor_positive,
    first_flaw,
    grow_pivot_trees,
    keep_features,
    keep_freed_memory,
    kink_buckets,
    last_record_end,
    level_pairs,
    level_thresholds,
    loss_along,
    loss_interval_cut,
    loss_sum,
    make_boxes,
    order_rows,
    pack_rows,
    query_losses,
    record_starts,
    roc_area,
    scale_features,
    scale_to_unit_norm,
    small_newton,
    solve_factored,
    solve_positive,
    split_columns,
    sum_paths,
    sum_subtrees,
    value_range,
    weighted_median,
)

__all__ = [
    "LIBSVM_MOST_INDEX",
    "ArrowBatch",
    "AssemblyPlan",
    "AveragedSteps",
    "ClassSteps",
    "ClassSweeps",
    "Columns",
    "DualSweeps",
    "LibsvmDialect",
    "LibsvmOutcome",
    "LibsvmParser",
    "McidSteps",
    "PegasosSteps",
    "RoughClassSweeps",
    "RowArrays",
    "absolute_sum",
    "add_scaled",
    "add_statistics",
    "apply_softmax_hessians",
    "assemble_dense",
    "assemble_sparse",
    "balance",
    "blend",
    "box_bounds",
    "cg_direction",
    "cg_step",
    "combine_columns",
    "common_unit",
    "complete_gram",
    "conjugate_sum",
    "count_box_features",
    "count_entries",
    "count_kept",
    "descend_gram",
    "dot",
    "dot_columns",
    "f_beta",
    "factor_positive",
    "first_flaw",
    "grow_pivot_trees",
    "keep_features",
    "keep_freed_memory",
    "kink_buckets",
    "last_record_end",
    "level_pairs",
    "level_thresholds",
    "loss_along",
    "loss_interval_cut",
    "loss_sum",
    "make_boxes",
    "num_threads",
    "order_rows",
    "pack_rows",
    "query_losses",
    "record_starts",
    "roc_area",
    "scale_features",
    "scale_to_unit_norm",
    "set_num_threads",
    "small_newton",
    "solve_factored",
    "solve_positive",
    "split_columns",
    "sum_paths",
    "sum_subtrees",
    "value_range",
    "weighted_median",
]


def _check_environment(text: str) -> None:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ParameterError(
            f"BEELINE_NUM_THREADS must be a whole number of at least 1, not {text!r}", parameter="threads"
        )


# The kernels would fall back to all cores without a word.
_check_environment(os.environ.get("BEELINE_NUM_THREADS") or "1")


def num_threads() -> int:
    """How many threads kernels use when they are not told otherwise."""
    return _kernels.num_threads()


def set_num_threads(n: int) -> None:
    """Set how many threads kernels use when they are not told otherwise."""
    if as_whole_number("the number of threads", n) < 1:
        raise ParameterError(f"the number of threads must be at least 1, not {n}", parameter="threads")
    _kernels.set_num_threads(n)
