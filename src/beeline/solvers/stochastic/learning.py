"""One run of stochastic gradient descent: passes over the rows of an objective, and when they end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._types import Floats
from beeline._words import percentage
from beeline.engines.verbs import columns
from beeline.losses import RowLoss
from beeline.objective import Objective
from beeline.solvers.result import Step
from beeline.solvers.state import State, snapshot_of
from beeline.solvers.stochastic.ending import best_multiple
from beeline.solvers.stochastic.learner import Learner, Strengths
from beeline.solvers.stochastic.order import Portion, RandomRows

if TYPE_CHECKING:
    from beeline.solvers.stochastic.sgd import SGD

__all__ = ["Learning"]

_TOLD = 1 << 24  # entries between two steps that a caller sees, in a long pass
_LITTLE = 1e-2  # of J, that a pass has to lower it by
_ACCURATE = 0.05  # of the tolerance, that a best intercept may miss


class Learning:
    """The passes so far, and what progressive validation says of them.

    Attributes
    ----------
    rows
        Where portions come from.
    passes
        How many passes the rows make that were learned from.
    """

    def __init__(self, solver: SGD, objective: Objective, start: State | None) -> None:
        self.solver, self.objective = solver, objective
        o, options = objective, solver.options
        assert isinstance(o.loss, RowLoss)
        self.rows = RandomRows(o, solver.seed, options.batch_size)
        self.n = max(1, int(o.rows.sum(columns.positive_count, o.costs).value[0]))
        self.unit = o.total_cost / self.n or 1.0  # the mean cost
        self.passes = 0.0
        self._number, self._portion = 0, 0  # of the pass, and in it
        self._since, self._in_pass = np.zeros(3), np.zeros(3)  # Σ c l, Σ c [wrong], Σ c of rows that were scored
        self._known: dict[str, float] = {}
        self._entries = 0.0
        self._last = math.inf  # J of the last pass
        self._losses: list[float] = []  # of each pass, a row
        if (saved := snapshot_of(start)) is not None:
            self._restore(saved)
            return
        per_row = o.strength / (self.n * self.unit)
        self.learner = Learner(
            o.loss,
            o.parameters,
            Strengths(per_row * o.regularizer.l2, per_row * o.regularizer.l1),
            options,
            horizon=self.n,
            theta=None if start is None else start.theta,
            rows_before=0.0 if start is None else self.n * max(1.0, start.counters.get("passes", 1.0)),
        )

    def portions(self) -> Iterator[Portion]:
        """Those of the pass that are left."""
        return self.rows.of_pass(self._number, self._portion)

    def learn(self, portion: Portion) -> None:
        """Learn from some rows, each after it was scored."""
        scored = self.learner.learn(portion.block, portion.labels, portion.costs / self.unit, portion.order)
        self._since += scored
        self._in_pass += scored
        part = len(portion.order) / max(1, self.objective.rows.n_rows)
        self.passes += part
        self._portion += 1
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
        more: dict[str, Any] = {"facts": facts, "evaluated": False, "snapshot": self._snapshot}
        estimate = "J is an estimate, by rows before they were learned from"
        return Step(theta, value, -math.inf, self.passes, estimate=estimate, **more)

    def end_pass(self) -> str:
        """Why it ends after a pass; empty where it goes on."""
        losses, _, total = self._in_pass
        self._losses.append(losses / max(total, 1e-300))
        value, before = self._objective(self.learner.theta, self._losses[-1]), self._last
        self._in_pass[:], self._last = 0.0, value
        self._number, self._portion, self.passes = self._number + 1, 0, float(round(self.passes))
        if not math.isfinite(value):
            return "the weights have grown beyond all numbers; take projection=True, or variant='averaged'"
        if not self.solver.options.early_stopping or before - value >= _LITTLE * abs(value):
            return ""
        return f"a pass lowers J, by progressive validation, by less than {percentage(_LITTLE)}"

    def last_step(self, ending: str = "") -> Step:
        """Where it ends, with J over all rows; averages at their best multiple, with the best free intercept."""
        o, theta = self.objective, self.learner.theta
        facts = self._facts()
        if not np.isfinite(theta).all():
            return Step(o.null.theta, math.inf, -math.inf, self.passes, ending=ending, facts=facts)
        if self.solver.options.variant == "averaged" and not self.solver.keeps_point(o):
            point = best_multiple(o, theta, _ACCURATE * self.solver.tol)
        else:
            point = o.at(theta)
        ending = f"{ending}; {self._trend(facts)}" if ending and self._losses else ending
        return Step(point.theta, point.value, -math.inf, self.passes, ending=ending, facts=facts, point=point)

    def _trend(self, facts: dict[str, float]) -> str:
        """What is known instead of a certificate: how rows were predicted before they were learned from."""
        now = self._losses[-1]
        wrong = f" and {percentage(facts['progressive_error'])} wrong" if "progressive_error" in facts else ""
        before = f", {self._losses[-2]:.4g} in the pass before" if len(self._losses) > 1 else ""
        return f"rows, before they were learned from, had a mean loss of {now:.4g}{wrong}{before}"

    def _facts(self) -> dict[str, float]:
        """What progressive validation says of the rows since the last step; of those before, if these cost nothing.

        The trend is the change of the mean loss, relatively, from pass to pass. Features whose spread is lost in the
        rounding of their offset are counted where there are any.
        """
        losses, errors, total = self._since.tolist()
        if total > 0:
            self._known = {"progressive_loss": losses / total}
            if self.objective.loss.classifies:
                self._known["progressive_error"] = errors / total
        if len(self._losses) > 1 and self._losses[-2] > 0:
            self._known["progressive_trend"] = self._losses[-1] / self._losses[-2] - 1
        if drowned := self.learner.drowned:
            self._known["drowned_features"] = float(drowned)
        return dict(self._known)

    def _objective(self, theta: Floats, loss: float) -> float:
        """J, where the mean loss is that."""
        o = self.objective
        return o.strength * o.regularizer.value(theta[: o.n_regularized]) + o.total_cost * loss

    # Going on to the same bits.

    def _snapshot(self) -> dict[str, Any]:
        return {
            "learner": self.learner.snapshot(),
            "sums": [self._since.copy(), self._in_pass.copy()],
            "facts": self._known,
            "losses": self._losses,
            "counts": [self.passes, self._number, self._portion, self._entries, self._last],
        }

    def _restore(self, saved: Any) -> None:  # noqa: ANN401
        loss = self.objective.loss
        assert isinstance(loss, RowLoss)
        self.learner = Learner.restored(loss, saved["learner"])
        self._since, self._in_pass = (np.array(sums) for sums in saved["sums"])
        self._known, self._losses = dict(saved["facts"]), list(saved["losses"])
        self.passes, number, portion, self._entries, self._last = saved["counts"]
        self._number, self._portion = int(number), int(portion)
