"""`beeline predict`: a model's answers for new rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from beeline._sentences import Argument
from beeline.cli.options.common import Debug, Memory, Threads, memory_or, refuse_same_file, use_threads
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.options.reading import with_read_options
from beeline.cli.output.drawing import csv_field
from beeline.cli.output.errors import one_line_errors
from beeline.cli.output.progress import progress_bar

if TYPE_CHECKING:
    from beeline._types import Floats
    from beeline.model import Model

__all__ = ["predict"]

_MEMORY = 64 << 20


@with_read_options
def predict(
    model: Annotated[str, Positional("MODEL")],
    sources: Annotated[list[str], Positional("DATA")],
    *,
    output: Annotated[
        str | None,
        Option(
            "Write here instead of to standard output.",
            (
                "--output",
                "-o",
            ),
            metavar="FILE",
        ),
    ] = None,
    probabilities: Annotated[
        bool, Option("Write CSV with the class and the probability of every class.", ("--probabilities",))
    ] = False,
    scores: Annotated[bool, Option("Write CSV with the class and the scores it is decided by.", ("--scores",))] = False,
    rank: Annotated[
        bool,
        Option("Write CSV with the query, the rank within it (1 is the best) and the score of every row.", ("--rank",)),
    ] = False,
    trec: Annotated[
        str | None,
        Option(
            "Write a run file of TREC's kind under this name: query Q0 row rank score RUN, the best row of each query "
            "first. Rows are called by their numbers, from 0.",
            metavar="RUN",
        ),
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
    debug: Debug = False,
    reading: dict[str, Any],
) -> None:
    """Predict the class or the value of every row.

    MODEL is a file that beeline train or LIBLINEAR wrote. DATA is a store or raw files, which are read by the model's
    own recipe: same columns, categories and scaling. Raw files need no labels. Prints one prediction a line, in the
    order of the rows, however many there are; the labels of a set with spaces between them, the numbers of a vector
    with commas. --rank and --trec need query ids, and the rows of a query together; they do without labels in tables
    alone.

    Example: beeline predict income.model new.csv -o answers.txt
    """
    with one_line_errors(debug):
        use_threads(threads)
        from beeline.cli.input.skipped import show_passed_over
        from beeline.cli.output.rankings import HEADER, ranked_lines
        from beeline.model.file import load_model
        from beeline.model.walk import Walk

        refuse_same_file(output, [model, *sources])
        trained = load_model(model)
        ranks = _ranks(trained, rank, trec, probabilities or scores)
        header, form = (HEADER if trec is None else "", str) if ranks else _form(trained, probabilities, scores)
        with progress_bar() as progress, _target(output) as file:
            walk = Walk(trained, sources, reading, progress, targets=ranks)
            if ranks:
                lines = ranked_lines(trained, walk, memory_or(_MEMORY, memory), trec)
                first = next(lines, "")  # what is wrong with the first rows is said before anything is written
                file.write(header + first)
                file.writelines(lines)
            else:
                file.write(header)
                for block in walk.blocks(memory_or(_MEMORY, memory)):
                    file.write(form(trained.scores(block)))
        show_passed_over(walk)


def _ranks(model: Model, rank: bool, trec: str | None, others: bool) -> bool:
    """Whether ranks are to be written, after a look at what was asked for."""
    from beeline.cli.output.rankings import check_can_rank, checked_run_name
    from beeline.exceptions import ParameterError

    if not rank and trec is None:
        return False
    if others or (rank and trec is not None):
        raise ParameterError(
            "give one of ",
            Argument("probabilities"),
            ", ",
            Argument("scores"),
            ", ",
            Argument("rank"),
            " and ",
            Argument("trec"),
        )
    if trec is not None:
        checked_run_name(trec)
    check_can_rank(model)
    return True


def _form(model: Model, probabilities: bool, scores: bool) -> tuple[str, Callable[[Floats], str]]:
    """(the header line, how the scores of some rows become lines)."""
    from beeline._sentences import Sentence
    from beeline.exceptions import ParameterError

    if probabilities and scores:
        raise ParameterError("give ", Argument("probabilities"), " or ", Argument("scores"), ", not both")
    if model.classes is None:
        if probabilities or scores:
            raise ParameterError(
                "the model is a regression, which has neither classes nor probabilities",
                parameter="probabilities" if probabilities else "scores",
            )
        return "", lambda z: "".join(f"{','.join(map(repr, row))}\n" for row in model.values(z).tolist())
    names = [csv_field(name) for name in model.class_names]
    if not (probabilities or scores):
        return "", lambda z: "".join(f"{label}\n" for label in _labels(model, names, z))
    if probabilities and not model.has_probabilities:
        advice = (
            Sentence("by multilabel_logistic to have them")
            if model.multilabel
            else Sentence("with ", Argument("probability", True), " to have them calibrated")
        )
        raise ParameterError(
            f"the loss {model.loss!r} gives scores, not probabilities; train ", advice, parameter="probabilities"
        )
    columns = names[1:] if scores and model.kind == "binary" else names

    def lines(z: Floats) -> str:
        figures = z if scores else model.probabilities(z)
        rows = zip(_labels(model, names, z), figures.tolist(), strict=True)
        return "".join(f"{label},{','.join(map(repr, row))}\n" for label, row in rows)

    return f"label,{','.join(columns)}\n", lines


def _labels(model: Model, names: list[str], z: Floats) -> Iterator[str]:
    """The class of each row; of a set, the labels with spaces between them."""
    if model.multilabel:
        return (" ".join(names[k] for k, has in enumerate(row) if has) for row in model.answers(z).tolist())
    return (names[k] for k in model.class_numbers(z).tolist())


@contextmanager
def _target(output: str | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears under its name only when it is complete."""
    if output is None:
        yield sys.stdout
        return
    from beeline.data.files.atomic import replacing

    with replacing(output) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        yield file
