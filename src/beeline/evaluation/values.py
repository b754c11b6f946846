"""Answers of regressions: errors, quantiles, rates, and a sample of the rows to look at."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from beeline._types import Floats
from beeline.evaluation.evaluation import Residuals
from beeline.kernels import dot
from beeline.losses import CrossEntropy, Quantile, get_loss
from beeline.losses.base import ScalarLoss

if TYPE_CHECKING:
    from beeline.model import Model

__all__ = ["ValueAnswers"]

_RATES = ("poisson", "gamma", "tweedie", "cross_entropy")
_QUANTILES = ("quantile", "soft_quantile")
_MOST_ROWS = 20_000  # of the sample


class ValueAnswers:
    """Gathers what measures of a regression need: sums, and a sample of bounded size."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._errors, self._sample = _Errors(), _Sample()
        self._quantiles = _Quantiles(model.loss_settings.get("tau", 0.5)) if model.loss in _QUANTILES else None
        self._deviance = _Deviance(get_loss(model.loss, **model.loss_settings)) if model.loss in _RATES else None

    @property
    def tau(self) -> float | None:
        """The part of the labels that a quantile model wants at or below its predictions."""
        return None if self._quantiles is None else self._quantiles.loss.tau

    def add(self, y: Floats, z: Floats, weights: Floats | None) -> None:
        """Take rows into account, by their labels and scores."""
        predicted = self.model.answers(z)
        c = np.ones(len(y)) if weights is None else weights
        self._sample.add(y, predicted, c)
        if not c.any():
            return
        self._errors.add(y, predicted, c)
        if self._quantiles is not None:
            self._quantiles.add(y, predicted, c)
        if self._deviance is not None:
            self._deviance.add(y, z[:, 0], c)

    def measures(self) -> dict[str, float]:
        """What the model was trained for first."""
        total = self._errors.total
        found: dict[str, float] = {}
        if self._quantiles is not None:
            found |= self._quantiles.measures(total)
        if self._deviance is not None:
            found |= self._deviance.measures(total)
        return found | self._errors.measures()

    def residuals(self) -> Residuals:
        """The sample."""
        return self._sample.rows()

    def notes(self) -> list[str]:
        """What was left out."""
        if self._deviance is None or self._deviance.refused is None:
            return []
        domain, (row, label) = self._deviance.loss.domain, self._deviance.refused
        needed = f"labels of {self.model.loss!r} must be {domain}, and row {row} has {label:g}"
        return [f"deviance and D² are not defined: {needed}"]


class _Errors:
    """Sums over rows; of the labels the mean and the squares about it, merged block by block."""

    def __init__(self) -> None:
        self.total = self.squares = self.sizes = self.mean = self.spread = 0.0

    def add(self, y: Floats, predicted: Floats, c: Floats) -> None:
        total = float(c.sum())
        self.squares += dot((y - predicted) ** 2, c)
        self.sizes += dot(np.abs(y - predicted), c)
        mean = dot(y, c) / total
        spread, apart, both = dot((y - mean) ** 2, c), mean - self.mean, self.total + total
        self.spread += spread + apart**2 * (self.total * total / both)
        self.mean += apart * (total / both)
        self.total = both

    def measures(self) -> dict[str, float]:
        """RMSE, MAE and R²."""
        if not self.total:
            return dict.fromkeys(("rmse", "mae", "r2"), math.nan)
        mse, spread = self.squares / self.total, self.spread / self.total
        r2 = 1 - mse / spread if spread else math.nan
        return {"rmse": math.sqrt(mse), "mae": self.sizes / self.total, "r2": r2}


class _Quantiles:
    """The pinball loss, and how many labels lie at or below their prediction."""

    def __init__(self, tau: float) -> None:
        self.loss = Quantile(tau)
        self.losses = self.below = 0.0

    def add(self, y: Floats, predicted: Floats, c: Floats) -> None:
        self.losses += dot(self.loss.value_and_grad(predicted, y)[0], c)
        self.below += float(c[y <= predicted].sum())

    def measures(self, total: float) -> dict[str, float]:
        if not total:
            return dict.fromkeys(("pinball", "coverage"), math.nan)
        return {"pinball": self.losses / total, "coverage": self.below / total}


class _Deviance:
    """The mean deviance of a model of rates, and D², the part of the deviance of the mean that it explains.

    These losses are half the deviance, for shares up to the entropy of the label. At a fixed score they are
    a(z) + y·b(z) and a term of y alone, so that the loss of the mean, which is known only in the end, follows from that
    of another score, the sum of the labels, and two single labels.
    """

    def __init__(self, loss: object) -> None:
        assert isinstance(loss, ScalarLoss)
        self.loss = loss
        self.losses = self.reference_losses = self.perfect = self.labels = 0.0
        self.reference: float | None = None  # the score of the first rows' mean, near that of all rows
        self.refused: tuple[int, float] | None = None  # the first row whose label is none for the loss, and its label
        self.n_rows = 0

    def add(self, y: Floats, z: Floats, c: Floats) -> None:
        allowed = self.loss.allows(y)
        if self.refused is None and not allowed.all():
            row = int(np.argmin(allowed))
            self.refused = self.n_rows + row, float(y[row])
        self.n_rows += len(y)
        if self.refused is not None:
            return
        if self.reference is None:
            self.reference = self._score(dot(y, c) / float(c.sum()))
        self.losses += dot(self.loss.value_and_grad(z, y)[0], c)
        self.reference_losses += dot(self._at(self.reference, y), c)
        self.labels += dot(y, c)
        if isinstance(self.loss, CrossEntropy):
            self.perfect += dot(self._entropy(y), c)

    def measures(self, total: float) -> dict[str, float]:
        if self.refused is not None or self.reference is None:
            return dict.fromkeys(("deviance", "d2"), math.nan)
        two = np.array([0.5, 1.0])
        half, one = self._at(self._score(self.labels / total), two) - self._at(self.reference, two)
        slope = 2 * (one - half)
        of_mean = self.reference_losses + (one - slope) * total + slope * self.labels - self.perfect
        deviance = 2 * (self.losses - self.perfect)
        return {"deviance": deviance / total, "d2": 1 - deviance / (2 * of_mean) if of_mean > 0 else math.nan}

    def _at(self, z: float, y: Floats) -> Floats:
        return self.loss.value_and_grad(np.full(len(y), z), y)[0]

    def _score(self, mean: float) -> float:
        """The score whose prediction is a mean; the smallest and the largest means are as good as zero and one."""
        small = max(mean, float(np.finfo(np.float64).tiny))
        if isinstance(self.loss, CrossEntropy):
            return math.log(small) - math.log1p(-min(mean, 1 - float(np.finfo(np.float64).epsneg)))
        return math.log(small)

    @staticmethod
    def _entropy(y: Floats) -> Floats:
        inside = (y > 0) & (y < 1)
        p = np.where(inside, y, 0.5)
        return np.where(inside, -p * np.log(p) - (1 - p) * np.log1p(-p), 0.0)


class _Sample:
    """Rows with the smallest of random numbers, which depend on nothing but the rows' places."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._kept = np.zeros((4, 0))  # the random number, prediction, label and weight of each row
        self._n_rows = 0

    def add(self, y: Floats, predicted: Floats, c: Floats) -> None:
        both = np.concatenate([self._kept, [self._random.random(len(y)), predicted, y, c]], axis=1)
        self._n_rows += len(y)
        if both.shape[1] > _MOST_ROWS:
            both = both[:, np.argpartition(both[0], _MOST_ROWS)[:_MOST_ROWS]]
        self._kept = both

    def rows(self) -> Residuals:
        _, predicted, labels, weights = self._kept[:, np.argsort(self._kept[0])]
        return Residuals(predicted, labels, weights, self._n_rows > _MOST_ROWS)
