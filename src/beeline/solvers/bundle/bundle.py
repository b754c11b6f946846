"""The bundle method for regularized risk minimization: any convex loss, with L2, L1 or the elastic net."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from beeline._types import Floats
from beeline.engines.verbs import columns
from beeline.exceptions import ParameterError
from beeline.objective import Line, Objective, Penalty, Point
from beeline.objective.certificates import Allowance
from beeline.objective.intercepts import newton_shifted
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.bundle.centre import CentredModel
from beeline.solvers.bundle.line_search import is_piecewise_linear, least, line_minimum
from beeline.solvers.bundle.lp import LinearProgramModel, UnsolvableError
from beeline.solvers.bundle.models import Minimum, PlanesModel, QuadraticModel, SinglePlane
from beeline.solvers.bundle.planes import (
    Plane,
    Planes,
    balances,
    tangent,
    with_best_intercepts,
    with_best_intercepts_and_tangent,
)
from beeline.solvers.needs import Needs
from beeline.solvers.options import SolverOptions, option
from beeline.solvers.state import snapshot_of

__all__ = ["Bundle", "BundleOptions"]

Variant = Literal["ocas", "bmrm", "line"]
Bounds = tuple[float | Floats, float | Floats]

_NONNEGATIVE: Bounds = (0.0, np.inf)

_MIX = 0.1  # of the model's minimum, in the point where a plane is taken
_STRIDE = 4.0  # at most so many times the step of the best point
_NEAREST = 1e-3
_FIRST_LEAN = 1e-3  # of an intercept, that is looked at before any is known
_SHORTEST = 1e-12  # step at which a line search looks first: steps of zero must not halve it to nothing
_HIGHEST = 1e6  # times J at the best point or at zero, that J may be where a plane is taken
_SMOOTHING = 0.02  # of the gap, that rounding the kinks of several scores may cost a plane
_FAR, _ROUGH = 3.0, 1e-3  # times the tolerance, and of J, that the gap exceeds while steps may be rough
_ROUGH_STEP = 5e-4  # of the gap, that a line search may leave
_SLACKS = (0.01, 0.1, 0.5)  # of λ: a weight with more may be zero
_PATIENCE, _PROGRESS = 100, 0.98  # steps in which the gap must fall by a little before the solver gives up
_PLANES_BYTES = 1 << 29
_MOST_PLANES, _FEWEST_PLANES = 500, 20
_OF_PROGRESS = ("value", "bound", "still", "planes", "noted", "step", "lean")  # what changes from step to step

_NEEDS_OF_LINE = Needs(
    omega="l2_part",
    own_omega="any",
    level_intercepts=True,
    instead={
        "omega": "needs an L2 part in the regularizer for variant='line', unlike {omega!r}",
        "level_intercepts": "needs a loss without kinks for several free intercepts and variant='line', "
        "unlike {loss!r}",
    },
)


@dataclass(frozen=True, kw_only=True)
class BundleOptions(SolverOptions):
    """Options of the bundle method."""

    variant: Variant = option(  # noqa: RUF009 — a field
        "ocas", "Where planes are taken: `ocas`, `bmrm` or `line`.", choices=get_args(Variant)
    )
    nonnegative: bool = option(False, "No weight may be negative, as a regularizer may say too.")
    bounds: Bounds | None = option(  # noqa: RUF009 — a field
        None, "(lower, upper) bounds of the weights, a number for all or one for each; zero must lie within."
    )
    max_planes: int | None = option(
        None,
        "How many planes are kept at most; None: as many as fit 512 MB, or a quarter of the memory that was said, "
        "between 20 and 500.",
        least=4,
    )
    idle: int = option(20, "After so many steps without a part in the model's solution a plane is dropped.", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds is None:
            return
        if self.nonnegative:
            raise ParameterError(
                "nonnegative=True is the same as bounds=(0, inf); leave one of them out", parameter="solver"
            )
        try:
            low, high = (np.asarray(side, dtype=np.float64) for side in self.bounds)
        except (TypeError, ValueError):
            raise ParameterError(
                f"the solver's bounds must be a pair, (lower, upper), of numbers, not {self.bounds!r}",
                parameter="solver",
            ) from None
        if not (np.all(low <= 0) and np.all(high >= 0)):
            raise ParameterError("zero must lie within the bounds of the weights", parameter="solver")

    def refine(self, needs: Needs) -> Needs:
        """An L2 part where there is no programme; and bounds that contradict no regularizer."""
        if self.variant == "line":
            needs = _NEEDS_OF_LINE
        if self.bounds is not None and np.any(np.asarray(self.bounds[0]) < 0):
            below = "was given bounds below zero, which {omega!r} rules out; leave one of them out"
            needs = replace(needs, nonnegative=False, instead={**needs.instead, "nonnegative": below})
        return needs

    @property
    def of_weights(self) -> Bounds | None:
        """The bounds, also where they are said by `nonnegative`."""
        return _NONNEGATIVE if self.nonnegative else self.bounds


class Bundle(Solver):
    """Minimises any convex loss with L2, L1 or elastic net regularization (Teo, Smola, Vishwanathan & Le 2007).

    The problem is J(w, b) = strength·Ω(w) + R(w, b), R the sum of the losses. R lies above its tangent planes; a model
    of J is Ω plus the largest of those found so far. Each step minimises the model, which gives a lower bound J⁻ of
    min J, and adds a plane. The variants differ in where it touches R:

    - `bmrm` (algorithm 1): at the model's minimum w_t. J there goes up and down.
    - `ocas` (Franc & Sonnenburg 2009): the best point so far moves towards w_t as far as J falls, exactly so for a
      piecewise linear loss, and the plane is taken near it, a tenth of the way on to w_t, but, unlike there, no farther
      than four times the step. J never rises, and there are far fewer steps. Also unlike there, a plane of a piecewise
      linear loss is a mean of the tangents on an interval of the line around that point, row by row: where there are
      more features than rows, most rows end up at their kinks, and planes that take these by parts say much more.
    - `line`: as `bmrm`, with a model of one plane only, which is mixed with each new one by a line search (section 6).

    The model is minimised by its dual, a quadratic programme over the planes (12), where Ω has an L2 part; by the
    linear programme (11) for L1, of which `ocas` takes centres, and vertices only near the end. By theorem 2 the number
    of steps is O(1/(λε)) for a gap of ε, whatever the number of rows.

    Unlike in the paper, a free intercept is allowed: planes are taken of R minimised over the intercept, where that
    follows from the scores; for several outputs with kinks, with these rounded off; where a loss has no smoothed form,
    the intercepts are part of the model.

    Cost of a step: one pass for the scores of a direction, one for the slope of a plane, and planes × features steps.
    Memory: planes × features numbers, and a few vectors of rows. A result's `facts` have the number of planes, their
    bytes, and the bound (13) on the number of steps.

    Options are those of `BundleOptions`.
    """

    name = "bundle"
    needs = Needs(own_omega="any")
    kind_of_options = BundleOptions
    options: BundleOptions

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One plane at a time."""
        penalty = self._penalty(objective)
        model, run = self._model(objective, penalty), _Progress(objective, self.tol)
        if (saved := snapshot_of(start)) is None:
            best, passes = objective.at(_allowed(objective, penalty, start)), float(start is not None)
            plane, best = tangent(best, run.accuracy)
        else:
            best, passes = Point.restored(objective, saved["best"]), saved["passes"]
            weights, intercepts = saved["minimum"]
            minimum = Minimum(np.array(weights), np.array(intercepts), saved["bound"])
            model.restore(saved["model"])
            run.restore(saved["run"])

        def snapshot() -> dict[str, Any]:
            of_minimum = {"minimum": [minimum.weights, minimum.intercepts], "bound": minimum.bound}
            of_run = {"run": run.snapshot(), "model": model.snapshot(), "passes": passes}
            return {"best": best.snapshot(), **of_minimum, **of_run}

        goes_on: dict[str, Any] = {"snapshot": snapshot} if self.resumes(objective) else {}
        while True:
            if saved is None:
                passes += 1
                _check(best)
                model.add(plane)
                try:
                    minimum = _minimised(model, penalty, min(run.gap, best.value))  # J is never negative
                except UnsolvableError:
                    yield Step(best.theta, best.value, run.bound, passes, final=True, facts=run.facts(model, penalty))
                    return
                if minimum.slack is not None and best.value - minimum.bound <= self.tol * best.value:
                    best, tried = _sparsified(best, minimum.slack, run.accuracy)
                    passes += tried
                final, facts = run.note(best.value, minimum.bound), run.facts(model, penalty)
                yield Step(best.theta, best.value, minimum.bound, passes, final=final, facts=facts, **goes_on)
            saved = None
            passes += 1
            best, plane, again = self._next_plane(best, minimum, run, penalty)
            passes += again

    def resumes(self, objective: Objective) -> bool:
        """Where a model lies in its planes alone: a linear programme lives in HiGHS, with what that has learned."""
        return self.options.variant == "line" or bool(self._penalty(objective).l2)

    def _next_plane(self, best: Point, minimum: Minimum, run: _Progress, penalty: Penalty) -> tuple[Point, Plane, int]:
        """(the best point so far, the next plane, passes beyond the two of every step)."""
        o = best.objective
        if self.options.variant != "ocas":
            plane, near = tangent(o.at(_theta(best, minimum)), run.accuracy)
        elif is_piecewise_linear(o) and o.intercept != "free":
            return _advance_with_cut(best, minimum, run, penalty)
        else:
            best, near = _advance(best, minimum, run, bounded=penalty.bounded)
            best, plane, near = with_best_intercepts_and_tangent(best, near, run.accuracy)
        return min(best, near, key=lambda point: point.value), plane, 0

    def _penalty(self, objective: Objective) -> Penalty:
        omega, strength = objective.regularizer, objective.strength
        bounds = self.options.of_weights
        bounds = _NONNEGATIVE if bounds is None and omega.nonnegative else bounds
        if bounds is None:
            return Penalty(strength * omega.l1, strength * omega.l2)
        n = objective.n_weights
        rest = objective.n_regularized - n  # regularized intercepts, which have no bounds
        try:
            low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64).ravel(), n) for side in bounds)
        except ValueError:
            raise ParameterError(
                f"there must be one bound for all weights, or one for each of {n}", parameter="bounds"
            ) from None
        low, high = np.append(low, np.full(rest, -np.inf)), np.append(high, np.full(rest, np.inf))
        return Penalty(strength * omega.l1, strength * omega.l2, low, high)

    def _model(self, objective: Objective, penalty: Penalty) -> PlanesModel:
        n, options = objective.n_regularized, self.options
        if options.variant == "line":
            return SinglePlane(penalty, n)
        memory = objective.rows.memory
        room = _PLANES_BYTES if memory is None else min(_PLANES_BYTES, memory // 4)
        limit = options.max_planes or min(_MOST_PLANES, max(_FEWEST_PLANES, room // (8 * max(1, n))))
        planes = Planes(n, 0 if balances(objective) else objective.size - n, limit, options.idle)
        if penalty.l2:
            return QuadraticModel(penalty, planes)
        scale = objective.null.size or objective.total_cost or 1.0
        if options.variant == "ocas" and CentredModel.takes(penalty, planes):
            return CentredModel(penalty, planes, scale, self.tol)
        return LinearProgramModel(penalty, planes, scale)


def _allowed(objective: Objective, penalty: Penalty, start: State | None) -> Floats:
    """Where to begin: at a start, brought within the bounds, or at no weights at all."""
    if start is None:
        return objective.null.theta
    theta, n = np.array(start.theta, dtype=np.float64), objective.n_regularized
    if penalty.lower is not None and penalty.upper is not None:
        theta[:n] = np.clip(theta[:n], penalty.lower, penalty.upper)
    return theta


def _check(point: Point) -> None:
    """The plane R ≥ 0 is in every model."""
    if point.loss < 0:
        raise ParameterError(
            f"the bundle method needs a loss that is never negative, unlike {point.objective.loss!r}", parameter="loss"
        )


def _minimised(model: PlanesModel, penalty: Penalty, gap: float) -> Minimum:
    """The minimum of the model, where the squares of slopes that its dual has are no larger than doubles can hold."""
    if penalty.l2 and not math.isfinite(model.steepest):
        raise UnsolvableError
    return model.minimise(gap)


def _theta(best: Point, minimum: Minimum) -> Floats:
    """θ at the model's minimum; intercepts that are not in the model stay where they are best."""
    theta = best.theta.copy()
    theta[: len(minimum.weights)] = minimum.weights
    if len(minimum.intercepts):
        theta[len(minimum.weights) :] = minimum.intercepts
    return theta


def _advance_with_cut(best: Point, minimum: Minimum, run: _Progress, penalty: Penalty) -> tuple[Point, Plane, int]:
    """(the best point on the line from here to the model's minimum, a plane, passes beyond the two of every step).

    At a point of a line on which J rises, a tangent lies above J⁻ at the model's minimum, and so does any mean of such
    tangents. One row by row says more than one tangent: rows near their kinks come in by parts, as they do in the
    optimum. The interval also reaches back a little, where J still falls. A plane that would cut too little off is
    taken anew from J's rise alone; the scores of the direction, which the first one used up, cost another pass then.
    """
    direction = _theta(best, minimum) - best.theta
    line = best.line(direction)
    t = run.searched(line, bounded=penalty.bounded)
    distance = _plane_distance(t)
    best, plane = _interval_cut(line, t, t - distance, t + 3 * distance)
    cut = plane.at(minimum.weights) + penalty.value(minimum.weights)
    if cut >= minimum.bound + 0.5 * (best.value - minimum.bound):
        return best, plane, 0
    return *_interval_cut(best.line(direction), 0.0, 0.0, 2 * distance), 2


def _interval_cut(line: Line, t: float, begin: float, end: float) -> tuple[Point, Plane]:
    best, offset, slopes, size = line.interval_cut(t, begin, end)
    allowance = Allowance.of(best, slopes, np.zeros(1), size)
    return best, Plane.of(best, best.objective.weighted(slopes), offset, allowance)


def _plane_distance(t: float) -> float:
    """How far beyond the best point planes are taken. One too near says nothing new once rounding is in its way."""
    return min(_MIX, max(_STRIDE * t, _NEAREST) if t else _MIX) * (1 - t)


def _advance(best: Point, minimum: Minimum, run: _Progress, *, bounded: bool) -> tuple[Point, Point]:
    """(the best point on the line from here to the model's minimum, the point where to take a plane); one pass."""
    line = best.line(_theta(best, minimum) - best.theta)
    if best.objective.n_free and not len(minimum.intercepts):
        line = _towards_best_intercepts(line, run)
    t = run.searched(line, bounded=bounded)
    distance = _plane_distance(t)
    moved, near = (line.move(t) if t else best), line.move(t + distance)
    if is_piecewise_linear(best.objective) or best.objective.intercept != "free":
        moved.ask_loss()
    else:
        moved.ask()
    # Where an exponential is beyond all numbers, a programme could not even hold its plane.
    while (
        not is_piecewise_linear(best.objective)
        and distance > 1e-12
        and near.value > _HIGHEST * max(best.value, run.at_zero)
    ):
        distance *= 0.1
        near = line.move(t + distance)
    return moved, near


def _sparsified(best: Point, slack: Floats, accuracy: float) -> tuple[Point, int]:
    """(the best point without as many weights with a slack as J does not rise without, passes)."""
    for k, allowed in enumerate(_SLACKS):
        theta = best.theta.copy()
        theta[: len(slack)][slack > allowed] = 0.0
        thin = with_best_intercepts(best.objective.at(theta), accuracy)
        if thin.value <= best.value:
            return thin, k + 1
    return best, len(_SLACKS)


def _towards_best_intercepts(line: Line, run: _Progress) -> Line:
    """The line to the same weights, with the intercepts that suit them best; roughly, for it is but a direction."""
    end = line.move(1.0)
    if is_piecewise_linear(end.objective) and end.objective.n_outputs == 1:
        run.lean = line_minimum(end.along_intercept(), -np.inf, np.inf, run.lean or _FIRST_LEAN, roughly=True).t
        best = end.shifted(run.lean)
    else:
        best = newton_shifted(end, clipped=True) or with_best_intercepts(end, run.accuracy)
    shift = best.theta - end.theta
    k = line.point.objective.n_outputs
    if line.point.objective.intercept != "free":
        return Line(line.point, line.direction + shift, line.dz)
    dz = line.point.objective.rows.map(columns.shifted, line.dz, b=shift[-1] if k == 1 else shift[-k:])
    return Line(line.point, line.direction + shift, dz)


class _Progress:
    """J⁺ and J⁻ so far, and whether anything still moves."""

    def __init__(self, objective: Objective, tol: float) -> None:
        self.objective, self.tol = objective, tol
        self.at_zero = objective.null.value
        self.value, self.bound, self.still, self.planes = math.inf, -math.inf, 0, 0
        self.noted = math.inf  # the gap when it last fell by much
        self.step = 1.0  # where a line search looks first
        self.lean = 0.0  # of the intercept, at the end of the last line

    def snapshot(self) -> dict[str, Any]:
        """What it goes on from."""
        return {name: getattr(self, name) for name in _OF_PROGRESS}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        vars(self).update({name: snapshot[name] for name in _OF_PROGRESS})

    @property
    def accuracy(self) -> float:
        """The relative accuracy of J that intercepts and line searches are to have."""
        rounds = self.objective.n_outputs > 1 and not self.objective.loss.smooth
        wanted = _SMOOTHING * self.gap / self.value if rounds and math.isfinite(self.value) and self.value else 0.0
        return max(0.01 * self.tol, min(wanted, _SMOOTHING))

    @property
    def _is_far(self) -> bool:
        """Whether a step may be rough: an intercept is searched for after it, and the end is not near."""
        free = self.objective.intercept == "free"
        return free and math.isfinite(self.value) and self.gap > max(_FAR * self.tol, _ROUGH) * abs(self.value)

    @property
    def accuracy_of_steps(self) -> float:
        """That of a line search: where J is smooth and curved, a part of the gap will do."""
        o = self.objective
        if not (o.loss.smooth and o.penalty.plain and math.isfinite(self.value) and self.value > 0):
            return self.accuracy
        return max(self.accuracy, min(_ROUGH_STEP * self.gap / self.value, _SMOOTHING))

    @property
    def gap(self) -> float:
        """J⁺ − J⁻."""
        return self.value - self.bound if math.isfinite(self.value) else self.at_zero

    def searched(self, line: Line, *, bounded: bool) -> float:
        """Where J is least on a line; beyond t = 1 that may leave the bounds."""
        t = least(line, 1.0 if bounded else np.inf, self.step, self.accuracy_of_steps, roughly=self._is_far)
        self.step = min(1.0, 2 * t) or max(0.5 * self.step, _SHORTEST)
        return t

    def note(self, value: float, bound: float) -> bool:
        """Whether many steps have won next to nothing."""
        self.value, self.bound = min(self.value, value), max(self.bound, bound)
        self.planes += 1
        if self.gap <= _PROGRESS * self.noted:
            self.noted, self.still = self.gap, 0
        else:
            self.still += 1
        return self.still > _PATIENCE

    def facts(self, model: PlanesModel, penalty: Penalty) -> dict[str, float]:
        """What a result says beside the point."""
        facts: dict[str, float] = {"planes": self.planes, "plane_bytes": model.nbytes}
        gap = self.tol * abs(self.value)
        if penalty.l2 and 0 < model.steepest < math.inf and gap and self.at_zero:
            facts["step_bound"] = step_bound(penalty.l2, self.at_zero, model.steepest, gap)
        return facts


def step_bound(modulus: float, at_zero: float, steepest: float, gap: float) -> float:
    """The bound (13): after so many steps the gap is at most this one.

    `modulus` is λ, `at_zero` R(0), `steepest` G², the largest square of a plane's slope.
    """
    return max(0.0, math.log2(modulus * at_zero / steepest)) + 8 * steepest / (modulus * gap) - 4
