"""Verbs at work on the shards of one process, whoever asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from beeline._forks import ForkSafeLock
from beeline.engines.base import Verb
from beeline.engines.shards import OpenShard, Shard, Turn
from beeline.engines.tree import add_parts, fold

__all__ = ["Call", "Keeper", "run"]

Column = Sequence[Any]  # what lies beside the rows, a part for each shard


class Call(NamedTuple):
    """A verb with its small things, how many vectors it makes and what becomes of its parts, as in `Rows.call`."""

    verb: Verb
    small: dict[str, Any]
    outputs: int
    reduce: str | None


class Keeper(Protocol):
    """Where what a verb leaves beside the rows is to be kept, other than in memory."""

    turns: ForkSafeLock

    def keep(self, shard: Shard, number: int, made: Any) -> Any:  # noqa: ANN401
        """The part of a shard of the vector of that number, as it is kept."""

    def rest(self, parts: Sequence[Any]) -> None:
        """A verb is done with these parts; the next one may ask for them again."""


def run(
    shards: Sequence[Shard],
    call: Call,
    columns: Sequence[Column],
    reuse: Sequence[Column] = (),
    keeper: Keeper | None = None,
) -> tuple[list[list[Any]], tuple[Any, ...] | None]:
    """(what a verb leaves beside the rows, what its parts come to), as `Rows.call` has it; one shard at a time."""
    outputs, reduce = call.outputs, call.reduce
    if len(shards) > 1 and (loss := call.small.get("loss")) is not None and loss.scope == "all":
        return _run_together(shards, call, columns, keeper)
    results = _results(shards, call, columns, reuse, keeper)
    if not outputs:
        return [], _reduced(results, reduce)
    kept: list[list[Any]] = [[] for _ in range(outputs)]
    return kept, _reduced(_keeping(results, shards, kept, reduce, keeper), reduce)


def _run_together(
    shards: Sequence[Shard], call: Call, columns: Sequence[Column], keeper: Keeper | None
) -> tuple[list[list[Any]], tuple[Any, ...] | None]:
    """The same for a loss that looks at all rows together: what lies beside the rows is brought together and cut anew.

    Such a verb looks at no features.
    """
    whole = Shard(shards[0].data, shards[0].start, shards[-1].stop)
    kept, reduced = run([whole], call, [[np.concatenate(column)] for column in columns])
    cut = [[column[0][shard.start - whole.start : shard.stop - whole.start] for shard in shards] for column in kept]
    if keeper is not None:
        pairs = [zip(shards, parts, strict=True) for parts in cut]
        cut = [[keeper.keep(shard, k, part) for shard, part in column] for k, column in enumerate(pairs)]
    return cut, reduced


def _results(
    shards: Sequence[Shard], call: Call, columns: Sequence[Column], reuse: Sequence[Column], keeper: Keeper | None
) -> Iterator[Any]:
    verb, small = call.verb, call.small
    for i, shard in enumerate(shards):
        parts = [column[i] for column in columns]
        given = {"out": tuple(out[i] for out in reuse), **small} if reuse else small
        if shard.in_memory:
            yield verb(shard, *parts, **given)
            continue
        turn = Turn(None if keeper is None else keeper.turns)
        try:
            result = verb(OpenShard(shard.data, shard.start, shard.stop, shard.groups, turn=turn), *parts, **given)
        finally:
            turn.end()
        yield result
        if keeper is not None:
            keeper.rest(parts)


def _keeping(
    results: Iterator[Any], shards: Sequence[Shard], kept: list[list[Any]], reduce: str | None, keeper: Keeper | None
) -> Iterator[Any]:
    """The parts of each result; what is to stay goes to `kept`."""
    for shard, result in zip(shards, results, strict=True):
        made, parts = result if reduce is not None else (result, ())
        several = len(kept) > 1 or reduce is not None
        for k, (column, one) in enumerate(zip(kept, made if several else (made,), strict=True)):
            column.append(one if keeper is None else keeper.keep(shard, k, one))
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
