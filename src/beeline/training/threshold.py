"""What follows from scores alone: thresholds, for losses to which only differences of scores matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from beeline._types import Floats
from beeline.engines.verbs import values
from beeline.losses import TwoClassLoss
from beeline.losses.level_pairs import LevelPairs
from beeline.losses.ordinal import from_level_columns, level_columns
from beeline.objective import Point
from beeline.training.run import Trained
from beeline.training.task import Task

__all__ = ["best_thresholds", "with_threshold"]


def with_threshold(task: Task, trained: Trained) -> Trained:
    """The same model with what `predict` goes by: an intercept, or a threshold between levels; one pass over the rows.

    J is what it was: none of them changes it. What is best is for the loss to say, as `TwoClassLoss.threshold` and
    `LevelPairs.best_thresholds` do. Other losses, such as those of ranking, need none, and get none.
    """
    if isinstance(task.loss, LevelPairs):
        (o,) = task.objectives()
        found = best_thresholds(o.at(trained.results[0].theta))
        weights, intercepts = level_columns(from_level_columns(trained.weights), found)
        return replace(trained, weights=weights, intercepts=intercepts, extra=found)
    if not (isinstance(task.loss, TwoClassLoss) and task.loss.differences_only):
        return trained
    (o,) = task.objectives()
    z = o.scores(trained.results[0].theta)
    (found,) = o.rows.sum(values.threshold, z, o.labels, o.costs, loss=task.loss).value
    return replace(trained, intercepts=np.array([-found]))


def best_thresholds(point: Point) -> Floats:
    """The thresholds between levels that suit the scores of rows that cost something."""
    o = point.objective
    found: Floats = o.rows.sum(values.level_thresholds, point.z, o.labels, o.costs, loss=o.loss).value[0]
    return found
