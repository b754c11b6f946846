"""What weights cost in J: strength·Ω, within bounds, and what Ω holds beside that."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from beeline._numbers import square
from beeline._types import Floats
from beeline.kernels import dot
from beeline.regularizers import Regularizer

__all__ = ["OwnOmega", "Penalty"]

_UNIT = 8 * float(np.finfo(np.float64).eps)  # so that what was scaled to a limit does not exceed it by rounding


@dataclass(frozen=True)
class Penalty:
    """h(w) = l1‖w‖₁ + ½ l2‖w‖² within bounds: strength·Ω, and bounds of the weights.

    Attributes
    ----------
    l1, l2
        With the strength in them.
    lower, upper
        Bounds of the weights, which zero lies within; None: there are none.
    """

    l1: float
    l2: float
    lower: Floats | None = None
    upper: Floats | None = None

    @property
    def bounded(self) -> bool:
        """Whether there are bounds."""
        return self.lower is not None

    @property
    def plain(self) -> bool:
        """Whether it is ½ l2‖w‖² and no more."""
        return not self.l1 and not self.bounded

    def least(self, v: Floats) -> Floats:
        """The w at which h(w) + vᵀw is least; needs l2 > 0."""
        w = -v / self.l2 if not self.l1 else -np.sign(v) * np.maximum(np.abs(v) - self.l1, 0) / self.l2
        return w if self.lower is None or self.upper is None else np.clip(w, self.lower, self.upper)

    def floor(self, v: Floats, margin: float = 0.0) -> float:
        """The minimum over w of h(w) + ⟨v', w⟩ for the worst v' with ‖v' − v‖ at most the margin; −∞ where it has none.

        A weight that v' pulls at by more than l1 moves towards its bound, or as far as l2 lets it go.
        """
        if self.plain:
            return -square(math.sqrt(dot(v, v)) + margin) / (2 * self.l2)
        if not self.l2 and not self.bounded:
            return 0.0 if float(np.abs(v).max(initial=0.0)) + (margin - self.l1) <= 0 else -math.inf
        total = 0.0
        for sign, bound in ((-1.0, self.upper), (1.0, self.lower)):  # upwards, downwards
            pull = np.maximum(sign * v + (margin - self.l1), 0)
            room = np.full(len(v), np.inf) if bound is None else np.abs(bound)
            pull = np.where(room > 0, pull, 0.0)
            if not self.l2:
                if np.any((pull > 0) & np.isinf(room)):
                    return -np.inf
                total -= float(np.sum(pull * np.where(pull > 0, room, 0.0)))
            else:
                step = np.minimum(pull / self.l2, room)
                total -= float(np.sum(step * (pull - 0.5 * self.l2 * step)))
        return total

    def value(self, w: Floats) -> float:
        """h(w)."""
        return self.l1 * (float(np.abs(w).sum()) if self.l1 else 0.0) + 0.5 * self.l2 * dot(w, w)

    def feasible_scale(self, v: Floats, margin: float = 0.0) -> float:
        """The largest part s of v, at most all of it, at which no weight without a bound is pulled at by more than l1.

        With l2 > 0 there is no such limit.
        """
        if self.l2:
            return 1.0
        if not self.bounded:
            worst = float(np.abs(v).max(initial=0.0)) + margin
            return self.l1 / worst * (1 - _UNIT) if worst > self.l1 * (1 - _UNIT) else 1.0
        up = np.maximum(-v + margin, 0.0) if self.upper is None else np.where(np.isinf(self.upper), -v + margin, 0.0)
        down = np.maximum(v + margin, 0.0) if self.lower is None else np.where(np.isinf(self.lower), v + margin, 0.0)
        worst = max(float(up.max(initial=0.0)), float(down.max(initial=0.0)))
        return self.l1 / worst * (1 - _UNIT) if worst > self.l1 * (1 - _UNIT) else 1.0

    def inside(self, w: Floats) -> Floats:
        """1 where a weight moves with v, 0 where it stays at zero or at a bound."""
        moves = w != 0 if self.l1 else np.ones(len(w), dtype=bool)
        if self.lower is not None and self.upper is not None:
            moves &= (w > self.lower) & (w < self.upper)
        return moves.astype(np.float64)


@dataclass(frozen=True)
class OwnOmega:
    """Ω over the regularized coordinates of θ, where a regularizer sees the weights of one output at a time.

    A regularized intercept costs ½·modulus·b². Ω = ½·modulus·‖w‖² + S(w) with a convex S, which is zero and least at
    zero: the first part is what a `Penalty` stands for, S lies above its tangents as losses do.
    """

    regularizer: Regularizer
    n_features: int
    n_outputs: int

    def value(self, w: Floats) -> float:
        """Ω."""
        each, rest = self._split(w)
        return sum(float(self.regularizer.value(column)) for column in each) + 0.5 * self.regularizer.modulus * dot(
            rest, rest
        )

    def gradient(self, w: Floats) -> Floats:
        """∂Ω."""
        each, rest = self._split(w)
        inside = np.column_stack([self.regularizer.gradient(column) for column in each]).ravel()
        return np.append(inside, self.regularizer.modulus * rest)

    def tangent(self, w: Floats) -> tuple[float, Floats]:
        """S(w) and ∂S(w)."""
        modulus = self.regularizer.modulus
        return self.value(w) - 0.5 * modulus * dot(w, w), self.gradient(w) - modulus * w

    def _split(self, w: Floats) -> tuple[list[Floats], Floats]:
        """(the weights of each output, regularized intercepts)."""
        n = self.n_features * self.n_outputs
        matrix = w[:n].reshape(self.n_features, self.n_outputs)
        return [np.ascontiguousarray(column) for column in matrix.T], w[n:]
