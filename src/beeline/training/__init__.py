"""From labels to weights: what is to be learned, and the training of all its problems."""

from __future__ import annotations

from beeline.training.run import Trained, train
from beeline.training.task import Task

__all__ = ["Task", "Trained", "train"]
