"""The experiments of the warm-start paper (Chu et al. 2015), on two of its sets and with beeline's solvers.

{primal, dual} × {warm, cold}: Newton's method and coordinate descent in the dual, fold by fold along the path of C,
each solve ended by (28) with ε = 10⁻². Times are processor time of one thread, as in the paper; what the test of (28)
takes is not counted, since neither solver would need a pass of its own for it.

Along a path, a solver gets so many passes for a fold and so many seconds for the path: the dual solver may not come
to the end of either, as in the paper, where it fails on madelon.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from beeline.data.core.arrays import from_arrays
from beeline.kernels import set_num_threads
from beeline.losses import get_loss
from beeline.objective import Objective, Point, conjugate_bound
from beeline.regularizers import L2
from beeline.selection.bounds import lowest_C
from beeline.selection.folds import Fold, make_folds
from beeline.solvers.base import Solver, State
from beeline.solvers.dual.dual_cd import DualCD
from beeline.solvers.newton.newton import Newton
from beeline.training.task import Task
from support import sets

__all__ = ["repeat_paper"]

LOSSES = ("logistic", "squared_hinge")
EPSILON, TIGHT = 1e-2, 1e-6
HIGHEST = 2.0**10
SECONDS, PASSES = 60.0, 2000.0  # of a path, of a fold at one C
SOLVERS: dict[str, type[Solver]] = {"primal": Newton, "dual": DualCD}
GAPS = [10.0**-k for k in range(2, 13)]


@dataclass
class Path:
    """What one solver did along the C values: one entry for each."""

    C: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    ratio: list[float] = field(default_factory=list)
    solved: bool = True

    @property
    def stop(self) -> int:
        """How many C values algorithm 1 looks at: until (24) holds three times in a row."""
        for t in range(2, len(self.C)):
            if all(ratio <= 1 for ratio in self.ratio[t - 2 : t + 1]):
                return t + 1
        return len(self.C)


class Fitter:
    """One fold with one solver."""

    def __init__(self, objective: Objective, solver: Solver, epsilon: float) -> None:
        self.objective, self.solver = objective, solver
        labels, costs = (objective.rows.gather(column) for column in (objective.labels, objective.costs))
        positive = float((labels[costs > 0] > 0).mean())
        self.limit = epsilon * min(positive, 1 - positive) * norm(objective.at().gradient)
        self.aside = 0.0

    def done(self, o: Objective, theta: np.ndarray) -> bool:
        """(28), off the clock."""
        clock = time.process_time()
        small = norm(o.at(theta).gradient) <= self.limit
        self.aside += time.process_time() - clock
        return small

    def solve(self, C: float, start: State | None) -> tuple[State, float, bool]:
        """(where it ended, seconds, whether (28) was met): to smaller and smaller gaps, until it is."""
        o = self.objective.with_strength(1 / C)
        passes, clock, self.aside = 0.0, time.process_time(), 0.0
        met = start is not None and self.done(o, start.theta)
        for tol in GAPS:
            if met or passes >= PASSES:
                break
            self.solver.tol = tol  # its copy of the rows stays
            result = self.solver.run(o, start, lambda step: self.done(o, step.theta))
            start, passes = result.state, passes + result.passes
            met = self.done(o, start.theta)
        assert start is not None
        return start, time.process_time() - clock - self.aside, met


def norm(v: np.ndarray) -> float:
    return float(np.linalg.norm(v))


@dataclass(eq=False)
class Experiment:
    """One set and loss."""

    set: str
    loss: str

    def __post_init__(self) -> None:
        rows = sets.binary(self.set)
        X = rows.matrix()
        data = from_arrays(X.toarray() if self.set == "madelon" else X)
        task = Task(data, (rows.labels > 0).astype(float), 2, get_loss(self.loss), L2(), intercept="none")
        (self.whole,), self.labels, self.costs = task.objectives(), task.labels, task.costs
        self.folds: list[Fold] = make_folds(5, task.labels, classes=True)
        self.lowest = lowest_C(self.whole)

    def solver(self, kind: str) -> Solver:
        """One for all folds, with an exact copy of the rows if it wants one."""
        solver = SOLVERS[kind](GAPS[-1], PASSES, 0)
        if isinstance(solver, DualCD):
            solver.shuffled(self.whole.rows)
        return solver

    @property
    def C_values(self) -> Iterator[float]:  # noqa: N802
        """The path."""
        C = self.lowest
        while C <= HIGHEST:
            yield C
            C *= 2

    def path(self, kind: str, *, warm: bool, epsilon: float = EPSILON) -> Path:
        """All folds, one C after the other, for as long as the patience lasts."""
        rows = self.whole.rows
        costs = [rows.scatter(np.where(fold.train, self.costs, 0.0)) for fold in self.folds]
        solver = self.solver(kind)
        fitters = [Fitter(self.whole.with_costs(c), solver, epsilon) for c in costs]
        starts: list[State | None] = [None] * len(fitters)
        path = Path()
        for C in self.C_values:
            path.ratio.append(max(self._stop_ratio(f, s, C) for f, s in zip(fitters, starts, strict=True)))
            solved = [f.solve(C, s if warm else None) for f, s in zip(fitters, starts, strict=True)]
            starts = [start for start, _, _ in solved]
            path.C.append(C)
            path.seconds.append(sum(seconds for _, seconds, _ in solved))
            path.accuracy.append(self._accuracy(starts))
            path.solved &= all(met for _, _, met in solved)
            if sum(path.seconds) > SECONDS:
                break
        return path

    def _stop_ratio(self, fitter: Fitter, start: State | None, C: float) -> float:
        """The left side of (24) against its right side, with (28)'s ε and share."""
        if start is None:
            return math.inf
        return norm(fitter.objective.with_strength(1 / C).at(start.theta).gradient) / fitter.limit

    def _accuracy(self, starts: list[State]) -> float:
        right = 0
        for fold, start in zip(self.folds, starts, strict=True):
            z = self.whole.rows.gather(self.whole.scores(start.theta))[fold.test]
            right += int(np.sum((z > 0) == (self.labels[fold.test] > 0)))
        return right / len(self.labels)

    def exact(self, C: float, start: np.ndarray | None = None) -> Point:
        """The optimum on all rows, or as near as double precision comes to it."""
        o = self.whole.with_strength(1 / C)
        return o.at(Newton(1e-13, 10_000).run(o, start).theta)

    def starts(self, C: float) -> tuple[float, float, float]:
        """How far the starts from C/2 are from the optimum at C: (primal by (13), dual by (14), ½‖w̄‖²)."""
        before = self.exact(C / 2)
        best = self.exact(C, before.theta)
        start = before.with_strength(1 / C)
        dual = conjugate_bound(start, start.slopes, start.loss_gradient)
        return C * (start.value - best.value), C * (best.value - dual), 0.5 * norm(start.theta) ** 2

    def descent(self, kind: str, C: float, *, warm: bool) -> tuple[np.ndarray, np.ndarray]:
        """(seconds, relative distances of J from the optimum) on all rows."""
        o = self.whole.with_strength(1 / C)
        optimum = self.exact(C).value
        solver = self.solver(kind)
        solver.tol = 1e-9
        start = solver.run(self.whole.with_strength(2 / C)).start if warm else None
        trace = np.array([at[:4] for at in solver.run(o, start).trace])
        return trace[:, 1], np.maximum(trace[:, 2] / optimum - 1, 1e-12)


def repeat_paper(names: list[str]) -> None:
    """Run, print and draw all of it."""
    set_num_threads(1)
    print("warm against cold starts: seconds up to the C at which algorithm 1 ends")
    for name in names:
        for loss in LOSSES:
            experiment = Experiment(name, loss)
            paths = {(kind, warm): experiment.path(kind, warm=warm) for kind in SOLVERS for warm in (True, False)}
            stop = paths["primal", True].stop
            for said in _sentences(experiment, paths, stop):
                print(f"  {name:8} {loss:14} {said}", flush=True)
            _draw(experiment, paths, stop)


def _sentences(experiment: Experiment, paths: dict[tuple[str, bool], Path], stop: int) -> Iterator[str]:
    gains = {}
    for kind in SOLVERS:
        warm, cold = paths[kind, True], paths[kind, False]
        n = min(stop, len(warm.C), len(cold.C))
        gains[kind] = sum(warm.seconds[:n]) / max(sum(cold.seconds[:n]), 1e-9)
        short = f", to 2^{math.log2(warm.C[n - 1]):.0f} only" if n < stop else ""
        capped = "" if warm.solved and cold.solved else "; some solves met their pass limit"
        yield (
            f"{kind:6} warm {sum(warm.seconds[:n]):7.2f} s, cold {sum(cold.seconds[:n]):7.2f} s: ratio "
            f"{gains[kind]:.2f}{short}{capped}"
        )
    yield f"warm starts save {'more' if gains['primal'] < gains['dual'] else 'less'} in the primal than in the dual"
    path = paths["primal", True]
    at_stop, overall = max(path.accuracy[:stop]), max(path.accuracy)
    yield f"best CV accuracy until the end of algorithm 1: {100 * at_stop:.2f} %, up to 2^10: {100 * overall:.2f} %"
    middle = round(math.log2(path.C[int(np.argmax(path.accuracy[:stop]))]))
    for power in sorted({middle, *range(-4, 9, 4)}):
        primal, dual, half = experiment.starts(2.0**power)
        yield f"C = 2^{power}: start above the optimum by {primal:.2e} (primal), {dual:.2e} (dual); ½‖w‖² {half:.2e}"


def _draw(experiment: Experiment, paths: dict[tuple[str, bool], Path], stop: int) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (one, two, three) = pyplot.subplots(1, 3, figsize=(16, 4.5), layout="constrained")
    figure.suptitle(f"{experiment.set}, {experiment.loss}")
    path, tight = paths["primal", True], experiment.path("primal", warm=True, epsilon=TIGHT)
    end = math.log2(path.C[stop - 1])
    _figure_1(one, {"ε = 10⁻²": path, "ε = 10⁻⁶": tight}, {kind: paths[kind, True] for kind in SOLVERS})
    best = path.C[int(np.argmax(path.accuracy[:stop]))]
    for kind in SOLVERS:
        for warm in (False, True):
            two.semilogy(*experiment.descent(kind, best, warm=warm), **_style(kind, warm))
    two.set(title=f"training at C = 2^{math.log2(best):.0f}", xlabel="seconds", ylabel="relative distance of J")
    for (kind, warm), one_path in paths.items():
        three.semilogy(np.log2(one_path.C), np.cumsum(one_path.seconds) + 1e-9, **_style(kind, warm))
    three.set(title="cumulative time of cross-validation", xlabel="log₂ C", ylabel="seconds")
    for axes in (one, three):
        axes.axvline(end, color="gray", linewidth=1)
    for axes in (two, three):
        axes.legend()
    for ending in ("png", "svg"):
        figure.savefig(sets.FOLDER / f"selection-{experiment.set}-{experiment.loss}.{ending}", dpi=120)
    pyplot.close(figure)


def _style(kind: str, warm: bool) -> dict[str, str]:
    return {
        "color": "tab:blue" if kind == "primal" else "tab:red",
        "linestyle": "-" if warm else "--",
        "label": f"{kind}, {'warm' if warm else 'cold'}",
    }


def _figure_1(axes, rates: dict[str, Path], times: dict[str, Path]) -> None:
    for (label, path), color in zip(rates.items(), ("black", "tab:green"), strict=True):
        axes.plot(np.log2(path.C), 100 * np.array(path.accuracy), color=color, label=f"accuracy, {label}")
    axes.set(title="warm starts", xlabel="log₂ C", ylabel="CV accuracy, %")
    seconds = axes.twinx()
    for kind, path in times.items():
        style = _style(kind, True) | {"linestyle": ":", "label": f"time, {kind}"}
        seconds.plot(np.log2(path.C), np.cumsum(path.seconds), **style)
    seconds.set_ylabel("cumulative seconds")
    handles = [handle for a in (axes, seconds) for handle in a.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="center left")
