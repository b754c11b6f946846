"""Losses of classes that are the leaves of a tree: a class scores what the nodes on its way from the root add up to.

Conventions
-----------
- A row has a score for every node but the root: first those of the classes, in their order, then those of inner nodes,
  each behind its parent. With P, of a row for each class and a column for each node, 1 where the node is on the way to
  the class, the scores of classes are s = Pz, and a loss l(s) of classes has the slopes Pᵀl'(s) and the Hessian PᵀHP.
- What nodes share, classes below them learn together: Ω counts the weights of nodes. A model keeps what they come to
  for each class.
- Inner nodes that each have one node below them, m in a chain, are one with √m in P: of all that comes to the same sum,
  the smallest is the same for all of them, and ½‖u‖² for a score √m·u is what they pay together.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from beeline._lazy import cached_property
from beeline._numbers import as_choice
from beeline._types import Floats, Ints
from beeline._words import count
from beeline.exceptions import ParameterError
from beeline.kernels import apply_softmax_hessians, sum_paths, sum_subtrees
from beeline.losses.base import VectorLoss
from beeline.losses.costs import MulticlassMargin, ScaledMulticlassMargin
from beeline.losses.label_tree import LabelTree, as_label_tree
from beeline.losses.multiclass import Softmax, unit_margins

__all__ = ["OverTree", "TreeLayout", "TreeLogistic", "TreeLoss", "TreeMargin"]

_THROUGH_ROOT = 2.0
_UNIT = 1e-15  # of a sum of scales
_ROUNDING = 1e-14  # of a cost, in each of the slopes that a node's is the sum of


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """Where the nodes of a tree are among the columns of scores.

    Attributes
    ----------
    n_classes
        K: the first columns are the classes.
    parents
        The column of each column's parent, −1 below the root. Parents of inner nodes come before them.
    scales
        What the scores of each column are multiplied by: √m for a chain of m inner nodes, else 1.
    names
        What the columns are called; chains by their highest node.
    """

    n_classes: int
    parents: Ints
    scales: Floats
    names: tuple[str, ...]

    @classmethod
    def of(cls, tree: LabelTree, names: Sequence[object]) -> TreeLayout:
        """The layout of these classes in a tree, of which all else is left out."""
        tree = tree.restricted_to(names)
        leaves = tree.leaves_of(names).tolist()
        taken, below = set(leaves), Counter(tree.parents)
        top, length = {0: 0}, dict.fromkeys(leaves, 1)
        for node in range(1, len(tree)):
            parent = tree.parents[node]
            top[node] = top[parent] if node not in taken and parent and below[parent] == 1 else node
            length[top[node]] = length.get(top[node], 0) + (node not in taken)
        order = leaves + [node for node in range(1, len(tree)) if node not in taken and top[node] == node]
        column = {node: k for k, node in enumerate(order)} | {0: -1}
        parents = np.array([column[top[tree.parents[node]]] for node in order], np.int64)
        scales = np.sqrt([length[node] for node in order])
        return cls(len(leaves), parents, scales, tuple(tree.names[node] for node in order))

    @property
    def n_nodes(self) -> int:
        """How many scores a row has."""
        return len(self.parents)

    @property
    def is_flat(self) -> bool:
        """Whether all classes lie below the root."""
        return self.n_nodes == self.n_classes

    @cached_property
    def uniform(self) -> bool:
        """Whether the same number added to all scores of a row is added to all classes."""
        sums = self.paths.sum(axis=1)
        return bool(np.ptp(sums) <= _UNIT * sums.max())

    @cached_property
    def has_chains(self) -> bool:
        """Whether a column stands for several nodes."""
        return bool(np.any(self.scales != 1))

    @cached_property
    def paths(self) -> Floats:
        """P."""
        return self.sum_paths(np.eye(self.n_nodes)).T.copy()

    def sum_paths(self, z: Floats) -> Floats:
        """Pz for every row: what each node has is that of its parent and its own, from the root down."""
        if self.is_flat:
            return z
        scores = np.empty((len(z), self.n_classes))
        sum_paths(np.ascontiguousarray(z * self.scales if self.has_chains else z), self.parents, scores)
        return scores

    def sum_subtrees(self, a: Floats) -> Floats:
        """Pᵀa for every row: each node's slope is made of the sum of those below it, from the leaves up."""
        if self.is_flat:
            return a
        slopes = np.empty((len(a), self.n_nodes))
        sum_subtrees(np.ascontiguousarray(a), self.parents, self.n_classes, slopes)
        if self.has_chains:
            slopes *= self.scales
        return slopes


class OverTree(VectorLoss):
    """A loss of classes, of the scores that the nodes on their ways add up to.

    Parameters
    ----------
    loss
        l, of the scores of the classes.
    layout
        Where nodes are among the scores; None: every class lies below the root.
    """

    name = "over_tree"

    def __init__(self, loss: VectorLoss, layout: TreeLayout | None) -> None:
        self._class_loss, self._layout = loss, layout
        self.shift_invariant = layout is None or layout.uniform

    @property
    def class_loss(self) -> VectorLoss:
        """l."""
        return self._class_loss

    @property
    def has_conjugate(self) -> bool:
        """Whether l has."""
        return self.class_loss.has_conjugate

    @property
    def has_smoothed(self) -> bool:
        """Whether l has."""
        return self.class_loss.has_smoothed

    @property
    def has_curvature(self) -> bool:
        """Whether l has."""
        return self.class_loss.has_curvature

    def n_classes(self, n_scores: int) -> int:
        """As many as the tree has leaves."""
        return n_scores if self._layout is None else self._layout.n_classes

    def n_scores(self, n_outputs: int) -> int:
        """One for each node but the root; `n_outputs` may be that already."""
        layout = self._layout
        return n_outputs if layout is None or n_outputs != layout.n_classes else layout.n_nodes

    def check_outputs(self, n_outputs: int) -> None:
        """The tree must have a leaf for each class."""
        if self._layout is not None and n_outputs != self._layout.n_nodes:
            leaves = count(self._layout.n_classes, "class")
            raise ParameterError(f"the tree has {leaves}, not {n_outputs}", parameter="tree")
        self.class_loss.check_outputs(self.n_classes(n_outputs))

    def natural_width(self, spread: float) -> float:
        """That of l."""
        return self.class_loss.natural_width(spread)

    def to_classes(self, columns: Floats) -> Floats:
        """What columns of nodes come to for each class."""
        return columns if self._layout is None else self._layout.sum_paths(np.ascontiguousarray(columns))

    def from_classes(self, columns: Floats) -> Floats:
        """The smallest columns of nodes that come to these for the classes: at an optimum under L2, those of it."""
        if self._layout is None or self._layout.is_flat:
            return columns
        paths = self._layout.paths
        least = np.linalg.solve(paths @ paths.T, columns.T)
        return self.slopes_from_classes(np.ascontiguousarray(least.T, np.float64))

    def slopes_from_classes(self, slopes: Floats) -> Floats:
        """The slopes along all nodes: each the sum of those of the classes below."""
        return slopes if self._layout is None else self._layout.sum_subtrees(slopes)

    def _up(self, z: Floats) -> Floats:
        """The scores of the classes."""
        return z if self._layout is None else self._layout.sum_paths(z)

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The value, and the slopes along all nodes."""
        values, slopes = self.class_loss.value_and_grad(self._up(z), y)
        return values, self.slopes_from_classes(slopes)

    def sum(self, z: Floats, y: Floats, c: Floats) -> float:
        """Σ c_i l(z_i, y_i)."""
        return self.class_loss.sum(self._up(z), y, c)

    def slopes(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """c_i · dl/dz for every row."""
        return self.slopes_from_classes(self.class_loss.slopes(self._up(z), y, c))

    def along(self, z: Floats, dz: Floats, t: float, y: Floats, c: Floats) -> tuple[float, float]:
        """Along a line of the nodes' scores, that of the classes'."""
        return self.class_loss.along(self._up(z), self._up(dz), t, y, c)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """That of l."""
        return self.class_loss.curvature(self._up(z), y)

    def curvatures(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """c_i · `curvature` for every row."""
        return self.class_loss.curvatures(self._up(z), y, c)

    def derivatives(self, z: Floats, y: Floats, c: Floats) -> tuple[float, Floats, Floats]:
        """All three in one go."""
        value, slopes, curvatures = self.class_loss.derivatives(self._up(z), y, c)
        return value, self.slopes_from_classes(slopes), curvatures

    def hessian_products(self, h: Floats, u: Floats) -> Floats:
        """The products PᵀH_iP u_i."""
        scores = self._up(u)
        if not self.class_loss.has_softmax_curvature:
            return self.slopes_from_classes(self.class_loss.hessian_products(h, scores))
        products = scores.copy() if scores is u else scores
        apply_softmax_hessians(np.ascontiguousarray(h), np.zeros(h.shape[1]), products)
        return self.slopes_from_classes(products)

    def curvature_diagonals(self, h: Floats) -> Floats:
        """The diagonals of PᵀH_iP."""
        if self._layout is None:
            return self.class_loss.curvature_diagonals(h)
        if self.class_loss.has_softmax_curvature:
            below, totals = self._layout.sum_subtrees(h) / self._layout.scales, h.sum(axis=1, keepdims=True)
            diagonals: Floats = below - below * np.divide(below, totals, out=np.zeros_like(below), where=totals > 0)
            return diagonals * self._layout.scales**2
        each = [np.broadcast_to(path, (len(h), len(path))).copy() for path in self._layout.paths.T]
        return np.column_stack([(path * self.class_loss.hessian_products(h, path)).sum(axis=1) for path in each])

    def curvature_total(self, h: Floats) -> Floats:
        """Σ_i PᵀH_iP."""
        total = self.slopes_from_classes(self.class_loss.curvature_total(h))
        return self.slopes_from_classes(np.ascontiguousarray(total.T))

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """That of l; slopes along inner nodes must be the sums of those of the classes below them."""
        k = self.n_classes(a.shape[1])
        along = np.ascontiguousarray(a[:, :k])
        sizes = _ROUNDING * k * np.abs(along).sum(axis=1)
        if np.any(np.abs(self.slopes_from_classes(along)[:, k:] - a[:, k:]) > sizes[:, None]):
            return np.inf
        return self.class_loss.conjugate_sum(along, y, c)

    def smoothed(self, width: float) -> VectorLoss:
        """With the kinks of l rounded off."""
        inner = self.class_loss.smoothed(width)
        assert isinstance(inner, VectorLoss)
        return OverTree(inner, self._layout)

    def best_constant(self, y: Floats, c: Floats) -> Floats | None:
        """That of l, with nothing for the inner nodes."""
        best = self.class_loss.best_constant(y, c)
        if best is None or self._layout is None:
            return None if best is None else np.asarray(best)
        return np.append(best, np.zeros(self._layout.n_nodes - self._layout.n_classes))


class TreeLoss(OverTree):
    """A loss of the library over a tree of labels.

    Parameters
    ----------
    tree
        A `LabelTree`, or what one is made of: "dots" or "slashes" between the parts of the classes' names, "auto" for
        whichever these have, the path of a file, dictionaries, or pairs of nodes. None: all classes lie below the root.
    """

    def __init__(self, tree: Any = None) -> None:  # noqa: ANN401
        self._given = tree
        self.tree = as_label_tree(tree)
        self._waits = tree is not None and self.tree is None
        classes = None if self.tree is None else self.tree.sorted_classes
        self._bind(classes)

    def _bind(self, classes: Sequence[object] | None) -> None:
        self._classes = None if classes is None else list(classes)
        layout = None if self.tree is None or classes is None else TreeLayout.of(self.tree, classes)
        super().__init__(self._loss_of_classes(classes), layout)

    @abstractmethod
    def _loss_of_classes(self, classes: Sequence[object] | None) -> VectorLoss:
        """l, of the scores of these classes; None: they are not known."""

    def __getstate__(self) -> dict[str, Any]:
        """What it was made with, as plain values, and the classes where they are known."""
        tree = self._given if self.tree is None else self.tree.to_edges()
        return self.settings | {"tree": tree, "classes": self._classes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        settings = dict(state)
        classes = settings.pop("classes")
        vars(self).update(vars(type(self)(**settings)))
        if classes is not None:
            self._bind(classes)

    def _again(self, tree: LabelTree) -> TreeLoss:
        """The same loss over a tree that is known by now."""
        return type(self)(tree)

    def with_classes(self, names: Sequence[object]) -> TreeLoss:
        """The loss of these classes, in this order; `LabelError` for one that the tree does not have."""
        tree = as_label_tree(self._given if self.tree is None else self.tree, names)
        if tree is None:
            return self
        bound = self._again(tree)
        bound._bind(names)
        return bound

    def n_scores(self, n_outputs: int) -> int:
        """One for each node but the root."""
        if self._waits:
            raise ParameterError(
                f"the tree {self._given!r} is spelled out by the names of classes, which are not known here; give "
                "with_classes(names) of the loss",
                parameter="tree",
            )
        return super().n_scores(n_outputs)

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, as plain JSON; the tree by its edges."""
        return {} if self.tree is None else {"tree": self.tree.to_edges()}

    def __repr__(self) -> str:
        shown = {key: value for key, value in self.settings.items() if key != "tree"}
        if self._given is not None:
            shown = {"tree": self.tree or self._given} | shown
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"


class TreeLogistic(TreeLoss):
    """log Σ_k exp(s_k) − s_y, s_k the sum of the scores on the way to class k: a softmax over the paths of a tree."""

    name = "tree_logistic"
    formula = "log Σ_k exp(s_k) − s_y, s_k = Σ z_v over the nodes v above k"
    summary = "multinomial logistic regression whose classes share the weights of the nodes above them"
    link = "softmax"

    def _loss_of_classes(self, classes: Sequence[object] | None) -> VectorLoss:
        return Softmax()


class _Flat(VectorLoss):
    """A margin without a tree: any two classes are two edges apart, through the root."""

    def natural_width(self, spread: float) -> float:
        return _THROUGH_ROOT

    def _rows(self, z: Floats, y: Floats) -> Floats:
        return _THROUGH_ROOT * unit_margins(z, y)


class _FlatMargin(_Flat, MulticlassMargin):
    pass


class _FlatScaledMargin(_Flat, ScaledMulticlassMargin):
    pass


class TreeMargin(TreeLoss):
    """max_k (s_k − s_y + Δ(y, k)), Δ the length of the way between two classes (Cai & Hofmann 2004).

    Parameters
    ----------
    tree
        As for every loss over a tree. With None all mistakes cost 2, the length of the way through the root.
    rescaling
        "margin": a mistake that is farther off needs a larger margin. "slack": it counts more, Δ(y, k)(s_k − s_y + 1).
    """

    name = "tree_margin"
    formula = "max_k (s_k − s_y + Δ(y, k)), or max_k Δ(y, k)·(s_k − s_y + 1)"
    summary = "the hinge over a tree of labels: a mistake costs as much as it is far off"
    smooth = False
    piecewise_linear = True

    def __init__(self, tree: Any = None, rescaling: Literal["margin", "slack"] = "margin") -> None:  # noqa: ANN401
        as_choice("rescaling", rescaling, ("margin", "slack"))
        self.rescaling = rescaling
        super().__init__(tree)

    def _again(self, tree: LabelTree) -> TreeLoss:
        return TreeMargin(tree, self.rescaling)

    def _loss_of_classes(self, classes: Sequence[object] | None) -> VectorLoss:
        scaled = self.rescaling == "slack"
        if self.tree is None or classes is None:
            return _FlatScaledMargin() if scaled else _FlatMargin()
        return (ScaledMulticlassMargin if scaled else MulticlassMargin)(self.tree.distances(classes))

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, as plain JSON."""
        return super().settings | {"rescaling": self.rescaling}
