"""J by formulas in NumPy alone with more digits, and a low J found by SciPy: nothing of the solvers' own code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from beeline.losses import GroupLoss, Loss, RowLoss
from beeline.objective import Objective

__all__ = ["Reference"]

_WIDTHS = (0.1, 1e-3)


@dataclass(frozen=True, eq=False)
class Reference:
    """J of a problem whose rows are a dense matrix."""

    objective: Objective
    matrix: np.ndarray
    starts: np.ndarray | None = None

    @cached_property
    def labels(self) -> np.ndarray:
        """y."""
        return self.objective.rows.gather(self.objective.labels)

    @cached_property
    def costs(self) -> np.ndarray:
        """c."""
        return self.objective.rows.gather(self.objective.costs)

    def value(self, theta: np.ndarray) -> float:
        """J(θ), in the widest floating-point numbers that NumPy has."""
        o = self.objective
        w, b = (part.astype(np.longdouble) for part in o.split(theta))
        if o.regularizer.nonnegative and theta[: o.n_weights].min(initial=0.0) < 0:
            return np.inf
        weights = theta[: o.n_regularized].astype(np.longdouble)
        with np.errstate(all="ignore"):
            z = self.matrix.astype(np.longdouble) @ w + b
            omega = o.regularizer.l1 * np.abs(weights).sum() + 0.5 * o.regularizer.l2 * (weights**2).sum()
            return float(o.strength * omega + self._sum(self._at(theta, o.loss), z))

    def _at(self, theta: np.ndarray, loss: Loss) -> Loss:
        """The loss with the parameters that it owns, and with its groups."""
        p = self.objective.parameters
        loss = loss.with_extra(p.extra(theta)) if p.n_extra else loss
        return loss.within(self.starts) if isinstance(loss, GroupLoss) else loss

    def _sum(self, loss: Loss, z: np.ndarray) -> np.longdouble:
        """Σ c_i l(z_i, y_i); of rows together what the loss says, which has twins among the tests."""
        if isinstance(loss, GroupLoss):
            return np.longdouble(loss.sum(z.astype(np.float64), self.labels, self.costs))
        losses, *_ = loss.value_and_grad(z, self.labels.astype(np.longdouble))
        counted = np.where(self.costs > 0, losses, 0)
        return (self.costs * counted).sum()

    def lowest(self, starts: list[np.ndarray], others: list[np.ndarray]) -> float:
        """The least J among all points, and of those that SciPy's L-BFGS-B finds from the starts."""
        best = min(self.value(theta) for theta in (*starts, *others))
        for start in starts:
            theta = start
            for loss in self._losses():  # with kinks rounded off less and less
                theta = self._descend(theta, loss)
                best = min(best, self.value(theta))
        return best

    def _losses(self) -> list[Loss]:
        loss = self.objective.loss
        if loss.smooth:
            return [loss]
        if loss.has_smoothed:
            width = loss.natural_width(float(np.std(self.labels)))
            return [loss.smoothed(part * width) for part in _WIDTHS]
        return [loss]

    def _descend(self, theta: np.ndarray, loss: Loss) -> np.ndarray:
        """L-BFGS-B over positive and negative parts of the weights, each in units of its feature's size."""
        o, y, costs = self.objective, self.labels, self.costs
        k, n, m = o.n_outputs, o.n_weights, o.n_regularized
        spread = np.sqrt(np.mean(self.matrix**2, axis=0))
        unit = np.ones(o.size)
        unit[:n] = np.repeat(1 / np.where(spread > 0, spread, 1.0), k)
        numbers = np.abs(y) if o.loss.labels in ("real", "vectors") and o.loss.link == "none" else np.ones(1)
        unit *= max(float(np.std(y)) if numbers.size > 1 else 1.0, 1e-300) or 1.0
        lower = np.where(np.arange(m) < n, 0.0, -np.inf) if o.regularizer.nonnegative else np.full(m, -np.inf)
        bounds = [(0, None)] * m + [(0, None if low < 0 else 0) for low in lower] + [(None, None)] * (o.size - m)
        l1, l2 = o.strength * o.regularizer.l1, o.strength * o.regularizer.l2
        scale = max(self.value(theta), 1e-300)

        def both(v: np.ndarray) -> tuple[float, np.ndarray]:
            weights = np.append(v[:m] - v[m : 2 * m], v[2 * m :]) * unit
            w, b = o.split(weights)
            total, u, by_extra = _sum_and_slopes(self._at(weights, loss), self.matrix @ w + b, y, costs)
            gradient = np.append((self.matrix.T @ u).ravel(), by_extra)
            gradient = np.append(gradient, u.sum(axis=0)) if o.has_intercept else gradient
            smooth = gradient[:m] + l2 * weights[:m]
            sizes = (v[:m] + v[m : 2 * m]) * unit[:m]
            value = float(l1 * sizes.sum() + 0.5 * l2 * (weights[:m] ** 2).sum() + total)
            slope = np.concatenate([(smooth + l1) * unit[:m], (l1 - smooth) * unit[:m], gradient[m:] * unit[m:]])
            if not (np.isfinite(value) and np.isfinite(slope).all()):
                return 1e300, np.zeros_like(slope)
            return value / scale, slope / scale

        options = {"maxiter": 60, "maxfun": 100, "ftol": 1e-15, "gtol": 1e-12, "maxcor": 30}
        with np.errstate(all="ignore"):  # what is no number is no better point
            scaled = theta / unit
            start = np.concatenate([np.maximum(scaled[:m], 0), np.maximum(-scaled[:m], 0), scaled[m:]])
            found = minimize(both, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
            return np.append(found[:m] - found[m : 2 * m], found[2 * m :]) * unit


def _sum_and_slopes(loss: Loss, z: np.ndarray, y: np.ndarray, c: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Σ c_i l(z_i, y_i) and its derivatives by the scores, and by the parameters that the loss owns."""
    if isinstance(loss, GroupLoss):
        return loss.sum(z, y, c), loss.slopes(z, y, c), np.zeros(0)
    assert isinstance(loss, RowLoss)
    losses, slopes, *by_extra = loss.value_and_grad(z, y)
    of_extra = c @ by_extra[0] if by_extra else np.zeros(0)
    return float(c @ losses), (c if slopes.ndim == 1 else c[:, None]) * slopes, of_extra
