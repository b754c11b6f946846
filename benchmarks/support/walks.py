"""Stochastic training that is looked at on the way: how many steps, how many seconds, and how accurate by then.

A walk learns from rows in random order, each once in a pass. Its clock runs while it learns and not while its weights
are tried on the test rows; it is that of the processor, since learning takes one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from beeline.data.core.arrays import from_arrays
from beeline.data.core.block import Block
from beeline.losses import CrammerSinger, Hinge, Logistic, MulticlassPerceptron, OneVsRest, RowLoss, Softmax
from beeline.objective.parameters import Parameters
from beeline.solvers.stochastic.learner import Learner, Strengths
from beeline.solvers.stochastic.options import SGDOptions

__all__ = ["RULES", "Look", "Problem", "looks", "walk"]


_FIRST = 4096  # rows, of which `sgd` looks at the features


class Rule(NamedTuple):
    """What is learned and how: a loss, and the rule of the steps."""

    loss: Callable[[], RowLoss]
    options: dict


_MCID, _PEGASOS = {"variant": "mcid"}, {"variant": "pegasos", "projection": False}
RULES = {
    "multi-class LR": Rule(Softmax, _MCID),
    "multi-class SVM": Rule(CrammerSinger, _MCID),
    "multi-class perceptron": Rule(MulticlassPerceptron, _MCID),
    "K-binary-LR": Rule(lambda: OneVsRest(Logistic()), _PEGASOS),
    "K-Pegasos": Rule(lambda: OneVsRest(Hinge()), _PEGASOS),
    "default, softmax": Rule(Softmax, {}),
    "default, hinge": Rule(CrammerSinger, {}),
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
    _cut: dict[int, Block] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.y.max()) + 1

    def first(self, n: int) -> Block:
        """The first rows."""
        if n not in self._cut:
            self._cut = {n: from_arrays(self.X[:n]).block}
        return self._cut[n]

    def accuracy(self, weights: np.ndarray, intercepts: np.ndarray) -> float:
        """Of the test rows."""
        return 100 * float(np.mean((self.X_test @ weights + intercepts).argmax(axis=1) == self.y_test))


def looks(most: int, first: int = 256, factor: float = 1.5) -> list[int]:
    """Numbers of steps at which to look, ever further apart."""
    points = [first]
    while points[-1] < most:
        points.append(min(most, int(points[-1] * factor) + 1))
    return points


def walk(problem: Problem, name: str, n: int, seed: int, points: list[int], until: tuple[float, int]) -> list[Look]:
    """Learn from n rows; look at some numbers of steps, until a test accuracy is reached after a number of steps.

    The clock runs while rows are learned from, not while the weights are written out and tried.
    """
    rule, block, y = RULES[name], problem.first(n), problem.y[:n]
    layout = Parameters(block.n_features, problem.n_classes, "regularized" if rule.options else "free")
    strength = problem.strength if rule.options else 1 / n  # C = 1 where nothing is said
    learner = Learner(rule.loss(), layout, Strengths(strength), SGDOptions(**rule.options), horizon=n)
    costs, seen, before = np.ones(n), [], 0
    seconds = 0.0 if rule.options else _see_scales(learner, block, y, _order(n, seed, 0, min(n, _FIRST)))
    for steps in points:
        order = _order(n, seed, before, steps)
        start = time.process_time()
        learner.learn(block, y, costs, order)
        seconds, before = seconds + time.process_time() - start, steps
        seen.append(Look(steps, seconds, problem.accuracy(*layout.split(learner.theta))))
        if seen[-1].accuracy >= until[0] and steps >= until[1]:
            break
    return seen


@lru_cache(maxsize=2)
def _permutation(n: int, seed: int, number: int) -> np.ndarray:
    return np.random.default_rng([seed, number]).permutation(n)


def _see_scales(learner: Learner, block: Block, y: np.ndarray, order: np.ndarray) -> float:
    """Let it see how large features are, by the rows that a run of the solver begins with; the seconds."""
    start = time.process_time()
    learner._method._look(block, order, y)
    return time.process_time() - start


def _order(n: int, seed: int, start: int, stop: int) -> np.ndarray:
    """Which rows come at these steps: each once in a pass."""
    parts = []
    for number in range(start // n, -(-stop // n)):
        order = _permutation(n, seed, number)
        parts.append(order[max(0, start - number * n) : stop - number * n])
    return np.concatenate(parts)
