"""The figures of the indexed paper, drawn from our own trainings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from support.indexed_runs import Curve, Large, Run, support_vectors
from support.sets import ROOT

__all__ = ["draw"]

FOLDER = ROOT / "docs" / "figures"
STRENGTHS = (0.01, 0.1, 10.0, 100.0)
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
    pegasos = Run("sgd", "hinge", tenth=tenth, options={"variant": "pegasos"}, max_passes=10)
    if tenth:
        return {"block minimisation": Run("block_cd", "hinge", tenth=True), "Pegasos": pegasos}
    batch = {"batch truncated": Run("relaxation", most_seconds=600), "batch convex": Run("dual_cd", "hinge")}
    return {**batch, "Pegasos": pegasos}


def _errors_over_time(bench, kinds: tuple[str, ...], indexed, *, tenth: bool) -> None:
    """Figures 2 to 4 in full memory, figure 5 at a tenth of it."""
    figure, axes = _axes(len(bench.drawn))
    for ax, large in zip(axes, bench.drawn.values(), strict=True):
        hows = {f"index: {kind}": indexed(kind, tenth=tenth) for kind in kinds} | _rivals(tenth=tenth)
        as_published = indexed("forest", tenth=tenth, options={"variant": "ibcd"}, most_seconds=120)
        hows["index: forest, as published"] = as_published
        for name, (curve, *_) in zip(hows, bench.curves(large, *hows.values(), repeats=1), strict=True):
            _plot(ax, name, curve)
        ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="test error, %", title=_title(large))
        ax.legend(fontsize=7)
    _save(figure, "indexed-tenth" if tenth else "indexed-full")


def _over_strengths(bench, indexed) -> None:
    """Figure 6: other values of C, on the connections."""
    large = bench.drawn["kdd99"]
    figure, axes = _axes(len(STRENGTHS))
    for ax, C in zip(axes, STRENGTHS, strict=True):
        hows = {"index: boxes": indexed("boxes", C=C), "batch convex": Run("dual_cd", "hinge", C=C, most_seconds=60)}
        for name, (curve, *_) in zip(hows, bench.curves(large, *hows.values(), repeats=1), strict=True):
            _plot(ax, name, curve)
        ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="test error, %", title=f"C = {C:g}")
        ax.legend(fontsize=7)
    _save(figure, "indexed-strengths")


def _over_cuts(bench, indexed) -> None:
    """Figure 7: test error against the number of support vectors, over s."""
    figure, axes = _axes(len(bench.drawn))
    for ax, large in zip(axes, bench.drawn.values(), strict=True):
        kind = {"kdd99": "boxes", "mnist": "chunks"}[large.name]
        hows = [indexed(kind, loss_settings={"s": s}) for s in CUTS]
        curves = [curves[0] for curves in bench.curves(large, *hows, repeats=1)]
        ((convex,),) = (bench.curves(large, Run("dual_cd", "hinge"), repeats=1)[0][:1],)
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
    ax.plot(seconds, errors, marker=".", label=name, linestyle="-" if name.startswith("index") else "--")


def _axes(n: int):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, n, figsize=(4.2 * n, 3.4), squeeze=False)
    return figure, axes[0]


def _title(large: Large) -> str:
    return f"{large.name}, {large.n_rows:,} rows"


def _save(figure, name: str) -> None:
    path: Path = FOLDER / f"{name}.svg"
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    print(f"   {path.name}", flush=True)
