"""The search for C as the commands run it: watched on a terminal, and kept when it is interrupted."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from beeline.cli.output.errors import print_line, print_note
from beeline.cli.output.exit_codes import BY_SIGNAL
from beeline.cli.output.pages import write_result_page
from beeline.cli.output.search_table import power_of_two, watched_search

if TYPE_CHECKING:
    from pathlib import Path

    from beeline.cli.input.learning import Prepared
    from beeline.selection import Selection

__all__ = ["leave_interrupted", "search_for_C", "was_interrupted"]


def search_for_C(prepared: Prepared, sources: list[str], page: Path | None, *, to_train: bool) -> Selection:  # noqa: N802
    """The search that the settings ask for, as a table that grows where somebody watches.

    Parameters
    ----------
    prepared, sources
        The rows and the settings, and where the rows came from.
    page
        A page to write about the search.
    to_train
        Whether a model is trained with what is found, also after Ctrl-C.
    """
    selection = _searched(prepared)
    prepared.concerns.add(concern.sentence for concern in selection.concerns)
    if page is not None:
        write_result_page(page, prepared, sources, selection)  # now: a model may take hours
    if to_train and was_interrupted(selection, cold=prepared.settings.selecting.compare_cold):
        best = power_of_two(selection.best_C)
        print_line("interrupted", f"training with the best C so far, {best}; Ctrl-C again ends that too", color="33")
    return selection


def was_interrupted(selection: Selection, *, cold: bool = False) -> bool:
    """Whether Ctrl-C ended it, or the cold starts where they were asked for."""
    from beeline.selection import End

    if selection.end is End.INTERRUPTED or not cold:
        return selection.end is End.INTERRUPTED
    return selection.cold is None or selection.cold.end is End.INTERRUPTED


def leave_interrupted(message: str) -> NoReturn:
    """Say what is left after Ctrl-C, and leave with the exit code that shells expect."""
    print_line("interrupted", message, color="33")
    raise SystemExit(BY_SIGNAL + signal.SIGINT)


def _searched(prepared: Prepared) -> Selection:
    from beeline.fitting.searching import search
    from beeline.fitting.tasks import link_of, make_task
    from beeline.selection.scoring import get_metric
    from beeline.training.indexing import with_index
    from beeline.training.levels import concerns_about_order

    settings = prepared.settings
    task, classes = make_task(prepared.data, settings, None, None)
    prepared.concerns.add(concern.sentence for concern in concerns_about_order(task.loss, classes))
    task, why = with_index(task, settings.solver, settings.seed)
    if why is not None:
        print_note(why)
    in_queries = task.groups is not None or task.data.queries is not None
    metric = get_metric(settings.selecting.metric, task.n_classes, link_of(task), task.loss, queries=in_queries)
    with prepared.concerns.gathered(), watched_search(metric, settings.selecting.rule) as on_point:
        watched = replace(settings, selecting=replace(settings.selecting, on_point=on_point))
        return search(task, classes, watched)
