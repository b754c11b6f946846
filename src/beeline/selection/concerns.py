"""What is to be said about a search beside its result."""

from __future__ import annotations

import math

from beeline._sentences import Argument, Sentence
from beeline.exceptions import ConvergenceWarning, ModelWarning
from beeline.losses import Loss, Truncated
from beeline.selection.result import End, PathPoint, Selection
from beeline.selection.schedule import is_noticeable
from beeline.selection.selecting import Selecting
from beeline.training.concerns import Concern

__all__ = ["concerns_about_search"]

_NOTHING_LEFT = 1e-3  # of the training loss without a model
_MORE_TIME = Sentence("raise ", Argument("time_limit"))


def concerns_about_search(
    found: Selection,
    selecting: Selecting,
    null: PathPoint,
    loss: Loss,
    failure: Exception | None,
    underfitted: bool = False,
) -> list[Concern]:
    """What a user must know, with what to do.

    `null` is the model without weights; `underfitted` says that the path ended before all features were heard.
    """
    if found.end is End.PERFECT:
        of_path: Concern | None = _of_separable(found)
    elif not _is_worth_it(found, null):
        of_path = _of_worth(found, null, loss)
    elif underfitted and found.end is End.LIMIT and selecting.C_max is None:
        of_path = _of_small_features(found)
    else:
        of_path = _of_end(found, selecting, null)
    told = (_of_failure(found, failure), _of_unsolved(found, selecting, loss), of_path)
    return [concern for concern in told if concern is not None]


def _of_failure(found: Selection, failure: Exception | None) -> Concern | None:
    if failure is None:
        return None
    why = f"{type(failure).__name__}: {failure}"
    sentence = Sentence(
        f"the search ended after C = {found.curve[-1].C:.6g}, since the next training failed ({why}); scale the "
        "features, or set ",
        Argument("C_max"),
    )
    return Concern(sentence, ConvergenceWarning)


def _of_unsolved(found: Selection, selecting: Selecting, loss: Loss) -> Concern | None:
    if not (unsolved := found.best.unsolved):
        return None
    trainings = "a training" if unsolved == 1 else f"{unsolved} trainings"
    limit = "time_limit" if found.end is End.TIME and selecting.time_limit else "max_passes"
    why, advice = "ended before the tolerance", ""
    if isinstance(loss, Truncated):
        why += f", or would have cut off {'a class' if loss.classifies else 'most rows'}"
        advice = "raise s, " if loss.classifies else "scale the labels, raise s, "
    # Of a time limit the search has but a part, which is not the number that the user gave.
    now = "" if limit == "time_limit" else f" (now {selecting.max_passes:g})"
    start = f"{trainings} at the best C, {found.best_C:.6g}, {why}; {advice}raise "
    sentence = Sentence(start, Argument(limit), f"{now}, or scale the features")
    return Concern(sentence, ConvergenceWarning)


def _of_worth(found: Selection, null: PathPoint, loss: Loss) -> Concern:
    sentence = Sentence(
        f"at no C of the {len(found.curve)} tried was the {found.metric} on held-out rows ({found.best_score:.5g} at "
        f"best) noticeably better than that of the intercept alone ({found.null_score:.5g}); ",
        _advice(found, null, loss),
    )
    return Concern(sentence, ModelWarning)


def _of_separable(found: Selection) -> Concern:
    sentence = (
        f"the classes are separable: at C = {found.curve[-1].C:.6g} held-out rows are told without a mistake, and any "
        "larger C would do; if that is too good to be true, look for a feature that tells the label"
    )
    return Concern(sentence, ModelWarning)


def _of_small_features(found: Selection) -> Concern:
    sentence = (
        f"the path has ended at C = {found.curve[-1].C:.6g}, though features that are small beside others have more to "
        "tell; scale the features"
    )
    return Concern(sentence, ConvergenceWarning)


def _of_end(found: Selection, selecting: Selecting, null: PathPoint) -> Concern | None:
    """Where the best C is the largest that was tried, and nobody asked for no larger one."""
    late = found.end is End.TIME
    is_largest = found.best is max(found.curve, key=lambda point: point.C)
    if not (is_largest and (late or (found.end is End.LIMIT and selecting.C_max is None))):
        return None
    advice = _MORE_TIME if late else "scale the features"
    if not late and found.best.training_loss <= _NOTHING_LEFT * null.training_loss:
        advice = Sentence(
            "training rows are told without a mistake, so that none is large enough: set ", Argument("C_max")
        )
    start = f"the best C, {found.best_C:.6g}, is the largest that was tried, and {found.end.value}; "
    return Concern(Sentence(start, advice), ConvergenceWarning)


def _advice(found: Selection, null: PathPoint, loss: Loss) -> str:
    if found.end is End.TIME:
        return _MORE_TIME
    if loss.zero_is_optimal:
        return f"zero weights are an optimum of {loss.name!r}: take another loss, such as 'hinge'"
    if loss.name == "novelty":
        take = Argument("fit_intercept", "regularized")
        return Sentence("take ", take, ", or features that lie on one side of zero")
    if null.loss == 0:
        return "which makes no mistakes: all labels are the same"
    if loss.classifies:
        take = Argument("class_weight", "balanced")
        return Sentence("take ", take, " or another metric where classes are unbalanced, or scale the features")
    return "scale the features, or take another loss or metric"


def _is_worth_it(found: Selection, null: PathPoint) -> bool:
    """Whether the score is better than without a model; who has no score without one is believed.

    That another C has a better loss is no excuse, nor that this one has: the metric is what the user asked for.
    """
    return math.isnan(null.score) or is_noticeable(found.best_score, null.score, found.greater_is_better)
