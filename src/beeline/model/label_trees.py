"""The tree of a model's classes, from what its loss was made with."""

from __future__ import annotations

from beeline.exceptions import BeelineError, ModelError
from beeline.losses import LabelTree
from beeline.model.model import Model

__all__ = ["label_tree_of"]


def label_tree_of(model: Model) -> LabelTree | None:
    """The tree that the model was trained with, of its classes alone; None where there was none."""
    edges = model.loss_settings.get("tree")
    if edges is None or model.classes is None:
        return None
    try:
        return LabelTree.from_edges(edges).restricted_to(model.class_names)
    except (BeelineError, TypeError) as error:
        raise ModelError(f"the tree of the model's classes cannot be used: {error}") from error
