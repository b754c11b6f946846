"""What a user must know about a training beside its result: it stopped early, or its model is worth nothing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

from beeline.exceptions import ConvergenceWarning, ModelWarning
from beeline.losses import LOSSES, Loss
from beeline.solvers.base import Result, Solver, Status

__all__ = ["Concern", "concerns_about", "warn_of"]

_WORTHLESS = 1e-6  # of J without a model, that a model must at least win


class Concern(NamedTuple):
    """One sentence, with what to do, and the warning that it is in Python."""

    sentence: str
    warning: type[Warning]


def concerns_about(solver: Solver, results: Sequence[Result], loss: Loss) -> list[Concern]:
    """What is to be said about the results of all problems of a task; of several alike, the worst."""
    found = []
    by_distance = sorted(results, key=lambda result: -result.gap)
    missed = [(result, sentence) for result in by_distance if (sentence := solver.concern(result))]
    if missed:
        result, sentence = missed[0]
        if result.status is Status.STALLED and type(loss) not in LOSSES.values():
            sentence += f"; {loss!r} may have kinks, or be infinite, where training got to"
        among = f" (so did {len(missed) - 1} more of {len(results)} problems)" if len(missed) > 1 else ""
        found.append(Concern(sentence + among, ConvergenceWarning))
    if all(_is_worthless(result) for result in results):
        found.append(Concern(_words_for_worthless(results, loss, bool(missed)), ModelWarning))
    return found


def warn_of(concerns: Sequence[Concern], stacklevel: int) -> None:
    """Give the warnings, as raised so many calls above."""
    for concern in concerns:
        warnings.warn(concern.sentence, concern.warning, stacklevel=stacklevel + 1)


def _is_worthless(result: Result) -> bool:
    stopped = result.status in (Status.INTERRUPTED, Status.CALLBACK)  # by somebody who knows
    return not stopped and result.null > 0 and result.null - result.objective <= _WORTHLESS * result.null


def _words_for_worthless(results: Sequence[Result], loss: Loss, missed: bool) -> str:
    if missed:
        return "the model is no better than its intercept alone"
    if "perceptron" in loss.name:
        return (
            f"the model is no better than its intercept alone: zero weights are an optimum of {loss.name!r} with any "
            "regularizer; take another loss, such as 'hinge'"
        )
    return (
        "the model is no better than its intercept alone, which is the optimum where C is so small (or alpha so "
        "large); raise C (lower alpha), or let 'auto' choose it"
    )
