"""Ranks of the rows of queries as lines of text: CSV, or TREC's run files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from beeline.cli.output.drawing import csv_field

if TYPE_CHECKING:
    from beeline.evaluation.queries import Whole
    from beeline.model import Model
    from beeline.model.walk import Walk

__all__ = ["HEADER", "check_can_rank", "checked_run_name", "ranked_lines"]

HEADER = "query,rank,score\n"


def checked_run_name(name: str) -> str:
    """The name of a run: one word, as lines of a run file have it."""
    from beeline.exceptions import ParameterError

    if not re.fullmatch(r"[!-~]+", name):
        raise ParameterError(f"the name of a run must be one word, without spaces, not {name!r}", parameter="trec")
    return name


def check_can_rank(model: Model) -> None:
    """Raise where rows have not one score."""
    from beeline.exceptions import ParameterError

    if model.n_outputs > 1:
        raise ParameterError(
            f"the model gives {model.n_outputs} scores a row, and a ranking needs a single one", parameter="rank"
        )


def ranked_lines(model: Model, walk: Walk, memory: int, run: str | None) -> Iterator[str]:
    """The lines of whole queries, as soon as they have ended.

    Parameters
    ----------
    model, walk, memory
        What gives scores to which rows, so many bytes of them at a time.
    run
        The name of a run, for lines of a run file: `query Q0 row rank score run`, the best of a query first, rows
        counted from 0. None: `query,rank,score` for every row, in the order of the rows.
    """
    from beeline._sentences import Argument, Sentence
    from beeline.evaluation.queries import WholeQueries
    from beeline.exceptions import DataError

    queries = WholeQueries()
    for block in walk.blocks(memory):
        if block.queries is None:
            raise DataError(
                Sentence(
                    "the rows have no query ids, which ranks need; name the column that holds them by ",
                    Argument("query"),
                )
            )
        if (found := queries.add(block.queries, model.scores(block)[:, 0])) is not None:
            yield _lines(found, walk.query_names, run)
    if (found := queries.end()) is not None:
        yield _lines(found, walk.query_names, run)


def _lines(rows: Whole, texts: list[str], run: str | None) -> str:
    (z,) = rows.columns
    sizes = np.diff(rows.starts)
    order = np.lexsort((-z, np.repeat(np.arange(len(sizes)), sizes)))  # of equal scores the first row first
    names: list[object] = [_spelled(texts[q], run) for q in rows.queries] if texts else rows.queries.tolist()
    scores, lines = z.tolist(), list[str]()
    ranks = np.empty(len(z), np.int64)
    ranks[order] = np.arange(1, len(z) + 1) - np.repeat(rows.starts[:-1], sizes)
    place = ranks.tolist()
    for name, (begin, end) in zip(names, pairwise(rows.starts.tolist()), strict=True):
        if run is None:
            lines += [f"{name},{place[row]},{scores[row]!r}\n" for row in range(begin, end)]
        else:
            here = order[begin:end].tolist()
            lines += [f"{name} Q0 {rows.first_row + row} {place[row]} {scores[row]!r} {run}\n" for row in here]
    return "".join(lines)


def _spelled(name: str, run: str | None) -> str:
    """The name of a query as a field of CSV, or as a word of a run file."""
    from beeline.exceptions import DataError

    if run is None:
        return csv_field(name)
    if not re.fullmatch(r"\S+", name):
        raise DataError(f"the query {name!r} is not a single word, as run files need; write CSV, or rename it")
    return name
