"""Verbs at work on the shards of one process, whoever asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from beeline.engines.base import Verb
from beeline.engines.shards import Shard
from beeline.engines.tree import add_parts, fold

__all__ = ["run"]

Column = Sequence[Any]  # what lies beside the rows, a part for each shard


def run(
    shards: Sequence[Shard],
    verb: Verb,
    columns: Sequence[Column],
    small: dict[str, Any],
    outputs: int,
    reduce: str | None,
    reuse: Sequence[Column] = (),
) -> tuple[list[list[Any]], tuple[Any, ...] | None]:
    """(what a verb leaves beside the rows, what its parts come to), as `Rows.call` has it; one shard at a time."""
    if len(shards) == 1 and reduce is not None and not reuse:
        result = verb(shards[0], *[column[0] for column in columns], **small)
        return ([[one] for one in result[0]], result[1]) if outputs else ([], result)
    if len(shards) > 1 and (loss := small.get("loss")) is not None and loss.scope == "all":
        return _run_together(shards, verb, columns, small, outputs, reduce)
    results = _results(shards, verb, columns, small, reuse)
    if not outputs:
        return [], _reduced(results, reduce)
    kept: list[list[Any]] = [[] for _ in range(outputs)]
    return kept, _reduced(_keeping(results, kept, reduce), reduce)


def _run_together(
    shards: Sequence[Shard],
    verb: Verb,
    columns: Sequence[Column],
    small: dict[str, Any],
    outputs: int,
    reduce: str | None,
) -> tuple[list[list[Any]], tuple[Any, ...] | None]:
    """The same for a loss that looks at all rows together: what lies beside the rows is brought together and cut anew.

    Such a verb looks at no features.
    """
    whole = Shard(shards[0].data, shards[0].start, shards[-1].stop)
    kept, reduced = run([whole], verb, [[np.concatenate(column)] for column in columns], small, outputs, reduce)
    first = whole.start
    cut = [[column[0][shard.start - first : shard.stop - first] for shard in shards] for column in kept]
    return cut, reduced


def _results(
    shards: Sequence[Shard], verb: Verb, columns: Sequence[Column], small: dict[str, Any], reuse: Sequence[Column]
) -> Iterator[Any]:
    if not reuse:
        return (verb(shard, *(column[i] for column in columns), **small) for i, shard in enumerate(shards))
    return (
        verb(shard, *(column[i] for column in columns), out=tuple(out[i] for out in reuse), **small)
        for i, shard in enumerate(shards)
    )


def _keeping(results: Iterator[Any], kept: list[list[Any]], reduce: str | None) -> Iterator[Any]:
    """The parts of each result; what is to stay goes to `kept`."""
    for result in results:
        made, parts = result if reduce is not None else (result, ())
        several = len(kept) > 1 or reduce is not None
        for column, one in zip(kept, made if several else (made,), strict=True):
            column.append(one)
        yield parts


def _reduced(results: Iterator[Any], how: str | None) -> tuple[Any, ...] | None:
    if how == "sum":
        return tuple(fold(results, add_parts))
    found = list(results)
    if how == "max":
        return tuple(max(parts) for parts in zip(*found, strict=True))
    if how == "concat":
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
    return None
