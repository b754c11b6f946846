"""Newton's method for the primal problem of a block (16), (17)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from beeline._types import Floats
from beeline.data.core.block import Block
from beeline.kernels import dot
from beeline.losses import ScalarLoss
from beeline.objective import Intercept

__all__ = ["BlockPrimal", "newton"]

_MOST_STEPS, _MOST_PRODUCTS = 50, 250
_SMALL = 1e-11  # of the gradient at zero weights, below which a gradient is nothing
_SUFFICIENT, _SHORTEST = 1e-4, 1e-10


class BlockPrimal(NamedTuple):
    """min ½λ‖w‖² + Σ c_i l(z_i) − wᵀv − b·s over w and, unless there is none, b; with ½λb² where it is regularized.

    Attributes
    ----------
    block, labels, costs
        B.
    loss
        One with a curvature.
    modulus, intercept
        λ, and the kind of intercept.
    v, s
        Σ a_i x_i and Σ a_i over the rows of S that are not in B.
    """

    block: Block
    labels: Floats
    costs: Floats
    loss: ScalarLoss
    modulus: float
    intercept: Intercept
    v: Floats
    s: float

    @property
    def ridges(self) -> Floats:
        """What the squares of w and of b count in Ω."""
        ridges = np.full(len(self.v) + 1, self.modulus)
        ridges[-1] = self.modulus if self.intercept == "regularized" else 0.0
        return ridges

    def scores(self, x: Floats) -> Floats:
        """wᵀx_i + b for x = (w, b)."""
        return self.block.scores(x[:-1]) + float(x[-1])

    def linear(self, x: Floats) -> float:
        """½λ‖w‖² − wᵀv − b·s."""
        return 0.5 * dot(self.ridges * x, x) - dot(x[:-1], self.v) - float(x[-1]) * self.s

    def gradient(self, x: Floats, slopes: Floats) -> Floats:
        """By w and b (17)."""
        loss = np.append(self.block.transposed(slopes), float(slopes.sum()))
        return self._kept(self.ridges * x + loss - np.append(self.v, self.s))

    def product(self, curvatures: Floats, p: Floats) -> Floats:
        """The generalised Hessian (17) times p."""
        product, total = self.block.gram_matvec(curvatures, p[:-1], float(p[-1]))
        return self._kept(self.ridges * p + np.append(product, total))

    def diagonal(self, curvatures: Floats) -> Floats:
        """Of the Hessian; 1 where it is zero."""
        diagonal = self.ridges + np.append(self.block.gram_diagonal(curvatures), float(curvatures.sum()))
        return np.where(diagonal > 0, diagonal, 1.0)

    def _kept(self, gradient: Floats) -> Floats:
        """Without the intercept, where there is none."""
        if self.intercept == "none":
            gradient[-1] = 0.0
        return gradient


def newton(problem: BlockPrimal, w: Floats, b: float) -> tuple[Floats, float, Floats]:
    """(w, b, the scores) at the optimum, from a start; directions by conjugate gradients (Lin, Weng & Keerthi 2008).

    Cost: two passes over the block for each product, some 10 to 50 of them a step. A line search takes the place of the
    trust region of the paper.
    """
    p, x = problem, np.append(w, b if problem.intercept != "none" else 0.0)
    z = p.scores(x)
    none = p.loss.slopes(np.zeros(len(z)), p.labels, p.costs)
    enough = _SMALL * _length(p.gradient(np.zeros(len(x)), none))
    for _ in range(_MOST_STEPS):
        value, slopes, curvatures = p.loss.derivatives(z, p.labels, p.costs)
        gradient = p.gradient(x, slopes)
        if _length(gradient) <= enough:
            break
        step = _direction(p, curvatures, gradient, enough)
        dz, t = p.scores(step), 1.0
        slope, here = dot(gradient, step), value + p.linear(x)
        while t >= _SHORTEST:
            lower = p.loss.sum(z + t * dz, p.labels, p.costs) + p.linear(x + t * step)
            if lower <= here + _SUFFICIENT * t * slope:
                break
            t *= 0.5
        if t < _SHORTEST:
            break
        x, z = x + t * step, z + t * dz
    return x[:-1], float(x[-1]), z


def _direction(problem: BlockPrimal, curvatures: Floats, gradient: Floats, enough: float) -> Floats:
    """s with H s ≈ −∇, to a residual that shrinks with the gradient."""
    scale = problem.diagonal(curvatures)
    r, s = -gradient, np.zeros(len(gradient))
    q = r / scale
    p, rho = q.copy(), dot(r, q)
    stop = max(0.5 * enough, min(0.1, math.sqrt(_length(gradient))) * 0.1 * _length(gradient))
    for _ in range(_MOST_PRODUCTS):
        product = problem.product(curvatures, p)
        curvature = dot(p, product)
        if not curvature > 0:  # straight along p, as an intercept's problem is where no row has a loss
            return s if s.any() else p
        s, r = s + rho / curvature * p, r - rho / curvature * product
        if _length(r) <= stop:
            break
        q = r / scale
        before, rho = rho, dot(r, q)
        p = q + rho / before * p
    return s


def _length(x: Floats) -> float:
    return math.sqrt(dot(x, x))
