"""Mistakes of a classifier whose classes are the leaves of a tree: how far off they are, and where ways part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from beeline import metrics
from beeline._types import Floats
from beeline.evaluation.evaluation import NodeErrors
from beeline.losses import LabelTree

__all__ = ["node_errors", "tree_measures"]


def tree_measures(table: Floats, tree: LabelTree, names: Sequence[str]) -> dict[str, float]:
    """Measures of a confusion table of these classes.

    The mean length of the way from a row's class to the predicted one; and precision, recall and F1 of classes together
    with the nodes above them, so that a mistake near by is half a hit.
    """
    precision, recall, f1 = metrics.hierarchical_f1(table, tree.paths(names)[:, 1:])
    return {
        "tree_loss": metrics.mean_cost(table, tree.distances(names)),
        "hierarchical_precision": precision,
        "hierarchical_recall": recall,
        "hierarchical_f1": f1,
    }


def node_errors(table: Floats, tree: LabelTree, names: Sequence[str]) -> tuple[NodeErrors, ...]:
    """For every node, depth first, the rows below it and those of them that are predicted elsewhere."""
    paths = tree.paths(names)
    paths[:, 0] = 1.0  # all classes lie below the root
    rows = np.einsum("i,iv->v", table.sum(axis=1), paths)
    stayed = np.einsum("iv,ij,jv->v", paths, table, paths, optimize=True)
    columns = zip(tree.names, tree.parents, tree.depths, rows.tolist(), (rows - stayed).tolist(), strict=True)
    return tuple(NodeErrors(*column) for column in columns)
