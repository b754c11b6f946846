"""Claims: levels in an order, by thresholds and by pairs of rows.

- The qualities of red and of white wines: the mean absolute error of held-out levels is no worse than that of the best
  that mord 0.7 has (LogisticAT, LogisticIT, LogisticSE, OrdinalRidge), the best by these very errors, which is to its
  favour. Wines are held out three times, a third each; C of ours and alpha of mord's are chosen among the same seven
  values, alpha = 1/C, by the mean absolute error over the same three folds of the others, and then trained on all of
  these. Beside it the difference in its standard errors, row by row, and our own best.
- The time, of the processor, of search and training is with `C="auto"`, by the same folds and measure, at most a fifth
  of that of mord's grid for the same loss, `LogisticIT`. That of our own grid is shown too.
- The time to train by all pairs of rows of different levels grows with their number m like m^1.1 at most, from 10⁴ to
  10⁶ rows: the pairs are 10⁴ times as many.

    python benchmarks/ordinal.py [--check] [--only wine,growth]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from support.problems import Stopwatch
from support.sets import SHARED

from beeline import OrdinalClassifier

MOST_OF_MORD = 0.2
MOST_GROWTH = 1.1
OURS = ("all_threshold", "all_threshold_hinge", "immediate_threshold", "immediate_threshold_hinge", "level_pairs")
DEFAULT, ITS_PEER = "immediate_threshold", "LogisticIT"
SEARCHED = f'{DEFAULT}, C="auto"'
ALPHAS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)
SIZES = (10_000, 100_000, 1_000_000)


class Found(NamedTuple):
    """By how many levels each held-out row is wrong, and the processor's seconds of all searches and trainings."""

    wrong: np.ndarray
    seconds: float

    @property
    def error(self) -> float:
        """The mean."""
        return float(self.wrong.mean())


def wines(colour: str) -> tuple[np.ndarray, np.ndarray]:
    """Eleven measurements of each wine, and its quality."""
    table = np.loadtxt(SHARED / "wine" / f"winequality-{colour}.csv", delimiter=",")
    return table[:, :-1], table[:, -1].astype(int)


def splits(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Three thirds with as much of every level, as far as that goes."""
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(3, shuffle=True, random_state=0).split(y[:, None], y))


def found_by(X: np.ndarray, y: np.ndarray, train: Callable[..., Any]) -> Found:
    """What a way to train is worth, and takes."""
    wrong, seconds = np.empty(len(y)), 0.0
    for some, others in splits(y):
        mean, spread = X[some].mean(axis=0), X[some].std(axis=0)
        rows, held = (X[some] - mean) / spread, (X[others] - mean) / spread
        folds = splits(y[some])
        with Stopwatch() as watch:
            model = train(rows, y[some], folds)
        seconds += watch.seconds.cores
        wrong[others] = np.abs(model.predict(held) - y[others])
    return Found(wrong, seconds)


def by_grid(model: Any, grid: dict[str, list[float]]) -> Callable[..., Any]:
    """Training with the best of some values."""
    from sklearn.model_selection import GridSearchCV

    return lambda X, y, folds: GridSearchCV(model, grid, cv=folds, scoring="neg_mean_absolute_error").fit(X, y)


def ours(loss: str) -> Callable[..., Any]:
    """Ours, with a grid of C; for all pairs, whose C multiplies a mean, of as much more as there are rows."""
    scale = 1000.0 if loss == "level_pairs" else 1.0
    return by_grid(OrdinalClassifier(loss), {"C": [scale / alpha for alpha in ALPHAS]})


def theirs(name: str) -> Callable[..., Any]:
    """One of mord's, with a grid of alpha."""
    import mord

    return by_grid(getattr(mord, name)(), {"alpha": list(ALPHAS)})


def searched(X: np.ndarray, y: np.ndarray, folds: Any) -> OrdinalClassifier:
    """The default, with our own search for C."""
    return OrdinalClassifier(DEFAULT, C="auto", cv=folds).fit(X, y)


def compare(colour: str) -> int:
    """The claims about the wines of a colour; how many do not hold."""
    X, y = wines(colour)
    print(f"{colour} wines: {len(y):,} rows, levels {y.min()} to {y.max()}")
    peers = ("LogisticAT", "LogisticIT", "LogisticSE", "OrdinalRidge")
    ways = {name: ours(name) for name in OURS} | {SEARCHED: searched}
    ways |= {f"mord's {name}": theirs(name) for name in peers}
    found = {}
    for name, train in ways.items():
        found[name] = found_by(X, y, train)
        print(f"  {name:30} error {found[name].error:.4f}  {found[name].seconds:8.2f} s", flush=True)
    best = min((found[f"mord's {name}"] for name in peers), key=lambda one: one.error)
    own_best = min(found[name].error for name in OURS)
    more = found[DEFAULT].wrong - best.wrong
    errors = float(more.mean() / max(more.std() / np.sqrt(len(more)), 1e-12))
    ratio = found[SEARCHED].seconds / found[f"mord's {ITS_PEER}"].seconds
    by_the_grid = found[DEFAULT].seconds / found[f"mord's {ITS_PEER}"].seconds
    print(f"  error of ours less mord's best {more.mean():+.4f}, at most 0: {errors:+.2f} standard errors")
    print(f"  our best less mord's best {own_best - best.error:+.4f}")
    print(f"  time of ours / of mord's {ITS_PEER} {ratio:.3f}, at most {MOST_OF_MORD}; by the grid {by_the_grid:.3f}")
    return int(more.mean() > 0) + int(ratio > MOST_OF_MORD)


def made(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of five levels made at random."""
    random = np.random.default_rng(m)
    X = random.normal(size=(m, 20))
    z = X @ random.normal(size=20) / np.sqrt(20) + 0.5 * random.normal(size=m)
    return X, np.digitize(z, [-1.5, -0.5, 0.5, 1.5])


def growth() -> int:
    """The claim about time by the number of rows."""
    print("all pairs of rows of different levels (level_pairs, five levels, 20 features):")
    seconds = []
    for m in SIZES:
        X, y = made(m)
        times, steps = [], 0
        for _ in range(3):
            with Stopwatch() as watch:
                model = OrdinalClassifier("level_pairs", C=100.0, tol=1e-3).fit(X, y)
            times.append(watch.seconds.cores)
            steps = model.report_.iterations
        seconds.append(min(times))
        print(f"  {m:>9,} rows {seconds[-1]:8.3f} s, {steps} steps", flush=True)
    exponent = float(np.polyfit(np.log(SIZES), np.log(seconds), 1)[0])
    print(f"  grows like m^{exponent:.2f}, at most {MOST_GROWTH}")
    return int(exponent > MOST_GROWTH)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when the claims do not hold")
    parser.add_argument("--only", default="wine,growth", help="some of wine, growth")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    warnings.simplefilter("ignore")
    parts = options.only.split(",")
    broken = sum(compare(colour) for colour in ("red", "white")) if "wine" in parts else 0
    broken += growth() if "growth" in parts else 0
    return int(options.check and broken > 0)


if __name__ == "__main__":
    sys.exit(main())
