"""NumPy arrays and SciPy matrices as data sets; nothing is copied when the layout already fits."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block, Labels
from beeline.data.core.dataset import ArrayDataset
from beeline.data.core.labels import LabelSets
from beeline.exceptions import DataError, LabelError

__all__ = ["from_arrays", "is_array", "weights_of"]


_FOR_TEXTS = (
    "; give each class a number, the same one in all batches, or give Arrow record batches, where a column of texts "
    "may be the label"
)


def is_array(X: object) -> bool:
    """Whether X is a NumPy array or a SciPy sparse matrix or array."""
    return isinstance(X, np.ndarray) or _is_sparse(X)


def _is_sparse(X: object) -> bool:
    # Whoever passes a sparse matrix has imported SciPy: no need to import it to find out.
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def from_arrays(
    X: Any,  # noqa: ANN401 — SciPy is not typed
    y: AnyArray | LabelSets | None = None,
    *,
    weights: AnyArray | None = None,
    queries: AnyArray | None = None,
    allow_nonfinite: bool = False,
    allow_repeated: bool = False,
) -> ArrayDataset:
    """A data set over arrays that are already in memory.

    The arrays are used as they are, without a copy, when X is float32 or float64 and either a NumPy array with
    contiguous rows or CSR, its indices sorted or not; otherwise the part that does not fit is converted. CSR entries
    that name the same feature of a row are summed, in a copy. The caller's arrays are never changed.

    Parameters
    ----------
    X
        A two-dimensional NumPy array, or a SciPy sparse matrix or array of any format.
    y
        A number a row, or label sets.
    weights, queries
        A weight and a query id a row.
    allow_nonfinite
        Whether values may be NaN or infinite.
    allow_repeated
        Whether CSR entries of one feature in a row may stay as they are, which is right for scores and nothing else.
    """
    block = _sparse_block(X) if _is_sparse(X) else _dense_block(X)
    if not (y is None and weights is None and queries is None):
        block = replace(
            block,
            labels=None if y is None else _labels(y),
            weights=None if weights is None else weights_of(weights),
            queries=None if queries is None else _queries(queries),
        )
    finite = not allow_nonfinite
    if not finite and not block.is_sparse:
        return ArrayDataset(block)  # nothing can be wrong with it
    return ArrayDataset(block.checked(finite=finite, order="any") if allow_repeated else block.summed(finite=finite))


def _dense_block(X: AnyArray) -> Block:
    if isinstance(X, np.ma.MaskedArray):
        raise DataError("a masked array hides values; fill it first, with X.filled(0) for example")
    values = np.asarray(X)
    if values.ndim != 2:
        raise DataError(f"X must have rows and columns, not shape {values.shape}")
    return Block(np.ascontiguousarray(_as_float(values, "X")), values.shape[1])


def _sparse_block(X: Any) -> Block:  # noqa: ANN401
    if len(X.shape) != 2:
        raise DataError(f"X must have rows and columns, not shape {X.shape}")
    csr = X.tocsr()
    values = np.ascontiguousarray(_as_float(csr.data, "X"))
    return Block(values, csr.shape[1], np.ascontiguousarray(csr.indptr), np.ascontiguousarray(csr.indices))


def _as_float(values: AnyArray, name: str) -> AnyArray:
    """The same array when it is float32 or float64 in native byte order, else a converted copy."""
    if values.dtype.char in "fd":
        return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind not in "biufO":
        raise DataError(f"{name} holds {values.dtype}, not numbers")
    try:
        return values.astype(np.float32 if values.dtype == np.float16 else np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} holds something that is not a number: {error}") from error


def _labels(y: AnyArray | LabelSets) -> Labels:
    return y if isinstance(y, LabelSets) else _floats(y, "labels", LabelError)


def weights_of(weights: AnyArray) -> Floats:
    """Weights as numbers; one that is negative or not finite raises with its row."""
    values = _floats(weights, "weights", DataError)
    if len(values) and values.min() < 0:
        raise DataError(f"weights must not be negative; the one of row {int(values.argmin())} is {values.min()}")
    return values


def _floats(column: AnyArray, name: str, error: type[DataError]) -> Floats:
    values = np.asarray(column)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        advice = _FOR_TEXTS if name == "labels" and values.dtype.kind in "OSUT" and values.ndim == 1 else ""
        raise error(f"{name} must be one number a row, not {values.dtype} of shape {values.shape}{advice}")
    floats = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(floats).all():
        raise error(f"{name} must be finite; the one of row {int(np.argmin(np.isfinite(floats)))} is not")
    return floats


def _queries(queries: AnyArray) -> Ints:
    values = np.asarray(queries)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise DataError(f"query ids must be one whole number a row, not {values.dtype} of shape {values.shape}")
    if len(values) and values.max() > np.iinfo(np.int64).max:
        raise DataError(f"query ids must be below 2⁶³; the one of row {int(values.argmax())} is {values.max()}")
    return np.ascontiguousarray(values, dtype=np.int64)
