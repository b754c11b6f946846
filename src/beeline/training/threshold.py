"""Where the score of the positive class begins, for losses to which only differences of scores matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from beeline.engines.verbs import values
from beeline.losses import TwoClassLoss
from beeline.training.run import Trained
from beeline.training.task import Task

__all__ = ["with_threshold"]


def with_threshold(task: Task, trained: Trained) -> Trained:
    """The same model with an intercept by which `predict` goes; one pass over the rows.

    J is what it was: no intercept changes it. What is best is for the loss to say, as `TwoClassLoss.threshold` does.
    Other losses, such as those of ranking, need none, and get none.
    """
    if not (isinstance(task.loss, TwoClassLoss) and task.loss.differences_only):
        return trained
    (o,) = task.objectives()
    z = o.scores(trained.results[0].theta)
    (found,) = o.rows.sum(values.threshold, z, o.labels, o.costs, loss=task.loss).value
    return replace(trained, intercepts=np.array([-found]))
