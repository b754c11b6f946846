"""The page of `--report`: a search for C, a training, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beeline.cli.drawing import number

if TYPE_CHECKING:
    from pathlib import Path

    from beeline.cli.learning import Prepared
    from beeline.fitting import Fitted
    from beeline.selection import Selection

__all__ = ["write_result_page"]


def write_result_page(
    page: Path,
    prepared: Prepared,
    sources: list[str],
    selection: Selection | None = None,
    trained: Fitted | None = None,
) -> None:
    """Write what there is to show: the search where there was one, and the training where there was one.

    Parameters
    ----------
    page
        The file.
    prepared, sources
        The rows and the settings, and where the rows came from.
    """
    from beeline.report import write_selection_page, write_training_page

    facts = _facts(prepared, sources)
    if selection is not None:
        write_selection_page(page, selection, facts | _search_facts(prepared), trained)
    elif trained is not None:
        write_training_page(page, trained, facts | {"C": prepared.settings.C, "tolerance": prepared.settings.tol})


def _facts(prepared: Prepared, sources: list[str]) -> dict[str, Any]:
    """What was learned, from what."""
    data, settings = prepared.data, prepared.settings
    facts: dict[str, Any] = {"data": ", ".join(sources), "rows": f"{data.n_rows:,}", "features": f"{data.n_features:,}"}
    facts |= {"loss": settings.the_loss.name, **settings.the_loss.settings}
    facts |= {"regularizer": settings.the_regularizer.name, "intercept": settings.intercept}
    facts |= {"weights": "not negative"} if settings.the_regularizer.nonnegative else {}
    return facts | {"multiclass": settings.multiclass, "solver": settings.solver, "seed": settings.seed}


def _search_facts(prepared: Prepared) -> dict[str, Any]:
    selecting = prepared.settings.selecting
    folds: Any = selecting.folds
    shown = folds if isinstance(folds, int) else f"{number(100 * folds)} % of the rows, held out once"
    return {"folds": shown, "rule": selecting.rule}
