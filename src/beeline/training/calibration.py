"""Probabilities from scores: Platt's method.

p(y=1 | z) = 1/(1 + exp(Az + B)), with A and B of maximum likelihood on scores of rows that the model has not been
trained on. Targets and Newton's method as in Lin, Lin & Weng, "A note on Platt's probabilistic outputs for support
vector machines" (2007), algorithm 1; here with weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.kernels import dot

__all__ = ["fit_platt"]


def fit_platt(
    z: Floats, positive: AnyArray, weights: Floats | None = None, most: int | None = None
) -> tuple[float, float]:
    """(A, B) of maximum likelihood.

    Parameters
    ----------
    z
        A score a row, by a model that has not seen the row.
    positive
        Whether the row belongs to the class.
    weights
        A weight a row.
    most
        How many rows are looked at together; None: all, which takes ten numbers a row.
    """
    rows = _Rows(z, positive, weights, most or max(1, len(z)))
    a, b = _newton(rows, np.log((rows.n_negative + 1) / (rows.n_positive + 1)))
    return a / rows.scale, b


@dataclass(frozen=True, eq=False)
class _Piece:
    """Scores of spread 1, targets and weights of some rows."""

    z: Floats
    t: Floats
    c: Floats


class _Rows:
    """The rows, in pieces that are made when they are needed."""

    def __init__(self, z: Floats, positive: AnyArray, weights: Floats | None, most: int) -> None:
        self.z, self.positive, self.weights, self.most = z, positive, weights, most
        self.n_positive = self.n_negative = self.total = squares = 0.0
        for rows in self._slices():
            c, of_class = self._weights(rows), positive[rows]
            self.n_positive += float(c[of_class].sum())
            self.n_negative += float(c[~of_class].sum())
            self.total += float(c.sum())
            squares += float((z[rows] ** 2 * c).sum())
        # Newton's method sees scores of spread 1, so that its tolerances mean the same for all.
        self.scale = (float(np.sqrt(squares / self.total)) if self.total else 0.0) or 1.0

    def _slices(self) -> Iterator[slice]:
        return (slice(start, start + self.most) for start in range(0, len(self.z), self.most))

    def _weights(self, rows: slice) -> Floats:
        return np.ones(len(self.z[rows])) if self.weights is None else self.weights[rows]

    def __iter__(self) -> Iterator[_Piece]:
        # Bayes' estimates instead of 1 and 0: without them A would grow without limit on separable scores.
        likely, unlikely = (self.n_positive + 1) / (self.n_positive + 2), 1 / (self.n_negative + 2)
        for rows in self._slices():
            t = np.where(self.positive[rows], likely, unlikely)
            yield _Piece(self.z[rows] / self.scale, t, self._weights(rows))

    def value(self, a: float, b: float) -> float:
        """−log likelihood of p = 1/(1 + exp(az + b))."""
        return sum(_value(piece, a, b) for piece in self)

    def derivatives(self, a: float, b: float) -> tuple[Floats, Floats]:
        """The gradient by (a, b), and the matrix of second derivatives."""
        g, h = np.zeros(2), np.zeros((2, 2))
        for piece in self:
            z, c = piece.z, piece.c
            p, q = _sigmoids(a * z + b)
            residual, curvature = c * (piece.t - p), c * p * q
            cross = dot(curvature, z)
            g += [dot(residual, z), residual.sum()]
            h += [[dot(curvature, z**2), cross], [cross, curvature.sum()]]
        return g, h


def _newton(rows: _Rows, b: float) -> tuple[float, float]:
    a, value = 0.0, rows.value(0.0, b)
    total = max(rows.total, 1.0)
    for _ in range(100):
        g, h = rows.derivatives(a, b)
        if np.abs(g).max() < 1e-9 * total:
            break
        direction = np.asarray(-np.linalg.solve(h + 1e-12 * total * np.eye(2), g), np.float64)
        slope, step = dot(g, direction), 1.0
        while step >= 1e-10:
            trial = a + step * direction[0], b + step * direction[1]
            new = rows.value(*trial)
            if new <= value + 1e-4 * step * slope:
                break
            step /= 2
        else:
            break
        (a, b), value = trial, new
    return float(a), float(b)


def _value(piece: _Piece, a: float, b: float) -> float:
    s = a * piece.z + b
    return dot(piece.c, np.logaddexp(0, s) - (1 - piece.t) * s)


def _sigmoids(s: Floats) -> tuple[Floats, Floats]:
    """(p, 1 − p) with p = 1/(1 + exp(s)), without cancellation."""
    small = np.exp(-np.abs(s))
    major, minor = 1 / (1 + small), small / (1 + small)
    return np.where(s >= 0, minor, major), np.where(s >= 0, major, minor)
