"""Scaling of features: learned from blocks in one pass, recorded, applied to blocks.

Conventions
-----------
- `x' = (x − shift) · factor`, feature by feature, computed in float64 and rounded once to the block's type.
- minmax: the smallest value becomes 0 and the largest 1. standard: mean 0 and variance 1 (divided by the number of
  rows). maxabs: divided by the largest absolute value. unit-norm: every row divided by its Euclidean length;
  nothing is learned, and rows of zeros stay as they are.
- Zeros that a sparse block does not store are values like any other.
- A constant feature has no spread to divide by: minmax and standard give it factor 1 and its value as shift, so it
  becomes 0; maxabs gives a feature of zeros factor 1.
- A feature of 0/1 indicators is left as it is, except by unit-norm, which looks at rows.
- A shift turns zeros into something else, so shifted rows are dense.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.data.block import Block
from beeline.data.options import Scale
from beeline.exceptions import DataError
from beeline.kernels import RowArrays, add_statistics, scale_features, scale_to_unit_norm

__all__ = ["DENSE_LIMIT", "Scaling", "ScalingLearner"]

# Sparse rows are made dense, when the scaling needs it, if that takes at most four times their memory or at most
# this many bytes in all. Beyond that it would be a surprise, and an error says what to do instead.
DENSE_LIMIT = 1 << 30


@dataclass(frozen=True, eq=False)
class Scaling:
    """How features are scaled.

    Attributes
    ----------
    kind
        none, minmax, standard, maxabs or unit-norm.
    shift, factor
        One float64 a feature; None for the kinds that learn nothing. A `shift` of None means no shift.
    """

    kind: Scale = "none"
    shift: Floats | None = None
    factor: Floats | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Scale):
            raise DataError(f"a scaling must be one of {', '.join(get_args(Scale))}, not {self.kind!r}")
        learned = self.kind not in ("none", "unit-norm")
        if learned != (self.factor is not None):
            raise DataError(f"a scaling of kind {self.kind} needs {'factors' if learned else 'no factors'}")
        for name, values in (("shift", self.shift), ("factor", self.factor)):
            if values is not None and not np.isfinite(values).all():
                raise DataError(f"the {name} of a scaling must be finite")
        if self.shift is not None and (self.factor is None or self.shift.shape != self.factor.shape):
            raise DataError("a scaling needs as many shifts as factors")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scaling):
            return NotImplemented
        return self.kind == other.kind and _same(self.shift, other.shift) and _same(self.factor, other.factor)

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_features(self) -> int | None:
        """The number of features it was learned on; None when it fits any."""
        return None if self.factor is None else len(self.factor)

    @property
    def shifts(self) -> bool:
        """Whether a zero may become something else, so that rows must be dense."""
        return self.shift is not None and bool(self.shift.any())

    def apply(self, block: Block, *, in_place: bool = False, threads: int = 0) -> Block:
        """The scaled block.

        Parameters
        ----------
        block
            Rows with at most as many features as the scaling; features it does not have yet are zeros.
        in_place
            Write into the block's own values where the layout allows it, instead of a copy.
        threads
            0 takes `num_threads()`.

        Raises
        ------
        DataError
            When a sparse block would have to become dense and that takes too much memory.
        """
        if self.kind == "none":
            return block
        block = _from_zero(block)
        if self.factor is None:
            out = block.values if in_place else np.empty_like(block.values)
            scale_to_unit_norm(_arrays(block), out, threads)
            return replace(block, values=out)
        if block.n_features > len(self.factor):
            raise DataError(
                f"the rows have {block.n_features} features but the scaling was learned on {len(self.factor)}"
            )
        if self.shifts and block.is_sparse:
            check_dense_fits(block.n_rows, block.nbytes, len(self.factor), block.values.itemsize, self.kind)
        wide = self._widened(block)
        own = in_place or wide.values is not block.values
        out = wide.values if own else np.empty_like(wide.values)
        scale_features(_arrays(wide), self.shift if self.shifts else None, self.factor, out, threads)
        return replace(wide, values=out)

    def pieces(self, block: Block, memory: int) -> Iterator[Block]:
        """The scaled block, in row ranges that take at most `memory` bytes each when they have to become dense."""
        if not (self.shifts and block.is_sparse and self.factor is not None):
            yield self.apply(block)
            return
        check_dense_fits(block.n_rows, block.nbytes, len(self.factor), block.values.itemsize, self.kind)
        step = max(1, memory // max(1, len(self.factor) * block.values.itemsize))
        for start in range(0, block.n_rows, step):
            yield self.apply(block.rows(start, start + step))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; floats are exact."""
        return {
            "kind": self.kind,
            "shift": None if self.shift is None else self.shift.tolist(),
            "factor": None if self.factor is None else self.factor.tolist(),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Scaling:
        """The scaling that `to_json` wrote; anything else raises `DataError`."""
        if not isinstance(record, dict) or set(record) != {"kind", "shift", "factor"}:
            raise DataError("a scaling must be recorded as kind, shift and factor")
        return cls(record["kind"], _floats(record["shift"], "shift"), _floats(record["factor"], "factor"))

    def _widened(self, block: Block) -> Block:
        """The block with all features of the scaling, dense when zeros will not stay zeros."""
        assert self.factor is not None
        n_features = len(self.factor)
        if block.is_sparse and not self.shifts:
            return replace(block, n_features=n_features)
        if not block.is_sparse and block.n_features == n_features:
            return block
        values = np.zeros((block.n_rows, n_features), block.values.dtype)
        values[:, : block.n_features] = block.to_dense()
        return replace(block, values=values, n_features=n_features, indptr=None, indices=None)


class ScalingLearner:
    """Learns a scaling from blocks, one pass, in any cut of the rows.

    Mean and variance are kept as running means and sums of squared deviations (Welford), and parts are merged by
    the formula of Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    variances" (1979): no digits are lost to cancellation, whatever the offset of a feature. Sparse blocks
    are treated as their stored entries; the zeros they do not store are merged in at the end.

    Memory: five numbers a feature.
    """

    def __init__(self, kind: Scale) -> None:
        self.kind = kind
        self.n_rows = 0
        self._sparse_bytes = 0
        self._itemsize = 0
        self._count = np.zeros(0, np.int64)
        self._mean = np.zeros(0)
        self._spread = np.zeros(0)
        self._low = np.zeros(0)
        self._high = np.zeros(0)

    @property
    def learns(self) -> bool:
        """Whether this kind has anything to learn; if not, `add` need not be called."""
        return self.kind not in ("none", "unit-norm")

    def add(self, block: Block, *, threads: int = 0) -> None:
        """Take the rows of a block into account."""
        self.n_rows += block.n_rows
        if not self.learns:
            return
        if block.is_sparse:
            self._sparse_bytes += block.nbytes
            self._itemsize = block.values.itemsize
        self._grow(block.n_features)
        add_statistics(_arrays(block), self._count, self._mean, self._spread, self._low, self._high, threads)

    def finish(self, n_features: int, indicators: AnyArray | None = None) -> Scaling:
        """The scaling of all rows seen.

        Parameters
        ----------
        n_features
            The final number of features.
        indicators
            True for the features that are left as they are; None: there are none.
        """
        if not self.learns:
            return Scaling(self.kind)
        if self.n_rows == 0:
            raise DataError(f"{self.kind} scaling cannot be learned from no rows")
        self._grow(n_features)
        keep = np.zeros(n_features, bool) if indicators is None else np.asarray(indicators, bool)
        flawed = ~np.isfinite(self._mean + self._spread) & ~keep
        if flawed.any():
            raise DataError(
                f"feature {int(flawed.argmax())} (counted from 0) has values that are NaN, infinite or too large, so "
                f"its {self.kind} scaling cannot be learned; replace them or scale by none"
            )
        shift, factor = self._shift_and_factor()
        shift[keep], factor[keep] = 0.0, 1.0
        scaling = Scaling(self.kind, shift if shift.any() else None, factor)
        if scaling.shifts and self._sparse_bytes:
            check_dense_fits(self.n_rows, self._sparse_bytes, n_features, self._itemsize, self.kind)
        return scaling

    def _grow(self, n_features: int) -> None:
        more = n_features - len(self._count)
        if more <= 0:
            return
        self._count = np.concatenate([self._count, np.zeros(more, np.int64)])
        for name, start in (("_mean", 0.0), ("_spread", 0.0), ("_low", np.inf), ("_high", -np.inf)):
            setattr(self, name, np.concatenate([getattr(self, name), np.full(more, start)]))

    def _shift_and_factor(self) -> tuple[Floats, Floats]:
        n, count = float(self.n_rows), self._count
        unstored = count < self.n_rows
        low = np.where(unstored, np.minimum(self._low, 0.0), self._low)
        high = np.where(unstored, np.maximum(self._high, 0.0), self._high)
        zero = np.zeros_like(low)
        if self.kind == "maxabs":
            return zero, _inverse(np.maximum(-low, high))
        if self.kind == "minmax":
            return low, _inverse(high - low)
        mean = self._mean * (count / n)
        spread = self._spread + self._mean**2 * (count * ((n - count) / n))
        constant = low == high
        return np.where(constant, low, mean), _inverse(np.where(constant, zero, np.sqrt(spread / n)))


def check_dense_fits(n_rows: int, sparse_bytes: int, n_features: int, itemsize: int, kind: str) -> None:
    """Refuse to make sparse rows dense when that takes far more memory."""
    dense_bytes = n_rows * n_features * itemsize
    if dense_bytes > max(4 * sparse_bytes, DENSE_LIMIT):
        raise DataError(
            f"{kind} scaling turns zeros into other numbers: {n_rows:,} sparse rows ({sparse_bytes / 1e9:.1f} GB) "
            f"would become dense ({dense_bytes / 1e9:.1f} GB); scale by maxabs, or read with layout dense if that is "
            "what you want"
        )


def _arrays(block: Block) -> RowArrays:
    return RowArrays(block.values, block.indptr, block.indices, block.n_features)


def _from_zero(block: Block) -> Block:
    """The block with only its own entries: a range of sparse rows is a view on the entries of all rows."""
    if block.indptr is None or block.indices is None or block.nnz == len(block.values):
        return block
    start, stop = int(block.indptr[0]), int(block.indptr[-1])
    return replace(
        block,
        indptr=block.indptr - block.indptr[0],
        indices=block.indices[start:stop],
        values=block.values[start:stop],
    )


def _inverse(spread: Floats) -> Floats:
    """1/spread; 1 where there is no spread, or so little that its inverse is not finite."""
    with np.errstate(divide="ignore", over="ignore"):
        factor = 1.0 / spread
    return np.where(np.isfinite(factor) & (factor > 0), factor, 1.0)


def _same(a: Floats | None, b: Floats | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _floats(numbers: Any, name: str) -> Floats | None:  # noqa: ANN401
    if numbers is None:
        return None
    if not isinstance(numbers, list) or any(type(x) not in (int, float) for x in numbers):
        raise DataError(f"the {name} of a recorded scaling must be a list of numbers")
    return np.array(numbers, np.float64)
