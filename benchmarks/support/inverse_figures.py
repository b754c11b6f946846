"""The figures and tables of benchmarks/inverse_time.py."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from support.contenders import CONTENDERS, SETS, Classes
from support.sets import ROOT
from support.walks import Look, Problem

__all__ = ["FOLDER", "Curves", "draw", "tables"]

FOLDER = ROOT / "docs" / "figures"
FORMS = {
    "multi-class LR": "default, softmax",
    "multi-class SVM": "default, hinge",
    "multi-class perceptron": None,
}  # as published, and what `sgd` does by itself with the same loss
PAIRS = (("multi-class LR", "K-binary-LR"), ("multi-class SVM", "K-Pegasos"))
INK, GRID = "#1d2733", "#dfe4ea"
COLOURS = ("#7aa6dc", "#1c5fb8", "#0b2f63")  # of low, middle and high, light to dark
WARM = ("#e9a06b", "#c4560b", "#6e2c00")
_TOLERANCES = (10.0, 1.0)
_FLAT, _NOT_MUCH = 1.25, 1.5  # times the least steps


class Curves:
    """What the walks on one set have seen."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.seen: dict[tuple[str, int], list[list[Look]]] = defaultdict(list)
        self.passes: dict[str, list[tuple[float, float]]] = {}  # (accuracy, seconds) of whoever takes whole passes

    def add(self, learner: str, n: int, seen: list[Look]) -> None:
        """One walk."""
        self.seen[learner, n].append(seen)

    def to(self, learner: str, n: int, target: float) -> tuple[float, float]:
        """Mean (steps, seconds) to an accuracy; NaN where not all walks get there."""
        firsts = [next((look for look in one if look.accuracy >= target), None) for one in self.seen[learner, n]]
        if not firsts or None in firsts:
            return np.nan, np.nan
        return float(np.mean([look.steps for look in firsts])), float(np.mean([look.seconds for look in firsts]))

    def after(self, learner: str, n: int, steps: int) -> float:
        """Mean accuracy after so many steps; NaN where nobody made as many."""
        found = [look.accuracy for one in self.seen[learner, n] for look in one if look.steps == steps]
        return float(np.mean(found)) if found else np.nan

    def declines(self, learner: str) -> bool:
        """Whether the fewest rows need more steps than all, or never get there, and more rows do not cost much.

        To the highest target that all rows reach: with them, steps are at most half as many again as the fewest of any
        number of rows.
        """
        for target in sorted(self.problem.targets, reverse=True):
            steps = [self.to(learner, n, target)[0] for n in self.problem.sizes]
            if np.isfinite(steps[-1]):
                fewest = steps[0] if np.isfinite(steps[0]) else np.inf
                return bool(fewest > steps[-1] and steps[-1] <= _NOT_MUCH * np.nanmin(steps))
        return False

    def flat_from(self, learner: str, target: float) -> str:
        """The fewest rows from which on steps stay within a quarter of the least."""
        steps = {n: self.to(learner, n, target)[0] for n in self.problem.sizes}
        there = {n: s for n, s in steps.items() if np.isfinite(s)}
        flat = [n for n in there if all(s <= _FLAT * min(there.values()) for m, s in there.items() if m >= n)]
        if not there:
            return "not reached"
        return f"{min(flat):,}" if flat else "no decline"

    def in_words(self, learner: str, n: int) -> str:
        """What was found with so many rows."""
        told = [
            f"{t:g} %: {self.to(learner, n, t)[0]:.0f} steps, {self.to(learner, n, t)[1]:.3f} s"
            for t in self.problem.targets
        ]
        return f"{learner}, {n:,} rows: " + "; ".join(told) if self.seen[learner, n] else f"{learner}: -"

    def compare_with_passes(self) -> None:
        """Run those who take whole passes, on the most rows that they take in reasonable time."""
        p = self.problem
        classes = Classes.of(f"{p.name}-inverse", (p.X[:60_000].astype(np.float64), p.y[:60_000]), (p.X_test, p.y_test))
        for name in ("LIBLINEAR -s 4", "SVMmulticlass"):
            if name in CONTENDERS:
                found = [CONTENDERS[name].train(classes, {"C": 1.0, "tol": tol}) for tol in _TOLERANCES]
                self.passes[name] = [(one.accuracy, one.cores) for one in found]
                print(f"   {name}: {', '.join(f'{a:.2f} % in {s:.2f} s' for a, s in self.passes[name])}", flush=True)


def draw(measured: list[Curves], folder: Path) -> None:
    """All figures."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams.update(
        {"font.size": 9, "axes.edgecolor": INK, "axes.grid": True, "grid.color": GRID, "svg.fonttype": "none"}
    )
    folder.mkdir(parents=True, exist_ok=True)
    _against_rows(measured, folder, "inverse-seconds", "milliseconds to an accuracy", _seconds)
    _against_rows(measured, folder, "inverse-accuracy", "test accuracy, %", _accuracies)
    _against_one_vs_rest(measured, folder)
    _against_passes(measured, folder)


def _against_rows(measured: list[Curves], folder: Path, name: str, ylabel: str, plot) -> None:
    """Figures 1 and 2: a row of panels for each loss, a column for each set."""
    figure, axes = _axes(len(FORMS), len(measured))
    for panels, (learner, default) in zip(axes, FORMS.items(), strict=True):
        for ax, curves in zip(panels, measured, strict=True):
            plot(ax, curves, learner, default)
            _rows_below(ax, curves.problem.sizes)
            ax.set_title(f"{learner}, {SETS[curves.problem.name]}", fontsize=9)
            if ax in axes[-1]:
                ax.set_xlabel("training rows")
            if ax is panels[0]:
                ax.set_ylabel(ylabel)
    _save(figure, folder / name)


def _seconds(ax, curves: Curves, learner: str, default: str | None) -> None:
    for who, colours, style in ((learner, COLOURS, "o-"), (default, WARM, "s--")):
        for target, colour in zip(curves.problem.targets, colours, strict=True) if who else ():
            seconds = [1e3 * curves.to(who, n, target)[1] for n in curves.problem.sizes]
            label = f"{'MCID' if who is learner else 'default'}, {target:g} %"
            if np.isfinite(seconds).any():
                ax.plot(curves.problem.sizes, seconds, style, color=colour, label=label, markersize=3.5, linewidth=1.3)
    if not ax.lines:
        ax.text(0.5, 0.5, "not reached", transform=ax.transAxes, ha="center", color=INK)
        ax.set_yticks([])
        return
    _log_scale(ax)
    ax.legend(fontsize=7, ncol=2, loc="upper center", handlelength=1.6, columnspacing=1.0)


def _accuracies(ax, curves: Curves, learner: str, default: str | None) -> None:
    for who, colours, style in ((learner, COLOURS, "o-"), (default, WARM, "s--")):
        for steps, colour in zip(curves.problem.fixed, colours, strict=True) if who else ():
            found = [curves.after(who, n, steps) for n in curves.problem.sizes]
            label = f"{'MCID' if who is learner else 'default'}, {steps:,} steps"
            ax.plot(curves.problem.sizes, found, style, color=colour, label=label, markersize=3.5, linewidth=1.3)
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top + 0.4 * (top - bottom))
    ax.set_yticks([tick for tick in ax.get_yticks() if bottom <= tick <= min(top, 100)])
    ax.legend(fontsize=7, ncol=2, loc="upper center", handlelength=1.6, columnspacing=1.0)


def _against_one_vs_rest(measured: list[Curves], folder: Path) -> None:
    """Figure 3: with all rows, against steps."""
    figure, ((*axes,),) = _axes(1, len(measured))
    for ax, curves in zip(axes, measured, strict=True):
        n = curves.problem.sizes[-1]
        for pair, colour in zip(PAIRS, (COLOURS[1], WARM[1]), strict=True):
            for learner, style in zip(pair, ("-", ":"), strict=True):
                steps = sorted({look.steps for one in curves.seen[learner, n] for look in one})
                found = [(s, curves.after(learner, n, s)) for s in steps]
                ax.plot(*zip(*found, strict=True), style, color=colour, label=learner, linewidth=1.4)
        ax.set(xscale="log", xlabel="steps", title=f"{SETS[curves.problem.name]}, {n:,} rows")
        ax.legend(fontsize=7.5, loc="lower right", framealpha=0.8)
    axes[0].set_ylabel("test accuracy, %")
    _save(figure, folder / "inverse-one-vs-rest")


def _against_passes(measured: list[Curves], folder: Path) -> None:
    """Figure 4: seconds to an accuracy, beside solvers that take whole passes."""
    figure, ((*axes,),) = _axes(1, len(measured))
    marks = ("o", "s", "^", "D", "v")
    for ax, curves in zip(axes, measured, strict=True):
        n = curves.problem.sizes[-1]
        for learner, colour in zip((*FORMS, "default, hinge"), (*COLOURS[:2], "#5b6878", WARM[1]), strict=True):
            means = [curves.to(learner, n, t) for t in np.linspace(50, 100, 101)]
            found = [(t, s) for t, (_, s) in zip(np.linspace(50, 100, 101), means, strict=True) if np.isfinite(s)]
            if found:
                name = learner if learner in FORMS else "sgd by itself, hinge"
                ax.plot(*zip(*found, strict=True), color=colour, label=name, linewidth=1.4)
        for (name, found), mark in zip(curves.passes.items(), marks, strict=False):
            ax.plot(*zip(*found, strict=True), mark, color="#0b7a5e", label=name, markersize=5)
        ax.set(yscale="log", xlabel="test accuracy, %", title=SETS[curves.problem.name])
        ax.legend(fontsize=7.5, framealpha=0.8)
    axes[0].set_ylabel("seconds")
    _save(figure, folder / "inverse-passes")


def _rows_below(ax, sizes: tuple[int, ...]) -> None:
    """The numbers of rows that were tried, in short."""
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    short = [f"{n / 1e6:g}M" if n >= 1e6 else f"{n / 1e3:.3g}k" if n >= 1e3 else f"{n}" for n in sizes]
    ax.set_xticks(sizes, short)
    ax.xaxis.set_minor_locator(NullLocator())


def _log_scale(ax) -> None:
    """Plain numbers, and room for the legend above."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_yscale("log")
    low = min(np.nanmin(line.get_ydata()) for line in ax.lines)
    high = max(np.nanmax(line.get_ydata()) for line in ax.lines)
    ax.set_ylim(low / 1.3, high * max(3.0, (high / low) ** 0.5))
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _axes(rows: int, columns: int):
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=(3.5 * columns, 2.9 * rows), squeeze=False, facecolor="white")


def _save(figure, path: Path) -> None:
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    pyplot.close(figure)
    print(f"   {path.name}.svg", flush=True)


def tables(measured: list[Curves]) -> str:
    """Steps and seconds, and from where on more rows do not help."""
    lines = ["| set | learner | accuracy | steps (seconds) by training rows | flat from |", "|---" * 5 + "|"]
    for curves in measured:
        for learner in (*FORMS, *filter(None, FORMS.values())):
            for target in curves.problem.targets:
                told = [_cell(curves, learner, n, target) for n in curves.problem.sizes]
                words = [SETS[curves.problem.name], learner, f"{target:g} %", "; ".join(told)]
                lines.append(f"| {' | '.join(words)} | {curves.flat_from(learner, target)} |")
    return "\n".join(lines) + "\n"


def _cell(curves: Curves, learner: str, n: int, target: float) -> str:
    steps, seconds = curves.to(learner, n, target)
    return f"{n:,}: {steps:,.0f} ({seconds:.3g})" if np.isfinite(steps) else f"{n:,}: –"
