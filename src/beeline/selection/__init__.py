"""C chosen for the user: the path of C, folds, warm starts and the stop rule (the warm-start paper, part W)."""

from __future__ import annotations

from beeline.selection.path import select
from beeline.selection.result import End, PathPoint, Selection
from beeline.selection.selecting import Selecting

__all__ = ["End", "PathPoint", "Selecting", "Selection", "select"]
