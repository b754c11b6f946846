"""How long steps along each feature are, and around which mean: by a look at the first rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.data.core.block import Block

__all__ = ["ColumnSums", "Scales"]

_DENSE = 0.5  # of the rows: columns with more non-zeros are dense
_SHARE = 1 / 3  # of all non-zeros: dense columns that hold as many are standardised
_FAR = 1.5  # decades from the sparse columns: dense columns that lie beyond are standardised
_SPREAD = 0.45  # decades: sparse columns whose scales differ by more get one each
_OFF_CENTRE = 0.25  # of a column's mean square: one whose squared mean is larger is centred
# Of a column's mean square: a variance that is smaller is rounding, or drowns in that of the steps' own sums.
_ROUNDING = 1e-14
_CONSTANT = 1e-29  # of the same: a column with a smaller variance is constant


class Scales(NamedTuple):
    """Scales of columns.

    Attributes
    ----------
    squares
        s_j²: a step along feature j is as long as if the column were divided by s_j. The median of Σ x_j²/s_j² over
        the rows, with the intercept's, is 1.
    intercept
        s² of a column of ones.
    means
        μ; zero where a column is not centred.
    unseen
        s² of a column that had no entries; where each column has a scale of its own, its first entries will say more.
    own
        Whether each column has a scale of its own.
    """

    squares: Floats
    intercept: float
    means: Floats
    unseen: float = 1.0
    own: bool = False

    @classmethod
    def of(cls, block: Block, *, intercept: bool, centres: bool) -> Scales:
        """The scales of some rows."""
        sums = ColumnSums.of_nothing(block.n_features)
        sums.add(block)
        return sums.scales(block, intercept=intercept, centres=centres)

    def grown(self, n_features: int) -> Scales:
        """With more columns, not seen so far."""
        more = n_features - len(self.squares)
        squares = np.append(self.squares, np.full(more, self.unseen))
        return self._replace(squares=squares, means=np.append(self.means, np.zeros(more)))

    def with_first(self, unseen: AnyArray, block: Block) -> tuple[Scales, AnyArray]:
        """(The scales, of columns that were not seen so far by their entries here; which are still not seen)."""
        looked = np.flatnonzero(unseen[: block.n_features])
        sums = ColumnSums.of_nothing(len(looked))
        sums.add(block.features(looked))  # of few columns, mostly, and these with few entries
        found = sums.counts > 0
        squares, left = self.squares.copy(), unseen.copy()
        squares[looked[found]] = self.intercept * sums.squares[found] / sums.counts[found]
        left[looked[found]] = False
        return self._replace(squares=squares), left


@dataclass(eq=False)
class ColumnSums:
    """What is known of columns: sums over the rows that were looked at.

    Attributes
    ----------
    counts, squares, sums
        Σ [x_j ≠ 0], Σ x_j² and Σ x_j.
    deviations
        Σ (x_j − x̄_j)²: far from zero, squares less a squared mean would be rounding alone.
    n
        How many rows there were.
    """

    counts: Floats
    squares: Floats
    sums: Floats
    deviations: Floats
    n: float = 0.0

    @classmethod
    def of_nothing(cls, n_features: int) -> ColumnSums:
        """Those of no rows."""
        counts, squares, sums, deviations = np.zeros((4, n_features))
        return cls(counts, squares, sums, deviations)

    @property
    def entries(self) -> float:
        """How many there were."""
        return float(self.counts.sum())

    def add(self, block: Block) -> None:
        """Look at more rows, which may have fewer columns."""
        if not block.n_rows:
            return
        ones, d = np.ones(block.n_rows), block.n_features
        self.counts[:d] += replace(block, values=(block.values != 0).astype(np.float64)).transposed(ones)
        self.squares[:d] += block.gram_diagonal(ones)
        sums = np.zeros_like(self.sums)
        sums[:d] = block.transposed(ones)
        self.deviations[:d] += _deviations(block, sums[:d] / block.n_rows)
        if self.n:  # means that differ are deviations, too (Chan, Golub & LeVeque 1983)
            between = self.n * block.n_rows / (self.n + block.n_rows)
            self.deviations += between * (sums / block.n_rows - self.sums / self.n) ** 2
        self.sums += sums
        self.n += block.n_rows

    def grow(self, n_features: int) -> None:
        """Take in more columns."""
        more = np.zeros(n_features - len(self.counts))
        self.counts, self.squares, self.sums, self.deviations = (
            np.append(array, more) for array in (self.counts, self.squares, self.sums, self.deviations)
        )

    def snapshot(self) -> dict[str, Any]:
        """As numbers and arrays."""
        return dict(vars(self))

    @classmethod
    def restored(cls, snapshot: Mapping[str, Any]) -> ColumnSums:
        """Those of a snapshot; the first ones had no deviations."""
        counts, squares, sums = (np.array(snapshot[name]) for name in ("counts", "squares", "sums"))
        n = snapshot["n"]
        known = snapshot.get("deviations")
        deviations = np.maximum(squares - sums**2 / max(1.0, n), 0.0) if known is None else np.array(known)
        return cls(counts, squares, sums, deviations, n)

    def drowned(self, scales: Scales) -> int:
        """How many columns are centred whose spread is lost in the rounding of their offset, without being constant."""
        small = self.deviations <= _ROUNDING * self.squares
        return int(np.count_nonzero(small & (scales.means != 0) & (self.deviations > _CONSTANT * self.squares)))

    def scales(self, block: Block | None, *, intercept: bool, centres: bool) -> Scales:
        """The scales of the rows.

        Dense columns are standardised where they hold a third of the non-zeros, or are far larger or smaller than the
        sparse ones, and centred where `centres` says that they may be and their mean is far from zero. Other columns
        share a scale, unless theirs differ much. A column of zeros has that of the sparse ones.

        Where all rows are at hand as a block, their median length becomes 1, and else the mean one.
        """
        n, counts, squares, means = max(1.0, self.n), self.counts, self.squares, self.sums / max(1.0, self.n)
        seen = counts > 0
        usual = np.divide(squares, counts, out=np.ones_like(squares), where=seen)  # mean squares of non-zeros
        dense = counts > _DENSE * n
        sparse = seen & ~dense
        log_scale, spread = _mean_and_spread(0.5 * np.log10(usual), np.where(sparse, counts, 0.0))
        standard = dense.copy()
        if counts[dense].sum() < _SHARE * counts.sum():
            standard &= np.abs(0.5 * np.log10(usual) - log_scale) > _FAR
        sharing = seen & ~standard
        if not sparse.any():
            log_scale, spread = _mean_and_spread(0.5 * np.log10(usual), np.where(seen, counts, 0.0))
        own, shared = spread > _SPREAD, 10 ** (2 * log_scale)
        scales = np.where(sharing & own, usual, shared)
        centred = standard & centres & (means**2 > _OFF_CENTRE * squares / n)
        means = np.where(centred, means, 0.0)
        variances = np.where(centred, self.deviations, squares) / n
        # A column that is constant, but for rounding, says nothing: unit steps along it do no harm.
        steady = np.where(variances > _ROUNDING * squares / n, variances, np.maximum(squares / n, 1e-300))
        scales = np.where(standard, steady, scales)
        constant = 1.0 if intercept else 0.0
        if block is None:
            length = float((variances / scales).sum()) + constant
        else:
            length = _median_norm(block, 1 / scales, means, constant)
        length = length if length > 0 else 1.0
        return Scales(scales * length, length, means, shared * length, bool(own))


def _deviations(block: Block, means: Floats) -> Floats:
    """Σ (x_j − μ_j)² over the rows, entry by entry; one that is not stored is zero."""
    ones = np.ones(block.n_rows)
    around = means if block.indices is None else means[block.indices]
    stored = replace(block, values=np.ones(block.values.shape)).transposed(ones)
    centred = replace(block, values=block.values - around)
    absent = block.n_rows - stored
    left = centred.transposed(ones) - absent * means  # by the rounding of the means
    deviations: Floats = centred.gram_diagonal(ones) + absent * means**2 - left**2 / block.n_rows
    return np.maximum(deviations, 0.0)


def _mean_and_spread(numbers: Floats, weights: Floats) -> tuple[float, float]:
    """The weighted mean and standard deviation; zeros where nothing weighs."""
    total = float(weights.sum())
    if not total:
        return 0.0, 0.0
    mean = float(weights @ numbers) / total
    return mean, math.sqrt(max(0.0, float(weights @ (numbers - mean) ** 2) / total))


def _median_norm(block: Block, factors: Floats, means: Floats, constant: float) -> float:
    """The median of Σ f_j (x_j − μ_j)² over the rows that have entries, plus a constant; 1 where there are none."""
    values: AnyArray = block.values.astype(np.float64) ** 2
    d = block.n_features  # columns behind these have no entries in the rows
    norms = replace(block, values=values).scores(factors[:d])
    norms += means @ (factors * means) - 2 * block.scores((factors * means)[:d]) + constant
    norms = norms[norms > 0]
    return float(np.median(norms)) if len(norms) else 1.0
