"""How C is searched for: what a user may say about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from beeline._numbers import as_choice, as_function, as_number
from beeline._sentences import Argument
from beeline._types import AnyArray
from beeline.exceptions import ParameterError
from beeline.selection.folds import Splitting
from beeline.selection.result import PathPoint, Rule, Stop

__all__ = ["OnPoint", "Selecting"]

OnPoint = Callable[[PathPoint], bool | None]
"""Is called after every C; returning True ends the search."""

_TOLS: dict[str, float] = {"auto": 1e-4, "paper": 1e-2}


@dataclass(frozen=True, kw_only=True)
class Selecting:
    """How C is searched for.

    Parameters
    ----------
    folds
        K folds; a part of the rows to hold out once, such as 0.2; a splitter of scikit-learn's kind; or pairs of train
        and test rows.
    metric
        `accuracy`, `f1` (`f2`, `f0.5`, …), `auc`, `log_loss`, `balanced_error`, `precision@K`, `recall@K`, `rmse`,
        `mae`, `r2`, `loss` (the mean of the loss itself); of levels `quadratic_kappa`, `level_mae`; of queries
        `ndcg@K`, `ndcg@K:linear`, `ndcg@K:letor4`, `mean_ndcg`, `map`, `mrr`, and precision and recall are then means
        over these; the name of a scorer of scikit-learn's, or one. None: the log loss where the loss gives
        probabilities of classes, accuracy for other classifiers, `rmse` for a regression whose loss asks for the middle
        of the labels, `loss` elsewhere.
    rule
        `best`, or `one_se`: as in `Selection`.
    stop
        `auto`: the path begins where a model first has something to say, and ends when neither the score nor the loss
        on held-out rows has improved over three values of C; where its first value is the best, smaller ones are
        tried. `paper`: as the warm-start paper has it, from C_min (W4) on until the weights have settled (24).
    C_min, C_max, delta
        The path C_min, Δ·C_min, … up to C_max. None: as `stop` says, up to 2¹⁰ or to 2²⁰·C_min where that is more with
        `paper`, and up to 2⁶⁰ times the first C with `auto`.
    tol
        How exactly folds are solved: to this part of J with `auto` (None: 10⁻⁴, and 10⁻⁶ for labels that are no
        classes, whose errors show more), by (28) with `paper` (None: 10⁻²),
        whose (24) has the same ε: the path ends when the weights have settled to it three times in a row.
    refine
        In the end, try half a step of the path on both sides of the best C too.
    time_limit
        Seconds after which no further C is tried; None: no limit. The best so far is taken.
    warm
        Begin every C where the last one ended; False begins at zero.
    all_the_way
        Go up to C_max, whatever the scores and the weights do.
    max_passes
        For each C and fold; folds in lockstep count their passes together.
    groups
        A group a row; rows of a group stay in one fold. None: the queries of the data, if it has any.
    search_epsilon
        Search for the ε of an ε-insensitive loss too (W8).
    compare_cold
        Afterwards, go through the same C values from cold starts, for `Selection.cold`.
    on_point
        Is called after every C; returning True ends the search.
    resume
        A file to keep the path in, and to go on from where it is there already.
    """

    folds: Splitting = 5
    metric: str | Callable[..., float] | None = None
    rule: Rule = "best"
    stop: Stop = "auto"
    C_min: float | None = None
    C_max: float | None = None
    delta: float = 2.0
    tol: float | None = None
    refine: bool = False
    time_limit: float | None = None
    warm: bool = True
    all_the_way: bool = False
    max_passes: float = 1000
    groups: AnyArray | None = None
    search_epsilon: bool = False
    compare_cold: bool = False
    on_point: OnPoint | None = None
    resume: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name, choices in (("rule", Rule), ("stop", Stop)):
            as_choice(name, getattr(self, name), get_args(choices))
        for name in ("C_min", "C_max", "tol", "max_passes", "time_limit"):
            value = getattr(self, name)
            if value is None and name != "max_passes":
                continue
            if not 0 < as_number(name, value) < np.inf:
                raise ParameterError(Argument(name), f" must be positive and finite, not {value}")
        as_function("on_point", self.on_point)
        if not 1 < as_number("delta", self.delta) < np.inf:
            raise ParameterError(Argument("delta"), f" must be greater than 1, not {self.delta}")
        if self.C_min is not None and self.C_max is not None and self.C_min > self.C_max:
            raise ParameterError(
                Argument("C_min"),
                f", {self.C_min:g}, must not be greater than ",
                Argument("C_max"),
                f", {self.C_max:g}",
            )

    @property
    def the_tol(self) -> float:
        """The tolerance, decided."""
        return _TOLS[self.stop] if self.tol is None else self.tol
