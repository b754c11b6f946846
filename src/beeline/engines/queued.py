"""Rows that lie in other processes: what is asked for is queued, and leaves together when a value is needed."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from beeline._forks import ForkSafeLock
from beeline._types import AnyArray
from beeline.engines.base import Origin, Promise, Rows, RowVector, Verb
from beeline.engines.running import Call, run
from beeline.engines.shards import Shard

__all__ = ["Answer", "Batch", "Command", "QueuedRows", "ShardHolder"]

Answer = tuple[Any, Exception | None]


@dataclass(frozen=True)
class Command:
    """A verb to run, on vectors that are known by numbers.

    `small` is pickled already: whoever asked may change what it is made of before the queue leaves.
    """

    verb: Verb
    inputs: tuple[int, ...]
    small: bytes
    outputs: tuple[int, ...]
    reduce: str | None
    reuse: tuple[int, ...] = ()


@dataclass(frozen=True)
class Batch:
    """What leaves in one trip: vectors that nobody needs any more, and commands in their order."""

    dropped: list[int]
    commands: list[Command]


class ShardHolder:
    """The other side: the shards of a process, and what lies beside them."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = shards
        self.columns: dict[int, list[Any]] = {}

    def put(self, key: int, column: AnyArray) -> None:
        """Keep an array with an entry a row; shards are runs of the rows in their order."""
        first = self.shards[0].start if self.shards else 0
        self.columns[key] = [column[shard.start - first : shard.stop - first] for shard in self.shards]

    def get(self, key: int) -> list[Any]:
        """What lies beside the rows, shard by shard."""
        return self.columns[key]

    def answer(self, batch: Batch) -> list[Answer]:
        """Run all commands; an error is an answer, and ends the batch."""
        for key in batch.dropped:
            self.columns.pop(key, None)
        answers: list[Answer] = []
        for command in batch.commands:
            try:
                answers.append((self._run(command), None))
            except Exception as error:
                answers.append((None, error))
                break
        return answers

    def _run(self, command: Command) -> Any:  # noqa: ANN401
        inputs, reuse = ([self.columns[key] for key in keys] for keys in (command.inputs, command.reuse))
        small = pickle.loads(command.small)
        call = Call(command.verb, small, len(command.outputs), command.reduce)
        kept, reduced = run(self.shards, call, inputs, reuse)
        for key in command.reuse:
            del self.columns[key]
        self.columns.update(zip(command.outputs, kept, strict=True))
        return reduced


class QueuedRows(Rows):
    """Rows elsewhere. A subclass says how a batch gets there and how its answers come back.

    Attributes
    ----------
    trips
        How often a batch has left.
    """

    def __init__(self) -> None:
        self.trips = 0
        self._lock = ForkSafeLock()
        self._queue: list[tuple[Command, _Expected]] = []
        self._dropped: list[int] = []
        self._next = 0

    @abstractmethod
    def _send(self, batch: Batch) -> list[Answer]:
        """The answers to a batch, one a command; fewer where one is an error."""

    @abstractmethod
    def _put(self, key: int, column: AnyArray) -> None:
        """Bring an array to the rows."""

    @abstractmethod
    def _get(self, key: int) -> AnyArray:
        """Bring a row vector here."""

    def call(
        self,
        verb: Verb,
        vectors: Sequence[RowVector],
        small: dict[str, Any],
        outputs: int,
        reduce: str | None,
        reuse: Sequence[RowVector] = (),
    ) -> tuple[tuple[RowVector, ...], Promise]:
        """Queue a verb."""
        row_vectors = tuple(vectors)
        with self._lock:
            made = tuple(_FarVector(self, self._number(), (verb, row_vectors, small, k)) for k in range(outputs))
            command = Command(verb, _keys(row_vectors), pickle.dumps(small, -1), _keys(made), reduce, _keys(reuse))
            # A command holds its vectors until it has left: what is dropped meanwhile is still needed there.
            promise = _Expected(self, (*row_vectors, *made))
            self._queue.append((command, promise))
        for vector in reuse:
            assert isinstance(vector, _FarVector)
            vector.key = -1
        return made, promise

    def scatter_local(self, column: AnyArray) -> RowVector:
        """Bring an array to the rows."""
        with self._lock:
            vector = _FarVector(self, self._number(), None)
        self._put(vector.key, column)
        return vector

    def gather_local(self, vector: RowVector) -> AnyArray:
        """Bring a row vector here, once all that was queued is done."""
        self.flush()
        return self._get(*_keys((vector,)))

    def flush(self) -> None:
        """Send what is queued."""
        with self._lock:
            if not self._queue:
                return
            queue, self._queue = self._queue, []
            dropped, self._dropped = self._dropped, []
            self.trips += 1
            answers = self._send(Batch(dropped, [command for command, _ in queue]))
            error = answers[-1][1]
            for number, (_, promise) in enumerate(queue):
                promise.keep(*(answers[number] if number < len(answers) else (None, error)))

    def _number(self) -> int:
        self._next += 1
        return self._next


class _FarVector(RowVector):
    """A number by which what lies beside the rows is known there."""

    __slots__ = ("key", "rows")

    def __init__(self, rows: QueuedRows, key: int, origin: Origin | None) -> None:
        super().__init__(origin)
        self.rows, self.key = rows, key

    def __del__(self) -> None:
        if self.key >= 0:
            self.rows._dropped.append(self.key)


class _Expected(Promise):
    """A promise whose value comes with the next trip."""

    __slots__ = ("_error", "_held", "_kept", "_rows")

    def __init__(self, rows: QueuedRows, held: tuple[RowVector, ...]) -> None:
        self._rows: QueuedRows | None = rows
        self._held: tuple[RowVector, ...] = held
        self._kept: Any = None
        self._error: Exception | None = None

    def keep(self, value: Any, error: Exception | None) -> None:  # noqa: ANN401
        """The value, or why there is none."""
        self._kept, self._error, self._rows, self._held = value, error, None, ()

    @property
    def value(self) -> Any:  # noqa: ANN401
        """What was promised; sends the queue where it has not left yet."""
        if self._rows is not None:
            self._rows.flush()
        if self._error is not None:
            raise self._error
        return self._kept


def _keys(vectors: Sequence[RowVector]) -> tuple[int, ...]:
    for vector in vectors:
        if vector.key < 0:  # type: ignore[attr-defined]
            raise RuntimeError("a row vector was used after its memory had been given to another one")
    return tuple(vector.key for vector in vectors)  # type: ignore[attr-defined]
