"""Verbs of rows that lie in the leaves of an index."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats, Ints
from beeline.engines.shards import Shard
from beeline.index import Flats, IndexedRows
from beeline.losses import ScalarLoss

__all__ = ["active_of_leaves", "flats_of_leaves", "flats_of_rows"]


def flats_of_rows(loss: ScalarLoss, y: Floats, c: Floats, cap: float | None) -> Flats:
    """Between which scores single rows do not matter, and, of a loss that is cut off, are no outliers.

    A row that costs nothing never matters, and is none.
    """
    counts = c > 0
    low, high = loss.sublevel(y, 0.0)
    inside_low, inside_high = loss.sublevel(y, np.inf if cap is None else cap)
    return Flats(
        np.where(counts, low, -np.inf),
        np.where(counts, high, np.inf),
        np.where(counts, inside_low, np.inf),
        np.where(counts, inside_high, -np.inf),
    )


def flats_of_leaves(shard: Shard, y: Floats, c: Floats, *, loss: ScalarLoss, cap: float | None) -> tuple[Floats, ...]:
    """Between which scores no row of a leaf matters, and some row is no outlier; leaf by leaf."""
    assert isinstance(shard.data, IndexedRows)
    starts = _starts(shard.data.index.starts, shard)
    if loss.labels == "binary":
        return _flats_of_classes(loss, y, c, cap, starts)
    flats = flats_of_rows(loss, y, c, cap)
    return (
        np.maximum.reduceat(flats.low, starts),
        np.minimum.reduceat(flats.high, starts),
        np.minimum.reduceat(flats.inside_low, starts),
        np.maximum.reduceat(flats.inside_high, starts),
    )


def _flats_of_classes(loss: ScalarLoss, y: Floats, c: Floats, cap: float | None, starts: Ints) -> tuple[Floats, ...]:
    """The same for two classes, of which there are but two flats: it is enough to know which ones a leaf has."""
    upper, counts = y > 0, c > 0
    low, high, inside_low, inside_high = (
        np.full(len(starts), end)
        for end in (-np.inf, np.inf, np.inf, -np.inf)  # of leaves whose rows cost nothing
    )
    for label, rows in ((-1.0, ~upper & counts), (1.0, upper & counts)):
        has = np.logical_or.reduceat(rows, starts)
        of = flats_of_rows(loss, np.array([label]), np.ones(1), cap)
        low[has] = np.maximum(low[has], of.low)
        high[has] = np.minimum(high[has], of.high)
        inside_low[has] = np.minimum(inside_low[has], of.inside_low)
        inside_high[has] = np.maximum(inside_high[has], of.inside_high)
    return low, high, inside_low, inside_high


def active_of_leaves(shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: ScalarLoss) -> tuple[Ints]:
    """How many rows of each leaf matter, by their scores."""
    assert isinstance(shard.data, IndexedRows)
    flats = flats_of_rows(loss, y, c, None)
    matters = (z < flats.low) | (z > flats.high)
    return (np.add.reduceat(matters.astype(np.int64), _starts(shard.data.index.starts, shard)),)


def _starts(starts: Ints, shard: Shard) -> Ints:
    """Where the leaves of a shard begin, counted from its first row; no shard cuts a leaf."""
    first, last = np.searchsorted(starts, [shard.start, shard.stop])
    return starts[first:last] - shard.start
