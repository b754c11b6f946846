"""What is known about every loss, for `beeline losses` and for the table in the documentation."""

from __future__ import annotations

from typing import Any

import numpy as np

from beeline.data.core.arrays import from_arrays
from beeline.losses import LOSSES, Loss, RowLoss, VectorLoss, loss_settings
from beeline.objective import Intercept, Objective
from beeline.regularizers import L1, L2
from beeline.solvers.needs import unmet
from beeline.solvers.registry import SOLVERS

__all__ = ["LABELS", "all_losses"]

LABELS = {
    "binary": "Two classes",
    "classes": "Several classes together",
    "levels": "Levels in an order",
    "sets": "Sets of labels",
    "real": "Numbers",
    "queries": "Relevances of the documents of queries",
    "vectors": "Vectors of numbers",
    "none": "No labels",
}


def all_losses() -> list[dict[str, Any]]:
    """The facts about each loss of the registry, those with the same labels after each other."""
    made: list[Any] = [kind() for kind in LOSSES.values()]
    return [_facts(loss) for labels in LABELS for loss in made if _kind_of_labels(loss) == labels]


def _kind_of_labels(loss: Loss) -> str:
    return "queries" if loss.scope == "group" else loss.labels


def _facts(loss: RowLoss) -> dict[str, Any]:
    return {
        "name": loss.name,
        "formula": loss.formula,
        "summary": loss.summary,
        "labels": _kind_of_labels(loss),
        "domain": loss.domain,
        "link": loss.link,
        "kind": "smooth, curved" if loss.has_curvature else "smooth" if loss.smooth else "kinked",
        "settings": dict(loss_settings(loss.name)),
        "solvers": {omega.name: _solvers(loss, omega) for omega in (L2(), L1())},
    }


def _solvers(loss: RowLoss, omega: L1 | L2) -> list[str]:
    """Who takes the loss with that regularizer; outputs that are problems of their own are taken one by one."""
    single = loss.output_loss if isinstance(loss, VectorLoss) else None
    outputs = 3 if isinstance(loss, VectorLoss) and single is None else 1
    ones = np.ones(1)
    intercept: Intercept = "none" if loss.labels == "none" or loss.differences_only else "free"
    objective = Objective.of(
        from_arrays(np.ones((1, 1))), ones, ones, single or loss, omega, 1.0, intercept, n_outputs=outputs
    )
    return [name for name, kind in SOLVERS.items() if unmet(kind.needs, objective) is None]
