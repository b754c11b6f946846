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
- A shift turns zeros into something else, so shifted rows are dense. Where sparse rows have to stay sparse, they are
  only multiplied, and the shift is left to the intercept: wᵀ((x − s)·f) + b = wᵀ(x·f) + (b − wᵀ(s·f)). An intercept
  that costs nothing takes any value, so the optimum has the same weights, the same scores and the same objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats
from beeline._words import count
from beeline.data.core.block import Block
from beeline.data.core.statistics import FeatureStatistics
from beeline.data.options import Scale
from beeline.exceptions import DataError
from beeline.kernels import RowArrays, scale_features, scale_to_unit_norm

__all__ = ["DENSE_LIMIT", "Scaling", "ScalingLearner", "check_dense_fits", "dense_fits", "learned_scaling"]

# Sparse rows are made dense, when the scaling shifts them, if that takes at most four times their memory or at most
# this many bytes in all. Beyond that they stay sparse, and the shift is left to the intercept.
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
    left_to_intercept
        The shift that rows do not have because they are sparse, and a free intercept makes up for; None elsewhere.
    """

    kind: Scale = "none"
    shift: Floats | None = None
    factor: Floats | None = None
    left_to_intercept: Floats | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Scale):
            raise DataError(f"a scaling must be one of {', '.join(get_args(Scale))}, not {self.kind!r}")
        learned = self.kind not in ("none", "unit-norm")
        if learned != (self.factor is not None):
            raise DataError(f"a scaling of kind {self.kind} needs {'factors' if learned else 'no factors'}")
        for name, values in self._numbers.items():
            if values is not None and not np.isfinite(values).all():
                raise DataError(f"the {name} of a scaling must be finite")
            if values is not None and (self.factor is None or values.shape != self.factor.shape):
                raise DataError("a scaling needs as many shifts as factors")
        if self.shift is not None and self.left_to_intercept is not None:
            raise DataError("a scaling shifts rows or leaves it to the intercept, not both")

    @property
    def _numbers(self) -> dict[str, Floats | None]:
        return {"shift": self.shift, "factor": self.factor, "left_to_intercept": self.left_to_intercept}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scaling):
            return NotImplemented
        theirs = other._numbers
        return self.kind == other.kind and all(_same(ours, theirs[name]) for name, ours in self._numbers.items())

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_features(self) -> int | None:
        """The number of features it was learned on; None when it fits any."""
        return None if self.factor is None else len(self.factor)

    @property
    def shifts(self) -> bool:
        """Whether a zero may become something else, so that rows must be dense."""
        return self.shift is not None and bool(self.shift.any())

    @property
    def in_words(self) -> str:
        """Its kind, and what is to be said about it."""
        return self.kind if self.left_to_intercept is None else f"{self.kind}, shifts left to the intercept"

    def without_shift(self) -> Scaling:
        """The scaling for rows that stay sparse: they are only multiplied."""
        return Scaling(self.kind, None, self.factor, self.shift) if self.shifts else self

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
                f"the rows have {count(block.n_features, 'feature')} but the scaling was learned on {len(self.factor)}"
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
        numbers = {name: None if values is None else values.tolist() for name, values in self._numbers.items()}
        if self.left_to_intercept is None:
            del numbers["left_to_intercept"]  # which earlier versions do not know
        return {"kind": self.kind, **numbers}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Scaling:
        """The scaling that `to_json` wrote; anything else raises `DataError`."""
        if not isinstance(record, dict) or set(record) - {"left_to_intercept"} != {"kind", "shift", "factor"}:
            raise DataError("a scaling must be recorded as kind, shift and factor")
        return cls(record["kind"], **{name: _floats(record[name], name) for name in record if name != "kind"})

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

    Parameters
    ----------
    kind
        Which one.
    keep_sparse
        Whether sparse rows stay sparse however little memory they would take as dense ones.
    """

    def __init__(self, kind: Scale, *, keep_sparse: bool = False) -> None:
        self.kind, self._keep_sparse = kind, keep_sparse
        self.n_rows = 0
        self._sparse_bytes = 0
        self._itemsize = 0
        self._statistics = FeatureStatistics()

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
        self._statistics.add(block, threads=threads)

    def finish(self, n_features: int, indicators: AnyArray | None = None) -> Scaling:
        """The scaling of all rows seen, for the final number of features; indicators are left as they are.

        Sparse rows become dense where it shifts, unless that takes too much memory: then they are not shifted.
        """
        if not self.learns:
            return Scaling(self.kind)
        statistics = self._statistics
        statistics.grow(n_features)
        statistics.add_repeated(self.n_rows - statistics.count, 0.0)
        scaling = learned_scaling(self.kind, statistics, indicators)
        if not self._sparse_bytes:
            return scaling
        fits = dense_fits(self.n_rows, self._sparse_bytes, n_features, self._itemsize)
        return scaling if fits and not self._keep_sparse else scaling.without_shift()


def learned_scaling(kind: Scale, statistics: FeatureStatistics, indicators: AnyArray | None = None) -> Scaling:
    """The scaling that follows from the statistics of all rows.

    Parameters
    ----------
    indicators
        True for the features that are left as they are; None: there are none.
    """
    low, high, count = statistics.low, statistics.high, statistics.count
    keep = np.zeros(len(low), bool) if indicators is None else indicators
    if not (count[~keep] > 0).all():
        raise DataError(f"{kind} scaling cannot be learned from no rows")
    flawed = ~np.isfinite(statistics.mean + statistics.spread) & ~keep
    if flawed.any():
        raise DataError(
            f"feature {int(flawed.argmax())} (counted from 0) has values that are NaN, infinite or too large, so its "
            f"{kind} scaling cannot be learned; replace them or scale by none"
        )
    zeros = np.zeros_like(low)
    with np.errstate(invalid="ignore"):  # of indicators, which have no statistics
        if kind == "maxabs":
            shift, factor = zeros, _inverse(np.maximum(-low, high))
        elif kind == "minmax":
            shift, factor = low, _inverse(high - low)
        else:
            deviation = np.sqrt(statistics.spread / np.maximum(count, 1))
            shift = np.where(low == high, low, statistics.mean)
            factor = _inverse(np.where(low == high, zeros, deviation))
    shift, factor = np.where(keep, 0.0, shift), np.where(keep, 1.0, factor)
    return Scaling(kind, shift if shift.any() else None, factor)


def dense_fits(n_rows: int, sparse_bytes: int, n_features: int, itemsize: int) -> bool:
    """Whether sparse rows may become dense: that takes not much memory, or not much more."""
    return n_rows * n_features * itemsize <= max(4 * sparse_bytes, DENSE_LIMIT)


def check_dense_fits(n_rows: int, sparse_bytes: int, n_features: int, itemsize: int, kind: str) -> None:
    """Refuse to make sparse rows dense by a scaling learned before when that takes far more memory."""
    dense_bytes = n_rows * n_features * itemsize
    if not dense_fits(n_rows, sparse_bytes, n_features, itemsize):
        raise DataError(
            Sentence(
                f"{kind} scaling turns zeros into other numbers: {n_rows:,} sparse rows ({sparse_bytes / 1e9:.1f} GB) "
                f"would become dense ({dense_bytes / 1e9:.1f} GB); learn the scaling from sparse rows, with ",
                Argument("layout", "sparse"),
                ", or read with ",
                Argument("layout", "dense"),
                " if that is what you want",
            )
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
