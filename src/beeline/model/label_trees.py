"""The tree of a model's classes, from what its loss was made with, and the weights of its nodes."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats
from beeline.exceptions import BeelineError, ModelError
from beeline.losses import LabelTree
from beeline.model.model import Model

__all__ = ["label_tree_of", "node_weights"]


def label_tree_of(model: Model) -> LabelTree | None:
    """The tree that the model was trained with, of its classes alone; None where there was none."""
    edges = model.loss_settings.get("tree")
    if edges is None or model.classes is None:
        return None
    try:
        return LabelTree.from_edges(edges).restricted_to(model.class_names)
    except (BeelineError, TypeError) as error:
        raise ModelError(f"the tree of the model's classes cannot be used: {error}") from error


def node_weights(model: Model, tree: LabelTree) -> Floats:
    """The smallest U with PU = W, Pᵀ(PPᵀ)⁻¹W: a row for each node of the model's tree but the root, depth first.

    W are the weights of the classes, P says which nodes are on the way to each (`LabelTree.paths`).
    """
    paths, weights = tree.paths(model.class_names)[:, 1:], model.weights.T
    if model.kind == "binary":  # which keeps the difference alone
        weights = np.vstack([-0.5 * weights, 0.5 * weights])
    nodes: Floats = paths.T @ np.linalg.solve(paths @ paths.T, weights)
    return nodes
