"""Small losses that tie rows together: of groups, of all rows, and with parameters of their own."""

from __future__ import annotations

import numpy as np

from beeline.losses import GroupLoss, ScalarLoss

__all__ = ["TOYS", "AllPairs", "AllSoft", "Levels", "ListNet", "PairHinge", "SharpLevels", "SmallChain"]


class ListNet(GroupLoss):
    """The cross-entropy between softmaxes of labels and of scores, within a group."""

    def value_and_grad(self, z, y, weights):
        wanted = weights * np.exp(y - y.max())
        wanted /= wanted.sum()
        found = weights * np.exp(z - z.max())
        total = found.sum()
        value = float(np.sum(wanted * (np.log(total) + z.max() - z)))
        return max(value, 0.0), found / total - wanted


class PairHinge(GroupLoss):
    """The mean hinge of all pairs of a group of which one has the larger label."""

    smooth = False

    def value_and_grad(self, z, y, weights):
        i, j = np.nonzero(y[:, None] > y[None, :])
        slopes = np.zeros_like(z)
        if not len(i):
            return 0.0, slopes
        c = weights[i] * weights[j] / len(i)
        hinge = np.maximum(0.0, 1 - (z[i] - z[j]))
        np.add.at(slopes, i, -c * (hinge > 0))
        np.add.at(slopes, j, c * (hinge > 0))
        return float(np.sum(c * hinge)), slopes


class AllPairs(PairHinge):
    """The same over all rows."""

    scope = "all"


class AllSoft(ListNet):
    """The same over all rows."""

    scope = "all"


class Levels(ScalarLoss):
    """Ordered levels 0 … 3 by three thresholds, all of which each row is compared with, by the logistic loss."""

    free_extra = True

    def n_extra(self, n_outputs):
        return 3

    def value_and_grad(self, z, y):
        margins = z[:, None] - self.extra
        signs = np.where(y[:, None] > np.arange(3), 1.0, -1.0)
        slopes = -signs / (1 + np.exp(signs * margins))
        return np.logaddexp(0, -signs * margins).sum(axis=1), slopes.sum(axis=1), -slopes


class SharpLevels(Levels):
    """The same by the hinge."""

    smooth = False

    def value_and_grad(self, z, y):
        signs = np.where(y[:, None] > np.arange(3), 1.0, -1.0)
        hinge = np.maximum(0.0, 1 - signs * (z[:, None] - self.extra))
        slopes = np.where(hinge > 0, -signs, 0.0)
        return hinge.sum(axis=1), slopes.sum(axis=1), -slopes


class SmallChain(GroupLoss):
    """A sequence of labels 0 … K−1: scores of each row, and K² transitions, which count in Ω; by all K^n sequences."""

    labels = "classes"

    def n_scores(self, n_outputs):
        return n_outputs

    def n_extra(self, n_outputs):
        return n_outputs**2

    def value_and_grad(self, z, y, weights):
        n, k = z.shape
        paths = PATHS[n, k]
        pairs = paths[:, :-1] * k + paths[:, 1:]
        energy = z[np.arange(n), paths].sum(axis=1) + self.extra[pairs].sum(axis=1)
        p = np.exp(energy - energy.max())
        value = float(np.log(p.sum())) + energy.max()
        p /= p.sum()
        truth = y.astype(int)
        steps = truth[:-1] * k + truth[1:]
        slopes = np.stack([np.bincount(paths[:, i], p, k) for i in range(n)])
        slopes[np.arange(n), truth] -= 1
        by_extra = np.bincount(pairs.ravel(), np.repeat(p, n - 1), k * k) - np.bincount(steps, minlength=k * k)
        return value - float(z[np.arange(n), truth].sum() + self.extra[steps].sum()), slopes, by_extra


PATHS = {(n, 3): np.stack(np.meshgrid(*[np.arange(3)] * n, indexing="ij"), axis=-1).reshape(-1, n) for n in range(1, 7)}
TOYS = {kind.name: kind for kind in (ListNet, PairHinge, AllPairs, AllSoft, Levels, SharpLevels, SmallChain)}
