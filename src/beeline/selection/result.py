"""What a search for C found: the curve, the best C, and why it ended."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from beeline._lazy import cached_property
from beeline._numbers import as_choice
from beeline._words import count
from beeline.exceptions import ParameterError
from beeline.training.concerns import Concern
from beeline.training.run import Trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["End", "PathPoint", "Rule", "Selection", "Stop"]

Rule = Literal["best", "one_se"]
Stop = Literal["auto", "paper"]


class End(Enum):
    """Why a path ended."""

    SETTLED = "the weights no longer change with C"
    WORSE = "scores on held-out rows have become worse"
    FLAT = "scores on held-out rows no longer improve"
    PERFECT = "held-out rows cost next to nothing"
    LIMIT = "C reached its upper limit"
    TIME = "the time limit was reached"
    FAILED = "a training failed"
    INTERRUPTED = "it was interrupted"
    CALLBACK = "the callback stopped it"


@dataclass(frozen=True)
class PathPoint:
    """One C of the path.

    Attributes
    ----------
    C, epsilon
        What was tried; `epsilon` is None for a loss that has none to choose.
    fold_scores, fold_weights
        The metric on the rows that each fold held out, and the total weight of those rows.
    loss
        The mean of the loss itself over all rows held out.
    seconds, passes
        What it took: time on the clock, and passes over the data by all folds together.
    stop_ratio
        The left side of (24) over ‖∇f(0; C)‖, or the relative change of w for the hinge: of all folds the largest.
        NaN for the first C of a path.
    settled
        Whether no step seemed worth it for any fold and class: by (24) with the paper's rule, each by its own ε, else
        by what a step promises, with a stop ratio of a tenth at most.
    unsolved
        How many trainings ended before their tolerance.
    training_loss
        The mean of the loss over all rows trained on, in all folds.
    residual_correlation
        The largest part of the losses' slopes that a single feature explains: what Ω still keeps from being learned.
    """

    C: float
    fold_scores: tuple[float, ...]
    fold_weights: tuple[float, ...]
    seconds: float
    passes: float
    stop_ratio: float
    epsilon: float | None = None
    settled: bool = False
    unsolved: int = 0
    loss: float = math.nan
    training_loss: float = math.nan
    residual_correlation: float = 0.0

    def __str__(self) -> str:
        return f"C {self.C:10.4g}   score {self.score:.6g} ± {self.spread:.2g}   {self.seconds:.2f} s"

    @cached_property
    def score(self) -> float:
        """The mean over the folds, each counted by the weight of its rows: for accuracy, that of all rows."""
        return float(np.average(self.fold_scores, weights=self.fold_weights))

    @property
    def spread(self) -> float:
        """The standard deviation over the folds; 0 for a single one."""
        return float(np.std(self.fold_scores, ddof=1)) if len(self.fold_scores) > 1 else 0.0

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        return self.spread / math.sqrt(len(self.fold_scores))


@dataclass(frozen=True, eq=False)
class Selection:
    """The path of C, and the best of it.

    Attributes
    ----------
    curve
        One `PathPoint` for each C that was tried, from the smallest on.
    null_score
        The mean score of the best intercepts alone: what a model has to beat. NaN where it is not known.
    metric, greater_is_better
        What was measured on held-out rows, and in which direction it is better.
    end
        Why the search ended.
    stop_tol
        (24)'s ε, of all problems the smallest: three values of C in a row where it holds end the path.
    rule
        `best`: the smallest C with the best mean score (W6). `one_se`: the smallest C whose mean score is within one
        standard error of the best.
    start
        Weights to begin the training on all rows from: the mean of the folds' at the best C by the rule `best`.
        None for a selection made by hand.
    cold
        The same C values from cold starts, where they were asked for.
    stop
        The rule by which the path ended, as in `Selecting`.
    concerns
        What was warned of: trainings that met a limit, scores that are no better than without a model, and the like.
    total_weight
        Of all rows, where the user's parameter is alpha = 1/(C·total_weight); None: it is C.
    """

    curve: tuple[PathPoint, ...]
    metric: str
    greater_is_better: bool
    end: End
    stop_tol: float
    rule: Rule = "best"
    start: Trained | None = field(default=None, repr=False)
    cold: Selection | None = field(default=None, repr=False)
    null_score: float = math.nan
    stop: Stop = "paper"
    concerns: tuple[Concern, ...] = ()
    total_weight: float | None = None

    def __post_init__(self) -> None:
        as_choice("rule", self.rule, get_args(Rule))
        if not self.curve:
            raise ParameterError("a selection needs at least one C", parameter="curve")

    @property
    def best(self) -> PathPoint:
        """The point that the rule chooses."""
        return choose(self.curve, self.greater_is_better, self.rule)

    @property
    def best_C(self) -> float:  # noqa: N802
        """The C that the rule chooses."""
        return self.best.C

    @property
    def best_score(self) -> float:
        """The mean score at that C."""
        return self.best.score

    @property
    def seconds(self) -> float:
        """The time that the whole path took."""
        return sum(point.seconds for point in self.curve)

    @property
    def sentence(self) -> str:
        """What happened, in words."""
        values = count(len(self.curve), "value")
        place = "the best" if self.rule == "best" else "the smallest within one standard error of the best"
        strength = f"C = {self.best_C:.6g}"
        if self.total_weight is not None:
            strength = f"alpha = {1 / (self.best_C * self.total_weight):.6g}"
        return f"{self.metric} {self.best_score:.5g} at {strength}, {place} of {values}; {self.end.value}"

    def __repr__(self) -> str:
        return f"Selection({self.sentence})"

    def with_rule(self, rule: Rule) -> Selection:
        """The same curve under another rule."""
        return replace(self, rule=rule)

    def plot(self, figure: Figure | None = None) -> Figure:
        """Score and cumulative time against log₂ C, with the best C and where the path ended; needs matplotlib."""
        from beeline.selection.plot import draw_selection

        return draw_selection(self, figure)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the curve and what follows from it."""
        return {
            "metric": self.metric,
            "best_C": self.best_C,
            "best_epsilon": self.best.epsilon,
            "best_score": finite(self.best_score),
            "rule": self.rule,
            "end": self.end.name.lower(),
            "why": self.end.value,
            "stop": self.stop,
            "stop_tol": self.stop_tol,
            "seconds": self.seconds,
            "null_score": finite(self.null_score),
            "concerns": [concern.sentence for concern in self.concerns],
            "curve": [_record(point) for point in self.curve],
        }


def choose(curve: tuple[PathPoint, ...], greater_is_better: bool, rule: Rule) -> PathPoint:
    """The point that the rule chooses; of equal ones the first tried, and none without a score (NaN) if it can be."""
    sign = 1.0 if greater_is_better else -1.0

    def merit(point: PathPoint) -> float:
        return -math.inf if math.isnan(point.score) else sign * point.score

    best = curve[0]
    for point in curve:
        if merit(point) > merit(best):
            best = point
    if rule == "best" or math.isnan(best.score):
        return best
    enough = merit(best) - best.standard_error
    return next(point for point in curve if point.epsilon == best.epsilon and merit(point) >= enough)


def finite(number: float) -> float | None:
    """A number as JSON knows it."""
    return number if math.isfinite(number) else None


def _record(point: PathPoint) -> dict[str, Any]:
    record: dict[str, Any] = {"C": point.C, "score": finite(point.score), "spread": finite(point.spread)}
    record |= {key: value for key, value in asdict(point).items() if key not in ("C", "fold_weights")}
    scores = [finite(score) for score in point.fold_scores]
    return (
        record
        | {"fold_scores": scores, "stop_ratio": finite(point.stop_ratio)}
        | {
            "loss": finite(point.loss),
            "training_loss": finite(point.training_loss),
        }
    )
