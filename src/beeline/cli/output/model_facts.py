"""What `train`, `inspect` and `export` say about a model, as one dictionary: printed as it is by --json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from beeline.model import Model
    from beeline.solvers.base import Result

__all__ = ["finite_numbers", "model_facts", "top_features", "traces"]

Facts = dict[str, Any]


def model_facts(model: Model, path: str | Path) -> Facts:
    """What there is to say about a model, without its weights."""
    from beeline.model.levels import levels_of
    from beeline.model.liblinear import is_liblinear

    recipe, levels = model.recipe, levels_of(model)
    return {
        "path": str(path),
        "format": "LIBLINEAR" if is_liblinear(path) else "beeline",
        "bytes": Path(path).stat().st_size,
        "kind": model.kind,
        "loss": model.loss,
        "loss_settings": model.loss_settings,
        "classes": None if model.classes is None else model.class_names,
        "probabilities": model.link if model.has_probabilities else None,
        "link": model.link,
        "features": model.n_features,
        "outputs": model.n_outputs,
        "nonzeros": model.nonzeros,
        "intercepts": model.intercepts.tolist(),
        "thresholds": None if levels is None else levels.thresholds.tolist(),
        "settings": model.settings,
        "report": None if model.report is None else model.report.to_json(),
        "columns": None if recipe is None or recipe.columns is None else [column.name for column in recipe.columns],
        "scaling": None if recipe is None else recipe.scaling.in_words,
        "beeline": model.version,
    }


def traces(results: list[Result]) -> list[list[Facts]]:
    """For each problem that was solved, how far the solver was after every iteration, and what else it said."""
    named = ("passes", "seconds", "objective", "gap")
    return [
        [finite_numbers({name: getattr(at, name) for name in named} | dict(at.facts)) for at in result.trace]
        for result in results
    ]


def finite_numbers(facts: Mapping[str, float]) -> Facts:
    """Numbers by name, as JSON can hold them: none where one is infinite, such as a gap that is not known."""
    return {name: number if math.isfinite(number) else None for name, number in facts.items()}


def top_features(model: Model, most: int) -> list[Facts]:
    """The features with the largest weights of each output, largest first; of levels in an order, of their score."""
    from beeline.model.levels import levels_of

    found, names, levels = [], model.class_names, levels_of(model)
    for output in range(model.n_outputs if levels is None else 1):
        weights = model.weights[:, output] if levels is None else levels.weights
        size = np.abs(weights)
        largest = np.argpartition(-size, most)[:most] if most < len(size) else np.arange(len(size))
        order = largest[np.lexsort((largest, -size[largest]))]
        features = [
            {"feature": model.feature_name(int(j)), "weight": float(weights[j])} for j in order if weights[j] != 0
        ]
        name = model.output_name(output) if model.classes is None else names[1 if model.kind == "binary" else output]
        if levels is not None:
            found.append({"output": "higher levels", "intercept": None, "features": features})
            continue
        found.append({"output": name, "intercept": float(model.intercepts[output]), "features": features})
    return found
