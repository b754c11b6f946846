"""Verbs of losses that are cut off: which rows are IN, and what is made of the others."""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.engines.shards import Shard
from beeline.losses import Truncated

__all__ = ["changed_sides", "costs_inside", "marked_outside", "outside_rows", "rows_of_labels"]


def costs_inside(
    shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: Truncated
) -> tuple[tuple[Floats], tuple[Floats]]:
    """The costs of the rows that are IN, 0 for the others; and counts of rows that cost something.

    The counts are (OUT with a negative label, OUT with a positive one, all with a negative label, all with a positive
    one); a label of zero counts as negative.
    """
    outside, counts, positive = loss.outside(z, y), c > 0, y > 0
    out, negative = outside & counts, ~positive
    found = [out & negative, out & positive, counts & negative, counts & positive]
    return (np.where(outside, 0.0, c),), (np.array([float(np.count_nonzero(rows)) for rows in found]),)


def rows_of_labels(shard: Shard, y: Floats, c: Floats) -> tuple[int, int]:
    """How many rows that cost something have a negative label, or none, and how many a positive one."""
    counts, positive = c > 0, y > 0
    return int(np.count_nonzero(counts & ~positive)), int(np.count_nonzero(counts & positive))


def changed_sides(shard: Shard, inside: Floats, before: Floats) -> tuple[int]:
    """How many rows are IN now and were not before, or the other way round."""
    return (int(np.count_nonzero((inside > 0) != (before > 0))),)


def marked_outside(shard: Shard, y: Floats, inside: Floats, c: Floats) -> Floats:
    """The labels −1 and +1; −2 and +2 of rows that are OUT."""
    return np.where((inside > 0) | ~(c > 0), y, 2 * y)


def outside_rows(shard: Shard, inside: Floats, c: Floats) -> AnyArray:
    """1 for each row that is OUT, 0 for the others."""
    return ((c > 0) & ~(inside > 0)).astype(np.uint8)
