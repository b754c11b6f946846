"""Probabilities from scores: Platt's method.

p(y=1 | z) = 1/(1 + exp(Az + B)), with A and B of maximum likelihood on scores of rows that the model has not been
trained on. Targets and Newton's method as in Lin, Lin & Weng, "A note on Platt's probabilistic outputs for support
vector machines" (2007), algorithm 1; here with weights.
"""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.kernels import dot

__all__ = ["fit_platt"]


def fit_platt(z: Floats, positive: AnyArray, weights: Floats | None = None) -> tuple[float, float]:
    """(A, B) of maximum likelihood.

    Parameters
    ----------
    z
        A score a row, by a model that has not seen the row.
    positive
        Whether the row belongs to the class.
    weights
        A weight a row.
    """
    c = np.ones_like(z) if weights is None else weights
    n_positive, n_negative = float(c[positive].sum()), float(c[~positive].sum())
    # Bayes' estimates instead of 1 and 0: without them A would grow without limit on separable scores.
    t = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    # Newton's method sees scores of spread 1, so that the tolerances below mean the same for all.
    scale = float(np.sqrt(np.average(z**2, weights=c))) if c.sum() else 0.0
    scale = scale or 1.0
    a, b = _newton(z / scale, t, c, np.log((n_negative + 1) / (n_positive + 1)))
    return a / scale, b


def _newton(z: Floats, t: Floats, c: Floats, b: float) -> tuple[float, float]:
    a, value = 0.0, _value(z, t, c, 0.0, b)
    total = max(float(c.sum()), 1.0)
    for _ in range(100):
        p, q = _sigmoids(a * z + b)
        residual, curvature = c * (t - p), c * p * q
        g = np.array([dot(residual, z), residual.sum()])
        if np.abs(g).max() < 1e-9 * total:
            break
        cross = dot(curvature, z)
        h = np.array([[dot(curvature, z**2), cross], [cross, curvature.sum()]]) + 1e-12 * total * np.eye(2)
        direction = -np.linalg.solve(h, g)
        slope, step = dot(g, direction), 1.0
        while step >= 1e-10:
            trial = a + step * direction[0], b + step * direction[1]
            new = _value(z, t, c, *trial)
            if new <= value + 1e-4 * step * slope:
                break
            step /= 2
        else:
            break
        (a, b), value = trial, new
    return float(a), float(b)


def _value(z: Floats, t: Floats, c: Floats, a: float, b: float) -> float:
    """−log likelihood of p = 1/(1 + exp(az + b))."""
    s = a * z + b
    return dot(c, np.logaddexp(0, s) - (1 - t) * s)


def _sigmoids(s: Floats) -> tuple[Floats, Floats]:
    """(p, 1 − p) with p = 1/(1 + exp(s)), without cancellation."""
    small = np.exp(-np.abs(s))
    major, minor = 1 / (1 + small), small / (1 + small)
    return np.where(s >= 0, minor, major), np.where(s >= 0, major, minor)
