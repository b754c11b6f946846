"""Results as pages: one HTML file each, that needs nothing beside it."""

from __future__ import annotations

from beeline.report.evaluation import evaluation_page, write_evaluation_page
from beeline.report.selection import selection_page, write_selection_page
from beeline.report.training import training_page, write_training_page

__all__ = [
    "evaluation_page",
    "selection_page",
    "training_page",
    "write_evaluation_page",
    "write_selection_page",
    "write_training_page",
]
