"""One run of stochastic gradient descent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from beeline._types import Floats
from beeline.engines.verbs import columns
from beeline.kernels import dot
from beeline.losses import RowLoss
from beeline.objective import Objective
from beeline.solvers.result import Step
from beeline.solvers.state import State
from beeline.solvers.stochastic.learner import Learner, Strengths
from beeline.solvers.stochastic.order import Portion, RandomRows

if TYPE_CHECKING:
    from beeline.solvers.stochastic.sgd import SGD

__all__ = ["Learning"]

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
        per_row = o.strength / (self.n * self.unit)
        before = 0.0 if start is None else self.n * max(1.0, start.counters.get("passes", 1.0))
        assert isinstance(o.loss, RowLoss)
        self.learner = Learner(
            o.loss,
            o.parameters,
            Strengths(per_row * o.regularizer.l2, per_row * o.regularizer.l1),
            options,
            horizon=self.n,
            theta=None if start is None else start.theta,
            rows_before=before,
        )
        self.passes = 0.0
        self._since, self._in_pass = np.zeros(3), np.zeros(3)  # Σ c l, Σ c [wrong], Σ c of rows that were scored
        self._known: dict[str, float] = {}
        self._entries = 0.0
        self._last = math.inf  # J of the last pass

    def learn(self, portion: Portion) -> None:
        """Learn from some rows, each after it was scored."""
        scored = self.learner.learn(portion.block, portion.labels, portion.costs / self.unit, portion.order)
        self._since += scored
        self._in_pass += scored
        part = len(portion.order) / max(1, self.objective.rows.n_rows)
        self.passes += part
        self._entries += part * self.objective.rows.nnz

    @property
    def is_worth_telling(self) -> bool:
        """Whether much was learned since the last step."""
        return self._entries >= _TOLD

    def step(self) -> Step:
        """Where it is, with an estimate of J by the rows since the last step."""
        theta, facts = self.learner.theta, self._facts()
        value = self._objective(theta, facts.get("progressive_loss", math.inf))
        self._since[:], self._entries = 0.0, 0.0
        return Step(theta, value, -math.inf, self.passes, facts=facts, evaluated=False)

    def end_pass(self) -> str:
        """Why it ends after a pass; empty where it goes on."""
        losses, _, total = self._in_pass
        value, before = self._objective(self.learner.theta, losses / max(total, 1e-300)), self._last
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
        o, theta = self.objective, self.learner.theta
        if not np.isfinite(theta).all():
            return Step(o.null.theta, math.inf, -math.inf, self.passes, ending=ending, facts=self._facts())
        point, accuracy = o.at(theta), _ACCURATE * self.solver.tol
        if self.solver.options.variant == "averaged" and o.n_outputs == 1:
            point = o.at_null().towards(point.with_best_intercept(accuracy), accuracy).with_best_intercept(accuracy)
        elif self.solver.options.variant == "averaged":
            point = o.at_null().towards(point, accuracy)
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
