"""Drawing what a search for C found, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beeline._words import count
from beeline.cli.output.drawing import escape_markup, number_text, standard_console
from beeline.cli.output.search_table import path_table, power_of_two, score_text

if TYPE_CHECKING:
    from beeline.selection import PathPoint, Selection

__all__ = ["chosen_C", "show_search"]


def show_search(selection: Selection, why: str | None, following: str | None) -> None:
    """Print the chosen C, the curve, why the search ended and what it took.

    Parameters
    ----------
    why
        Why the loss was chosen, where it was.
    following
        The command that trains with this C, where there is no model yet.
    """
    with standard_console() as out:
        out.print(f"[bold]{chosen_C(selection)}[/]: {escape_markup(_judged(selection))}", highlight=False)
        out.print(path_table(_shown(selection), selection.best, selection.metric))
        ended = f"ended after {selection.seconds:.2f} s because {selection.end.value}"
        if selection.cold is not None and len(selection.cold.curve) == len(selection.curve):
            ended += f"; the same from cold starts took {selection.cold.seconds:.2f} s"
        out.print(ended, highlight=False)
        if note := _at_the_edge(selection):
            out.print(note, highlight=False)
        if why is not None:
            out.print(f"[dim]the loss was chosen because {escape_markup(why)}[/]", highlight=False)
        if following is not None:
            out.print(f"[dim]next:[/] {escape_markup(following)}", highlight=False, soft_wrap=True)


def chosen_C(selection: Selection) -> str:  # noqa: N802
    """The C (and ε) that was found: C = 0.125 (2^-3)."""
    exact, power = f"{selection.best_C:.6g}", power_of_two(selection.best_C)
    text = f"C = {exact}" if exact == power else f"C = {exact} ({power})"
    epsilon = selection.best.epsilon
    return text if epsilon is None else f"{text}, ε = {number_text(epsilon)}"


def _judged(selection: Selection) -> str:
    best = selection.best
    folds = len(best.fold_scores)
    spread = f" ± {best.spread:.2g} on {folds} folds" if folds > 1 else " on the rows held out"
    tried = f"the best of {count(len(selection.curve), 'value')}"
    if selection.rule == "one_se":
        tried = f"the smallest C within a standard error of {tried}"
    return f"{selection.metric} {score_text(best.score)}{spread}, {tried}"


def _at_the_edge(selection: Selection) -> str | None:
    """What to do where the best C is the last one tried: a larger one may be better still."""
    from beeline.selection import End

    last = max(point.C for point in selection.curve if point.epsilon == selection.best.epsilon)
    further = {End.LIMIT: "a larger --C-max", End.SETTLED: "a smaller --tol"}.get(selection.end)
    if further is None or selection.best_C < last:
        return None
    return f"the best C is the last one tried; {further} goes further"


def _shown(selection: Selection) -> list[PathPoint]:
    """The curve; of a search for ε too, the best C of each ε."""
    if selection.best.epsilon is None:
        return list(selection.curve)
    from beeline.selection.result import choose

    epsilons = dict.fromkeys(point.epsilon for point in selection.curve)
    paths = [tuple(point for point in selection.curve if point.epsilon == epsilon) for epsilon in epsilons]
    return [choose(path, selection.greater_is_better, selection.rule) for path in paths]
