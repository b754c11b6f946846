"""L-BFGS: smooth losses by their gradients alone, with L2; by orthants, with L1 and the elastic net."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from beeline._types import Floats
from beeline.kernels import add_scaled, dot
from beeline.losses import ThresholdLoss
from beeline.objective import Objective, Point
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.bundle.planes import with_best_intercepts
from beeline.solvers.needs import Needs
from beeline.solvers.newton.newton import line_search
from beeline.solvers.options import SolverOptions, option
from beeline.solvers.state import snapshot_of, theta_of

__all__ = ["LBFGS", "LBFGSOptions"]

_HALVINGS = 40
_SUFFICIENT = 1e-4  # of what the slope promises
_NOISE = 1e-14  # of J, that its sum over the rows may be off: below it, slopes say more than J does
_LEVEL = 1e-2  # of the tolerance, that intercepts which are not quite the best may cost
_PATIENCE = 20  # steps that may win nothing


@dataclass(frozen=True, kw_only=True)
class LBFGSOptions(SolverOptions):
    """Options of L-BFGS."""

    history: int = option(10, "How many of the last steps stand for the Hessian.", least=1)


class LBFGS(Solver):
    """Minimises a smooth loss, of which it asks for values and slopes only (B8; section 4.2 of the paper).

    J(θ) is lowered along −H∂J(θ), where H stands for the inverse of the Hessian: it is made of the last `history` steps
    and of what they did to the gradient (Nocedal 1980). With L2 the scores move with the step, so that the line search
    costs no pass; the bound is that of lemma 5, J − ‖∂J‖²/(2λ).

    With an L1 part, or weights that may not be negative, it works within an orthant (OWL-QN; Andrew & Gao 2007): where
    a weight is zero, the derivative on the side to which J falls stands for the gradient; the step keeps its signs, and
    a weight that would change its own becomes zero. That method alone may stop short of the optimum. So, as in Gong &
    Ye (2015), a step that does not lower J enough gives way to a proximal gradient step, which always does at a point
    that is not optimal. The bound is the dual value at the scaled slopes, as for `L1CD`.

    A free intercept is the best one at every point. So are thresholds between levels, and H counts these from the score
    of the mean row, so that it is the same wherever features have their zeros; that mean costs one pass.

    Of a loss that says it is not convex it finds a local minimum, or nearly: it ends, without a certificate, once the
    gradient has fallen to `tol` of what it is at zero weights. A free intercept is one more coordinate then.

    Cost of an iteration: one pass for the gradient and one for the scores of the step; one for each step that is tried
    with L1, nearly always one. Memory: 2·`history` vectors of weights, a few of rows. A result's `facts` have its
    significant figures, −log₁₀ of the gap relative to the mean of J and its bound.

    Options are those of `LBFGSOptions`.
    """

    name = "lbfgs"
    needs = Needs(loss=("smooth",), convex=False, level_intercepts=True, own_omega="differentiable")
    kind_of_options = LBFGSOptions
    options: LBFGSOptions

    def resumes(self, objective: Objective) -> bool:
        """Always."""
        return True

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One step along −H∂J at a time."""
        level = with_best_intercepts if objective.loss.convex else _as_it_is
        mean = _mean_row(objective)
        pairs, bound, still = _Pairs(self.options.history, mean), -math.inf, 0
        small = 0.0 if objective.loss.convex else self.tol * _norm_of_gradient(objective.at())
        if (saved := snapshot_of(start)) is None:
            point, passes = level(objective.at(_allowed(objective, start)), _LEVEL * self.tol), float(start is not None)
            passes += float(mean is not None)
        else:
            point, (passes, bound, still) = Point.restored(objective, saved["point"]), saved["counters"]
            pairs.kept.extend((np.array(s), np.array(y), product) for s, y, product in saved["pairs"])

        def snapshot() -> dict[str, Any]:
            return {"point": point.snapshot(), "counters": [passes, bound, still], "pairs": list(pairs.kept)}

        while True:
            if saved is None:
                passes += 1
                still = 0 if point.bound > bound else still + 1
                bound = max(bound, point.bound)
            facts = {"significant_figures": significant_figures(point.value, bound)}
            is_small = small > 0 and _norm_of_gradient(point) <= small
            ending = f"its gradient has fallen to {self.tol:g} of what it is at zero weights" if is_small else ""
            if saved is None:
                yield Step(point.theta, point.value, bound, passes, facts=facts, ending=ending, snapshot=snapshot)
            saved = None
            moved, cost = _next(point, pairs)
            passes += cost
            if moved is None or (still > _PATIENCE and moved.value >= point.value):
                yield Step(point.theta, point.value, bound, passes, final=True, facts=facts)
                return
            gap = (point.value - bound) / abs(point.value) if point.value else 0.0
            moved = level(moved, _LEVEL * max(self.tol, min(gap, _LEVEL)))
            pairs.add(moved.theta - point.theta, smooth_gradient(moved) - smooth_gradient(point))
            point.forget()
            point = moved


def _allowed(objective: Objective, start: State | None) -> Floats | None:
    """The θ of a start, without negative weights where there may be none."""
    theta = theta_of(start)
    if theta is None or not objective.regularizer.nonnegative:
        return theta
    signed = objective.n_weights
    return np.append(np.maximum(theta[:signed], 0), theta[signed:])


def significant_figures(value: float, bound: float) -> float:
    """−log₁₀(2(J − J⁻)/(|J| + |J⁻|)); the paper prints it without the sign."""
    gap, size = value - bound, abs(value) + abs(bound)
    if gap <= 0 or not math.isfinite(gap):
        return math.inf if gap <= 0 else -math.inf
    return -math.log10(2 * gap / size)


def _as_it_is(point: Point, accuracy: float) -> Point:
    """The point with the intercepts that it has: without convexity, those that are level need not be the best."""
    return point


def _norm_of_gradient(point: Point) -> float:
    g = pseudo_gradient(point)
    return math.sqrt(dot(g, g))


def smooth_gradient(point: Point) -> Floats:
    """The gradient of J without its L1 part; no pass once the point has its gradient."""
    o = point.objective
    gradient = point.loss_gradient.copy()
    add_scaled(o.strength * o.regularizer.l2, point.theta[: o.n_regularized], gradient[: o.n_regularized])
    if (own := point.omega_remainder) is not None:
        gradient[: o.n_regularized] += own[1]
    return gradient


def _mean_row(objective: Objective) -> Floats | None:
    """The mean of the rows, where a loss owns thresholds to which all scores may shift; one pass."""
    if not isinstance(objective.loss, ThresholdLoss):
        return None
    mean: Floats = objective.weighted_sums(objective.costs).value[0] / objective.total_cost
    return mean


class _Pairs:
    """Steps s and changes y of the gradient: what H is made of.

    Where there are thresholds, these are counted from the score of the mean row, as if features were centred: along a
    feature that is far from zero all scores would otherwise shift with every step, of which H would have to learn.
    """

    def __init__(self, history: int, mean: Floats | None = None) -> None:
        self.kept: deque[tuple[Floats, Floats, float]] = deque(maxlen=history)
        self.mean = mean

    def shift_thresholds(self, theta: Floats, before: Floats | None = None, sign: float = 1.0) -> None:
        """Let thresholds follow the score of the mean row as far as weights move; with the sign −1, count from it."""
        if self.mean is not None:
            n = len(self.mean)
            moved = theta[:n] if before is None else theta[:n] - before[:n]
            theta[n:] += sign * dot(self.mean, moved)

    def _centre_slopes(self, g: Floats) -> None:
        """Let a gradient be one by these coordinates."""
        if self.mean is not None:
            n = len(self.mean)
            add_scaled(float(np.sum(g[n:])), self.mean, g[:n])

    def add(self, s: Floats, y: Floats) -> None:
        """One more pair, which is changed in place, unless it shows no curvature, or so little that it is nothing."""
        self.shift_thresholds(s, sign=-1.0)
        self._centre_slopes(y)
        product, square = dot(s, y), dot(y, y)
        if square >= sys.float_info.min and product > 1e-12 * math.sqrt(dot(s, s)) * math.sqrt(square):
            self.kept.append((s, y, product))

    def times(self, g: Floats) -> Floats:
        """Hg, by the two loops of Nocedal."""
        q, parts = g.copy(), []
        self._centre_slopes(q)
        for s, y, product in reversed(self.kept):
            part = dot(s, q) / product
            parts.append(part)
            add_scaled(-part, y, q)
        if self.kept:
            _, y, product = self.kept[-1]
            q *= product / dot(y, y)
        for (s, y, product), part in zip(self.kept, reversed(parts), strict=True):
            add_scaled(part - dot(y, q) / product, s, q)
        return q


def _next(point: Point, pairs: _Pairs) -> tuple[Point | None, float]:
    """(the next point, passes it took); None when J cannot be lowered in double precision."""
    attempt = _along_line if point.objective.regularizer.smooth else _within_orthant
    moved, cost = attempt(point, pairs)
    if moved is None and pairs.kept:  # what was learned misleads
        pairs.kept.clear()
        moved, more = attempt(point, pairs)
        cost += more
    return moved, cost


def _first_step(point: Point, g: Floats) -> float:
    """How far to go against the gradient when nothing is known: to where J would be zero if it fell on like that.

    A loss that may be negative says nothing by the sign of J, nor by a J of zero.
    """
    square = dot(g, g)
    return (abs(point.value) or 1.0) / square if square else 0.0


def _along_line(point: Point, pairs: _Pairs) -> tuple[Point | None, float]:
    """A step that lowers J and at whose end it falls less steeply."""
    g = point.gradient
    direction = -pairs.times(g) * (1.0 if pairs.kept else _first_step(point, g))
    pairs.shift_thresholds(direction)
    slope = dot(g, direction)
    if not slope < 0:
        return None, 0.0
    line = point.line(direction)
    t = line_search(line, slope, _SUFFICIENT, flat=0.9)
    return (line.move(t) if t else None), 1.0


def pseudo_gradient(point: Point) -> Floats:
    """∂J, at a zero weight the one of its subgradients that is nearest to zero."""
    o, n = point.objective, point.objective.n_regularized
    l1 = o.strength * o.regularizer.l1
    g = smooth_gradient(point)
    part = g[:n]
    at_zero = np.sign(part) * np.maximum(np.abs(part) - l1, 0)
    if signed := _signed(point):
        at_zero[:signed] = np.minimum(part[:signed] + l1, 0)
    g[:n] = np.where(point.theta[:n] != 0, part + l1 * np.sign(point.theta[:n]), at_zero)
    return g


def _signed(point: Point) -> int:
    """How many weights, counted from the first, may not be negative."""
    o = point.objective
    return o.n_weights if o.regularizer.nonnegative else 0


def _within_orthant(point: Point, pairs: _Pairs) -> tuple[Point | None, float]:
    """A step by H within the orthant that J falls into, or else a proximal gradient step."""
    n = point.objective.n_regularized
    g = pseudo_gradient(point)
    direction = -pairs.times(g) * (1.0 if pairs.kept else _first_step(point, g))
    direction[:n][direction[:n] * g[:n] > 0] = 0.0
    if not dot(g, direction) < 0:
        return _by_proximity(point, pairs, 1.0)
    orthant = np.where(point.theta[:n] != 0, np.sign(point.theta[:n]), -np.sign(g[:n]))
    t, passes = 1.0, 0.0
    for _ in range(_HALVINGS if not pairs.kept else 6):
        theta = point.theta + t * direction
        theta[:n][theta[:n] * orthant <= 0] = 0.0
        pairs.shift_thresholds(theta, point.theta)
        moved = point.objective.at(theta)
        passes += 1
        promise = dot(g, theta - point.theta)
        if promise < 0 and moved.value <= point.value + max(_SUFFICIENT * promise, promise + _NOISE * point.value):
            return moved, passes
        if not promise < 0:
            break
        t *= 0.5 if pairs.kept else 0.2
    moved_by, more = _by_proximity(point, pairs, t)
    return moved_by, passes + more


def _by_proximity(point: Point, pairs: _Pairs, t: float) -> tuple[Point | None, float]:
    """A proximal gradient step: weights move against the gradient, and then towards zero by the L1 part."""
    o, n = point.objective, point.objective.n_regularized
    g, l1 = smooth_gradient(point), o.strength * o.regularizer.l1
    unit, passes = _first_step(point, g), 0.0
    for _ in range(_HALVINGS):
        theta = point.theta - t * unit * g
        theta[:n] = np.sign(theta[:n]) * np.maximum(np.abs(theta[:n]) - t * unit * l1, 0)
        theta[: _signed(point)] = np.maximum(theta[: _signed(point)], 0)
        step = theta - point.theta
        fall = dot(step, step) / (2 * t * unit) if t * unit else 0.0
        if not fall > 1e-24 * abs(point.value):
            return None, passes
        pairs.shift_thresholds(theta, point.theta)
        moved = o.at(theta)
        passes += 1
        if moved.value <= point.value - min(_SUFFICIENT * fall, fall - _NOISE * point.value):
            return moved, passes
        t *= 0.3
    return None, passes
