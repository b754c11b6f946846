"""What is learned from rows that come one after the other, wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.losses import RowLoss
from beeline.objective.parameters import Parameters
from beeline.solvers.stochastic.averaged import Averaged
from beeline.solvers.stochastic.options import SGDOptions
from beeline.solvers.stochastic.published import Published
from beeline.solvers.stochastic.rule import Problem, Strengths

__all__ = ["Learner", "Progress", "Strengths"]


class Progress(NamedTuple):
    """Sums of progressive validation: over rows as they were scored before they were learned from.

    Attributes
    ----------
    loss, errors
        Σ c_i l_i and, of a classifier, Σ c_i [the class is wrong]; ties count in part.
    weight
        Σ c_i over the rows that were scored: all of them, or of several classes every few.
    """

    loss: float
    errors: float
    weight: float

    def __add__(self, other: tuple[float, ...]) -> Progress:  # type: ignore[override]
        return Progress(*(one + two for one, two in zip(self, other, strict=True)))


class Learner:
    """A linear model that learns from rows as they come, and nothing of where they come from.

    It minimises λ₂/2‖w‖² + λ₁‖w‖₁ + mean of c_i·l_i over the rows that it is shown, by the rule that the options name.
    Rows should come in random order. The same rows, in the same calls, give the same bits.

    Parameters
    ----------
    loss
        A loss of rows with a stochastic form: `rule.form_of` says which have one.
    layout
        How many features and outputs there are, and which intercept.
    strengths
        (λ₂, λ₁), in units of one row whose cost is 1.
    options
        The variant and its settings.
    horizon
        How many rows make a pass; None: nobody knows, as of a stream. Step sizes fall with the passes over rows that
        come again, and stay as they are where each row comes once.
    theta, rows_before
        Weights to begin from, and how many rows led to them.

    Examples
    --------
    >>> import numpy as np
    >>> from beeline.data.core.arrays import from_arrays
    >>> from beeline.losses import Hinge
    >>> learner = Learner(Hinge(), Parameters(2), Strengths(1e-4))
    >>> rows, labels = from_arrays(np.array([[1.0, 0.0], [0.0, 1.0]])).block, np.array([1.0, -1.0])
    >>> for _ in range(50):
    ...     seen = learner.learn(rows, labels)
    >>> seen.errors, [round(float(weight)) for weight in learner.theta]
    (0.0, [1, -1, 0])
    """

    def __init__(
        self,
        loss: RowLoss,
        layout: Parameters,
        strengths: Strengths,
        options: SGDOptions | None = None,
        *,
        horizon: float | None = None,
        theta: Floats | None = None,
        rows_before: float = 0.0,
    ) -> None:
        self.options = SGDOptions() if options is None else options
        kind = Averaged if self.options.variant == "averaged" else Published
        problem = Problem(loss, layout, strengths, horizon)
        self._method: Averaged | Published = kind(problem, self.options, theta, rows_before)
        self._theta: Floats | None = None

    def learn(self, block: Block, labels: Floats, costs: Floats | None = None, order: Ints | None = None) -> Progress:
        """Learn from rows, each after it was scored by the weights that would be the result.

        Parameters
        ----------
        block
            The rows; of features that a row has and this has not, `grow` has to be told before.
        labels, costs
            One for each row of the block: −1 and +1, class numbers, or numbers, as the loss wants them; costs whose
            mean is about 1 (None: 1). Rows that cost nothing are absent.
        order
            The places in the block of those rows that are learned from, in their order; None: all, as they lie.
        """
        if block.n_features > self.layout.n_features:
            raise ValueError(f"rows of {block.n_features} features, of which {self.layout.n_features} are known")
        n = block.n_rows
        visits = np.arange(n) if order is None else np.ascontiguousarray(order, dtype=np.int64)
        weights = np.ones(n) if costs is None else np.ascontiguousarray(costs, dtype=np.float64)
        self._theta = None
        return Progress(*self._method.learn(block, visits, np.ascontiguousarray(labels, dtype=np.float64), weights))

    @property
    def layout(self) -> Parameters:
        """The layout of θ."""
        return self._method.problem.layout

    @property
    def theta(self) -> Floats:
        """The weights that it would predict by, as `Parameters` lays them out; later ones are another array."""
        if self._theta is None:
            self._theta = self._method.theta
        return self._theta

    @property
    def rows(self) -> float:
        """How many rows were learned from, with those that led to the start."""
        return self._method.rows

    @property
    def drowned(self) -> int:
        """How many features have an offset so large that steps cannot tell their values apart."""
        return self._method.drowned

    def grow(self, n_features: int, n_outputs: int = 1) -> None:
        """Take in features, and classes, that appear later: their weights begin at zero."""
        before = self.layout
        if n_features < before.n_features or n_outputs < before.n_outputs:
            raise ValueError("features and classes may be added, not taken away")
        if (n_features, n_outputs) != (before.n_features, before.n_outputs):
            self._theta = None
            self._method.grow(Parameters(n_features, n_outputs, before.intercept))

    def snapshot(self) -> dict[str, Any]:
        """All that it goes on from, to the same bits: numbers, texts and arrays."""
        p, problem = self.layout, self._method.problem
        return {
            "layout": [p.n_features, p.n_outputs, p.intercept],
            "strengths": list(problem.strengths),
            "horizon": problem.horizon,
            "options": self.options.to_json(),
            "method": self._method.snapshot(),
        }

    @classmethod
    def restored(cls, loss: RowLoss, snapshot: Mapping[str, Any]) -> Learner:
        """The learner of a snapshot, for the same loss."""
        learner = cls(
            loss,
            Parameters(*snapshot["layout"]),
            Strengths(*snapshot["strengths"]),
            SGDOptions(**snapshot["options"]),
            horizon=snapshot["horizon"],
        )
        learner._method.restore(snapshot["method"])
        return learner
