"""Who else minimises what the bundle method does: SVMperf the hinge with L2, scikit-learn the quantile loss with L1."""

from __future__ import annotations

import gzip
import os
import re
import resource
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beeline.objective import Objective
from support import sets

__all__ = ["QUANTILE_SOLVERS", "Contest", "SvmPerf", "fried", "quantile_contest"]

_LADDER = (10.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # tolerances of SVMperf, in percent of the rows
_PATIENCE = 300.0
QUANTILE_SOLVERS = ("highs-ipm", "highs-ds", "highs")
_RUNS = 3


class SvmPerf:
    """SVMperf as a program; `SVM_PERF` names it.

    It minimises ½‖w‖² + C ξ, ξ the error rate's bound in percent: of a row with the hinge loss l it is 100·l/rows. So
    ½‖w‖² + (100·C/rows) Σl, which is J/λ = ½‖w‖² + Σl/(λ·rows) for C = 1/(100·λ).
    """

    def __init__(self, name: str) -> None:
        self.program = os.environ["SVM_PERF"]
        self.rows = sets.FOLDER / f"{name}.svmperf"
        if not self.rows.exists():
            from sklearn.datasets import dump_svmlight_file

            whole = sets.binary(name)
            dump_svmlight_file(whole.matrix(), whole.labels.astype(int), str(self.rows), zero_based=False)

    def run(self, o: Objective, enough: float) -> tuple[float, float, float]:
        """(seconds, J, tolerance) at the loosest tolerance that brings J below `enough`, or at the last one tried."""
        for tolerance in _LADDER:
            seconds, value = self._train(o, tolerance)
            if value <= enough or seconds > _PATIENCE:
                break
        return seconds, value, tolerance

    def train_for(self, o: Objective, loss: int, c: float) -> tuple[float, float]:
        """(seconds, J) by another loss of its, at its own default tolerance."""
        return self._run(o, ["-l", str(loss), "-c", repr(c), "--b", "0", "-v", "1"])

    def _train(self, o: Objective, tolerance: float) -> tuple[float, float]:
        return self._run(o, ["-c", repr(1 / (100 * o.strength)), "-e", repr(tolerance), "--b", "0", "-v", "1"])

    def _run(self, o: Objective, options: list[str]) -> tuple[float, float]:
        """Processor time of the training alone, where the program tells it."""
        model = self.rows.with_suffix(".model")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        said = subprocess.run(
            [self.program, *options, str(self.rows), str(model)], capture_output=True, text=True, check=True
        ).stdout
        whole = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        found = re.search(r"[Rr]untime in cpu-seconds:\s*([0-9.]+)", said)
        return (float(found[1]) if found else whole), o.at(_svmlight_weights(model, o.size)).value


def _svmlight_weights(path: Path, size: int) -> np.ndarray:
    """w of a linear model in SVMlight's format: behind the line of the threshold, rows with a coefficient first."""
    w, rows = np.zeros(size), False
    for line in path.read_text(encoding="latin-1").splitlines():
        fields = line.split("#")[0].split()
        if rows and fields:
            for field in fields[1:]:
                index, value = field.split(":")
                w[int(index) - 1] += float(fields[0]) * float(value)
        rows = rows or "threshold b" in line
    return w


def fried() -> tuple[np.ndarray, np.ndarray]:
    """Friedman's function with noise, 40,768 × 10."""
    with gzip.open(sets.SHARED / "torgo" / "fried.arff.gz", "rt") as file:
        rows = np.array([line.split(",") for line in file if line[0] not in "%@\n"], dtype=np.float64)
    return np.ascontiguousarray(rows[:, :-1]), rows[:, -1]


@dataclass(frozen=True)
class Contest:
    """One τ and alpha: seconds of scikit-learn's fastest solver, of ours at the default tolerance and at 1e-6."""

    quantile: float
    alpha: float
    solver: str
    theirs: float
    default: float
    close: float
    above: tuple[float, float]  # relatively, our objectives over theirs


def quantile_contest(quantile: float, alpha: float, solvers: tuple[str, ...]) -> Contest:
    """Mean pinball loss + alpha‖w‖₁ with a free intercept, on `fried`; processor time, the median of some runs of ours.

    scikit-learn runs once: it takes long enough.
    """
    from sklearn.linear_model import QuantileRegressor as Peer

    from beeline import QuantileRegressor

    X, y = fried()
    settings = {"quantile": quantile, "alpha": alpha}

    def value(model) -> float:
        r = y - X @ np.ravel(model.coef_) - float(np.ravel(model.intercept_)[0])
        return float(np.maximum(quantile * r, (quantile - 1) * r).mean() + alpha * np.abs(model.coef_).sum())

    default, first = _timed(lambda: QuantileRegressor(**settings).fit(X, y), _RUNS)
    close, second = _timed(lambda: QuantileRegressor(**settings, tol=1e-6).fit(X, y), _RUNS)
    peers = {solver: _timed(lambda s=solver: Peer(**settings, solver=s).fit(X, y), 1) for solver in solvers}
    fastest = min(peers, key=lambda solver: peers[solver][0])
    least = value(peers[fastest][1])
    above = value(first) / least - 1, value(second) / least - 1
    return Contest(quantile, alpha, fastest, peers[fastest][0], default, close, above)


def _timed(fit: Callable[[], object], runs: int) -> tuple[float, object]:
    taken = []
    for _ in range(runs):
        clock = time.perf_counter()
        model = fit()
        taken.append(time.perf_counter() - clock)
    return statistics.median(taken), model
