"""Functions that several losses are made of, safe for any argument."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats

__all__ = ["capped_exp", "entropy", "sigmoid", "softplus", "xlogy"]

_MOST = 300.0  # the largest exponent: its square is still a number


def sigmoid(t: Floats) -> Floats:
    """1/(1 + exp(−t)), without overflow."""
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, 1 / (1 + small), small / (1 + small))


def softplus(t: Floats, scale: float) -> tuple[Floats, Floats, Floats]:
    """scale·log(1 + exp(t/scale)), its slope and its curvature: max(0, t) rounded by entropy."""
    slope = sigmoid(t / scale)
    return scale * np.logaddexp(0, t / scale), slope, slope * sigmoid(-t / scale) / scale


def capped_exp(t: Floats) -> tuple[Floats, Floats, Floats]:
    """exp(t), its slope and its curvature; beyond t = 300 the tangent there.

    Nothing real is so large, but the first step of a solver may be. The tangent keeps the function convex and smooth,
    and sums of it finite.
    """
    power = np.exp(np.minimum(t, _MOST))
    return power * (1 + np.maximum(t - _MOST, 0)), power, np.where(t <= _MOST, power, 0.0)


def entropy(p: Floats, c: Floats) -> Floats:
    """p log p + (c − p) log(c − p) − c log c for 0 ≤ p ≤ c.

    Of a part that is nearly all of c, log1p keeps the digits: what is left of c may be far smaller than its rounding.
    """
    total, rest = np.where(c > 0, c, 1), c - p
    less, more = np.minimum(p, rest), np.maximum(p, rest)
    each: Floats = xlogy(less, less / total) + more * np.log1p(-less / total)
    return each


def xlogy(x: Floats, y: Floats) -> Floats:
    """x log y; 0 where x is, and where y, a part of something, is too small for a number: x is nothing then."""
    return x * np.log(np.where((x > 0) & (y > 0), y, 1))
