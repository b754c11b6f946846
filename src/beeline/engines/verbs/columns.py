"""Verbs on what lies beside the rows; none looks at the features."""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.engines.shards import Shard
from beeline.kernels import absolute_sum, dot

__all__ = [
    "constant",
    "constant_or_all",
    "difference",
    "first_groups",
    "held_in",
    "label_totals",
    "largest",
    "mean_of",
    "mixed",
    "moved",
    "one_against_rest",
    "picked",
    "positive_count",
    "product",
    "same",
    "sample",
    "scaled_by_sign",
    "shifted",
    "signed_sums",
    "size",
    "spread_about",
    "squares",
    "stretched",
    "total",
    "weighted_mean",
]


def constant(shard: Shard, *, value: Floats | float) -> Floats:
    """The same number, or the same K numbers, for every row."""
    return np.full((shard.n_rows, *np.shape(value)), value)


def same(shard: Shard, *, value: float) -> Floats:
    """The same number for every row, as one that is there once: for kernels it is copied, where they need it."""
    return np.broadcast_to(np.float64(value), shard.n_rows)


def shifted(shard: Shard, z: Floats, *, b: Floats | float) -> Floats:
    """z + b."""
    moved: Floats = z + b
    return moved


def stretched(shard: Shard, z: Floats, *, t: float, b: Floats | float) -> Floats:
    """t·z + b."""
    moved: Floats = t * z
    moved += b
    return moved


def moved(shard: Shard, z: Floats, dz: Floats, *, t: float) -> Floats:
    """z + t·dz."""
    return z + t * dz


def difference(shard: Shard, z: Floats, other: Floats) -> Floats:
    """z − other."""
    return z - other


def mean_of(shard: Shard, *columns: Floats) -> Floats:
    """The mean of several vectors."""
    return sum(columns[1:], columns[0].copy()) / len(columns)


def mixed(shard: Shard, u: Floats, v: Floats, *, part: float) -> Floats:
    """part·u + (1 − part)·v."""
    return part * u + (1 - part) * v


def signed_sums(shard: Shard, a: Floats) -> tuple[float, float]:
    """The sums of what is positive, and of what is negative."""
    return float(np.sum(a, where=a > 0)), float(np.sum(a, where=a < 0))


def scaled_by_sign(shard: Shard, a: Floats, *, up: float, down: float) -> Floats:
    """What is positive times one number, what is negative times another."""
    return np.where(a > 0, up * a, down * a)


def product(shard: Shard, u: Floats, z: Floats) -> tuple[float]:
    """Σ u_i z_i, over all columns."""
    return (dot(u.ravel(), z.ravel()),)


def total(shard: Shard, u: Floats) -> tuple[Floats | float]:
    """Σ u_i; for a matrix a sum for each column."""
    return (float(u.sum()) if u.ndim == 1 else u.sum(axis=0),)


def size(shard: Shard, u: Floats) -> tuple[float]:
    """Σ |u_i|."""
    return (absolute_sum(u),)


def positive_count(shard: Shard, u: Floats) -> tuple[int]:
    """How many entries are positive."""
    return (int(np.count_nonzero(u > 0)),)


def squares(shard: Shard, u: Floats) -> tuple[Floats]:
    """Σ u_i², for each column."""
    return (np.square(u).reshape(len(u), -1).sum(axis=0),)


def largest(shard: Shard, u: Floats) -> tuple[float]:
    """max u_i, at least zero."""
    return (float(u.max(initial=0.0)),)


def constant_or_all(shard: Shard, c: Floats) -> Floats:
    """The first number, where all are the same; else all of them."""
    return c[:1] if len(c) and c.min() == c.max() else c


def label_totals(shard: Shard, y: Floats, c: Floats, *, n_classes: int) -> tuple[Floats]:
    """What the rows of each class cost together; of two classes −1 and +1 where `n_classes` is 1."""
    if n_classes > 1:
        totals: Floats = np.bincount(y.astype(np.int64), c, n_classes).astype(np.float64, copy=False)
        return (totals,)
    positive = y > 0
    return (np.array([np.sum(c, where=~positive), np.sum(c, where=positive)]),)


def weighted_mean(shard: Shard, y: Floats, c: Floats) -> tuple[Floats | float, float, Floats | float, int]:
    """Σ c_i y_i, Σ c_i, Σ y_i and the number of rows."""
    weighted = np.sum(c * y) if y.ndim == 1 else np.einsum("i,ij->j", c, y)
    return weighted, float(c.sum()), y.sum(axis=0), len(y)


def spread_about(shard: Shard, y: Floats, *, mean: float) -> tuple[float]:
    """Σ (y_i − mean)², over all columns."""
    return (float(np.square(y - mean).sum()),)


def one_against_rest(shard: Shard, numbers: AnyArray, *, k: int) -> Floats:
    """+1 where a row has class k, −1 elsewhere."""
    return np.where(numbers == k, 1.0, -1.0)


def held_in(shard: Shard, c: Floats, train: AnyArray) -> Floats:
    """The costs of the rows that a fold trains on; 0 for the others."""
    return np.where(train, c, 0.0)


def sample(shard: Shard, y: AnyArray, *, most: int) -> tuple[AnyArray]:
    """Some of the entries, in even steps from the first on."""
    return (y[:: max(1, -(-len(y) // most))],)


def first_groups(shard: Shard, y: AnyArray, *, most: int) -> tuple[AnyArray, AnyArray]:
    """The entries of the first groups, of about so many rows, and the sizes of those groups."""
    if shard.groups is None:
        return y[:most], np.array([len(y[:most])])
    count = max(1, int(np.searchsorted(shard.groups, most, side="right")) - 1)
    return y[: shard.groups[count]], np.diff(shard.groups[: count + 1])


def picked(shard: Shard, z: Floats, rows: AnyArray) -> tuple[Floats]:
    """The entries of the rows that are marked."""
    return (z[np.asarray(rows, bool)],)
