"""Random problems: what a seed stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from beeline.data.core.arrays import from_arrays
from beeline.engines import Threads
from beeline.losses import LOSSES, LevelLoss, Loss, TwoClassLoss, VectorLoss, get_loss
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet, Regularizer
from beeline.solvers.auto import SOLVERS, choose_solver
from beeline.solvers.base import Solver

__all__ = ["Problem", "make_problem"]

_PASSES = 150  # enough for most; a bundle of more planes takes a minute
# Mistakes show on small problems too, of which a minute has more.
_ROWS, _FEATURES = (2, 3, 5, 10, 20, 50, 120), (1, 2, 3, 5, 10, 30, 60)
_WEIGHTS = ("same", "same", "some zero", "many sizes", "one heavy")
_COUNTING = ("precision", "recall")  # losses that count rows, so that weights must be multiples of one
_OFTEN = (0.1, 0.15, 0.2, 0.25, 0.2, 0.07, 0.03)


@dataclass(frozen=True)
class Problem:
    """An objective, who is to minimise it, and how it came to be, in words."""

    seed: int
    objective: Objective
    matrix: np.ndarray
    solver: Solver
    words: str
    starts: np.ndarray | None = None  # where groups of rows begin, and behind the last one where it ends


def make_problem(seed: int) -> Problem:
    """The problem of that number."""
    random = np.random.default_rng(seed)
    loss = _loss(random)
    n, d = int(random.choice(_ROWS, p=_OFTEN)), int(random.choice(_FEATURES, p=_OFTEN))
    outputs = _outputs(loss, random)
    X, how = _rows(random, n, d)
    starts = _starts(random, n) if loss.scope == "group" else None
    y, labels = _labels(random, loss, X, outputs)
    counted = loss.name in _COUNTING
    costs, weights = _costs(random, n, ("same", "same", "some zero") if counted else _WEIGHTS)
    if starts is not None:  # a weight a group, of which some rows may be absent
        costs = np.repeat(costs[starts[:-1]], np.diff(starts)) * (random.random(n) < random.choice([0.7, 1.0, 1.0]))
    if isinstance(loss, TwoClassLoss):
        loss = _fitting(loss, y, costs)
    regularizer = _regularizer(random)
    without = loss.labels == "none" or loss.differences_only
    intercept = "none" if without else str(random.choice(["free", "free", "regularized", "none"]))
    sparse = random.random() < 0.3
    data = from_arrays(scipy.sparse.csr_array(X) if sparse else X)
    rows = Threads().open(data, starts)
    y, costs = rows.scatter(y), rows.scatter(costs)
    o = Objective(rows, y, costs, loss, regularizer, 1.0, intercept, n_outputs=outputs)
    solver = _solver(random, o)
    words = f"{loss!r} {regularizer!r} intercept={intercept} {n}×{d} K={outputs} X {how}, y {labels}, c {weights}"
    words += f" {'sparse' if sparse else 'dense'} {solver.name} tol={solver.tol:g}"
    return Problem(seed, o, X, solver, words, starts)


def _loss(random: np.random.Generator) -> Loss:
    name = str(random.choice(sorted(name for name, kind in LOSSES.items() if kind.convex)))
    settings: dict[str, object] = {}
    if name == "roc_area":
        settings["max_fpr"] = float(random.choice([1.0, 1.0, random.uniform(0.01, 1.0)]))
    if name == "f_beta":
        settings["beta"] = float(random.choice([1.0, 10 ** random.uniform(-2, 2)]))
    if name in _COUNTING:
        settings["k"] = int(random.choice([1, 2, 5, 30]))
    if name in ("smoothed_hinge", "huber_hinge", "soft_hinge", "soft_quantile", "soft_epsilon_insensitive"):
        settings["width"] = float(10 ** random.uniform(-2, 1))
    if name in ("huber", "pseudo_huber"):
        settings["delta"] = float(10 ** random.uniform(-2, 2))
    if "epsilon_insensitive" in name:
        settings["epsilon"] = float(random.choice([0.0, 0.1, 10 ** random.uniform(-3, 2)]))
    if name in ("quantile", "soft_quantile", "expectile"):
        settings["tau"] = float(random.choice([0.5, 0.9, random.uniform(0.02, 0.98)]))
    if name == "tweedie":
        settings["power"] = float(random.uniform(1.05, 1.95))
    if name == "ndcg":
        settings["k"] = random.choice([None, 1, 3, 10])
    if name == "rank_utility":
        settings["half_life"] = float(random.choice([1.5, 5.0, 50.0]))
    if name == "level_pairs":
        settings["costs"] = str(random.choice(["linear", "unit", "squared"]))
    loss = get_loss(name, **settings)
    return loss.with_classes(range(int(random.choice([2, 3, 5])))) if isinstance(loss, LevelLoss) else loss


def _outputs(loss: Loss, random: np.random.Generator) -> int:
    if not isinstance(loss, VectorLoss):
        return 1
    return int(random.choice([2, 3, 5, 9], p=[0.4, 0.4, 0.15, 0.05]))


def _starts(random: np.random.Generator, n: int) -> np.ndarray:
    cuts = np.flatnonzero(random.random(n - 1) < random.choice([0.0, 0.1, 0.3])) + 1
    return np.concatenate([[0], cuts, [n]])


def _rows(random: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, str]:
    words = []
    kind = str(random.choice(["normal", "indicators", "counts", "sparse", "correlated"]))
    X = random.normal(size=(n, d))
    if kind == "indicators":
        X = (X > 0.8).astype(float)
    elif kind == "counts":
        X = random.poisson(2.0, size=(n, d)).astype(float)
    elif kind == "sparse":
        X *= random.random((n, d)) < 0.2
    elif kind == "correlated":
        X = X[:, :1] + 1e-3 * X
    words.append(kind)
    if random.random() < 0.3:
        power = random.uniform(-12, 12)
        X *= 10**power
        words.append(f"scale 1e{power:.1f}")
    if random.random() < 0.2:
        X *= 10 ** random.uniform(-4, 4, size=d)
        words.append("columns of many scales")
    if random.random() < 0.15:
        X += 10 ** random.uniform(0, 6) * (np.abs(X).max() or 1.0)
        words.append("offset")
    if random.random() < 0.15 and n > 2:
        X[n // 2 :] = X[: n - n // 2]
        words.append("rows twice")
    if random.random() < 0.15 and d > 1:
        X[:, d // 2 :] = X[:, : d - d // 2]
        words.append("columns twice")
    if random.random() < 0.1:
        X[random.integers(n)] = 0
        X[:, random.integers(d)] = 0
        words.append("zero row and column")
    return X, " ".join(words)


def _labels(random: np.random.Generator, loss: Loss, X: np.ndarray, k: int) -> tuple[np.ndarray, str]:
    n, d = X.shape
    size = float(np.sqrt(np.mean((X - X.mean(axis=0)) ** 2))) or 1.0
    signal = (X - X.mean(axis=0)) @ random.normal(size=(d, k)) / (size * np.sqrt(d))
    noise = float(random.choice([0.0, 0.5, 3.0]))
    z = signal + noise * random.normal(size=signal.shape)
    words = f"noise {noise:g}"
    if loss.labels == "none":
        return np.zeros(n), "none"
    if loss.labels in ("binary", "classes"):
        numbers = z.argmax(axis=1) if k > 1 else (z[:, 0] > random.choice([0.0, 1.0])).astype(int)
        if random.random() < 0.15:
            numbers[:] = 0
            words += ", all of one class"
        if random.random() < 0.3:
            numbers[random.integers(n)] = k - 1 if k > 1 else 1
        return (numbers.astype(float) if k > 1 else np.where(numbers > 0, 1.0, -1.0)), words
    if isinstance(loss, LevelLoss):
        return np.digitize(z[:, 0], np.sort(random.normal(size=loss.n_levels - 1))).astype(float), words
    if loss.scope == "group":
        grades = np.digitize(z[:, 0], np.sort(random.normal(size=int(random.choice([1, 2, 4])))))
        return grades.astype(float), words
    if loss.labels == "sets":
        return np.where(z > 0, 1.0, -1.0), words
    y, how = _numbers(random, loss, z if loss.labels == "vectors" else z[:, 0])
    return y, words + how


def _numbers(random: np.random.Generator, loss: Loss, y: np.ndarray) -> tuple[np.ndarray, str]:
    """Numbers that the loss takes, of any size."""
    power, offset = random.uniform(-6, 6) if random.random() < 0.4 else 0.0, 0.0
    if random.random() < 0.3 and loss.link == "none":
        offset = float(random.choice([1e2, 1e6, -1e6, 1e9]))
    words = f", scale 1e{power:.1f}, offset {offset:g}"
    if loss.name == "cross_entropy":
        y = np.clip(np.round(1 / (1 + np.exp(-y)), 2), 0, 1)
    elif loss.link == "exp":
        y = np.exp(np.clip(y, -8, 8)) * 10**power
        if loss.name != "gamma":
            y = np.where(random.random(y.shape) < random.choice([0.0, 0.5, 1.0]), 0.0, y)
        else:
            y = np.maximum(y, 1e-200)
    else:
        if random.random() < 0.1:
            y = y * (1 + 1e6 * (random.random(y.shape) < 0.1))
            words += ", outliers"
        y = 10**power * y + offset * 10**power
    return y, words


def _fitting(loss: TwoClassLoss, y: np.ndarray, c: np.ndarray) -> TwoClassLoss:
    """The loss with as large a k as the rows allow, where it has one."""
    if loss.name not in _COUNTING:
        return loss
    rows = (c > 0) & ((y > 0) | (loss.name == "recall"))
    return get_loss(loss.name, k=max(1, min(loss.k, int(rows.sum()))))


def _costs(random: np.random.Generator, n: int, kinds: tuple[str, ...]) -> tuple[np.ndarray, str]:
    C = 10 ** (random.uniform(-6, 6) if random.random() < 0.5 else random.uniform(-2, 3))
    kind = str(random.choice(kinds))
    c = np.ones(n)
    if kind == "some zero":
        c = random.integers(0, 3, size=n).astype(float)
    elif kind == "many sizes":
        c = 10 ** random.uniform(-3, 3, size=n)
    elif kind == "one heavy":
        c[random.integers(n)] = 1e6
    if not c.any():
        c[0] = 1.0
    return C * c, f"{C:.2g} {kind}"


def _regularizer(random: np.random.Generator) -> Regularizer:
    negative = bool(random.random() < 0.15)
    kind = random.integers(4)
    if kind <= 1:
        return L2(nonnegative=negative)
    if kind == 2:
        return L1(nonnegative=negative)
    return ElasticNet(float(random.choice([0.5, 0.99, random.uniform(0.01, 0.99)])), nonnegative=negative)


def _solver(random: np.random.Generator, o: Objective) -> Solver:
    tol = float(random.choice([1e-4, 1e-4, 1e-4, 1e-2, 1e-6]))
    certifying = {name: kind for name, kind in SOLVERS.items() if kind.certifies}
    names = [name for name, kind in certifying.items() if kind(tol, _PASSES, 0).refusal(o) is None]
    name = str(random.choice(["auto", *names]))
    return choose_solver(o, name, tol=tol, max_passes=_PASSES, seed=int(random.integers(3)))
