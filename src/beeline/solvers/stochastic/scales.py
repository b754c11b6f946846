"""How long steps along each feature are, and around which mean: by a look at the first rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.data.core.block import Block

__all__ = ["Scales"]

_DENSE = 0.5  # of the rows: columns with more non-zeros are dense
_SHARE = 1 / 3  # of all non-zeros: dense columns that hold as many are standardised
_FAR = 1.5  # decades from the sparse columns: dense columns that lie beyond are standardised
_SPREAD = 0.45  # decades: sparse columns whose scales differ by more get one each
_OFF_CENTRE = 0.25  # of a column's mean square: one whose squared mean is larger is centred


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
    """

    squares: Floats
    intercept: float
    means: Floats

    @classmethod
    def of(cls, block: Block, *, intercept: bool, centres: bool) -> Scales:
        """The scales of some rows.

        Dense columns are standardised where they hold a third of the non-zeros, or are far larger or smaller than the
        sparse ones, and centred where `centres` says that they may be and their mean is far from zero. Other columns
        share a scale, unless theirs differ much. A column of zeros has that of the sparse ones.
        """
        n, ones = max(1, block.n_rows), np.ones(block.n_rows)
        counts = replace(block, values=(block.values != 0).astype(np.float64)).transposed(ones)
        squares, means = block.gram_diagonal(ones), block.transposed(ones) / n
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
        scales = np.where(sharing & (spread > _SPREAD), usual, 10 ** (2 * log_scale))
        centred = standard & centres & (means**2 > _OFF_CENTRE * squares / n)
        means = np.where(centred, means, 0.0)
        variances = np.maximum(squares / n - means**2, 0.0)
        # A column that is constant, but for rounding, says nothing: unit steps along it do no harm.
        variances = np.where(variances > 1e-12 * squares / n, variances, np.maximum(squares / n, 1e-300))
        scales = np.where(standard, variances, scales)
        median = _median_norm(block, 1 / scales, means, 1.0 if intercept else 0.0)
        return cls(scales * median, median, means)


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
    norms = replace(block, values=values).scores(factors)
    norms += means @ (factors * means) - 2 * block.scores(factors * means) + constant
    norms = norms[norms > 0]
    return float(np.median(norms)) if len(norms) else 1.0
