"""The options that say how C is searched for: shared by `train --C auto` and `select`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from beeline.cli.input.targets import check_targets, checked_file, checked_page
from beeline.cli.options.declaring import Option
from beeline.cli.options.training import panel_option

if TYPE_CHECKING:
    from pathlib import Path

    from beeline.selection import Selecting

__all__ = ["SearchOptions", "search_option"]

search_option = partial(panel_option, panel="Search for C")


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What was said of the search. None: not given, which `train` with a C of its own insists on."""

    folds: Annotated[
        str | None,
        search_option(
            "Folds to hold out one after the other, or the part of the rows, below 1, to hold out once; "
            "5 folds when not given.",
            "N",
        ),
    ] = None
    metric: Annotated[
        str | None,
        search_option(
            "What is measured on held-out rows: accuracy, f1 (f2, f0.5), auc, log_loss, balanced_error, precision@K, "
            "recall@K, rmse, mae, r2, loss (the mean of the loss itself); with query ids ndcg@K, map, mrr; with levels "
            "quadratic_kappa, level_mae; or a scorer of scikit-learn. When not given, log_loss where there are "
            "probabilities, accuracy for other classifiers, rmse for numbers; loss where it asks for something else, "
            "such as a quantile.",
            "NAME",
        ),
    ] = None
    resume: Annotated[
        str | None,
        search_option("Keep the path of C in this file, and go on from it where it is there already.", "FILE"),
    ] = None
    report: Annotated[
        str | None,
        Option(
            "Write a page that shows the search for C, and how the training converged: one HTML file, with "
            "nothing beside it.",
            metavar="PAGE",
        ),
    ] = None

    def selecting(self, **more: Any) -> Selecting:  # noqa: ANN401
        """These options as the library takes them, with more of them."""
        from beeline.selection import Selecting
        from beeline.selection.scoring import named_metric

        if self.metric is not None:
            named_metric(self.metric)  # whether there is such a metric or scorer, before the data are read
        folds = 5 if self.folds is None else _parse_folds(self.folds)
        return Selecting(folds=folds, metric=self.metric, resume=self.resume, **more)

    def checked_files(self, sources: list[str], output: str | None) -> Path | None:
        """The page to write, if any, after a look at the files of the search: before it, not after."""
        check_targets(sources, output, self.resume, self.report)
        if self.resume is not None:
            checked_file(self.resume, "resume")
        return None if self.report is None else checked_page(self.report)

    def refuse_without_search(self) -> None:
        """Refuse options that have no meaning where C is given."""
        from beeline._sentences import Argument
        from beeline.exceptions import ParameterError

        for field in fields(self):
            if field.name != "report" and getattr(self, field.name) is not None:
                raise ParameterError(
                    Argument(field.name), " has no meaning without ", Argument("C", "auto"), "; leave it out"
                )


def _parse_folds(text: str) -> float:
    """A whole number from 2, or a part of the rows."""
    from beeline._sentences import Argument
    from beeline.exceptions import ParameterError

    try:
        value = int(text) if text.isdecimal() else float(text)
    except ValueError:
        value = 0
    if not (value >= 2 if isinstance(value, int) else 0 < value < 1):
        raise ParameterError(
            Argument("folds"),
            f" must be a whole number from 2, or a part of the rows below 1 such as 0.2, not {text!r}",
        )
    return value
