"""Which library solves the quadratic programmes of the bundle method: accuracy, time and hot start.

A run of the bundle method on a9a, with the hinge and a small λ, gives a row of programmes, each with a plane more than
the last: max fᵀα − ½αᵀHα over the simplex. Each library solves all of them, over all planes and over the working set
that a hot start allows. Said are the time of a programme and the largest error: of the value, relatively, and of the
slopes f − Hα, of which the model's minimum is made (their excess over their mean by α, as a part of the value).

Nothing is claimed: the table is why `beeline.solvers.bundle.simplex_qp` is as it is. Libraries that are not installed
are left out: pip install daqp piqp clarabel quadprog.

    python benchmarks/bundle_qp.py [--lambda 1e-6] [--steps 150]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from support import sets

from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.losses import Hinge
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.bundle import models as bundle_models
from beeline.solvers.bundle.bundle import Bundle
from beeline.solvers.bundle.simplex_qp import maximise

Programme = tuple[np.ndarray, np.ndarray, np.ndarray]
_RIDGE = 1e-13  # of the mean of H's diagonal, for libraries that need a positive definite H


def programmes(strength: float, steps: int) -> list[Programme]:
    """(H, f, start) of every step of a run."""
    rows = sets.binary("a9a")
    data = ArrayDataset(Block(rows.values, rows.shape[1], rows.indptr, rows.indices))
    costs = np.full(rows.shape[0], 1 / rows.shape[0])
    objective = Objective.of(data, rows.labels, costs, Hinge(), L2(), strength, "none")
    seen: list[Programme] = []

    def noted(H, f, start, *rest):
        seen.append((H.copy(), f.copy(), start.copy()))
        return maximise(H, f, start, *rest)

    bundle_models.maximise = noted
    try:
        Bundle(1e-12, 2 * steps).run(objective)
    finally:
        bundle_models.maximise = maximise
    return seen


def by_daqp(H, f):
    import daqp

    p = len(f)
    sense = np.append(np.zeros(p), 5).astype(np.int32)
    high, low = np.append(np.full(p, 1e30), 1.0), np.append(np.zeros(p), 1.0)
    return daqp.solve(H, -f, np.ones((1, p)), high, low, sense)[0]


def by_piqp(H, f):
    import piqp

    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-12
    p = len(f)
    solver.setup(H, -f, np.ones((1, p)), np.ones(1), None, None, None, np.zeros(p), None)
    solver.solve()
    return solver.result.x


def by_clarabel(H, f):
    import clarabel
    import scipy.sparse

    p = len(f)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    A = scipy.sparse.csc_matrix(np.vstack([np.ones((1, p)), -np.eye(p)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(p)]
    upper = scipy.sparse.csc_matrix(np.triu(H))
    return np.array(clarabel.DefaultSolver(upper, -f, A, np.append(1.0, np.zeros(p)), cones, settings).solve().x)


def by_quadprog(H, f):
    import quadprog

    p = len(f)
    return quadprog.solve_qp(H, f, np.vstack([np.ones(p), np.eye(p)]).T, np.append(1.0, np.zeros(p)), 1)[0]


def on_working_set(solve: Callable) -> Callable:
    """The library over what the start has a part of and what would raise the value, until nothing would."""

    def solved(H, f, start):
        inside = start > 0
        inside[[0, -1]] = True
        for _ in range(20):
            (support,) = np.nonzero(inside)
            alpha = np.zeros(len(f))
            alpha[support] = cleaned(solve(H[np.ix_(support, support)], f[support]))
            slopes = f - H @ alpha
            wanted = slopes > slopes @ alpha + 1e-11 * abs(slopes @ alpha)
            if not (wanted & ~inside).any():
                break
            inside = (alpha > 0) | wanted
        return alpha

    return solved


def cleaned(alpha):
    """On the simplex."""
    alpha = np.where(alpha > 1e-12, alpha, 0.0)
    return alpha / alpha.sum()


def whole(solve: Callable) -> Callable:
    return lambda H, f, start: cleaned(solve(H, f))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="accepted, as by every benchmark; nothing is claimed here")
    parser.add_argument("--lambda", dest="strength", type=float, default=1e-6)
    parser.add_argument("--steps", type=int, default=150)
    arguments = parser.parse_args()
    rows = programmes(arguments.strength, arguments.steps)
    print(f"{len(rows)} programmes of up to {len(rows[-1][1])} planes, a9a, hinge, λ = {arguments.strength:g}\n")
    print("| library | planes | ms | error of the value | of the slopes | failures |\n|---|---|---|---|---|---|")
    reference = [maximise(*row)[0] for row in rows]
    report("beeline: DAQP, steps", "working set", lambda H, f, start: maximise(H, f, start)[0], rows, reference)
    for name, solve in (("DAQP", by_daqp), ("PIQP", by_piqp), ("Clarabel", by_clarabel), ("quadprog", by_quadprog)):
        for planes, form in (("all", whole), ("working set", on_working_set)):
            report(name, planes, form(solve), rows, reference)


def report(name: str, planes: str, solve: Callable, rows: list[Programme], reference: list[np.ndarray]) -> None:
    """One line of the table."""
    seconds, value_error, slope_error, failures = 0.0, 0.0, 0.0, 0
    for (H, f, start), best in zip(rows, reference, strict=True):
        damped = H + _RIDGE * np.trace(H) / len(f) * np.eye(len(f))
        clock = time.process_time()
        try:
            alpha = solve(H if name.startswith("beeline") else damped, f, start)
        except ImportError:
            print(f"| {name} | not installed |")
            return
        except (ValueError, RuntimeError):
            failures += 1
            continue
        seconds += time.process_time() - clock
        value = f @ best - 0.5 * best @ H @ best
        slopes = f - H @ alpha
        value_error = max(value_error, (value - f @ alpha + 0.5 * alpha @ H @ alpha) / abs(value) if value else 0.0)
        slope_error = max(slope_error, (slopes.max() - slopes @ alpha) / abs(value) if value else 0.0)
    solved = max(1, len(rows) - failures)
    print(f"| {name} | {planes} | {1e3 * seconds / solved:.2f} | {value_error:.0e} | {slope_error:.0e} | {failures} |")


if __name__ == "__main__":
    main()
