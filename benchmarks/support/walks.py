"""Stochastic training that is looked at on the way: how many steps, how many seconds, and how accurate by then.

A walk learns from rows in random order, each once in a pass. Its clock runs while it learns and not while its weights
are tried on the test rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from beeline.data.core.arrays import from_arrays
from beeline.losses import get_loss
from beeline.regularizers import L2
from beeline.solvers import SGD
from beeline.solvers.stochastic.learning import Learning
from beeline.solvers.stochastic.order import Portion
from beeline.training.task import Task

__all__ = ["LEARNERS", "Look", "Problem", "looks", "walk"]


class Learner(NamedTuple):
    """What learns: a loss, how it takes several classes, and the rule of its steps."""

    loss: str
    multiclass: str
    variant: str


LEARNERS = {
    "multi-class LR": Learner("logistic", "softmax", "mcid"),
    "multi-class SVM": Learner("hinge", "crammer_singer", "mcid"),
    "multi-class perceptron": Learner("multiclass_perceptron", "auto", "mcid"),
    "K-binary-LR": Learner("logistic", "ovr", "pegasos"),
    "K-Pegasos": Learner("hinge", "ovr", "pegasos"),
    "default, softmax": Learner("logistic", "softmax", "averaged"),
    "default, hinge": Learner("hinge", "crammer_singer", "averaged"),
}


class Look(NamedTuple):
    """Where a walk is: steps, seconds of learning, test accuracy in per cent."""

    steps: int
    seconds: float
    accuracy: float


@dataclass(eq=False)
class Problem:
    """Rows to learn from and to predict, the λ of the published methods, and targets.

    Attributes
    ----------
    sizes
        Numbers of training rows, of which the first ones are taken: they lie in random order.
    strength
        λ.
    targets
        Accuracies to reach, in per cent: low, middle and high.
    fixed, most
        The fixed numbers of steps of figure 2, and the most that a walk makes.
    """

    name: str
    X: sp.csr_matrix
    y: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray
    sizes: tuple[int, ...]
    strength: float
    targets: tuple[float, ...]
    fixed: tuple[int, ...]
    most: int
    _cut: dict[int, object] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.y.max()) + 1

    def first(self, n: int):
        """The first rows, as a data set."""
        if n not in self._cut:
            self._cut = {n: from_arrays(self.X[:n])}
        return self._cut[n]

    def accuracy(self, weights: np.ndarray, intercepts: np.ndarray) -> float:
        """Of the test rows."""
        return 100 * float(np.mean((self.X_test @ weights + intercepts).argmax(axis=1) == self.y_test))


def looks(most: int, first: int = 256, factor: float = 1.3) -> list[int]:
    """Numbers of steps at which to look, ever further apart."""
    points = [first]
    while points[-1] < most:
        points.append(min(most, int(points[-1] * factor) + 1))
    return points


def walk(problem: Problem, learner: str, n: int, seed: int, points: list[int], until: tuple[float, int]) -> list[Look]:
    """Learn from n rows; look at some numbers of steps, until a test accuracy is reached after a number of steps."""
    how = LEARNERS[learner]
    task = Task(
        problem.first(n),
        problem.y[:n],
        problem.n_classes,
        get_loss(how.loss),
        L2(),
        C=1 / (problem.strength * n),
        intercept="free" if how.variant == "averaged" else "regularized",
        multiclass=how.multiclass,
    )
    options = {"variant": how.variant} | ({"projection": False} if how.variant == "pegasos" else {})
    runs = [_Walk(SGD(max_passes=1e9, **options), objective, seed) for objective in task.objectives()]
    seen: list[Look] = []
    for steps in points:
        for run in runs:
            run.learn_until(steps)
        parts = [run.weights() for run in runs]
        W, b = (np.column_stack([part[k] for part in parts]) if len(parts) > 1 else parts[0][k] for k in (0, 1))
        seen.append(Look(steps, sum(run.seconds for run in runs), problem.accuracy(W, np.ravel(b))))
        if seen[-1].accuracy >= until[0] and steps >= until[1]:
            break
    return seen


class _Walk:
    """One objective's training."""

    def __init__(self, solver: SGD, objective, seed: int) -> None:
        self.objective, self.seed, self.seconds = objective, seed, 0.0
        self.learning = Learning(solver, objective, None)
        rows = objective.rows
        self.block = rows.local()
        self.labels, self.costs = rows.gather_local(objective.labels), rows.gather_local(objective.costs)
        self.steps, self.order = 0, np.empty(0, np.int64)

    def learn_until(self, steps: int) -> None:
        order = self._rows(self.steps, steps)
        start = time.perf_counter()
        self.learning.learn(Portion(self.block, order, self.labels, self.costs))
        self.seconds += time.perf_counter() - start
        self.steps = steps

    def _rows(self, start: int, stop: int) -> np.ndarray:
        """Which rows come at these steps: a permutation a pass."""
        n, parts = self.block.n_rows, []
        for number in range(start // n, -(-stop // n)):
            order = np.random.default_rng([self.seed, number]).permutation(n)
            parts.append(order[max(0, start - number * n) : stop - number * n])
        return np.concatenate(parts)

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        return self.objective.split(self.learning.step().theta)
