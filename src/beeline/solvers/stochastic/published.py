"""Steps as published: Pegasos, K-Pegasos and MCID."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.kernels import McidSteps, PegasosSteps
from beeline.objective.parameters import Parameters
from beeline.solvers.stochastic.options import SGDOptions
from beeline.solvers.stochastic.rule import Problem, form_of

__all__ = ["Published"]


class Published:
    """Steps of length 1/(λt), on the weights in a form that a step changes where its rows have entries.

    For one output that is V = λ·t·w, for several U = t·w (M5), each beside factors by which weights were brought back
    into their balls: `balls` has them, and the squared norms, for each output.
    """

    drowned = 0  # nothing is centred

    def __init__(
        self, problem: Problem, options: SGDOptions, theta: Floats | None = None, rows_before: float = 0.0
    ) -> None:
        self.problem, self.options = problem, options
        t = math.ceil(rows_before / options.batch_size)
        scaled = t * (problem.strengths.l2 if self._single else 1.0)
        self._v = np.zeros(self._shape)
        if theta is not None:
            self._v += scaled * np.asarray(theta, dtype=np.float64).reshape(self._shape)
        self._balls = np.stack([np.ones(self._shape[1]), np.einsum("jk,jk->k", self._v, self._v)])
        self._make_kernel(float(t))

    @property
    def _single(self) -> bool:
        return self.problem.layout.n_outputs == 1

    @property
    def _shape(self) -> tuple[int, int]:
        layout = self.problem.layout
        return layout.n_features + layout.has_intercept, layout.n_outputs

    def _make_kernel(self, t: float) -> None:
        problem, options = self.problem, self.options
        projects = options.variant == "pegasos" and options.projection
        loss = str(form_of(problem.loss)), problem.loss.parameters
        l2, batch, has_intercept = problem.strengths.l2, options.batch_size, problem.layout.has_intercept
        self._kernel: PegasosSteps | McidSteps
        if self._single:
            self._kernel = PegasosSteps(self._v.reshape(-1), has_intercept, *loss, l2, batch, projects, t)
            self._kernel.resume((t, *self._balls[:, 0].tolist()))
        else:
            self._kernel = McidSteps(self._v, self._balls, has_intercept, *loss, l2, batch, projects, t)

    def _note_balls(self) -> float:
        """Bring `balls` up to date; how many steps there were."""
        if isinstance(self._kernel, PegasosSteps):
            _, *self._balls[:, 0] = self._kernel.progress()
        return self._kernel.steps

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
        out = np.empty(self._v.size)
        self._kernel.copy_weights(out)
        return out

    def grow(self, layout: Parameters) -> None:
        """Take in more features and outputs."""
        before, had, t = self.problem.layout, self._shape, self._note_balls()
        if had[1] == 1 < layout.n_outputs:
            raise ValueError("a loss of one score has no more classes than two")
        self.problem = self.problem._replace(layout=layout)
        more = layout.n_features - before.n_features
        places = np.append(np.arange(before.n_features), np.arange(before.n_features, had[0]) + more)
        grown, balls = np.zeros(self._shape), np.stack([np.ones(layout.n_outputs), np.zeros(layout.n_outputs)])
        grown[places, : had[1]] = self._v
        balls[:, : had[1]] = self._balls
        self._v, self._balls = grown, balls
        self._make_kernel(t)

    def snapshot(self) -> dict[str, Any]:
        """All that it goes on from."""
        t = self._note_balls()
        return {"v": self._v, "balls": self._balls, "t": t}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._v, self._balls = np.array(snapshot["v"]), np.array(snapshot["balls"])
        self._make_kernel(snapshot["t"])
