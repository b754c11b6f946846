"""One run of stochastic gradient descent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from beeline._types import Floats
from beeline.data.core.block import Block
from beeline.engines.verbs import columns
from beeline.kernels import AveragedSteps, PegasosSteps, dot
from beeline.objective import Objective
from beeline.solvers.result import Step
from beeline.solvers.state import State
from beeline.solvers.stochastic.order import Portion, RandomRows
from beeline.solvers.stochastic.scales import Scales

if TYPE_CHECKING:
    from beeline.solvers.stochastic.sgd import SGD

__all__ = ["Learning"]

_LOOK = 4096  # rows that say how features are scaled
_RATE, _DECAY, _POWER = 4.0, 4.0, 0.75  # of η_t = 4/(1 + 4·passes)^0.75, chosen on ten sets (docs/solvers.md)
_LEAST_SKIP = 8  # rows between two times that L2 shrinks the weights
_TOLD = 1 << 24  # entries between two steps that a caller sees, in a long pass
_LITTLE = 5e-3  # of J, that a pass has to lower it by
_ACCURATE = 0.05  # of the tolerance, that a best intercept may miss


class Learning:
    """The steps so far, and what progressive validation says of them.

    Attributes
    ----------
    rows
        Where portions come from.
    passes
        How many passes the rows make that were learned from.
    """

    def __init__(self, solver: SGD, objective: Objective, start: State | None) -> None:
        self.solver, self.objective, self.start = solver, objective, start
        o, options = objective, solver.options
        self.rows = RandomRows(o, solver.seed, options.batch_size)
        self.n = max(1, int(o.rows.sum(columns.positive_count, o.costs).value[0]))
        self.unit = o.total_cost / self.n or 1.0  # the mean cost
        self.strength = o.strength * o.regularizer.l2 / (self.n * self.unit)
        self.passes = 0.0
        self._steps: PegasosSteps | AveragedSteps | None = None
        self._theta = np.zeros(o.size) if start is None else np.array(start.theta)
        self._since, self._in_pass = np.zeros(3), np.zeros(3)  # Σ c l, Σ c [wrong], Σ c of rows that were scored
        self._known: dict[str, float] = {}
        self._entries = 0.0
        self._last = math.inf  # J of the last pass

    def learn(self, portion: Portion) -> None:
        """Learn from some rows, each after it was scored."""
        if self._steps is None:
            self._steps = self._begin(portion)
        costs = portion.costs / self.unit
        sums = self._steps.learn(portion.block.arrays, portion.order, portion.labels, costs)
        scored = *sums, float(costs[portion.order].sum())
        self._since += scored
        self._in_pass += scored
        self._steps.copy_weights(self._theta)
        part = len(portion.order) / max(1, self.objective.rows.n_rows)
        self.passes += part
        self._entries += part * self.objective.rows.nnz

    @property
    def is_worth_telling(self) -> bool:
        """Whether much was learned since the last step."""
        return self._entries >= _TOLD

    def step(self) -> Step:
        """Where it is, with an estimate of J by the rows since the last step."""
        theta, facts = self._theta.copy(), self._facts()
        value = self._objective(theta, facts.get("progressive_loss", math.inf))
        self._since[:], self._entries = 0.0, 0.0
        return Step(theta, value, -math.inf, self.passes, facts=facts, evaluated=False)

    def end_pass(self) -> str:
        """Why it ends after a pass; empty where it goes on."""
        losses, _, total = self._in_pass
        value, before = self._objective(self._theta, losses / max(total, 1e-300)), self._last
        self._in_pass[:], self._last = 0.0, value
        if not math.isfinite(value):
            return "the weights have grown beyond all numbers; take projection=True, or variant='averaged'"
        if not self.solver.options.early_stopping or before - value >= _LITTLE * abs(value):
            return ""
        return f"a pass lowers J, by progressive validation, by less than {100 * _LITTLE:g} %"

    def last_step(self, ending: str = "") -> Step:
        """Where it ends, with J over all rows; averages at their best multiple, with the best free intercept.

        A few rows far larger than all others may cost more than all of these: J then asks for smaller weights, with the
        same signs of nearly all scores.
        """
        o = self.objective
        if not np.isfinite(self._theta).all():
            return Step(o.null.theta, math.inf, -math.inf, self.passes, ending=ending, facts=self._facts())
        point, accuracy = o.at(self._theta), _ACCURATE * self.solver.tol
        if self.solver.options.variant == "averaged":
            point = o.at_null().towards(point.with_best_intercept(accuracy), accuracy).with_best_intercept(accuracy)
        return Step(point.theta, point.value, -math.inf, self.passes, ending=ending, facts=self._facts(), point=point)

    def _facts(self) -> dict[str, float]:
        """What progressive validation says of the rows since the last step; of those before, if these cost nothing."""
        losses, errors, total = self._since.tolist()
        if total > 0:
            self._known = {"progressive_loss": losses / total, "progressive_error": errors / total}
        return self._known

    def _objective(self, theta: Floats, loss: float) -> float:
        """J, where the mean loss is that."""
        o = self.objective
        w = theta[: o.n_regularized]
        return 0.5 * o.strength * o.regularizer.l2 * dot(w, w) + o.total_cost * loss

    # The kernels, and what they begin with.

    def _begin(self, portion: Portion) -> PegasosSteps | AveragedSteps:
        if self.solver.options.variant == "pegasos":
            return self._pegasos()
        return self._averaged(portion.block.gather(portion.order[portion.costs[portion.order] > 0][:_LOOK]))

    def _rows_before(self) -> float:
        """How many rows led to the start."""
        return 0.0 if self.start is None else self.n * max(1.0, self.start.counters.get("passes", 1.0))

    def _pegasos(self) -> PegasosSteps:
        o, options = self.objective, self.solver.options
        t = math.ceil(self._rows_before() / options.batch_size)
        scaled, loss = self.strength * t * self._theta, str(o.loss.compiled)
        return PegasosSteps(
            scaled, o.has_intercept, loss, self.strength, options.batch_size, options.projection, float(t)
        )

    def _averaged(self, sample: Block) -> AveragedSteps:
        o = self.objective
        w, b = o.split(self._theta)
        scales = Scales.of(sample, intercept=o.has_intercept, centres=o.intercept == "free")
        skip = max(_LEAST_SKIP, math.ceil(2 * o.rows.n_features * o.rows.n_rows / max(1, o.rows.nnz)))
        # What L2 shrinks as much as it is pushed needs no longer steps, however small its features are.
        force = skip * _RATE * self.strength
        sizes = 1 / (scales.squares + force)
        if o.has_intercept:
            size = 1 / (scales.intercept + (force if o.intercept == "regularized" else 0.0))
            sizes, w = np.append(sizes, size), np.append(w, b + dot(scales.means, w))
        schedule = self.strength, _RATE, _DECAY / self.n, _POWER
        w = np.array(w)
        kinds = o.intercept, str(o.loss.compiled)
        return AveragedSteps(w, np.zeros(len(w)), sizes, scales.means, *kinds, schedule, skip, self._rows_before())
