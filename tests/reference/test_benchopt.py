"""The solvers for benchopt, run by benchopt itself on objectives of the interface that its benchmarks have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# As the benchmarks write them: parameters by class attributes, the result by its name.
OBJECTIVE = """
import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "objective"
    parameters = {parameters}

    def set_data(self, X, y):
        self.X, self.y = X, y

    def evaluate_result(self, beta):
        n = self.X.shape[1]
        w, b = beta[:n], beta[n] if len(beta) > n else 0.0
        z, y = self.X @ w + b, self.y
        return dict(value={formula})

    def get_one_result(self):
        return dict(beta=np.zeros(self.X.shape[1]))

    def get_objective(self):
        return dict(X=self.X, y=self.y, {given})
"""
DATASET = """
import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "simulated"

    def get_data(self):
        random = np.random.default_rng(0)
        X = random.normal(size=(200, 8))
        y = X @ random.normal(size=8) + 0.5 * random.normal(size=200) + 0.3
        return dict(X=X, y={labels})
"""
SIGNS = "np.where(y > 0, 1.0, -1.0)"
PROBLEMS = {
    "logistic": (
        {"lmbd": [0.5], "fit_intercept": [True, False]},
        "np.logaddexp(0, -y * z).sum() + self.lmbd * 0.5 * w @ w",
        "lmbd=self.lmbd, fit_intercept=self.fit_intercept",
        SIGNS,
    ),
    "hinge": ({"C": [0.1]}, "self.C * np.maximum(0, 1 - y * z).sum() + 0.5 * w @ w", "C=self.C", SIGNS),
    "lasso": (
        {"lmbd": [20.0], "fit_intercept": [True, False]},
        "0.5 * ((y - z) ** 2).sum() + self.lmbd * np.abs(w).sum()",
        "lmbd=self.lmbd, fit_intercept=self.fit_intercept",
        "y",
    ),
}


def optimum(name: str, fit_intercept: bool) -> float:
    """The least value of an objective, by a solver of convex programmes."""
    import cvxpy as cp
    import numpy as np

    random = np.random.default_rng(0)
    X = random.normal(size=(200, 8))
    y = X @ random.normal(size=8) + 0.5 * random.normal(size=200) + 0.3
    signs = np.where(y > 0, 1.0, -1.0)
    w, b = cp.Variable(8), cp.Variable()
    z = X @ w + (b if fit_intercept else 0)
    value = {
        "logistic": cp.sum(cp.logistic(-cp.multiply(signs, z))) + 0.25 * cp.sum_squares(w),
        "hinge": 0.1 * cp.sum(cp.pos(1 - cp.multiply(signs, z))) + 0.5 * cp.sum_squares(w),
        "lasso": 0.5 * cp.sum_squares(y - z) + 20 * cp.norm1(w),
    }[name]
    return float(cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL"))


@pytest.mark.parametrize("name", PROBLEMS)
def test_benchopt_runs_it_to_the_optimum(name, package, tmp_path):
    package("benchopt")
    import pandas as pd

    parameters, formula, given, labels = PROBLEMS[name]
    for folder in ("datasets", "solvers"):
        (tmp_path / folder).mkdir()
    text = OBJECTIVE.format(parameters=parameters, formula=formula, given=given)
    (tmp_path / "objective.py").write_text(text, encoding="utf-8")
    (tmp_path / "datasets" / "simulated.py").write_text(DATASET.format(labels=labels), encoding="utf-8")
    shutil.copy(ROOT / "benchmarks" / "benchopt" / f"{name}.py", tmp_path / "solvers" / "beeline.py")
    command = [sys.executable, "-m", "benchopt", "run", str(tmp_path), "-n", "20", "-r", "1", "--no-plot", "--no-html"]
    environment = os.environ | {"HOME": str(tmp_path), "BENCHOPT_DEBUG": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = pd.concat([pd.read_parquet(path) for path in (tmp_path / "outputs").rglob("*.parquet")])
    intercepts = parameters.get("fit_intercept", [False])
    assert found["objective_name"].nunique() == len(intercepts)
    for fit_intercept in intercepts:
        rows = found[found["p_obj_fit_intercept"] == fit_intercept] if len(intercepts) > 1 else found
        values = rows.sort_values("stop_val", ascending=False)["objective_value"].to_numpy()
        least = optimum(name, fit_intercept)
        assert values[0] > 1.05 * least  # where a curve begins
        assert abs(values[-1] / least - 1) < 1e-5
