"""Steps as published: Pegasos."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.kernels import PegasosSteps
from beeline.objective.parameters import Parameters
from beeline.solvers.stochastic.options import SGDOptions
from beeline.solvers.stochastic.rule import Problem, form_of

__all__ = ["Published"]


class Published:
    """Steps of length 1/(λt), on the weights in the form U = λ·t·w."""

    def __init__(
        self, problem: Problem, options: SGDOptions, theta: Floats | None = None, rows_before: float = 0.0
    ) -> None:
        self.problem, self.options = problem, options
        t = math.ceil(rows_before / options.batch_size)
        scaled = problem.strengths.l2 * t
        self._v = np.zeros(problem.layout.size) if theta is None else scaled * np.array(theta, dtype=np.float64)
        self._kernel = self._made(t)

    def _made(self, t: float) -> PegasosSteps:
        problem, options = self.problem, self.options
        return PegasosSteps(
            self._v,
            problem.layout.has_intercept,
            str(form_of(problem.loss)),
            problem.loss.parameters,
            problem.strengths.l2,
            options.batch_size,
            options.projection,
            float(t),
        )

    def learn(self, block: Block, order: Ints, labels: Floats, costs: Floats) -> tuple[float, float, float]:
        """(Σ c l, Σ c [wrong], Σ c) of rows before they were learned from."""
        return self._kernel.learn(block.arrays, order, labels, costs)

    @property
    def rows(self) -> float:
        """How many rows were learned from."""
        return self._kernel.steps * self.options.batch_size

    @property
    def theta(self) -> Floats:
        """The weights."""
        out = np.empty(len(self._v))
        self._kernel.copy_weights(out)
        return out

    def grow(self, layout: Parameters) -> None:
        """Take in more features."""
        before, progress = self.problem.layout, self._kernel.progress()
        self.problem = self.problem._replace(layout=layout)
        grown = np.zeros(layout.size)
        grown[: before.n_features] = self._v[: before.n_features]
        grown[layout.n_features :] = self._v[before.n_features :]
        self._v = grown
        self._kernel = self._made(0.0)
        self._kernel.resume(progress)

    def snapshot(self) -> dict[str, Any]:
        """All that it goes on from."""
        return {"v": self._v, "progress": list(self._kernel.progress())}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._v = np.array(snapshot["v"])
        self._kernel = self._made(0.0)
        t, scale, norm = snapshot["progress"]
        self._kernel.resume((t, scale, norm))
