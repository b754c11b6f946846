"""A training problem that beeline and its peers solve alike, with an evaluation that belongs to neither."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from beeline import LinearSVC, LogisticRegression
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.losses import get_loss
from beeline.regularizers import L2
from beeline.solvers.base import Callback, Step
from beeline.training.run import train
from beeline.training.task import Task
from support import sets
from support.sets import Rows

__all__ = ["Fit", "Problem", "Seconds", "Stopwatch"]

# The optimum is computed to this certified gap; many classes cost too much time for the first.
_CLOSE, _CLOSE_OF_MANY = 1e-9, 1e-6
_PATIENCE = 20.0


class Seconds(NamedTuple):
    """Time on the wall, and of all cores together: the second is there when others use the machine too."""

    wall: float
    cores: float


class Stopwatch:
    """Measures the block that it surrounds."""

    def __enter__(self) -> Stopwatch:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = Seconds(time.perf_counter() - self._start[0], time.process_time() - self._start[1])


class Fit(NamedTuple):
    """What a solver found, in how many seconds; `capped` when a fixed iteration limit ended it."""

    seconds: Seconds
    weights: np.ndarray
    intercepts: np.ndarray
    capped: bool = False


def _close_enough(step: Step) -> bool:
    """After a while, a hundredth of the target's distance will do for the optimum."""
    return step.seconds > _PATIENCE and step.gap <= _CLOSE_OF_MANY


_LOSSES = {
    "logistic": lambda t: np.logaddexp(0, -t),
    "hinge": lambda t: np.maximum(0, 1 - t),
    "squared_hinge": lambda t: np.maximum(0, 1 - t) ** 2,
}


@dataclass(eq=False)
class Problem:
    """½‖w‖² + Σ l over the rows of a set, C = 1.

    Parameters
    ----------
    set
        The set's name.
    loss, intercept
        By beeline's names.
    multiclass
        None for the set's binary problem, else `ovr` or `crammer_singer`.
    """

    set: str
    loss: str
    intercept: str = "none"
    multiclass: str | None = None

    @property
    def key(self) -> str:
        """A name for files and caches."""
        return "-".join(filter(None, (self.set, self.loss, self.intercept, self.multiclass)))

    @cached_property
    def rows(self) -> Rows:
        """The training rows."""
        return self._part("train")

    def _part(self, part: str) -> Rows | None:
        return sets.multiclass(self.set, part) if self.multiclass else sets.binary(self.set, part)

    @cached_property
    def matrix(self):
        """The training rows, for SciPy."""
        return self.rows.matrix()

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.rows.labels.max()) + 1 if self.multiclass else 2

    def value(self, fit: Fit) -> float:
        """J, by NumPy and SciPy alone."""
        z = self.matrix @ fit.weights + fit.intercepts
        return 0.5 * float((fit.weights**2).sum()) + self._losses(z)

    def _losses(self, z: np.ndarray) -> float:
        y = self.rows.labels
        if self.multiclass == "crammer_singer":
            own = np.arange(len(y)), y.astype(int)
            margins = 1 - z[own][:, None] + z
            margins[own] = 0
            return float(margins.max(axis=1).sum())
        loss = _LOSSES[self.loss]
        if self.multiclass is None:
            return float(loss(y * z[:, 0]).sum())
        return sum(float(loss(np.where(y == k, 1, -1) * z[:, k]).sum()) for k in range(z.shape[1]))

    def accuracy(self, fit: Fit) -> float | None:
        """The share of test rows that are told right; None without test rows."""
        rows = self._part("test")
        if rows is None:
            return None
        z = rows.matrix() @ fit.weights + fit.intercepts
        told = z.argmax(axis=1) if self.multiclass else np.where(z[:, 0] > 0, 1, -1)
        return float(np.mean(told == rows.labels))

    def beeline(self, tol: float, callback: Callback | None = None) -> Fit:
        """Train by beeline; every run gets a data set of its own, so that nothing is kept from the last one."""
        rows = self.rows
        labels = rows.labels if self.multiclass else (rows.labels > 0).astype(np.float64)
        data = ArrayDataset(Block(rows.values, rows.shape[1], rows.indptr, rows.indices))
        settings = {"multiclass": self.multiclass} if self.multiclass else {}
        loss = get_loss(self.loss)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Stopwatch() as watch:
                task = Task(data, labels, self.n_classes, loss, L2(), intercept=self.intercept, **settings)
                trained = train(task, tol=tol, max_passes=1e5, callback=callback)
        self.last = trained
        self.last_solver = trained.results[0].solver
        return Fit(watch.seconds, trained.weights, trained.intercepts)

    def estimator(self, tol: float) -> Fit:
        """Train beeline's estimator on the matrix as it is, from the check of the input to the model."""
        fresh = (LogisticRegression if self.loss == "logistic" else LinearSVC)(
            fit_intercept=self.intercept == "free", tol=tol, max_passes=1e5
        )
        if self.loss != "logistic":
            fresh.set_params(loss=self.loss)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Stopwatch() as watch:
                fresh.fit(self.matrix, self.rows.labels)
        self.last_solver = fresh.results_[0].solver
        return Fit(watch.seconds, fresh.coef_.T, fresh.intercept_)

    @cached_property
    def best(self) -> Fit:
        """The optimum, to a small certified gap or as far as it goes; computed once and kept in a file."""
        path = sets.FOLDER / f"optimum-{self.key}.npz"
        if not path.exists():
            fit = self.beeline(_CLOSE_OF_MANY) if self.multiclass else self.beeline(_CLOSE, _close_enough)
            gap = sum(r.gap * r.objective for r in self.last.results) / sum(r.objective for r in self.last.results)
            np.savez(path, weights=fit.weights, intercepts=fit.intercepts, gap=gap)
        with np.load(path) as file:
            self.gap = float(file["gap"])
            return Fit(Seconds(0.0, 0.0), file["weights"], file["intercepts"])

    @cached_property
    def optimum(self) -> float:
        """J at the optimum."""
        return self.value(self.best)
