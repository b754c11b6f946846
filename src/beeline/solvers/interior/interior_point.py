"""An interior-point method for losses that are made of flat pieces, with any regularizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beeline._lazy import cached_property
from beeline._types import Floats
from beeline.engines.verbs import products
from beeline.objective import Objective, Point, conjugate_bound
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.interior.systems import system_for
from beeline.solvers.needs import Needs
from beeline.solvers.newton.newton import MOST_FEATURES
from beeline.solvers.state import snapshot_of

__all__ = ["InteriorPoint"]

_BACK = 0.995  # of the way to the nearest wall
_PATIENCE = 6  # steps that may win nothing
_MOST_STEPS = 200
_PARTS, _PARTS_OF_WEIGHTS = ("xi", "eta", "alpha"), ("p", "q", "up", "down")  # of a point inside
_CORRECTORS, _LONG, _LONGER = 2, 0.9, 0.3  # how many; a step that needs none; by how much one is to grow


class InteriorPoint(Solver):
    """Minimises J for a piecewise linear loss with L2, L1 or the elastic net, and weights that may not be negative.

    Along its score the loss of a row is a straight line and kinks, c·l(z) = c·s₀z + Σ_k C_k·max(0, z − κ_k) + const. So
    J is a linear or quadratic programme, whose conditions for an optimum are, with multipliers 0 ≤ α_k ≤ C_k, slopes
    u = c·s₀ + Σ_k α_k, ξ − η = z − κ and w = p − q,

        α η = 0,  (C − α) ξ = 0,  p (l1 + g) = 0,  q (l1 − g) = 0,   g = l2·w + Xᵀu,   Σ u = 0 for a free intercept.

    The zeros become μ, and μ falls to zero. Each iteration solves them linearised, by Mehrotra's predictor and
    corrector (1992): one matrix of features by features (or of rows by rows, where these are fewer), XᵀDX and a
    diagonal, in Cholesky factors, two right sides. Some 10 to 30 iterations do, whatever the scales, the strength and
    the number of rows. Every α is feasible for the dual of J, and gives a bound.

    Weights of an L1 model are never quite zero inside; those that the dual says are not wanted are set to zero at the
    end, where that keeps the tolerance.

    Cost of an iteration: one pass of nnz·(nonzeros a row)/2 steps for the matrix, d³/3 for its factor, and three
    passes. Memory: d² numbers, some twenty a row.
    """

    name = "interior_point"
    needs = Needs(loss=("kinks", "conjugate"), rows="gathered", most_features=MOST_FEATURES)

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One step towards the central path, and along it, at a time."""
        inside = _Inside(objective, objective.null.theta if start is None else start.theta)
        best, bound, still, passes, taken = np.inf, -np.inf, 0, 2.0, 0
        if (saved := snapshot_of(start)) is not None:
            inside.restore(saved["inside"])
            point = Point.restored(objective, saved["point"])
            best, bound, still, passes, taken = saved["numbers"]

        def snapshot() -> dict[str, Any]:
            numbers = [best, bound, still, passes, taken]
            return {"inside": inside.snapshot(), "point": point.snapshot(), "numbers": numbers}

        while taken < _MOST_STEPS:
            if saved is None:
                point = inside.point
                found = conjugate_bound(point, objective.rows.scatter_local(inside.slopes), inside.product)
                wins = point.value < best or found > bound
                best, bound = min(best, point.value), max(bound, found)
                still = 0 if wins else still + 1
                if inside.split and point.value - bound <= self.tol * abs(point.value):
                    point, tried = inside.thinned(bound + self.tol * abs(point.value))
                    passes += tried
                final = still > _PATIENCE
                yield Step(point.theta, point.value, bound, passes, final=final, snapshot=snapshot)
            saved = None
            taken += 1
            if not inside.step():
                break
            passes += 4
        yield Step(point.theta, point.value, bound, passes, final=True)

    def resumes(self, objective: Objective) -> bool:
        """Always."""
        return True


@dataclass
class _Terms:
    """The kinks of all rows, a column for each kink of a row.

    Attributes
    ----------
    at, most
        Where they are, and C: by how much the slope jumps there.
    base
        c·s₀: the slope below all kinks.
    """

    at: Floats
    most: Floats
    base: Floats

    @classmethod
    def of(cls, o: Objective) -> _Terms:
        """As the loss tells them."""
        labels, costs = o.rows.gather_local(o.labels), o.rows.gather_local(o.costs)
        kinks = o.loss.kinks(labels)  # type: ignore[attr-defined]
        at = np.column_stack([np.broadcast_to(scores, len(labels)) for scores, _ in kinks]).astype(np.float64)
        most = np.column_stack([jump * costs for _, jump in kinks])
        first = at.min(axis=1)
        below = first - 1.0 - np.abs(first)
        return cls(at, most, o.loss.slopes(below, labels, costs))


class _Inside:
    """A point inside, and how to get to the next one.

    Attributes
    ----------
    point
        w and b, with J there.
    slopes, product
        u, and Σ u_i x_i with Σ u_i for an intercept.
    """

    def __init__(self, o: Objective, theta: Floats) -> None:
        self.o, self.terms = o, _Terms.of(o)
        self.n = o.n_regularized
        self.l1, self.l2 = o.penalty.l1, o.penalty.l2
        self.split = bool(self.l1) or o.regularizer.nonnegative
        # Without an L2 part a system over the rows has no digits left for the dual in the end.
        few_rows = o.rows.in_memory and o.rows.n_rows < o.size and (self.l2 or o.size > MOST_FEATURES)
        self.transposed = o.rows.local().transpose() if few_rows else None
        self.may_fall = np.ones(self.n, bool)
        if o.regularizer.nonnegative:
            self.may_fall[: o.rows.n_features] = False
            theta = np.where(np.arange(o.size) < o.rows.n_features, np.maximum(theta, 0), theta)
        self.point = o.at(theta)
        self._place()

    def snapshot(self) -> dict[str, Any]:
        """What the next step goes on from."""
        parts = _PARTS + (_PARTS_OF_WEIGHTS if self.split else ())
        return {"theta": self.point.theta, "width": self.width, "parts": {name: getattr(self, name) for name in parts}}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.point, self.width = self.o.at(snapshot["theta"]), snapshot["width"]
        vars(self).update({name: np.array(part) for name, part in snapshot["parts"].items()})
        self._renew()

    def _place(self) -> None:
        """Begin in the middle of what the rows allow, as far from all walls as residuals are from kinks."""
        terms = self.terms
        r = self.o.rows.gather_local(self.point.z)[:, None] - terms.at
        counts = terms.most > 0
        width = float(np.mean(np.abs(r[counts]))) if counts.any() else 1.0
        self.width = width or 1.0
        self.xi, self.eta = np.maximum(r, 0) + self.width, np.maximum(-r, 0) + self.width
        self.alpha = 0.5 * terms.most
        self._renew()
        if self.split:
            size = self.width / self._feature_sizes()
            w = self.point.theta[: self.n]
            self.p, self.q = np.maximum(w, 0) + size, np.where(self.may_fall, np.maximum(-w, 0) + size, 0.0)
            if not self.may_fall.all():
                theta = self.point.theta.copy()
                theta[: self.n] = self.p - self.q
                self._move_to(theta)
            slack = np.maximum(self.l1, np.abs(self.gradient)) + 1e-300
            self.up, self.down = self.l1 + slack, self.l1 + slack

    def _feature_sizes(self) -> Floats:
        """The root of the mean square of every feature; 1 where that is zero, and for an intercept."""
        o = self.o
        (squares,) = o.rows.sum(products.squared_features).value
        sizes = np.append(np.sqrt(squares / max(1, o.rows.n_rows)), np.ones(self.n - o.rows.n_features))
        return np.where(sizes > 0, sizes, 1.0)

    def _move_to(self, theta: Floats) -> None:
        self.point = self.o.at(theta)
        r = self.o.rows.gather_local(self.point.z)[:, None] - self.terms.at
        self.xi, self.eta = np.maximum(r, 0) + self.width, np.maximum(-r, 0) + self.width
        self._renew()

    def _renew(self) -> None:
        """Slopes, their product and the gradient, from the multipliers."""
        self.slopes = self.terms.base + self.alpha.sum(axis=1)
        self.product = self.o.weighted(self.o.rows.scatter_local(self.slopes))
        self.gradient = self.product[: self.n] + self.l2 * self.point.theta[: self.n]

    def products(self, move: _Move | None = None, along: float = 0.0, across: float = 0.0) -> _Products:
        """All that is to be μ, here or after a step."""
        alpha, xi, eta = self.alpha, self.xi, self.eta
        if move is not None:
            alpha, xi, eta = alpha + across * move.alpha, xi + along * move.xi, eta + along * move.eta
        found = _Products(alpha * eta, (self.terms.most - alpha) * xi)
        if not self.split:
            return found
        p, q, up, down = self.p, self.q, self.up, self.down
        if move is not None:
            p, q, up, down = p + along * move.p, q + along * move.q, up + across * move.up, down + across * move.down
        return _Products(found.eta, found.xi, p * up, q * down)

    @cached_property
    def n_products(self) -> int:
        """How many there are."""
        weights = self.n + int(np.count_nonzero(self.may_fall)) if self.split else 0
        return max(1, 2 * int(np.count_nonzero(self.terms.most)) + weights)

    def step(self) -> bool:
        """Predictor, corrector and centrality correctors; False where rounding leaves no way."""
        linearised = _Linearised(self)
        if linearised.system is None:
            return False
        mu = self.products().total / self.n_products
        predicted = linearised.solve(self.products().like(0.0))
        if predicted is None:
            return False
        after = self.products(predicted, *self._room(predicted)).total / self.n_products
        mu *= min(1.0, max(after / mu, 0.0) ** 3) if mu > 0 else 0.0
        targets = self.products().like(mu).minus(predicted.products)
        move = linearised.solve(targets)
        if move is None:
            return False
        move = self._corrected(linearised, move, targets, mu)
        along, across = self._room(move)
        if self.l2:
            along = across = min(along, across)
        self._take(move, along, across)
        return max(along, across) > 1e-10

    def _corrected(self, linearised: _Linearised, move: _Move, targets: _Products, mu: float) -> _Move:
        """A step that may be longer (Gondzio 1996): products that a longer one would take off the path are aimed at."""
        for _ in range(_CORRECTORS):
            along, across = self._room(move)
            if min(along, across) > _LONG:
                break
            there = self.products(move, min(1.0, along + _LONGER), min(1.0, across + _LONGER))
            targets = targets.plus(there.missing(mu))
            other = linearised.solve(targets)
            if other is None or min(self._room(other)) < min(along, across) + 0.1 * _LONGER:
                break
            move = other
        return move

    def _room(self, move: _Move) -> tuple[float, float]:
        """How far the primal and the dual part may go and stay inside, at most 1."""
        counts = self.terms.most > 0
        left = self.terms.most - self.alpha
        along = min(_limit(self.xi, move.xi, counts), _limit(self.eta, move.eta, counts))
        across = min(_limit(self.alpha, move.alpha, counts), _limit(left, -move.alpha, counts))
        if self.split:
            every = np.ones(self.n, bool)
            along = min(along, _limit(self.p, move.p, every), _limit(self.q, move.q, self.may_fall))
            across = min(across, _limit(self.up, move.up, every), _limit(self.down, move.down, self.may_fall))
        return along, across

    def _take(self, move: _Move, along: float, across: float) -> None:
        theta = self.point.theta + along * move.theta
        if self.split:
            self.p, self.q = self.p + along * move.p, self.q + along * move.q
            self.up, self.down = self.up + across * move.up, self.down + across * move.down
            theta[: self.n] = self.p - self.q
        self.alpha = np.clip(self.alpha + across * move.alpha, 0.0, self.terms.most)
        self.point = self.o.at(theta)
        self.xi, self.eta = self.xi + along * move.xi, self.eta + along * move.eta
        # What rounding has done to ξ − η = z − κ is given to the larger of the two.
        off = self.o.rows.gather_local(self.point.z)[:, None] - self.terms.at - (self.xi - self.eta)
        self.xi, self.eta = self.xi + np.maximum(off, 0), self.eta + np.maximum(-off, 0)
        self._renew()

    def thinned(self, limit: float) -> tuple[Point, int]:
        """(the point without the weights that the dual does not want, if J stays below a limit; passes).

        Of a weight and its slack one is nothing in the end. Each is measured by the mean of its kind.
        """
        w = np.abs(self.point.theta[: self.n])
        slack = np.minimum(self.up, np.where(self.may_fall, self.down, np.inf))
        weight = w * float(slack.mean())
        for k, part in enumerate((1.0, 1e-2, 1e-4)):
            theta = self.point.theta.copy()
            theta[: self.n][weight < part * slack * float(w.mean())] = 0.0
            thin = self.o.at(theta)
            if thin.value <= limit:
                return thin, k + 1
        return self.point, 3


_Parts = tuple[Floats, Floats, Floats, Floats]


@dataclass(frozen=True)
class _Products:
    """What is to be μ, or what each is to become: α η, (C − α) ξ, p (l1 + g) and q (l1 − g)."""

    eta: Floats
    xi: Floats
    p: Floats = field(default_factory=lambda: np.zeros(0))
    q: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def total(self) -> float:
        """Their sum."""
        return float(self.eta.sum() + self.xi.sum() + self.p.sum() + self.q.sum())

    def like(self, mu: float) -> _Products:
        """The same, all of them μ."""
        return self._map(lambda part: np.full(part.shape, mu))

    def minus(self, other: _Products) -> _Products:
        """Differences."""
        return _Products(self.eta - other.eta, self.xi - other.xi, self.p - other.p, self.q - other.q)

    def plus(self, other: _Products) -> _Products:
        """Sums."""
        return _Products(self.eta + other.eta, self.xi + other.xi, self.p + other.p, self.q + other.q)

    def missing(self, mu: float) -> _Products:
        """What is missing to [μ/10, 10μ]."""
        return self._map(lambda part: np.maximum(np.clip(part, 0.1 * mu, 10 * mu) - part, -10 * mu))

    def _map(self, change: Callable[[Floats], Floats]) -> _Products:
        return _Products(change(self.eta), change(self.xi), change(self.p), change(self.q))


@dataclass(frozen=True)
class _Move:
    """A step of everything."""

    theta: Floats
    xi: Floats
    eta: Floats
    alpha: Floats
    p: Floats = field(default_factory=lambda: np.zeros(0))
    q: Floats = field(default_factory=lambda: np.zeros(0))
    up: Floats = field(default_factory=lambda: np.zeros(0))
    down: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def products(self) -> _Products:
        """What is not linear in a step."""
        return _Products(self.alpha * self.eta, -self.alpha * self.xi, self.p * self.up, self.q * self.down)


class _Linearised:
    """The conditions, linearised at a point inside."""

    def __init__(self, at: _Inside) -> None:
        self.at = at
        most, left = at.terms.most, at.terms.most - at.alpha
        self.counts = most > 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            D = np.where(self.counts, 1 / (at.xi / left + at.eta / at.alpha), 0.0)
        self.D = np.where(np.isfinite(D), D, 0.0)
        self.W = np.zeros(at.n)
        if at.split:
            with np.errstate(over="ignore"):
                self.W = 1 / (at.p / at.up + np.where(at.may_fall, at.q / at.down, 0.0))
        self.system = system_for(at.o, at.transposed, self.D.sum(axis=1), at.l2 + self.W)

    def solve(self, targets: _Products) -> _Move | None:
        """The step after which the products would be what is aimed at, if they were linear."""
        at, o, counts = self.at, self.at.o, self.counts
        left = at.terms.most - at.alpha
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            low = np.where(counts, targets.eta / at.alpha, 0.0)  # what η is to become, where α stays
            high = np.where(counts, targets.xi / left, 0.0)
        rho = at.xi - at.eta + low - high
        tau, parts = self._weights(targets) if at.split else (np.zeros(at.n), None)
        if not np.isfinite(tau).all():
            return None
        right = self.W * tau if at.split else -at.gradient
        assert self.system is not None
        step = self.system.solve(right, (self.D * rho).sum(axis=1), -float(at.slopes.sum()))
        if step is None:
            return None
        dz = o.rows.gather_local(o.scores(step))[:, None]
        alpha = self.D * (dz + rho)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            eta = np.where(counts, low - at.eta - at.eta / at.alpha * alpha, -np.minimum(dz, 0))
            xi = np.where(counts, high - at.xi + at.xi / left * alpha, np.maximum(dz, 0))
        move = _Move(step, xi, eta, alpha)
        return move if parts is None else self._with_weights(move, tau, parts)

    def _weights(self, targets: _Products) -> tuple[Floats, _Parts]:
        """(τ, how p and q are to move where slacks stay, with what the slacks miss)."""
        at = self.at
        up, down = at.l1 + at.gradient - at.up, at.l1 - at.gradient - at.down
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a move that is no number is not made
            p = targets.p / at.up - at.p - at.p / at.up * up
            q = np.where(at.may_fall, targets.q / at.down - at.q - at.q / at.down * down, 0.0)
            return p - q, (p, q, up, down)

    def _with_weights(self, move: _Move, tau: Floats, parts: _Parts) -> _Move:
        at = self.at
        p, q, up, down = parts
        gradient = -self.W * (move.theta[: at.n] - tau)
        with np.errstate(invalid="ignore", over="ignore"):
            p = p - at.p / at.up * gradient
            q = np.where(at.may_fall, q + at.q / at.down * gradient, 0.0)
        return replace(move, p=p, q=q, up=gradient + up, down=np.where(at.may_fall, down - gradient, 0.0))


def _limit(at: Floats, step: Floats, which: NDArray[np.bool_]) -> float:
    """How far along a step all of the chosen numbers stay positive, at most 1."""
    back = which & (step < 0)
    if not back.any():
        return 1.0
    return min(1.0, _BACK * float((at[back] / -step[back]).min()))
