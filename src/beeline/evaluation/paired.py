"""Whether one of two models is better: tests of differences between the same queries, or the same rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats

if TYPE_CHECKING:
    from beeline.model import Model

__all__ = ["Comparison", "Difference", "RowPairs", "compared"]

_RESAMPLES = 10_000
_MOST_RESAMPLED = 10_000  # pairs, beyond which a mean is normal to all digits that are shown
_AT_ONCE = 1 << 21  # numbers that are drawn together
_NORMAL_95 = 1.959963984540054


class Difference(NamedTuple):
    """A measure of two models: of the model, of the other one, and the first minus the second.

    `low` and `high` are the ends of a 95 % interval of the difference, `p` is how likely a difference at least as large
    would be if the models were equally good.
    """

    measure: str
    model: float
    other: float
    difference: float
    low: float
    high: float
    p: float


class Comparison(NamedTuple):
    """Two models on the same data.

    `pairs` counts what was compared, the `unit` of which is `query` or `row`; `method` says how, in a sentence.
    """

    unit: str
    pairs: int
    method: str
    differences: tuple[Difference, ...]


def compared(
    unit: str, ours: dict[str, Floats], theirs: dict[str, Floats], weights: Floats | None, seed: int
) -> Comparison:
    """Compare what two models got for the same queries or rows, measure by measure.

    Up to 10,000 pairs: the interval is that of a paired bootstrap (pairs drawn with replacement, the quantiles at 2.5
    and 97.5 % of the weighted mean difference), p that of a randomisation test (each pair's difference changes its sign
    with probability one half; how often the mean is then at least as far from 0, the observed one counted in). More
    pairs: both by the normal distribution, with the variance Σ c²(d − d̄)²/(Σ c)² of the weighted mean.

    Parameters
    ----------
    unit
        What a pair belongs to: `query` or `row`.
    ours, theirs
        The values of each measure, in the same order.
    weights
        Of the pairs; None: all 1. Those of weight 0 do not count.
    seed
        Of what is drawn.
    """
    names = list(ours)
    a, b = (np.column_stack([side[name] for name in names]) for side in (ours, theirs))
    c = np.ones(len(a)) if weights is None else weights
    a, b, c = a[c > 0], b[c > 0], c[c > 0]
    d = a - b
    if len(d) <= _MOST_RESAMPLED:
        (low, high), p = _bootstrap(d, c, seed), _randomised(d, c, seed)
        method = (
            f"95 % intervals by a paired bootstrap over the {len(d):,} {_several(unit, len(d))}, p by a two-sided "
            f"randomisation test that swaps the models within each {unit}; {_RESAMPLES:,} times each, seed {seed}"
        )
    else:
        low, high, p = _normal(d, c)
        method = (
            f"95 % intervals and two-sided p by the normal distribution of the mean difference over the {len(d):,} "
            f"{_several(unit, len(d))}, paired"
        )
    means = [_means(values, c) for values in (a, b, d)]
    means[2][np.abs(means[2]) * c.sum() <= _rounding(d * c[:, None])] = 0.0
    columns = zip(names, *(column.tolist() for column in (*means, low, high, p)), strict=True)
    return Comparison(unit, len(d), method, tuple(Difference(*one) for one in columns))


def _means(values: Floats, c: Floats) -> Floats:
    found: Floats = np.einsum("nm,n->m", values, c) / c.sum()
    return found


def _bootstrap(d: Floats, c: Floats, seed: int) -> tuple[Floats, Floats]:
    """The ends of the intervals."""
    random, n = np.random.default_rng([seed, 0]), len(d)
    columns = np.column_stack([d * c[:, None], c])
    means = []
    for size in _sizes(n):
        drawn = random.integers(0, n, (size, n))
        counts = np.bincount((drawn + n * np.arange(size)[:, None]).ravel(), minlength=size * n).reshape(size, n)
        sums = np.einsum("rn,nm->rm", counts.astype(np.float64), columns)
        means.append(sums[:, :-1] / sums[:, -1:])
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975], axis=0)
    return low, high


def _randomised(d: Floats, c: Floats, seed: int) -> Floats:
    """The p of each measure."""
    random, n = np.random.default_rng([seed, 1]), len(d)
    terms = d * c[:, None]
    least = np.abs(terms.sum(axis=0)) - _rounding(terms)
    as_far = np.zeros(d.shape[1])
    for size in _sizes(n):
        signs = 1.0 - 2.0 * random.integers(0, 2, (size, n))
        as_far += (np.abs(np.einsum("rn,nm->rm", signs, terms)) >= least).sum(axis=0)
    return (1 + as_far) / (1 + _RESAMPLES)


def _rounding(terms: Floats) -> Floats:
    """How much sums of the same numbers may differ."""
    most: Floats = 1e-12 * np.abs(terms).sum(axis=0)
    return most


def _sizes(n: int) -> list[int]:
    """Resamples at a time, so that what is drawn takes little memory."""
    size = max(1, min(_RESAMPLES, _AT_ONCE // max(n, 1)))
    return [min(size, _RESAMPLES - first) for first in range(0, _RESAMPLES, size)]


def _normal(d: Floats, c: Floats) -> tuple[Floats, Floats, Floats]:
    """The ends of the intervals, and p."""
    mean = _means(d, c)
    error = np.sqrt(np.einsum("nm,n->m", (d - mean) ** 2, c**2)) / c.sum()
    p = np.array(
        [math.erfc(abs(m) / (e * math.sqrt(2))) if e else float(m == 0) for m, e in zip(mean, error, strict=True)]
    )
    return mean - _NORMAL_95 * error, mean + _NORMAL_95 * error, p


def _several(unit: str, n: int) -> str:
    return unit if n == 1 else {"query": "queries"}.get(unit, unit + "s")


class RowPairs:
    """What each row contributes to a mean, to be compared with what it does by another model: 8 bytes a measure."""

    def __init__(self, model: Model) -> None:
        self.model = model
        names = ["mse", "mae"] if model.classes is None else ["accuracy"]
        if model.has_probabilities:
            names.append("log_loss")
        self.values: dict[str, list[Floats]] = {name: [] for name in names}
        self.weights: list[Floats] = []

    def add(self, y: AnyArray, z: Floats, weights: Floats | None) -> None:
        """Take rows into account, by their targets or class numbers, and scores."""
        if weights is not None:
            self.weights.append(weights)
        if self.model.classes is None:
            apart = y - self.model.answers(z)
            self.values["mse"].append(apart**2)
            self.values["mae"].append(np.abs(apart))
            return
        self.values["accuracy"].append((y == self.model.class_numbers(z)).astype(np.float64))
        if "log_loss" in self.values:
            p = self.model.probabilities(z)[np.arange(len(y)), y]
            self.values["log_loss"].append(-np.log(np.maximum(p, np.finfo(np.float64).eps)))
