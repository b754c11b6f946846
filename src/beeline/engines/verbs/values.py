"""Verbs of losses: values, slopes and curvatures from scores, labels and costs."""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.engines.shards import Shard
from beeline.losses import GroupLoss, Loss, RowLoss, ScalarLoss, TwoClassLoss, VectorLoss
from beeline.losses.checking import fault_after_training
from beeline.losses.level_pairs import LevelPairs
from beeline.losses.tied_checking import fault_of_tied_loss

__all__ = [
    "along",
    "best_constant",
    "conjugate",
    "curvature_diagonals",
    "curvature_sample",
    "derivatives",
    "faults",
    "intercept_hessian",
    "interval_cut",
    "kink_histogram",
    "kinks_in_bucket",
    "letting_go",
    "level_thresholds",
    "loss_sum",
    "signed_group_sums",
    "slope_size_at",
    "slope_sums_of_alike",
    "slopes",
    "slopes_and_extra",
    "threshold",
    "total_cost",
    "within",
]


def within(loss: Loss, shard: Shard) -> Loss:
    """The loss of the shard's rows: one of groups has to know where they begin."""
    if loss.scope == "row":
        return loss
    assert isinstance(loss, GroupLoss)
    return loss.within(shard.groups if loss.scope == "group" else None)


def loss_sum(shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: Loss) -> tuple[float]:
    """Σ c_i l(z_i, y_i)."""
    return (within(loss, shard).sum(z, y, c),)


def total_cost(shard: Shard, c: Floats, *, loss: GroupLoss) -> tuple[float]:
    """What the losses of all groups are multiplied by, together."""
    found = within(loss, shard)
    assert isinstance(found, GroupLoss)
    return (found.total_cost(c),)


def slopes(shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: Loss) -> Floats:
    """c_i · dl/dz of every row."""
    return within(loss, shard).slopes(z, y, c)


def slopes_and_extra(
    shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: Loss
) -> tuple[tuple[Floats], tuple[Floats | float, ...]]:
    """Slopes of every row, and the sums of `Loss.derivatives_with_extra`."""
    slope, sums = within(loss, shard).derivatives_with_extra(z, y, c)
    return (slope,), sums


def slope_size_at(shard: Shard, y: Floats, c: Floats, *, loss: Loss, value: Floats | float) -> tuple[float]:
    """Σ |c_i · dl/dz| where every row has the same score, or the same K of them."""
    z = np.full((shard.n_rows, *np.shape(value)), value)
    return (float(np.abs(within(loss, shard).slopes(z, y, c)).sum()),)


def derivatives(
    shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: RowLoss
) -> tuple[tuple[Floats, Floats], tuple[float]]:
    """Slopes and curvatures of every row, and the sum of the losses: a smooth loss gives them in one go."""
    value, slope, curvature = loss.derivatives(z, y, c)
    return (slope, curvature), (value,)


def along(shard: Shard, z: Floats, dz: Floats, y: Floats, c: Floats, *, loss: Loss, t: float) -> tuple[float, float]:
    """Σ c_i l(z_i + t·dz_i, y_i) and its derivative by t."""
    return within(loss, shard).along(z, dz, t, y, c)


def conjugate(shard: Shard, u: Floats, y: Floats, c: Floats, *, loss: RowLoss, scale: float) -> tuple[float]:
    """What the dual variables scale·u cost."""
    return (loss.dual_cost(u, y, c, scale),)


def letting_go(shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: ScalarLoss) -> tuple[int]:
    """How many rows that cost something lie where the loss is robust."""
    lets_go = loss.lets_go(z, y)
    return (0 if lets_go is None else int(np.count_nonzero(lets_go & (c > 0))),)


def best_constant(shard: Shard, y: Floats, c: Floats, *, loss: Loss) -> tuple[Floats | float | None, float]:
    """(the score of all rows alike with the least loss, the loss there), by a formula; None where there is none."""
    best = loss.best_constant(y, c)
    if best is None:
        return None, np.nan
    z = np.empty((len(y), *getattr(best, "shape", ())))
    z[:] = best
    return best, loss.sum(z, y, c)


def curvature_diagonals(shard: Shard, h: Floats, *, loss: VectorLoss) -> Floats:
    """The diagonals of each row's Hessian of K scores."""
    return loss.curvature_diagonals(h)


def curvature_sample(shard: Shard, h: Floats, *, most: int) -> tuple[Floats]:
    """The numbers of some rows, in even steps; about `most`."""
    rows = max(1, most // (h.shape[1] if h.ndim > 1 else 1))
    return (h[:: max(1, -(-len(h) // rows))].flatten(),)


def intercept_hessian(shard: Shard, h: Floats, *, loss: VectorLoss) -> tuple[Floats]:
    """Σ_i H_i, of shape (K, K)."""
    if not loss.has_softmax_curvature:
        return (loss.curvature_total(h),)
    k, totals = h.shape[1], h.sum(axis=1)
    inverse = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)
    matrix: Floats = -Block(h, k).gram(inverse)
    matrix[np.diag_indices(k)] += h.sum(axis=0)
    return (matrix,)


def slope_sums_of_alike(shard: Shard, u: Floats, y: Floats, *, k: int, by_class: bool) -> tuple[Floats]:
    """Sums of the first k slopes of groups of rows, one row a group: classes, or rows with the same largest slope."""
    sums = np.zeros((k if by_class else 2 * k, k))
    group = y.astype(np.int64) if by_class else _alike(u)
    for j in range(k):
        sums[:, j] = np.bincount(group, u[:, j], len(sums))
    return (sums,)


def _alike(u: Floats) -> AnyArray:
    largest = np.abs(u).argmax(axis=1)
    groups: AnyArray = 2 * largest + (u[np.arange(len(u)), largest] > 0)
    return groups


def kink_histogram(
    shard: Shard,
    z: Floats,
    dz: Floats,
    y: Floats,
    c: Floats,
    *,
    loss: ScalarLoss,
    between: tuple[float, float],
    buckets: int,
) -> tuple[tuple[AnyArray], tuple[float, Floats]]:
    """How the sum of the losses bends between two times of a line, in equal buckets.

    Stays: in which bucket each row passes each of its kinks. Summed: the derivative by t at the end, and by how much it
    grows in each bucket.
    """
    slope, jumps, marks = loss.kink_histogram(z, dz, y, c, between, buckets)
    return (marks,), (slope, jumps)


def kinks_in_bucket(
    shard: Shard,
    marks: AnyArray,
    z: Floats,
    dz: Floats,
    y: Floats,
    c: Floats,
    *,
    loss: ScalarLoss,
    bucket: int,
    most: int,
) -> tuple[Floats, Floats, Ints]:
    """The times at which rows pass their kinks in a bucket, by how much the derivative grows at each, and how many.

    Where there are more than `most`, none are told.
    """
    count = int(np.count_nonzero(marks == bucket + 1))
    if count > most:
        return np.zeros(0), np.zeros(0), np.array([count])
    return *loss.kinks_in_bucket(marks, z, dz, y, c, bucket), np.array([count])


def interval_cut(
    shard: Shard,
    z: Floats,
    dz: Floats,
    y: Floats,
    c: Floats,
    *,
    loss: ScalarLoss,
    times: tuple[float, float, float],
    out: tuple[Floats, Floats],
) -> tuple[tuple[Floats, Floats], tuple[float, float, float, float]]:
    """A step along a line, and a cut for an interval of it, as `ScalarLoss.interval_cut` makes them.

    Stays: the scores after the step and the slopes of the plane. They take the memory of z and dz, which is why these
    are given up.
    """
    assert out[0] is z
    assert out[1] is dz
    return (z, dz), loss.interval_cut(z, dz, times, y, c)


def faults(shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: Loss, start: Floats) -> tuple[list[str]]:
    """What is wrong with a loss of one's own between the scores without a model and those where training ended.

    Where the loss owns parameters, it comes with those of the beginning and with their change.
    """
    begin = np.broadcast_to(start, z.shape)
    if isinstance(loss, GroupLoss) or loss.extra is not None:
        fault = fault_of_tied_loss(within(loss, shard), y, c, begin, z)
    else:
        assert isinstance(loss, RowLoss)
        some = c > 0
        fault = fault_after_training(loss, y[some], begin[some], z[some])
    return ([fault] if fault else [],)


def threshold(shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: TwoClassLoss) -> tuple[float]:
    """The score above which a row is best called positive."""
    return (loss.threshold(z, y, c),)


def level_thresholds(shard: Shard, z: Floats, y: Floats, c: Floats, *, loss: LevelPairs) -> tuple[Floats]:
    """The thresholds between levels at which the rows cost least."""
    return (loss.best_thresholds(z, y, c),)


def signed_group_sums(shard: Shard, u: Floats) -> tuple[float, float]:
    """The sums of the slopes of groups: over those of which they are positive, and over the others."""
    sums = np.add.reduceat(u, shard.groups[:-1]) if shard.groups is not None else np.array([u.sum()])
    return float(sums[sums > 0].sum()), float(sums[sums < 0].sum())
