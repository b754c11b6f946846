"""Memory that solvers hold, against what there is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beeline.objective import Objective

__all__ = ["held_bytes", "matrix_fits"]

_SMALL = 1 << 20  # bytes, which any memory has
_ENTRY_BYTES = 12  # of a row that is brought here: an index and a value
# Of what belongs to a row: for solvers that visit one row, or feature, after the other, and for those that gather it.
_ROW_BYTES, _GATHERED_BYTES = 64, 200


def held_bytes(objective: Objective, how: str) -> int:
    """What a solver holds that looks at rows in that way, as in `Needs.rows`, beyond what passes by."""
    rows = objective.rows
    if how in ("passes", "blocks"):
        return _ROW_BYTES * rows.n_rows if objective.loss.scope == "all" else 0
    if how == "index":
        return rows.index.guide.nbytes if rows.index is not None else 0
    if how == "gathered":
        return _GATHERED_BYTES * rows.n_rows
    return _ROW_BYTES * rows.n_rows + (0 if rows.in_memory else _ENTRY_BYTES * rows.nnz)


def matrix_fits(objective: Objective) -> bool:
    """Whether a matrix of features by features fits; as many are held as the tree of sums over the shards is high."""
    rows, d = objective.rows, objective.size
    if rows.memory is None:
        return True
    return 8 * d**2 * (2 + math.ceil(math.log2(max(1, rows.n_shards)))) <= max(rows.memory // 4, _SMALL)
