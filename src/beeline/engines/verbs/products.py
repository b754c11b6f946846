"""Verbs that meet the features: scores, gradients and Hessians. Each reads the rows of its shard once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from beeline._types import Floats
from beeline.data.core.block import Block
from beeline.engines.shards import Shard
from beeline.kernels import apply_softmax_hessians
from beeline.losses import RowLoss, VectorLoss

__all__ = [
    "batched_gradients",
    "batched_hessian_products",
    "batched_scores",
    "curved_rows",
    "curved_rows_products",
    "feature_moments",
    "gradient",
    "gram",
    "hessian",
    "hessian_diagonal",
    "hessian_product",
    "joint_hessian",
    "longest_row",
    "losses_twice",
    "mean_squared_norm",
    "sampled_rows",
    "scores",
    "scores_and_gradient",
    "single_scores",
    "squared_features",
]

_PIECE = 2 << 20  # bytes of scores that are made and looked at while they are near


def scores(shard: Shard, *, w: Floats, b: Floats | float | None) -> Floats:
    """z = Xw + b."""
    z = shard.block.scores(w)
    return z if b is None else z + b


def losses_twice(
    shard: Shard, y: Floats, c: Floats, *, loss: RowLoss, w: Floats, b: Floats | None, stretch: float, shift: Floats
) -> tuple[float, float]:
    """Σ c_i l(z_i, y_i) for several scores z = Xw + b, and the same for stretch·Xw + shift; no scores are kept."""
    block, k = shard.block, w.shape[1]
    piece = max(1, _PIECE // (8 * k))
    room = np.empty((min(piece, block.n_rows), k))
    one = two = 0.0
    for start in range(0, block.n_rows, piece):
        stop = min(start + piece, block.n_rows)
        labels, costs, products = y[start:stop], c[start:stop], room[: stop - start]
        block.rows(start, stop).scores(w, out=products)
        two += loss.sum(stretch * products + shift, labels, costs)
        if b is not None:
            products += b
        one += loss.sum(products, labels, costs)
    return one, two


def scores_and_gradient(
    shard: Shard, u: Floats, *, w: Floats, b: Floats | float | None, intercept: bool
) -> tuple[tuple[Floats], tuple[Floats | float, ...]]:
    """`scores` and `gradient`, of rows that are read once."""
    block = shard.block
    z, product = block.scores(w), block.transposed(u)
    return (z if b is None else z + b,), (product, float(u.sum())) if intercept else (product,)


def gradient(shard: Shard, u: Floats, *, intercept: bool) -> tuple[Floats | float, ...]:
    """Σ u_i x_i, and Σ u_i for an intercept; for several outputs one matrix, with the sums of the columns below."""
    if u.ndim > 1:
        return (shard.transposed(u),)
    product = shard.block.transposed(u)
    return (product, float(u.sum())) if intercept else (product,)


def hessian_product(
    shard: Shard, h: Floats, *, w: Floats, b: Floats | float, loss: RowLoss
) -> tuple[Floats | float, ...]:
    """Xᵀ of every row's Hessian times its scores by (w, b), and what an intercept gets.

    Where scores of classes are sums, the rows see those: sums of weights and of products are fewer than of scores.
    """
    if not isinstance(loss, VectorLoss):
        return shard.gram_matvec(h, w, float(b))
    inner, w, shift = loss.class_loss, loss.to_classes(w), loss.to_classes(np.atleast_2d(b))[0]
    if inner.has_softmax_curvature:
        product = shard.softmax_gram_matvec(h, w, shift)
    else:
        product = shard.transposed(inner.hessian_products(h, shard.block.scores(w) + shift))
    return (loss.slopes_from_classes(product),)


def hessian(
    shard: Shard, h: Floats, *, intercept: bool, limit: float = 0.0, output: int | None = None
) -> tuple[Floats | float, ...]:
    """Xᵀ diag(h) X, the lower triangle; and Xᵀh and Σ h_i for an intercept.

    Rows whose curvature is below the limit are left out and cost nothing. `output` picks a column of h.
    """
    if output is not None:
        h = np.ascontiguousarray(h[:, output])
    if limit:
        h = np.where(h >= limit, h, 0.0)
    block = shard.block
    matrix = block.gram(h)
    return (matrix, block.transposed(h), float(h.sum())) if intercept else (matrix,)


def joint_hessian(shard: Shard, h: Floats, *, n_classes: int, intercept: bool, loss: VectorLoss) -> tuple[Floats]:
    """Σ_i (H_i)_kl x_i x_iᵀ for every two classes k ≥ l, one below the other: of each matrix the lower triangle.

    Rows have a 1 more for an intercept. `loss` is that of the scores of classes.
    """
    block, d = shard.block, shard.data.n_features
    blocks = np.zeros((n_classes * (n_classes + 1) // 2, d + intercept, d + intercept))
    at = 0
    for k in range(n_classes):
        unit = np.zeros((shard.n_rows, n_classes))
        unit[:, k] = 1.0
        for u in np.ascontiguousarray(loss.hessian_products(h, unit)[:, : k + 1].T):
            blocks[at, :d, :d] = block.gram(u)
            if intercept:
                blocks[at, d, :d], blocks[at, d, d] = block.transposed(u), u.sum()
            at += 1
    return (blocks,)


def gram(shard: Shard, h: Floats) -> tuple[Floats]:
    """Xᵀ diag(h) X, the lower triangle."""
    return (shard.block.gram(h),)


def hessian_diagonal(shard: Shard, h: Floats) -> tuple[Floats | float, ...]:
    """The diagonal of Xᵀ diag(h) X and Σ h_i; for several outputs one matrix, with the sums of the columns below."""
    if h.ndim > 1:
        return (shard.gram_diagonal(h),)
    return shard.block.gram_diagonal(h), float(h.sum())


def squared_features(shard: Shard) -> tuple[Floats]:
    """Σ x_ij² of every feature."""
    return (shard.block.gram_diagonal(np.ones(shard.n_rows)),)


def feature_moments(shard: Shard) -> tuple[Floats, Floats]:
    """Σ x_ij² and Σ x_ij of every feature."""
    block, ones = shard.block, np.ones(shard.n_rows)
    return block.gram_diagonal(ones), block.transposed(ones)


def longest_row(shard: Shard) -> tuple[float]:
    """max ‖x_i‖; one pass, and none when it is asked for again."""
    return (shard.longest_row,)


def mean_squared_norm(shard: Shard, c: Floats, *, most: int) -> tuple[float, int]:
    """Σ c_i‖x_i‖² over the first rows of a shard, and how many those are."""
    n = min(most, shard.n_rows)
    norms = shard.data.rows(shard.start, shard.start + n).squared_norms()
    return float(np.sum(norms * c[:n])), n


def sampled_rows(shard: Shard, y: Floats, c: Floats, *, most: int, seed: int, stratified: bool) -> tuple[list[Block]]:
    """About so many random rows of a shard, with labels and costs: those of the drawn rows stand for all of their kind.

    `stratified` draws as many negative labels as positive ones, where there are enough. Rows that cost nothing are not
    drawn.
    """
    random = np.random.default_rng([seed, shard.start])
    kinds = [(y > 0) & (c > 0), ~(y > 0) & (c > 0)] if stratified else [c > 0]
    rows = [np.flatnonzero(kind) for kind in kinds]
    share = most // len(kinds)
    spare = sum(max(0, share - len(of_kind)) for of_kind in rows)
    drawn = [random.permutation(of_kind)[: share + spare] for of_kind in rows]
    scales = [len(of_kind) / max(1, len(some)) for of_kind, some in zip(rows, drawn, strict=True)]
    costs = np.concatenate([scale * c[some] for scale, some in zip(scales, drawn, strict=True)])
    picked = np.concatenate(drawn)
    block = shard.block.gather(picked)
    return ([replace(block, labels=np.ascontiguousarray(y[picked]), weights=costs, queries=None)],)


# For several problems over the same rows. What lies beside the rows comes as a vector for each problem, what belongs to
# features as a column for each; where each problem has several outputs, these lie side by side.


def batched_scores(shard: Shard, *, w: Floats, b: Floats, outputs: int) -> tuple[Floats, ...]:
    """The scores of every problem by themselves."""
    if outputs == 1:
        return tuple(shard.block.batched_matvec(w, b))
    return tuple(_split(shard.block.scores(w) + b, outputs))


def single_scores(shard: Shard, *, w: Floats, b: Floats, outputs: int) -> Floats:
    """The scores of one problem."""
    return batched_scores(shard, w=w, b=b, outputs=outputs)[0]


def batched_gradients(shard: Shard, *u: Floats) -> tuple[Floats]:
    """Xᵀu_k for every problem, and below it the sums of u_k."""
    return (shard.batched_rmatvec(list(u)) if u[0].ndim == 1 else shard.transposed(np.hstack(u)),)


def batched_hessian_products(shard: Shard, *h: Floats, w: Floats, b: Floats, loss: RowLoss) -> tuple[Floats]:
    """Xᵀ of every row's Hessian times its scores by (w, b), for each problem."""
    if not isinstance(loss, VectorLoss):
        return (shard.batched_gram_matvec(list(h), w, b),)
    outputs = w.shape[1] // len(h)
    parts = _split(shard.block.scores(w), outputs)
    shifts = b.reshape(len(h), outputs)
    for k, (curvature, part) in enumerate(zip(h, parts, strict=True)):
        if loss.has_softmax_curvature:
            apply_softmax_hessians(curvature, np.ascontiguousarray(shifts[k]), part)
        else:
            part[:] = loss.hessian_products(curvature, part + shifts[k])
    return (shard.transposed(np.hstack(parts)),)


def curved_rows(shard: Shard, *h: Floats) -> tuple[Shard | None, list[Floats]]:
    """The rows that have a curvature in any problem (None: all), with their curvatures: for many products."""
    return shard.curved_rows(list(h))


def curved_rows_products(
    shard: Shard, rows: tuple[Shard | None, list[Floats]], *, w: Floats, b: Floats, loss: RowLoss
) -> tuple[Floats]:
    """As `batched_hessian_products`, over the rows that were picked by `curved_rows`."""
    some, h = rows
    return batched_hessian_products(some or shard, *h, w=w, b=b, loss=loss)


def _split(z: Floats, outputs: int) -> list[Floats]:
    """The columns of each problem by themselves."""
    return [np.ascontiguousarray(z[:, k : k + outputs]) for k in range(0, z.shape[1], outputs)]
