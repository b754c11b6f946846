"""What a user must know about a training beside its result: it stopped early, or its model is worth nothing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

from beeline._sentences import Argument, Sentence
from beeline._warnings import calls_inside
from beeline.exceptions import ConvergenceWarning, ModelWarning
from beeline.losses import Loss, Truncated, TwoClassLoss, is_built_in
from beeline.solvers.base import Result, Solver, Status

__all__ = [
    "Concern",
    "concern_about_rows",
    "concern_about_scale",
    "concern_about_zero",
    "concerns_about",
    "gained",
    "warn_of",
]

_WORTHLESS = 1e-6  # of J without a model, that a model must at least win
_MOST_NAMES = 3


class Concern(NamedTuple):
    """One sentence, with what to do, and the warning that it is in Python."""

    sentence: str
    warning: type[Warning]


def concerns_about(
    solver: Solver,
    results: Sequence[Result],
    loss: Loss,
    names: Sequence[object] | None = None,
    *,
    hardly: bool = False,
    free: bool = False,
) -> list[Concern]:
    """What is to be said about the results of all problems of a task; of several alike, the worst.

    Parameters
    ----------
    solver, results, loss
        Who solved them, what was found, and the loss of the task.
    names
        The classes that the problems are about; None where they are not about classes.
    hardly
        Whether next to nothing was learned, though the features have more to tell.
    free
        Whether zero weights cost nothing, though labels differ.
    """
    found = _failures(results, names)
    missed = [(result, sentence) for result in results if (sentence := solver.concern(result))]
    if missed:
        result, sentence = max(missed, key=lambda pair: pair[0].distance)
        if result.status is Status.STALLED and result.doubt is None and not is_built_in(loss):
            sentence += f"; {loss!r} may have kinks, or be infinite, where training got to"
        among = f" (so did {len(missed) - 1} more of {len(results)} problems)" if len(missed) > 1 else ""
        found.append(Concern(sentence + among, ConvergenceWarning))
    if free or all(_is_worthless(result) for result in results):
        unproven = all(result.status is Status.UNPROVEN for result in results)
        found.append(Concern(_words_for_worthless(loss, bool(missed), free, unproven), ModelWarning))
    elif hardly:
        found.append(
            Concern(
                "the model is hardly better than its intercept alone, though the features have more to tell; raise C "
                "(lower alpha), or let 'auto' choose it",
                ModelWarning,
            )
        )
    return found


def concern_about_scale(loss: Loss, spread: float) -> Concern:
    """That labels of such a standard deviation are too small for a loss to be robust."""
    lower = ", or lower delta" if "delta" in loss.settings else ""
    return Concern(
        f"the labels differ by so little (their standard deviation is {spread:.2g}) that {loss.name!r} lets go of no "
        f"row, and outliers pull as in least squares; scale the labels up{lower}",
        ModelWarning,
    )


def concern_about_rows(loss: Loss, mean: float, null: float, *, known: bool) -> Concern:
    """That rows, before they were learned from, had such a mean loss, which the intercept alone has nearly too.

    `known`: another concern says why.
    """
    if not null > 0 and hasattr(loss, "epsilon"):
        return Concern(_words_for_worthless(loss, missed=False, free=True), ModelWarning)
    had = "" if loss.zero_is_optimal else f" (a mean loss of {mean:.4g}; the best intercept alone has {null:.4g} there)"
    advice = "; lower alpha, scale the features or take another loss, if the features have more to tell"
    better = "hardly" if mean < null else "no"
    said = f"the last rows, before they were learned from, were predicted {better} better than without a model{had}"
    return Concern(said if known else said + advice, ModelWarning)


def concern_about_zero(loss: Loss) -> Concern:
    """That zero weights are an optimum of the loss, whatever the rows are: known before training begins."""
    sentence = Sentence(
        f"zero weights are an optimum of {loss.name!r} with any regularizer, so that the model is no better than its "
        "intercept alone; take another loss, such as 'hinge', or ",
        Argument("solver", "sgd"),
        ", which keeps the direction that it has learned",
    )
    return Concern(sentence, ModelWarning)


def warn_of(concerns: Sequence[Concern], stacklevel: int | None = None) -> None:
    """Give the warnings, as raised so many calls above; None: where beeline was called."""
    if not concerns:
        return
    level = calls_inside() if stacklevel is None else stacklevel
    for concern in concerns:
        warnings.warn(concern.sentence, concern.warning, stacklevel=level + 1)


def _failures(results: Sequence[Result], names: Sequence[object] | None) -> list[Concern]:
    """One concern for each error, with the classes that it left without a model."""
    failed: dict[str, list[str]] = {}
    for k, result in enumerate(results):
        if result.error is not None:
            failed.setdefault(result.error, []).append(str(k) if names is None else _quoted(names[k]))
    return [
        Concern(
            f"{_named('output' if names is None else 'class', which)} could not be trained ({error}) and has the best "
            "intercept alone; take another solver or loss, or scale the features",
            ModelWarning,
        )
        for error, which in failed.items()
    ]


def _quoted(name: object) -> str:
    return f"{name:g}" if isinstance(name, float) else repr(str(name))


def _named(kind: str, which: list[str]) -> str:
    more = f" (and {len(which) - _MOST_NAMES} more)" if len(which) > _MOST_NAMES else ""
    kinds = kind + ("es" if kind == "class" else "s") if len(which) > 1 else kind
    return f"{'each of the ' if len(which) > 1 else ''}{kinds} {', '.join(which[:_MOST_NAMES])}{more}"


def gained(result: Result) -> float:
    """What part of J without a model a model has won; 1 where there was nothing to win, or somebody ended it."""
    if result.status in (Status.INTERRUPTED, Status.CALLBACK) or not result.null > 0:
        return 1.0
    return (result.null - result.objective) / result.null


def _is_worthless(result: Result) -> bool:
    return result.status is Status.FAILED or gained(result) <= _WORTHLESS


def _words_for_free(loss: Loss) -> str:
    """Why zero weights cost nothing, where that is known."""
    if hasattr(loss, "epsilon"):
        return (
            f"the model is its intercept alone: no label is farther from it than epsilon, {loss.epsilon:g}, so that "
            "nothing is left to learn; lower epsilon"
        )
    if loss.scope == "group":
        return (
            "all weights are zero: no query has both more and less relevant rows, so that nothing is left to rank; "
            "look at the labels and the query ids"
        )
    return ""


def _words_for_worthless(loss: Loss, missed: bool, free: bool, unproven: bool = False) -> str:
    what = "zero weights" if loss.differences_only else "its intercept alone"
    if missed:
        return f"the model is no better than {what}"
    if free and (words := _words_for_free(loss)):
        return words
    if loss.zero_is_optimal:
        return concern_about_zero(loss).sentence
    if isinstance(loss, Truncated):
        return Sentence(
            "the model is no better than its intercept alone: C is so small (or alpha so large), or rows lie so far "
            "out in a feature that the model bends to them; scale the features or remove such rows, raise C "
            "(lower alpha), or let 'auto' choose it"
        )
    if unproven:
        return Sentence(
            f"the model is no better than {what}, and how far from the optimum it is nobody knows; scale "
            "the features, take another C (alpha), or let ",
            Argument("solver", "auto"),
            " find the optimum",
        )
    by_rows = loss.classifies and loss.scope == "row"
    balanced = (", take ", Argument("class_weight", "balanced"), " where one class is rare") if by_rows else ()
    advice = f", take {loss.instead}" if isinstance(loss, TwoClassLoss) and loss.instead else ""
    return Sentence(
        f"the model is no better than {what}, which is the optimum where C is so small (or alpha so "
        f"large); raise C (lower alpha){advice}",
        *balanced,
        ", or let 'auto' choose it",
    )
