"""Runs of solvers as they look on real data, made by hand."""

from __future__ import annotations

import numpy as np

from beeline.fitting import Fitted
from beeline.model import Model, Report
from beeline.solvers.base import Result, Status, TracePoint


def run(*gaps: float, solver: str = "bundle", status: Status = Status.CONVERGED) -> Result:
    """One step a gap, two passes and a quarter of a second each; J falls towards 5."""
    trace = [TracePoint(2.0 * k, 0.25 * k, 5 + 5 / k, gap) for k, gap in enumerate(gaps, start=1)]
    last = trace[-1] if trace else TracePoint(0.0, 0.0, 10.0, float("inf"))
    bound = last.objective - last.gap * last.objective
    return Result(
        np.zeros(3), last.objective, bound, status, len(trace), last.passes, last.seconds, solver, trace=trace
    )


def trained(*results: Result, **changes: object) -> Fitted:
    """A model of three features with an output for each result."""
    n_outputs = len(results)
    status = results[0].status
    report = Report(
        sentence=results[0].sentence,
        status=status.name.lower(),
        solver=results[0].solver,
        objective=sum(result.objective for result in results),
        gap=None if np.isinf(results[0].gap) else results[0].gap,
        passes=results[0].passes,
        iterations=results[0].iterations,
        seconds=1.5,
        n_rows=1234,
    )
    classes = np.array([f"class <{k}>" for k in range(n_outputs)]) if n_outputs > 1 else None
    given = {"weights": np.ones((3, n_outputs)), "intercepts": np.zeros(n_outputs), "classes": classes}
    return Fitted(Model(**(given | {"loss": "hinge", "report": report} | changes)), list(results))
