"""What a user may say about training, gathered in one place."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from beeline._lazy import cached_property
from beeline._numbers import as_choice, as_number, as_seed
from beeline._sentences import Argument
from beeline._words import quoted
from beeline.engines import Resources
from beeline.exceptions import ParameterError
from beeline.losses import Loss, get_loss
from beeline.objective import Intercept
from beeline.regularizers import Regularizer, get_regularizer
from beeline.selection import Selecting
from beeline.solvers.registry import SolverLike, solver_name, solver_settings, the_solver
from beeline.training.checkpoint import check_interval
from beeline.training.labels import ClassWeight
from beeline.training.task import Multiclass

__all__ = ["Auto", "Multiclass", "Settings", "check_positive"]

Auto = Literal["auto"]
_NO_REGULARIZATION = {
    "C": "; for next to no regularization take a large one such as 1e8",
    "alpha": "; for next to no regularization take a small one such as 1e-8",
}
_CHOICES = {"intercept": get_args(Intercept), "multiclass": get_args(Multiclass)}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a model is trained.

    Parameters
    ----------
    loss, regularizer
        Names, or objects with settings of their own.
    nonnegative
        No weight may be negative; intercepts may.
    C
        What multiplies the loss of every row: J = Ω(w) + C·Σ weight_i·l_i. "auto" searches for the best.
    alpha
        If given, it replaces C: J = alpha·Ω(w) + the weighted mean of the losses. The same model has C = 1/(alpha·n).
        "auto" searches for the best.
    class_weight
        What multiplies C for the rows of each class; `balanced` gives every class the same total.
    intercept
        `free`, `regularized` or `none`. None: free; but none where only differences of scores matter to the loss.
        Two classes then get a threshold after training, as the loss's `threshold` has it.
    multiclass
        How several classes are told apart, as in `Task`.
    probability
        Calibrate probabilities by Platt's method, for losses that have none of their own.
    solver, tol, max_passes, seed
        Who solves it, to which relative distance from the optimum, in how many passes over the data, and the seed of
        all that is random. `solver` is a name, a name with options such as ("bundle", {"variant": "bmrm"}), or a
        solver such as Bundle(variant="bmrm"), for which `tol`, `max_passes` and `seed` count only where it was not told
        its own.
    time_limit
        Seconds for all of it; None: no limit. It is looked at after each iteration, and the best so far is taken. A
        search for C gets four fifths; with `probability`, the model gets half of what there is for training.
    checkpoint, checkpoint_interval
        A folder in which to keep where training is, and to go on from where it is there already, and the seconds
        between two times that this is written; None: nothing is kept.
    selecting
        How C is searched for, where it is.
    resources
        What may be used of the machine for it.
    """

    loss: str | Loss = "logistic"
    regularizer: str | Regularizer = "l2"
    nonnegative: bool = False
    C: float | Auto = 1.0
    alpha: float | Auto | None = None
    class_weight: ClassWeight = None
    intercept: Intercept | None = None
    multiclass: Multiclass = "auto"
    probability: bool = False
    solver: SolverLike = "auto"
    tol: float = 1e-4
    max_passes: float = 1000
    time_limit: float | None = None
    seed: int = 0
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_interval: float = 30.0
    selecting: Selecting = Selecting()  # noqa: RUF009 — it is frozen
    resources: Resources = Resources()  # noqa: RUF009 — it is frozen

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if name != "intercept" or self.intercept is not None:
                as_choice(name, getattr(self, name), choices)
        for name in ("C", "alpha", "tol", "max_passes", "time_limit"):
            value = getattr(self, name)
            if name in ("C", "alpha") and isinstance(value, str) and value == "auto":
                continue
            if value is None and name in ("alpha", "time_limit"):
                continue
            check_positive(name, value)
        as_seed(self.seed)
        check_interval(self.checkpoint_interval)
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise ParameterError(Argument("checkpoint"), f" must be a folder, not {self.checkpoint!r}")
        if not isinstance(self.solver, str):
            the_solver(self.solver)  # which says what is wrong with it
        if (
            self.class_weight is not None
            and not isinstance(self.class_weight, Mapping)
            and (self.class_weight != "balanced")
        ):
            raise ParameterError(
                Argument("class_weight"), f" must be a dictionary or 'balanced', not {self.class_weight!r}"
            )

    @cached_property
    def the_loss(self) -> Loss:
        """The loss itself."""
        return get_loss(self.loss)

    @cached_property
    def the_regularizer(self) -> Regularizer:
        """Ω itself."""
        regularizer = get_regularizer(self.regularizer)
        return regularizer.without_negative_weights() if self.nonnegative else regularizer

    @property
    def the_intercept(self) -> Intercept:
        """The intercept, decided."""
        if self.intercept is not None:
            return self.intercept
        return "none" if self.the_loss.differences_only else "free"

    @property
    def searches(self) -> bool:
        """Whether C (or alpha, or the loss's epsilon with it) is to be searched for."""
        strength = self.C if self.alpha is None else self.alpha
        return isinstance(strength, str)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, for the model file; what has a name is written by its name."""
        regularizer = self.the_regularizer
        weights = self.class_weight
        record: dict[str, Any] = {
            "regularizer": regularizer.name,
            "l1_ratio": regularizer.l1 if regularizer.name == "elastic_net" else None,
            "nonnegative": regularizer.nonnegative or None,
            "C": float(self.C) if self.alpha is None else None,
            "alpha": None if self.alpha is None else float(self.alpha),
            "class_weight": {str(k): float(v) for k, v in weights.items()} if isinstance(weights, Mapping) else weights,
        }
        record |= {"intercept": self.the_intercept, "multiclass": self.multiclass, "solver": solver_name(self.solver)}
        numbers = {"tol": float(self.tol), "max_passes": float(self.max_passes), "seed": int(self.seed)}
        record |= {"probability": bool(self.probability), **numbers}
        record["time_limit"] = None if self.time_limit is None else float(self.time_limit)
        record["memory"] = self.resources.budget
        record |= solver_settings(self.solver)
        return {name: value for name, value in record.items() if value is not None}


def check_positive(name: str, value: object) -> float:
    """The setting, which must be positive and finite."""
    if not 0 < (number := _as_number(name, value)) < math.inf:
        auto = ", or 'auto'" if name in ("C", "alpha") else ""
        least = _NO_REGULARIZATION.get(name, "")
        raise ParameterError(Argument(name), f" must be positive and finite{auto}, not {quoted(value)}{least}")
    return number


def _as_number(name: str, value: object) -> float:
    """The setting as a number; NaN, which is refused with a word on `auto`, where it is a text."""
    return math.nan if isinstance(value, str) or value is None else as_number(name, value)
