"""From scores to answers: class numbers, probabilities and values.

Scores have shape (n_rows, n_outputs): one output for two classes and for a regression of
numbers, otherwise one a class, label or number.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from beeline._types import Floats, Ints

__all__ = ["Link", "class_numbers", "label_probabilities", "probabilities", "values"]

Link = Literal["none", "logistic", "softmax", "cumulative", "platt", "exp"]
"""How scores become probabilities, or the values of a regression; `none`: they do not, and are the values."""


def class_numbers(z: Floats) -> Ints:
    """The number of the predicted class; a score of 0 between two classes means the first."""
    return (z[:, 0] > 0).astype(np.int64) if z.shape[1] == 1 else z.argmax(axis=1)


def probabilities(z: Floats, link: Link, platt: Floats | None = None) -> Floats:
    """The probability of each class, of shape (n_rows, classes).

    Several classes against the rest each get the probability of their own score, and all are divided by their sum. Of
    levels (`cumulative`) two neighbours' scores differ by that of lying above the lower one.
    """
    if link == "cumulative" and z.shape[1] > 1:
        return _level_probabilities(np.diff(z, axis=1))
    if link == "softmax" and z.shape[1] > 1:
        powers: Floats = np.exp(z - z.max(axis=1, keepdims=True, initial=-np.inf))
        powers /= powers.sum(axis=1, keepdims=True)
        return powers
    if platt is not None:
        z = -(platt[:, 0] * z + platt[:, 1])
    p = _sigmoid(z)
    if z.shape[1] == 1:
        return np.hstack([_sigmoid(-z), p])
    total = p.sum(axis=1, keepdims=True)
    shares = np.full_like(p, 1 / z.shape[1])  # where every class is out of the question
    np.divide(p, total, out=shares, where=total > 0)
    return shares


def _level_probabilities(above: Floats) -> Floats:
    """P(y = k) = P(y > k−1) − P(y > k) with P(y > k) = σ(z − θ_k), given all z − θ_k, which fall."""
    ends = np.full((len(above), 1), np.inf)
    low, high = np.hstack([ends, above]), np.hstack([above, -ends])
    side = np.where(high > 0, -1.0, 1.0)  # the smaller ones of both tails, whose difference keeps its digits
    found: Floats = np.abs(_sigmoid(side * low) - _sigmoid(side * high))
    return found


def label_probabilities(z: Floats) -> Floats:
    """The probability of each label of a set, by itself."""
    return _sigmoid(z)


def values(z: Floats, link: Link) -> Floats:
    """The values that scores of a regression stand for."""
    if link == "exp":
        with np.errstate(over="ignore"):  # a rate beyond all numbers is infinite
            return np.exp(z)
    return _sigmoid(z) if link == "logistic" else z


def _sigmoid(t: Floats) -> Floats:
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, 1 / (1 + small), small / (1 + small))
