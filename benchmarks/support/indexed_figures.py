"""The figures of the indexed paper, drawn from our own trainings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from support.indexed_runs import Curve, Large, Run, support_vectors
from support.sets import ROOT

__all__ = ["draw"]

FOLDER = ROOT / "docs" / "figures"
STRENGTHS = (0.01, 0.1, 10.0, 100.0)
MOST = 45  # seconds of a training
COLOURS = {
    "index: boxes": "#1b6ca8",
    "index: chunks": "#2a9d4e",
    "index: forest": "#8e44ad",
    "index: forest, as published": "#c39bd3",
    "batch truncated": "#c0392b",
    "batch convex": "#e08e0b",
    "block minimisation": "#7f5539",
    "Pegasos": "#777777",
}
CUTS = (0.0, 0.5, 1.0, 2.0, 4.0)


def draw(bench, kinds: tuple[str, ...], indexed) -> None:
    """Test error against time, in full memory and at a tenth; over C; and against the number of support vectors."""
    import matplotlib as mpl

    mpl.use("svg")
    FOLDER.mkdir(exist_ok=True)
    for tenth in (False, True):
        _errors_over_time(bench, kinds, indexed, tenth=tenth)
    _over_strengths(bench, indexed)
    _over_cuts(bench, indexed)


def _rivals(*, tenth: bool) -> dict[str, Run]:
    pegasos = Run("sgd", "hinge", tenth=tenth, options={"variant": "pegasos"}, max_passes=10, most_seconds=MOST)
    if tenth:
        return {"block minimisation": Run("block_cd", "hinge", tenth=True, most_seconds=MOST), "Pegasos": pegasos}
    batch = Run("relaxation", most_seconds=MOST), Run("dual_cd", "hinge", most_seconds=MOST)
    return {"batch truncated": batch[0], "batch convex": batch[1], "Pegasos": pegasos}


def _errors_over_time(bench, kinds: tuple[str, ...], indexed, *, tenth: bool) -> None:
    """Figures 2 to 4 in full memory, figure 5 at a tenth of it."""
    figure, axes = _axes(len(bench.drawn))
    for ax, large in zip(axes, bench.drawn.values(), strict=True):
        hows = {f"index: {kind}": indexed(kind, tenth=tenth, most_seconds=MOST) for kind in kinds}
        hows |= _rivals(tenth=tenth)
        as_published = indexed("forest", tenth=tenth, options={"variant": "ibcd"}, most_seconds=MOST)
        hows["index: forest, as published"] = as_published
        for name, (curve, *_) in zip(hows, bench.curves(large, *hows.values(), repeats=1), strict=True):
            _plot(ax, name, curve)
        ax.set(xlabel="seconds from the start of Python", ylabel="test error, %")
        ax.set_title(f"{_title(large)}, {'a tenth of the memory' if tenth else 'full memory'}", fontsize=10)
        _finish(ax)
    _save(figure, "indexed-tenth" if tenth else "indexed-full")


def _over_strengths(bench, indexed) -> None:
    """Figure 6: other values of C, on the connections."""
    large = bench.drawn["kdd99"]
    figure, axes = _axes(len(STRENGTHS))
    for ax, C in zip(axes, STRENGTHS, strict=True):
        batch = {"batch convex": Run("dual_cd", "hinge", C=C, most_seconds=MOST)}
        hows = {"index: boxes": indexed("boxes", C=C, most_seconds=MOST), **batch}
        for name, (curve, *_) in zip(hows, bench.curves(large, *hows.values(), repeats=1), strict=True):
            _plot(ax, name, curve)
        ax.set(xlabel="seconds from the start of Python", ylabel="test error, %")
        ax.set_title(f"{_title(large)}, C = {C:g}", fontsize=10)
        _finish(ax)
    _save(figure, "indexed-strengths")


def _over_cuts(bench, indexed) -> None:
    """Figure 7: test error against the number of support vectors, over s."""
    figure, axes = _axes(len(bench.drawn))
    for ax, large in zip(axes, bench.drawn.values(), strict=True):
        kind = {"kdd99": "boxes", "mnist": "chunks"}[large.name]
        hows = [indexed(kind, loss_settings={"s": s}, most_seconds=MOST) for s in CUTS]
        curves = [curves[0] for curves in bench.curves(large, *hows, repeats=1)]
        ((convex,),) = (bench.curves(large, Run("dual_cd", "hinge", most_seconds=MOST), repeats=1)[0][:1],)
        counts = [support_vectors(large, curve.theta, s) for curve, s in zip(curves, CUTS, strict=True)]
        ax.plot(counts, [curve.errors[-1] for curve in curves], "o-", label="ramp")
        for count, curve, s in zip(counts, curves, CUTS, strict=True):
            ax.annotate(f"s={s:g}", (count, curve.errors[-1]), textcoords="offset points", xytext=(4, 4), fontsize=7)
            print(f"   {large.name}: s={s:g}: {count:,} support vectors, error {curve.errors[-1]:.3f} %", flush=True)
        count = support_vectors(large, convex.theta, None)
        print(f"   {large.name}: hinge: {count:,} support vectors, error {convex.errors[-1]:.3f} %", flush=True)
        ax.plot([count], [convex.errors[-1]], "s", label="hinge")
        ax.set(xscale="log", xlabel="support vectors", ylabel="test error, %", title=_title(large))
        ax.legend(fontsize=7)
    _save(figure, "indexed-support-vectors")


def _plot(ax, name: str, curve: Curve) -> None:
    seconds, errors = [point["seconds"] for point in curve.points], np.maximum(curve.errors, 1e-3)
    style = {"linestyle": "-" if name.startswith("index") else "--", "linewidth": 1.4, "markersize": 4}
    ax.plot(seconds, errors, marker=".", label=name, color=COLOURS[name], **style)


def _finish(ax) -> None:
    """Scales with plain numbers, a grid, and a top that leaves out where everybody begins."""
    from matplotlib.ticker import LogLocator, ScalarFormatter

    ax.set(xscale="log", yscale="log")
    least = min(float(np.min(line.get_ydata())) for line in ax.lines)
    ax.set_ylim(0.9 * least, min(60.0, 30 * least))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(ScalarFormatter())
        axis.set_minor_locator(LogLocator(subs=()))
    ax.tick_params(labelsize=8)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)


def _axes(n: int):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(-(-n // 2), min(n, 2), figsize=(5.4 * min(n, 2), 4.2 * -(-n // 2)), squeeze=False)
    return figure, axes.ravel()


def _title(large: Large) -> str:
    return f"{large.name}, {large.n_rows:,} rows"


def _save(figure, name: str) -> None:
    path: Path = FOLDER / f"{name}.svg"
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    print(f"   {path.name}", flush=True)
