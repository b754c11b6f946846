"""The model of the bundle method for L1, seen from its middle: few planes make a poor vertex, but a good centre."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.kernels import dot, solve_positive
from beeline.objective import Penalty
from beeline.solvers.bundle.lp import LinearProgramModel
from beeline.solvers.bundle.models import Minimum
from beeline.solvers.bundle.planes import Planes

__all__ = ["CentredModel"]

_DEPTH = 0.8  # of the gap between J⁺ and J⁻, that a centre leaves between itself and its bound
_NEWTON_STEPS = 40
_ROUNDS = 5  # of weights that come in
_AT_ONCE = 500
_FASTEST = 0.1  # by which the barrier falls at most in a Newton step
_BACK = 0.95  # of the way to the nearest wall
_PART = 1e-3  # of an even share: a plane with less is idle
_NOTHING = 1 / 300  # a part of a weight, measured by the mean of all, to its slack, measured by λ
_CLOSE = 4.0  # tolerances, from which the programme is solved exactly as well
_SELDOM = 5  # steps between two of these
_ASTRAY = 2.0  # times J⁺, that no Ω of a centre exceeds: the model there is below J⁺, and no plane below zero
_EXACT = 1e-4  # of J, a gap from which on vertices take fewer steps than centres: planes have closed in on the minimum


class CentredModel(LinearProgramModel):
    """The same model, but what it returns for its minimum is a point on the central path of the programme (11).

    The vertex of a linear programme jumps from one far corner to another as planes come in, the more so the smaller λ
    is. A point well inside of what the planes leave open makes better use of a plane there (Goffin & Vial 2002 for
    analytic centres; Gondzio, González-Brevis & Munari 2013 for this form, where it is the dual that is called so). It
    has x ≥ 0, the positive and negative parts of the weights, ξ, and multipliers α of the planes, with

        s_i α_i = μ,  s = ξ − A w − b,      x_j z_j = μ,  z = λ ± Aᵀα,      Σα = 1,

    for a μ that makes the value of the model at w exceed αᵀb by a fixed part of J⁺ − J⁻. Every such α is feasible for
    the dual and αᵀb a bound. Newton's method with a hot start takes two to four steps, each with a system of planes ×
    planes.

    Near the end, and seldom before, the programme itself is solved, by HiGHS: its bound is the best that the planes can
    give. A centre has no zeros, so that the solver is told how much slack each weight has in the dual: those with any
    are zero in the minimum.

    Parameters
    ----------
    penalty, planes, scale
        As there.
    tol
        The relative gap that the solver wants.
    """

    def __init__(self, penalty: Penalty, planes: Planes, scale: float, tol: float) -> None:
        super().__init__(penalty, planes, scale)
        self.tol, self.bound, self.since = tol, 0.0, 0
        self.path = _Path(penalty.l1, self.most > 0, self.least < 0)

    @staticmethod
    def takes(penalty: Penalty, planes: Planes) -> bool:
        """Whether there are weights, all intercepts are eliminated, and no bound is another one than zero."""
        if planes.intercept_slopes.shape[1] or not planes.slopes.n_features:
            return False
        if penalty.lower is None or penalty.upper is None:
            return True
        return bool(np.isin(penalty.lower, (0.0, -np.inf)).all() and np.isin(penalty.upper, (0.0, np.inf)).all())

    def minimise(self, gap: float) -> Minimum:
        """A centre, and the best bound so far."""
        exact = gap <= _EXACT * (self.bound + gap)
        found = None if exact else self.path.follow(self.planes, gap)
        if found is not None and self.penalty.value(found[0]) > _ASTRAY * (self.bound + gap):
            self.path.restart()
            found = None
        if found is None:  # or rounding is in the way
            minimum, alpha = self._vertex(gap)
            w = minimum.weights
            self.bound = max(self.bound, minimum.bound)
        else:
            w, alpha = found
            top = self.bound + gap
            self.bound = max(self.bound, self.planes.bound(alpha, self.penalty))
            self.since += 1
            if self.since >= _SELDOM and top - self.bound <= _CLOSE * self.tol * top:
                self.since = 0
                self.bound = max(self.bound, self._vertex(gap)[0].bound)
        slack = 1 - np.abs(self.planes.slopes.transposed(alpha)) / self.penalty.l1
        self.planes.use(np.where(alpha * self.planes.count > _PART, alpha, 0.0))
        return Minimum(w, np.zeros(0), self.bound, slack)


class _Path:
    """The last point of the central path; the next one begins there.

    Of many weights only those take part whose slopes have once exceeded λ where the others had settled.

    Parameters
    ----------
    l1
        λ.
    up, down
        Which weights may be positive, which negative.
    """

    def __init__(self, l1: float, up: NDArray[np.bool_], down: NDArray[np.bool_]) -> None:
        self.l1 = l1
        self.may = np.concatenate([up, down])
        self.x = np.zeros(0)
        self.working = np.zeros(len(up), dtype=bool)
        self.reach = np.zeros(len(up), dtype=bool)  # a weight that no plane slopes along by more than λ stays zero
        self.parts: dict[int, float] = {}

    def restart(self) -> None:
        """Forget the last point: the next one begins where the first one did."""
        self.x, self.parts = np.zeros(0), {}

    def follow(self, planes: Planes, gap: float) -> tuple[Floats, Floats] | None:
        """(w, α) for a gap; None where a Newton step fails."""
        values, n = planes.slopes.values, planes.slopes.n_features
        for k, number in enumerate(planes.numbers.tolist()):
            if number not in self.parts:
                self.reach |= np.abs(values[k]) > self.l1
        if not len(self.x):
            self.x = np.full(2 * n, 0.5 * gap / (self.l1 * 2 * n))
        if not self.working.any():
            self.working = np.abs(values[-1]) >= np.sort(np.abs(values[-1]))[-min(n, _AT_ONCE)]
        point = None
        for _ in range(_ROUNDS):
            point = self._centre(planes, np.nonzero(self.may & np.tile(self.reach & self.working, 2))[0], gap)
            if point is None:
                break
            v = np.abs(planes.slopes.transposed(point.alpha))
            (missed,) = np.nonzero((v > self.l1) & ~self.working)
            if not len(missed):
                break
            self.working[missed[np.argsort(-v[missed], kind="stable")[:_AT_ONCE]]] = True
        return None if point is None else (point.weights(n), point.alpha)

    def _centre(self, planes: Planes, chosen: Ints, gap: float) -> _Point | None:
        if not len(chosen):
            return None
        point = _Point(planes, chosen, self.l1)
        point.place(self.x[chosen], [self.parts.get(number, 0.0) for number in planes.numbers.tolist()], gap)
        goal = _DEPTH * gap / point.size
        for k in range(_NEWTON_STEPS):
            if k and point.near(goal):
                break
            if not point.step(max(goal, _FASTEST * point.mu)):
                return None
        self.x[chosen] = point.x
        self.parts = dict(zip(planes.numbers.tolist(), point.alpha.tolist(), strict=True))
        return point


class _Point:
    """A point inside, for some of the weights' parts.

    Attributes
    ----------
    x, z
        Parts of the weights, and their slacks in the dual.
    s, alpha
        How far ξ is above each plane, and the plane's multiplier.
    """

    def __init__(self, planes: Planes, chosen: Ints, l1: float) -> None:
        n = planes.slopes.n_features
        self.l1, self.offsets = l1, planes.offsets
        self.features, self.places = np.unique(chosen % n, return_inverse=True)
        self.signs = np.where(chosen < n, 1.0, -1.0)
        values = np.ascontiguousarray(planes.slopes.values[:, self.features])
        self.planes = Block(values, len(self.features))
        self.columns = Block(np.ascontiguousarray(values.T), len(values))
        self.size = len(chosen) + len(values)

    def place(self, x: Floats, parts: list[float], gap: float) -> None:
        """Begin at the last point; a new plane gets a multiplier so small that no slack changes much."""
        self.x = x
        alpha = np.array(parts)
        new = (alpha <= 0).astype(np.float64)
        new[0] = 0.0
        alpha[0] += max(0.0, 1 - alpha.sum())
        alpha /= alpha.sum()
        steepest = float(np.abs(self.planes.transposed(alpha)).max())
        # Planes that were dropped leave a slope behind: the plane R ≥ 0, which has none, makes up for it.
        alpha = self._towards(alpha, np.eye(len(alpha))[0], max(1e-6, 1 - 0.999 * self.l1 / max(steepest, 1e-300)))
        if new.any():
            new /= new.sum()
            turn = self.planes.transposed(new - alpha)
            v = self.planes.transposed(alpha)
            part = 0.3 * float(((self.l1 - np.abs(v)) / np.maximum(np.abs(turn), 1e-300)).min())
            alpha = self._towards(alpha, new, max(1e-12, min(0.1, part)))
        self.alpha, self.margin = alpha, 0.1 * gap
        self._settle(-np.inf)

    @staticmethod
    def _towards(alpha: Floats, other: Floats, part: float) -> Floats:
        return (1 - part) * alpha + part * other

    def _settle(self, top: float) -> None:
        """Slacks anew, so that rounding does not add up; ξ as it is, or above all planes."""
        heights = self.planes.scores(self._signed(self.x)) + self.offsets
        highest = float(heights.max())
        self.top = (
            top if top > highest else highest + (self.margin if top == -np.inf else 1e-12 * abs(highest) + 1e-300)
        )
        self.s = self.top - heights
        v = self.planes.transposed(self.alpha)
        self.z = self.l1 + self.signs * v[self.places]

    def _signed(self, x: Floats) -> Floats:
        """Weights of their parts."""
        return self._by_feature(self.signs * x)

    def _by_feature(self, x: Floats) -> Floats:
        return np.bincount(self.places, x, len(self.features)).astype(np.float64, copy=False)

    @property
    def mu(self) -> float:
        """The mean of all products."""
        return (dot(self.s, self.alpha) + dot(self.x, self.z)) / self.size

    def near(self, goal: float) -> bool:
        """Whether it is on the path, near enough, and far enough along it."""
        least = min(float((self.s * self.alpha).min()), float((self.x * self.z).min()))
        return self.mu <= 1.2 * goal and least > 0.05 * goal

    def step(self, mu: float) -> bool:
        """A Newton step towards the point for μ; whether there is one."""
        with np.errstate(all="ignore"):  # what overflows is no step
            return self._step(mu)

    def _step(self, mu: float) -> bool:
        p = len(self.alpha)
        of_x, of_s = mu / self.z - self.x, mu / self.alpha - self.s
        if not np.isfinite(of_x).all() or not np.isfinite(of_s).all():
            return False
        M = self.columns.gram(self._by_feature(self.x / self.z))
        M[np.diag_indices(p)] += self.s / self.alpha + 1e-14 * np.trace(M) / p
        first, second = of_s + self.planes.scores(self._signed(of_x)), np.ones(p)
        if not np.isfinite(M).all() or not np.isfinite(first).all():
            return False
        if not (solve_positive(M.copy(), first) and solve_positive(M, second)):
            return False
        rise = float(first.sum() / second.sum())
        d_alpha = first - rise * second
        d_z = self.signs * self.planes.transposed(d_alpha)[self.places]
        d_x = of_x - self.x / self.z * d_z
        d_s = rise - self.planes.scores(self._signed(d_x))
        t, u = _room((self.x, d_x), (self.s, d_s)), _room((self.alpha, d_alpha), (self.z, d_z))
        if not (np.isfinite(t * rise) and np.isfinite(u * d_alpha).all()):
            return False
        self.x, self.alpha = self.x + t * d_x, self.alpha + u * d_alpha
        self.alpha /= self.alpha.sum()
        self._settle(self.top + t * rise)
        return bool(self.z.min() > 0 and self.alpha.min() > 0)

    def weights(self, n: int) -> Floats:
        """w, with zeros where both parts are nothing against their slacks; sooner, the point would not be a centre."""
        x = np.where(self.x * self.l1 * len(self.x) >= _NOTHING * self.z * float(self.x.sum()), self.x, 0.0)
        w = np.zeros(n)
        w[self.features] = self._signed(x)
        return w


def _room(*moves: tuple[Floats, Floats]) -> float:
    """How far all may go and stay positive, at most 1."""
    t = 1.0
    for at, step in moves:
        back = step < 0
        if back.any():
            t = min(t, _BACK * float((at[back] / -step[back]).min()))
    return t
