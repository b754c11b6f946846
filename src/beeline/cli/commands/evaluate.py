"""`beeline evaluate`: how good a model's predictions are."""

from __future__ import annotations

from typing import Annotated, Any

from beeline.cli.options.common import Debug, Json, Memory, Threads, print_json, use_threads
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.options.reading import with_read_options
from beeline.cli.output.errors import one_line_errors
from beeline.cli.output.progress import progress_bar

__all__ = ["evaluate"]


@with_read_options
def evaluate(
    model: Annotated[str, Positional("MODEL")],
    sources: Annotated[list[str], Positional("DATA")],
    *,
    positive: Annotated[
        str | None,
        Option(
            "Of two classes, the one that precision, recall, F1 and average precision are about; the larger, or the "
            "last in the alphabet, when not given.",
            metavar="LABEL",
        ),
    ] = None,
    report: Annotated[
        str | None,
        Option(
            "Write a page with curves, calibration, confusions or residuals: one HTML file, with nothing beside it.",
            metavar="PAGE",
        ),
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
    reading: dict[str, Any],
) -> None:
    """Compare a model's predictions with labels.

    MODEL and DATA are as for beeline predict; DATA has labels. Two classes get accuracy, precision, recall, F1, the
    area under the ROC curve and average precision; several classes get the means of these over the classes, and a
    table of each class against the rest; both get log loss where there are probabilities, and the confusion table, or
    the most frequent confusions where it is too wide. A regression gets RMSE, MAE and R², a quantile model pinball
    loss and coverage too, a model of rates deviance and D². Weights of the rows count.

    Example: beeline evaluate income.model test.csv --positive rich
    """
    with one_line_errors(debug):
        use_threads(threads)
        from beeline.cli.input.skipped import show_passed_over
        from beeline.cli.input.targets import check_targets, checked_page
        from beeline.cli.output.pages import write_evaluation
        from beeline.cli.output.show_evaluation import show_evaluation
        from beeline.evaluation import evaluate as compare
        from beeline.model.file import load_model
        from beeline.model.walk import Walk

        check_targets([model, *sources], report)
        page = None if report is None else checked_page(report)
        trained = load_model(model)
        with progress_bar() as progress:
            walk = Walk(trained, sources, reading, progress)
            found = compare(trained, walk, positive=positive, memory=memory)
        show_passed_over(walk)
        if page is not None:
            write_evaluation(page, trained, found, {"model": model, "data": ", ".join(sources)})
        if json:
            print_json({"model": model} | found.to_json())
        else:
            show_evaluation(model, found)
