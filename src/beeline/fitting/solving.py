"""Training to the tolerance, and small problems beyond it."""

from __future__ import annotations

import warnings
from dataclasses import replace

from beeline.exceptions import ConvergenceWarning
from beeline.fitting.settings import Settings
from beeline.losses import LOSSES
from beeline.solvers.base import Callback, Result, Status, TracePoint
from beeline.solvers.dual_cd import DualCD
from beeline.solvers.training import Task, Trained, train

__all__ = ["solve"]

_SMALL = 10_000  # stored entries, on which a pass takes microseconds
_EXACT = 1e-14
_MOST_PASSES = 1000
_FAR = 1e-3  # from the optimum, and no rounding any more


def solve(task: Task, settings: Settings, callback: Callback | None, start: Trained | None) -> Trained:
    """Train to the tolerance; small problems as far as double precision goes.

    The solution is unique, but what lies within a tolerance of it depends on how the solver got there: on the order of
    the rows, on whether a row has weight 2 or is there twice. Where the rest of the way takes milliseconds, it is
    taken, and equal data in different guises give equal models.
    """
    trained = train(
        task,
        settings.solver,
        tol=settings.tol,
        max_passes=settings.max_passes,
        seed=settings.seed,
        callback=callback,
        start=start,
    )
    _warn_of_stall(task, settings, trained)
    converged = all(result.status is Status.CONVERGED for result in trained.results)
    if converged and task.data.nnz <= _SMALL and settings.tol > _EXACT:
        trained = _polished(task, settings, trained)
    return _centred(task, trained)


def _warn_of_stall(task: Task, settings: Settings, trained: Trained) -> None:
    """Say so when rounding ended the training far from the optimum; of a loss of one's own, `train` has said it."""
    worst = max(trained.results, key=lambda result: (result.status is Status.STALLED, result.gap))
    if (
        worst.status is Status.STALLED
        and not worst.gap <= max(settings.tol, _FAR)
        and type(task.loss) in LOSSES.values()
    ):
        advice = "scale the features, or regularize more"
        warnings.warn(f"{worst.solver} {worst.sentence}; {advice}", ConvergenceWarning, stacklevel=5)


def _centred(task: Task, trained: Trained) -> Trained:
    """Weights of the classes that add up to zero, where only their differences matter.

    Those of the optimum do: taking the mean away changes no loss and makes Ω smaller. What is taken away is rounding,
    or what an earlier model left there.
    """
    joint = task.joint_loss
    if joint is None or not joint.shift_free or trained.weights.shape[1] < 3 or not task.regularizer.smooth:
        return trained
    weights = trained.weights - trained.weights.mean(axis=1, keepdims=True)
    return replace(trained, weights=weights, intercepts=trained.intercepts - trained.intercepts.mean())


def _polished(task: Task, settings: Settings, trained: Trained) -> Trained:
    """The model at the end of the way; the one that was given where another solver cannot make it better."""
    # Whatever ends it, the tolerance is kept: there is nothing to warn of.
    finer = train(
        task,
        _finer_solver(task, settings),
        tol=_EXACT,
        max_passes=1e12,
        seed=settings.seed,
        callback=lambda step: step.passes > _MOST_PASSES,
        start=trained,
    )
    pairs = list(zip(trained.results, finer.results, strict=True))
    if any(second.objective > first.objective for first, second in pairs):
        return trained
    return Trained(finer.weights, finer.intercepts, [_joined(*pair) for pair in pairs])


def _finer_solver(task: Task, settings: Settings) -> str:
    """Who goes the rest of the way.

    Where the loss has kinks, coordinate descent ends on them exactly, and so does the bundle method where that does
    not know the loss or the regularizer; `auto` takes one of them for a loss of several scores.
    """
    if settings.solver != "auto" or task.loss.smooth or task.joint_loss is not None:
        return settings.solver
    return "bundle" if DualCD().refusal(task.objectives()[0]) else "dual_cd"


def _joined(first: Result, second: Result) -> Result:
    """One result for two runs after each other: what either has proven holds for both."""
    later = [
        TracePoint(
            first.passes + at.passes, first.seconds + at.seconds, at.objective, _gap(first, at.objective, at.gap)
        )
        for at in second.trace
    ]
    return replace(
        second,
        solver=first.solver if first.solver == second.solver else f"{first.solver} and {second.solver}",
        gap=_gap(first, second.objective, second.gap),
        status=first.status,
        iterations=first.iterations + second.iterations,
        passes=first.passes + second.passes,
        seconds=first.seconds + second.seconds,
        trace=first.trace + later,
    )


def _gap(first: Result, objective: float, gap: float) -> float:
    """The gap at an objective, by the better one of its own bound and that of an earlier run."""
    size = abs(objective)
    return min(gap, first.gap - (first.objective - objective) / size) if size and objective <= first.objective else gap
