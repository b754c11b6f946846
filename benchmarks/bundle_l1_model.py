"""Claim: with L1, the bundle method takes at most the time with its own centres that it takes with HiGHS's.

The model of the bundle method with L1 is a linear programme. Where it is looked at decides how many planes are needed:

- centres: points on the central path, found by Newton's method from the last one on (`solvers/bundle/centre.py`);
- ipm: the same points as HiGHS's interior point method gives them, without crossover: stopped at the same part of the
  gap, and from a cold start, since it takes no other;
- ipm, exact: that method to its default tolerance, which ends in the middle of the optimal face;
- vertices: the dual simplex method of HiGHS, from its last basis on.

All have the same steps otherwise, and near the end all take vertices. The hinge with a regularized intercept, to a
certified gap of 0.1 %; a run that takes more than 15 seconds is left there, and counts with what it has taken. The
claim is on the geometric mean over sets and λ of the time beside that of the faster of both forms of `ipm`.

    python benchmarks/bundle_l1_model.py [--check] [--sets a9a,w8a,covtype,made]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from support import sets

from beeline.data.core.arrays import from_arrays
from beeline.losses import Hinge
from beeline.objective import Objective, Penalty
from beeline.regularizers import L1
from beeline.solvers.base import Result
from beeline.solvers.bundle.bundle import Bundle
from beeline.solvers.bundle.centre import CentredModel
from beeline.solvers.bundle.lp import LinearProgramModel
from beeline.solvers.bundle.models import PlanesModel
from beeline.solvers.bundle.planes import Planes

GAP = 1e-3
STRENGTHS = (1e-3, 1e-4, 1e-5)
SETS = ("a9a", "w8a", "covtype", "made")
_MOST_ROWS = 20_000
_PATIENCE = 15.0  # seconds
_DEPTH = 0.8  # of the gap, as in `centre.py`


class _HighsPath:
    """In the place of the path that `CentredModel` follows: the same point, or the exact one, by HiGHS."""

    def __init__(self, penalty: Penalty, planes: Planes, scale: float, exact: bool) -> None:
        self.model, self.scale, self.exact = LinearProgramModel(penalty, planes, scale), scale, exact
        options = {"solver": "ipm", "run_crossover": "off"}
        options |= {"primal_feasibility_tolerance": 1e-7, "dual_feasibility_tolerance": 1e-7}
        for key, value in options.items():
            self.model.programme.setOptionValue(key, value)

    def restart(self) -> None:
        """There is nothing to forget: it never begins where it ended."""

    def follow(self, planes: Planes, gap: float) -> tuple[np.ndarray, np.ndarray]:
        """(w, α) for a gap."""
        if not self.exact:
            self.model.programme.setOptionValue("ipm_optimality_tolerance", min(0.1, _DEPTH * gap / self.scale))
        minimum, alpha = self.model._vertex(gap)
        return minimum.weights, alpha


def centres(penalty: Penalty, planes: Planes, scale: float) -> PlanesModel:
    return CentredModel(penalty, planes, scale, GAP)


def vertices(penalty: Penalty, planes: Planes, scale: float) -> PlanesModel:
    return LinearProgramModel(penalty, planes, scale)


def _by_highs(exact: bool) -> Callable[[Penalty, Planes, float], PlanesModel]:
    def make(penalty: Penalty, planes: Planes, scale: float) -> PlanesModel:
        model = CentredModel(penalty, planes, scale, GAP)
        model.path = _HighsPath(penalty, planes, scale, exact)
        return model

    return make


MODELS = {"centres": centres, "ipm": _by_highs(False), "ipm, exact": _by_highs(True), "vertices": vertices}


class _WithModel(Bundle):
    """The bundle method with another model."""

    def __init__(self, make: Callable[[Penalty, Planes, float], PlanesModel]) -> None:
        super().__init__(tol=GAP, max_passes=20_000)
        self.make, self.time_limit = make, _PATIENCE

    def _model(self, objective: Objective, penalty: Penalty) -> PlanesModel:
        planes = super()._model(objective, penalty).planes
        return self.make(penalty, planes, objective.null.size or objective.total_cost or 1.0)


def rows(name: str) -> tuple[object, np.ndarray]:
    """Rows and labels: the first of a real set, or text-like ones, of which few features matter."""
    if name != "made":
        found = sets.binary(name)
        n = min(_MOST_ROWS, found.shape[0])
        pick = np.sort(np.random.default_rng(0).permutation(found.shape[0])[:n])
        return found.matrix()[pick], found.labels[pick]
    import scipy.sparse

    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((5_000, 500), density=0.05, rng=rng, format="csr")
    w = np.where(rng.random(500) < 0.1, rng.standard_normal(500), 0.0)
    return X, np.where(X @ w + 0.1 * rng.standard_normal(5_000) > 0, 1.0, -1.0)


def solved(X: object, y: np.ndarray, strength: float, name: str) -> tuple[Result, float]:
    data = from_arrays(X, y)
    n = data.n_rows
    objective = Objective.of(data, y, np.full(n, 1 / n), Hinge(), L1(), strength, "regularized")
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = _WithModel(MODELS[name]).solve(objective)
    return result, time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 where the claim does not hold")
    parser.add_argument("--sets", default=",".join(SETS), help="the sets, with commas between them")
    options = parser.parse_args()
    print("| set | λ | " + " | ".join(f"{name}: steps | seconds" for name in MODELS) + " |")
    print("|---" * (2 + 2 * len(MODELS)) + "|")
    ratios = []
    for name in options.sets.split(","):
        X, y = rows(name)
        for strength in STRENGTHS:
            cells, seconds = [], {}
            for model in MODELS:
                result, seconds[model] = solved(X, y, strength, model)
                left = "" if result.gap <= GAP else f" (gap {result.gap:.1g})"
                cells.append(f"{result.iterations}{left} | {seconds[model]:.2f}")
            print(f"| {name} | {strength:g} | " + " | ".join(cells) + " |", flush=True)
            ratios.append(seconds["centres"] / min(seconds["ipm"], seconds["ipm, exact"]))
    ratio = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\ntime with centres / with HiGHS's interior points, geometric mean: {ratio:.2f} (claim: at most 1)")
    return 1 if options.check and ratio > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
