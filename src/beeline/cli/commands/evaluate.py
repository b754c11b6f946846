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
    measures: Annotated[
        str | None,
        Option(
            "Measures of rankings, with commas between: ndcg@K, mean_ndcg, map, mrr, precision@K, recall@K; NDCG with "
            ":linear gain behind it, or by :letor4. ndcg@1,ndcg@5,ndcg@10,map,mrr when not given.",
            metavar="NAMES",
        ),
    ] = None,
    per_query: Annotated[
        str | None,
        Option(
            "Write the measures of each query here: a table, FILE.csv, or lines of JSON, FILE.jsonl.", metavar="FILE"
        ),
    ] = None,
    against: Annotated[
        str | None,
        Option(
            "Another model: say whether the difference may be chance, query by query or else row by row.",
            metavar="MODEL",
        ),
    ] = None,
    seed: Annotated[int, Option("Of the tests with --against.", metavar="N", least=0, show_default=True)] = 0,
    report: Annotated[
        str | None,
        Option(
            "Write a page with curves, calibration, confusions, residuals or queries: one HTML file, with nothing "
            "beside it.",
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
    loss and coverage too, a model of rates deviance and D². Rows with query ids (qid: in LIBSVM text, --qid COLUMN in
    tables) get measures of rankings: NDCG, mean average precision and reciprocal rank, as means over the queries.
    Weights of the rows count.

    Example: beeline evaluate income.model test.csv --positive rich
    """
    with one_line_errors(debug):
        use_threads(threads)
        from beeline.cli.input.skipped import show_passed_over
        from beeline.cli.input.targets import check_targets, checked_page
        from beeline.cli.options.names import split_names
        from beeline.cli.output.pages import write_evaluation
        from beeline.cli.output.query_file import checked_query_file, write_query_file
        from beeline.cli.output.show_evaluation import show_evaluation
        from beeline.evaluation import evaluate as compare
        from beeline.evaluation.queries import USUAL_MEASURES
        from beeline.model.file import load_model
        from beeline.model.walk import Walk

        check_targets([model, *sources, *([] if against is None else [against])], report, per_query)
        page = None if report is None else checked_page(report)
        table = None if per_query is None else checked_query_file(per_query)
        other = None if against is None else load_model(against)
        trained = load_model(model)
        with progress_bar() as progress:
            walk = Walk(trained, sources, reading, progress)
            names = split_names(measures) if measures is not None else [] if per_query is None else USUAL_MEASURES
            found = compare(
                trained, walk, measures=names or None, against=other, seed=seed, positive=positive, memory=memory
            )
        show_passed_over(walk)
        if table is not None and found.by_query is not None:
            write_query_file(table, found.by_query)
        if page is not None:
            write_evaluation(page, trained, found, {"model": model, "data": ", ".join(sources)})
        if json:
            print_json({"model": model} | ({} if against is None else {"other": against}) | found.to_json())
        else:
            show_evaluation(model, found, against)
