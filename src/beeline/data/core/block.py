"""A run of rows, CSR or dense, with one set of verbs.

Conventions
-----------
- A block has `n_rows` rows and `n_features` columns; `values` is float32 or float64.
- CSR: row i holds features `indices[p]` with `values[p]` for p from `indptr[i]` to `indptr[i+1]`. Positions are
  absolute, so a range of rows is a view: `indptr[0]` need not be 0. The indices of a row are distinct, in any order:
  no product needs another one, and text comes with its words as they were met. `indptr` and `indices` are int32 or
  int64, each on its own.
- Dense: `values` has shape (n_rows, n_features), rows contiguous; `indptr` and `indices` are None.
- Vectors on the side of features or scores (w, z, u) are float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np

from beeline._lazy import cached_property
from beeline._types import AnyArray, Floats, Ints
from beeline._words import count
from beeline.data.core.labels import LabelSets
from beeline.exceptions import DataError
from beeline.kernels import Columns, RowArrays, count_kept, first_flaw, keep_features

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["Block", "Labels", "concatenate", "gather_from", "row_numbers"]

Labels = Floats | LabelSets

_FLAWS = {
    1: "row positions (indptr) decrease or point beyond the stored entries",
    2: "row {row} has a feature index below 0 or not below {n_features}",
    3: "row {row} has feature indices that are not strictly increasing",
    4: "row {row} has a value that is NaN or infinite, of feature {feature}; replace or remove it",
    5: "row {row} has a feature index more than once; sum the values of each feature",
}
_NOT_INCREASING, _NOT_FINITE, _REPEATED = 3, 4, 5

Order = Literal["any", "distinct", "increasing"]


@dataclass(frozen=True, eq=False)
class Block:
    """A run of rows with labels, weights and query ids where there are any.

    Attributes
    ----------
    values, indptr, indices, n_features
        The rows; see the conventions above.
    labels
        One float64 a row, or `LabelSets`, or None.
    weights
        One float64 a row, or None: every row counts once.
    queries
        One int64 a row, or None: rows with the same id belong to one query.
    """

    values: AnyArray
    n_features: int
    indptr: AnyArray | None = None
    indices: AnyArray | None = None
    labels: Labels | None = None
    weights: Floats | None = None
    queries: Ints | None = None

    def __post_init__(self) -> None:
        if (self.indptr is None) != (self.indices is None):
            raise DataError("a sparse block needs both indptr and indices")
        if self.indptr is None and self.values.shape[1:] != (self.n_features,):
            raise DataError(
                f"a dense block of {count(self.n_features, 'feature')} cannot have values of shape {self.values.shape}"
            )
        if self.indptr is not None and not (self.indptr.ndim == self.values.ndim == 1 and len(self.indptr)):
            raise DataError("a sparse block needs one position more than rows (indptr) and values in one dimension")
        if self.indices is not None and len(self.indices) != len(self.values):
            raise DataError(f"{len(self.indices)} indices do not match {len(self.values)} values")
        for name in ("labels", "weights", "queries"):
            column = getattr(self, name)
            if column is not None and len(column) != self.n_rows:
                raise DataError(f"{len(column):,} {name} do not match {count(self.n_rows, 'row')}")

    def __getstate__(self) -> dict[str, Any]:
        """Without what kernels were given, which another process makes for itself."""
        return {name: value for name, value in vars(self).items() if name != "arrays"}

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.values) if self.indptr is None else len(self.indptr) - 1

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are CSR."""
        return self.indptr is not None

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return self.values.size if self.indptr is None else int(self.indptr[-1]) - int(self.indptr[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and what goes with them."""
        per_entry = self.values.itemsize + (self.indices.itemsize if self.indices is not None else 0)
        positions = self.indptr.nbytes if self.indptr is not None else 0
        targets = sum(len(a) * 8 for a in (self.labels, self.weights, self.queries) if a is not None)
        return self.nnz * per_entry + positions + targets

    @property
    def is_view(self) -> bool:
        """Whether it is some rows of a larger block, all of which it keeps in memory."""
        if self.indptr is None:
            return self.values.base is not None and self.values.base.size > self.values.size
        return len(self.values) > self.nnz

    @cached_property
    def arrays(self) -> RowArrays:
        """The rows as kernels take them."""
        return RowArrays(self.values, self.indptr, self.indices, self.n_features)

    def scores(self, w: AnyArray, *, out: Floats | None = None, threads: int = 0) -> Floats:
        """The scores z = Xw; one column a class when w has shape (n_features, classes).

        They are written to `out` where it is given: a C-contiguous array of their shape.
        """
        w = self._vector(w, self.n_features, "w")
        z = np.empty((self.n_rows, *w.shape[1:])) if out is None else out
        self.arrays.scores(w, z, threads)
        return z

    def transposed(self, u: AnyArray, *, threads: int = 0) -> Floats:
        """The transposed product Xᵀu; one column a class when u has shape (n_rows, classes)."""
        u = self._vector(u, self.n_rows, "u")
        out = np.empty((self.n_features, *u.shape[1:]))
        self.arrays.transposed(u, out, threads)
        return out

    def gram_matvec(self, h: Floats, v: Floats, shift: float = 0.0, *, threads: int = 0) -> tuple[Floats, float]:
        """Xᵀ diag(h) (Xv + shift) in one pass over the rows, and the sum of h_i (x_iᵀv + shift)."""
        h, v = self._vector(h, self.n_rows, "h"), self._vector(v, self.n_features, "v")
        out = np.empty(self.n_features)
        total = self.arrays.gram_matvec(h, v, shift, out, threads)
        return out, total

    def softmax_gram_matvec(self, h: Floats, v: Floats, shift: Floats, *, threads: int = 0) -> Floats:
        """XᵀU in one pass over the rows, and below it, as a row more, the sums of U's columns.

        Row i of U is (diag(h_i) − h_i h_iᵀ/Σ_k h_ik)(vᵀx_i + shift); h has shape (n_rows, classes), v (n_features,
        classes).
        """
        h, v = self._vector(h, self.n_rows, "h"), self._vector(v, self.n_features, "v")
        shift = self._vector(shift, v.shape[1], "shift")
        if h.shape[1] != v.shape[1]:
            raise DataError(f"{h.shape[1]} columns of h do not match {v.shape[1]} of v")
        out = np.empty((self.n_features + 1, v.shape[1]))
        self.arrays.softmax_gram_matvec(h, v, shift, out, threads)
        return out

    # For several problems over the same rows: what belongs to rows is a vector for each problem, what belongs to
    # features a column. What comes back by feature has a row more: what a feature of ones would get.

    def batched_matvec(self, w: Floats, shift: Floats, *, threads: int = 0) -> Floats:
        """The scores w_kᵀx_i + shift_k, of shape (problems, n_rows), for w of shape (n_features, problems)."""
        w, shift = self._vector(w, self.n_features, "w"), self._vector(shift, w.shape[1], "shift")
        out = np.empty((w.shape[1], self.n_rows))
        self.arrays.batched_matvec(w, shift, out, threads)
        return out

    def batched_rmatvec(self, u: list[Floats], *, threads: int = 0) -> Floats:
        """The transposed products Xᵀu_k, of shape (n_features + 1, problems)."""
        out = np.empty((self.n_features + 1, len(u)))
        self.arrays.batched_rmatvec([self._vector(column, self.n_rows, "u") for column in u], out, threads)
        return out

    def batched_gram_matvec(self, h: list[Floats], v: Floats, shift: Floats, *, threads: int = 0) -> Floats:
        """Xᵀ diag(h_k) (Xv_k + shift_k) in one pass, of shape (n_features + 1, problems)."""
        v, shift = self._vector(v, self.n_features, "v"), self._vector(shift, len(h), "shift")
        if v.shape != (self.n_features, len(h)):
            raise DataError(f"{len(h)} problems of h do not match v of shape {v.shape}")
        out = np.empty((self.n_features + 1, len(h)))
        self.arrays.batched_gram_matvec(
            [self._vector(column, self.n_rows, "h") for column in h], v, shift, out, threads
        )
        return out

    def gram_diagonal(self, h: Floats, *, threads: int = 0) -> Floats:
        """The diagonal of Xᵀ diag(h) X; one column for each of h's when h has shape (n_rows, classes)."""
        h = self._vector(h, self.n_rows, "h")
        out = np.empty((self.n_features, *h.shape[1:]))
        self.arrays.gram_diagonal(h, out, threads)
        return out

    def gram(self, h: Floats, *, threads: int = 0) -> Floats:
        """The lower triangle of Xᵀ diag(h) X; what lies above the diagonal is zero."""
        out = np.empty((self.n_features, self.n_features))
        self.arrays.gram(self._vector(h, self.n_rows, "h"), out, threads)
        return out

    def squared_norms(self, *, threads: int = 0) -> Floats:
        """‖x_i‖² of every row."""
        out = np.empty(self.n_rows)
        self.arrays.squared_norms(out, threads)
        return out

    def centred(self, *, threads: int = 0) -> tuple[Floats, Floats, Floats, float]:
        """(μ, the mean of the rows; ‖x_i − μ‖² and μᵀx_i of every row; the mean of these norms)."""
        mean, norms, means = np.empty(self.n_features), np.empty(self.n_rows), np.empty(self.n_rows)
        return mean, norms, means, self.arrays.centre(mean, norms, means, threads)

    def rows(self, start: int, stop: int) -> Block:
        """Rows start … stop−1, as a view; the block itself where these are all."""
        if start == 0 and stop == self.n_rows:
            return self
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        picked = slice(start, max(start, stop))
        if self.indptr is None:
            return self._with(picked, self.values[picked], None, None)
        return self._with(picked, self.values, self.indptr[start : picked.stop + 1], self.indices)

    def pieces(self, memory: int) -> Iterator[Block]:
        """All rows in views of at most `memory` bytes each; a row that is larger stands alone."""
        start = 0
        while start < self.n_rows:
            piece = self.rows(start, self.n_rows)
            while piece.n_rows > 1 and piece.nbytes > memory:
                fitting = piece.n_rows * memory // piece.nbytes
                piece = piece.rows(0, max(1, min(piece.n_rows - 1, fitting)))
            yield piece
            start += piece.n_rows

    def gather(self, picked: AnyArray, *, threads: int = 0) -> Block:
        """The picked rows, in that order, as a copy."""
        picked = row_numbers(picked)
        if len(picked) and (picked.min() < 0 or picked.max() >= self.n_rows):
            raise DataError(f"row numbers must lie between 0 and {self.n_rows - 1}")
        if self.indptr is None or self.indices is None:
            values = np.empty((len(picked), self.n_features), self.values.dtype)
            self.arrays.gather(picked, None, None, values, threads)
            return self._with(picked, values, None, None)
        indptr = np.zeros(len(picked) + 1, np.int64)
        np.cumsum(self._lengths(picked), out=indptr[1:])
        indices = np.empty(indptr[-1], self.indices.dtype)
        entries = np.empty(indptr[-1], self.values.dtype)
        self.arrays.gather(picked, indptr, indices, entries, threads)
        return self._with(picked, entries, indptr, indices)

    def _lengths(self, picked: Ints) -> Ints:
        """How many entries each of the picked rows has."""
        assert self.indptr is not None
        lengths: Ints = self.indptr[picked + 1] - self.indptr[picked]
        return lengths

    def features(self, picked: AnyArray, *, constant: bool = False, threads: int = 0) -> Block:
        """The same rows with the picked features only; `constant` adds one of value 1.

        The picked features are in increasing order, and so are those of each row if they were before.
        """
        place = np.full(self.n_features, -1, np.int32)
        place[picked] = np.arange(len(picked), dtype=np.int32)
        kept = len(picked) + constant
        if self.indptr is None:
            values = np.empty((self.n_rows, kept), self.values.dtype)
            keep_features(self.arrays, place, kept, None, None, values, threads)
            return self._with(slice(None), values, None, None, kept)
        indptr = np.zeros(self.n_rows + 1, np.int64)
        count_kept(self.arrays, place, indptr[1:], threads)
        indptr[1:] += constant
        np.cumsum(indptr, out=indptr)
        indices, entries = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self.values.dtype)
        keep_features(self.arrays, place, kept, indptr, indices, entries, threads)
        return self._with(slice(None), entries, indptr, indices, kept)

    def _with(
        self,
        picked: slice | Ints,
        values: AnyArray,
        indptr: AnyArray | None,
        indices: AnyArray | None,
        n_features: int | None = None,
    ) -> Block:
        """Other rows, with what goes with the picked ones."""
        return Block(
            values,
            self.n_features if n_features is None else n_features,
            indptr,
            indices,
            labels=None if self.labels is None else self.labels[picked],
            weights=None if self.weights is None else self.weights[picked],
            queries=None if self.queries is None else self.queries[picked],
        )

    def transpose(self) -> Block:
        """The transposed matrix as a copy: row j holds what feature j is in each row."""
        transpose = self.to_scipy().tocsc()
        return Block(transpose.data, self.n_rows, transpose.indptr, transpose.indices)

    def columns(self) -> Columns:
        """The same entries feature by feature, as a copy."""
        return Columns(self.arrays)

    def checked(self, *, finite: bool = True, order: Order = "distinct") -> Block:
        """This block, after a look at every entry; raises `DataError` with the first bad row.

        Parameters
        ----------
        finite
            Whether values must be finite.
        order
            What the features of a row must be. Where they are `any`, even repeated, only scores are right.
        """
        return self._unless(*self._first_flaw(finite, order))

    def summed(self, *, finite: bool = True) -> Block:
        """As `checked`, but where a feature occurs more than once in a row its values are summed, in a copy."""
        flaw, row = self._first_flaw(finite, "distinct")
        return self._canonical_copy().checked(finite=finite) if flaw == _REPEATED else self._unless(flaw, row)

    def canonical(self) -> Block:
        """The same rows with their features in increasing order, each once: a copy, unless they are so already."""
        flaw, row = self._first_flaw(False, "increasing")
        return self._canonical_copy() if flaw == _NOT_INCREASING else self._unless(flaw, row)

    def _first_flaw(self, finite: bool, order: Order) -> tuple[int, int]:
        return first_flaw(self.arrays, finite, get_args(Order).index(order))

    def _unless(self, flaw: int, row: int) -> Block:
        if flaw:
            feature = self._first_not_finite(row) if flaw == _NOT_FINITE else 0
            raise DataError(_FLAWS[flaw].format(row=row, n_features=self.n_features, feature=feature))
        return self

    def _first_not_finite(self, row: int) -> int:
        """The feature of the first value of a row that is NaN or infinite."""
        if self.indptr is None or self.indices is None:
            return int(np.isfinite(self.values[row]).argmin())
        first, end = self.indptr[row : row + 2]
        return int(self.indices[first + np.isfinite(self.values[first:end]).argmin()])

    def _canonical_copy(self) -> Block:
        assert self.indices is not None
        csr = self.to_scipy().copy()
        csr.sum_duplicates()
        indices = csr.indices.astype(self.indices.dtype, copy=False)  # SciPy takes the narrowest type that fits
        return replace(self, values=csr.data, indptr=csr.indptr, indices=indices)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """A SciPy CSR array of the rows; shares memory when it can."""
        import scipy.sparse

        shape = (self.n_rows, self.n_features)
        if self.indptr is None or self.indices is None:
            return scipy.sparse.csr_array(self.values)
        start, stop = int(self.indptr[0]), int(self.indptr[-1])
        indptr = self.indptr - start if start else self.indptr
        return scipy.sparse.csr_array((self.values[start:stop], self.indices[start:stop], indptr), shape=shape)

    def to_dense(self) -> AnyArray:
        """The rows as a dense array; the block's own memory when it is dense."""
        if self.indptr is None:
            return self.values
        dense: AnyArray = self.to_scipy().toarray()
        return dense

    @staticmethod
    def _vector(v: AnyArray, length: int, name: str) -> Floats:
        v = np.ascontiguousarray(v, dtype=np.float64)
        if v.ndim not in (1, 2) or len(v) != length:
            raise DataError(f"{name} must have {length} rows, not shape {v.shape}")
        return v


def row_numbers(picked: AnyArray) -> Ints:
    """The picked rows as int64. A mask or fractions raise: they would be taken for other rows."""
    numbers = np.asarray(picked)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise DataError(
            f"rows are picked by a list of whole numbers, not by {numbers.dtype} of shape {numbers.shape}; "
            "np.flatnonzero turns a mask into numbers"
        )
    return np.ascontiguousarray(numbers, dtype=np.int64)


def gather_from(picks: Sequence[tuple[Block, Ints]]) -> Block:
    """The picked rows of several blocks, one block after the other, without what goes with them.

    They are copied once; rows of different types, which `concatenate` can join, twice.
    """
    kinds = {(b.values.dtype, None if b.indices is None else b.indices.dtype) for b, _ in picks}
    if len(kinds) > 1:
        plain = [replace(b, labels=None, weights=None, queries=None) for b, _ in picks]
        return concatenate([b.gather(rows) for b, (_, rows) in zip(plain, picks, strict=True)])
    ((values_type, indices_type),) = kinds
    n_rows, n_features = sum(len(rows) for _, rows in picks), max(b.n_features for b, _ in picks)
    if indices_type is None:
        values, indptr, indices = np.empty((n_rows, n_features), values_type), None, None
    else:
        indptr = np.zeros(n_rows + 1, np.int64)
        np.cumsum(np.concatenate([b._lengths(rows) for b, rows in picks]), out=indptr[1:])
        indices, values = np.empty(indptr[-1], indices_type), np.empty(indptr[-1], values_type)
    first = 0
    for block, rows in picks:
        last = first + len(rows)
        if indptr is None:
            block.arrays.gather(rows, None, None, values[first:last], 1)
        else:
            block.arrays.gather(rows, indptr[first : last + 1], indices, values, 1)
        first = last
    return Block(values, n_features, indptr, indices)


def concatenate(blocks: list[Block]) -> Block:
    """One block of all rows, in order.

    The list is emptied as its blocks are copied, so that the peak is one copy of the data and not two.
    """
    if not blocks:
        raise DataError("there is no block to concatenate")
    if len(blocks) == 1:
        return blocks.pop()
    labels: list[Labels] = _all_or_none([b.labels for b in blocks], "labels")
    weights = _all_or_none([b.weights for b in blocks], "weights")
    queries = _all_or_none([b.queries for b in blocks], "query ids")
    join = _concatenate_sparse if blocks[0].is_sparse else _concatenate_dense
    return replace(
        join(blocks),
        labels=_joined_labels(labels) if labels else None,
        weights=np.concatenate(weights) if weights else None,
        queries=np.concatenate(queries) if queries else None,
    )


def _concatenate_dense(blocks: list[Block]) -> Block:
    n_rows, n_features = sum(b.n_rows for b in blocks), blocks[0].n_features
    values = np.empty((n_rows, n_features), blocks[0].values.dtype)
    row = 0
    while blocks:
        block = blocks.pop(0)
        values[row : row + block.n_rows] = block.values
        row += block.n_rows
    return Block(values, n_features)


def _concatenate_sparse(blocks: list[Block]) -> Block:
    n_rows, nnz, n_features = (
        sum(b.n_rows for b in blocks),
        sum(b.nnz for b in blocks),
        max(b.n_features for b in blocks),
    )
    indptr = np.zeros(n_rows + 1, np.int64)
    indices = np.empty(nnz, np.result_type(*{b.indices.dtype for b in blocks if b.indices is not None}))
    values = np.empty(nnz, blocks[0].values.dtype)
    row = entry = 0
    while blocks:
        block = blocks.pop(0)
        if block.indptr is None or block.indices is None:
            raise DataError("some blocks are sparse and some are dense")
        start, stop = int(block.indptr[0]), int(block.indptr[-1])
        indptr[row + 1 : row + 1 + block.n_rows] = block.indptr[1:].astype(np.int64) + (entry - start)
        indices[entry : entry + stop - start] = block.indices[start:stop]
        values[entry : entry + stop - start] = block.values[start:stop]
        row, entry = row + block.n_rows, entry + stop - start
    return Block(values, n_features, indptr, indices)


Column = TypeVar("Column")


def _all_or_none(columns: list[Column | None], name: str) -> list[Column]:
    present = [c for c in columns if c is not None]
    if present and len(present) < len(columns):
        raise DataError(f"some blocks have {name} and some have none")
    return present


def _joined_labels(columns: list[Labels]) -> Labels:
    sets = [c for c in columns if isinstance(c, LabelSets)]
    singles = [c for c in columns if not isinstance(c, LabelSets)]
    if sets and singles:
        raise DataError("some blocks have label sets and some have single labels")
    return LabelSets.concatenate(sets) if sets else np.concatenate(singles)
