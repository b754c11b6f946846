"""A classifier whose classes are the leaves of a tree."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal

import numpy as np

from beeline._numbers import as_choice
from beeline._sentences import Argument
from beeline._types import Floats
from beeline.data.options import Extra
from beeline.estimators.base import FitIntercept, LinearClassifier
from beeline.estimators.docs import documented
from beeline.estimators.offering import no_probabilities, offered_unless
from beeline.exceptions import ParameterError
from beeline.fitting.settings import Auto
from beeline.losses import LabelTree, Loss, TreeLogistic, TreeMargin
from beeline.model.label_trees import label_tree_of, node_weights
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike
from beeline.training.labels import ClassWeight

__all__ = ["HierarchicalClassifier"]


@documented
class HierarchicalClassifier(LinearClassifier):
    """A classifier whose classes are the leaves of a tree, and share the weights of the nodes above them.

    The score s_k of a class is the sum of the scores of the nodes on its way from the root. Minimises
    ½‖W‖² + C·Σ weight_i·(log Σ_k exp(s_ik) − s_iy) over the weights W of all nodes, or with max-margin
    ½‖W‖² + C·Σ weight_i·max_k (s_ik − s_iy + Δ(y_i, k)), where Δ is the length of the way between two classes.

    <fit>

    Parameters
    ----------
    tree : LabelTree, str, path, dict, list of pairs or None, default=None
        The tree: "dots" or "slashes" between the parts of the classes' names; a file, of an edge `parent child` a line
        or of dictionaries in JSON; dictionaries of lists; pairs (parent, child). None: from the names of the classes
        where there are dots or slashes in them; elsewhere all classes lie below the root, and nothing is shared.
    loss : {"tree_logistic", "tree_margin"}, default="tree_logistic"
        A softmax over the classes, which has probabilities; or the margin, by which a mistake costs as much as it is
        far off.
    rescaling : {"margin", "slack"}, default="margin"
        For "tree_margin". "margin": a mistake that is farther off needs a larger margin. "slack": it counts more,
        Δ(y, k)(s_k − s_y + 1).
    <C>
    <fit_intercept>
    <class_weight>
    <searching>
    <solving>

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    tree_ : LabelTree
        The tree of these classes.
    <attributes>

    Examples
    --------
    >>> from beeline import HierarchicalClassifier
    >>> rows, y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["sea.calm", "sea.rough", "land.hill", "land.rock"] * 5
    >>> places = HierarchicalClassifier(C=10.0).fit(rows, y)
    >>> places.predict_path([[0.0], [3.0]])
    [('sea', 'sea.calm'), ('land', 'land.rock')]
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        tree: Any = None,  # noqa: ANN401
        *,
        loss: Literal["tree_logistic", "tree_margin"] = "tree_logistic",
        rescaling: Literal["margin", "slack"] = "margin",
        C: float | Auto = 1.0,
        fit_intercept: FitIntercept = True,
        class_weight: ClassWeight = None,
        cv: Any = 5,  # noqa: ANN401
        scoring: Any = None,  # noqa: ANN401
        solver: SolverLike = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        time_limit: float | None = None,
        memory: str | int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        warm_start: bool = False,
        random_state: Any = None,  # noqa: ANN401
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.tree = tree
        self.loss = loss
        self.rescaling = rescaling
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.memory = memory
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _gives_probabilities(self) -> bool:
        return bool(self.loss == "tree_logistic")

    def _settings(self) -> dict[str, Any]:
        return {"loss": self._loss(), "C": self.C, "class_weight": self.class_weight}

    def _loss(self) -> Loss:
        as_choice("loss", self.loss, ("tree_logistic", "tree_margin"))
        as_choice("rescaling", self.rescaling, ("margin", "slack"))
        tree = "auto" if self.tree is None else self.tree
        if self.loss == "tree_margin":
            return TreeMargin(tree, self.rescaling)
        if self.rescaling != "margin":
            raise ParameterError(
                Argument("rescaling"), " has no meaning without ", Argument("loss", "tree_margin"), "; leave it out"
            )
        return TreeLogistic(tree)

    @property
    def tree_(self) -> LabelTree:
        """The tree of the classes."""
        tree = label_tree_of(self._learned())
        assert tree is not None
        return tree

    @property
    def node_coef_(self) -> Floats:
        """The weights of the nodes, in the order of `tree_.names[1:]`, of shape (nodes, n_features).

        A model keeps what these come to for each class; of all weights that come to this, the optimum has the smallest.
        """
        return node_weights(self._learned(), self.tree_)

    def predict_path(self, X: Any, *, extra: Extra = "error") -> list[tuple[str, ...]]:  # noqa: ANN401
        """The nodes from below the root to the predicted class, for each row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The rows, as for `predict`.
        extra : {"error", "ignore"}
            As for `predict`.
        """
        tree = self.tree_
        paths = {name: tree.path(name) for name in self.classes_.tolist()}
        return [paths[name] for name in self.predict(X, extra=extra).tolist()]

    @offered_unless(no_probabilities)
    def predict_node_proba(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """The probability of each node but the root, that of the classes below it, in the order of `tree_.names[1:]`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The rows, as for `predict`.
        extra : {"error", "ignore"}
            As for `predict`.
        """
        paths = self.tree_.paths(self.model_.class_names)[:, 1:]
        nodes: Floats = np.einsum("ik,kv->iv", self.predict_proba(X, extra=extra), paths)
        return nodes
