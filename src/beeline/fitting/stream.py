"""Training on rows that come once: `fit_stream`."""

from __future__ import annotations

import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from beeline._numbers import as_number
from beeline._sentences import Argument
from beeline._types import AnyArray, Floats
from beeline._words import percentage
from beeline.data.core.block import Block, concatenate
from beeline.data.options import ReadOptions, parse_size
from beeline.data.reader import Progress as ReadProgress
from beeline.data.recipe.recipe import Recipe
from beeline.data.streaming import LabelledRows, RowStream, open_row_stream
from beeline.exceptions import DataError, ParameterError
from beeline.fitting.online import Online
from beeline.fitting.online_settings import online_settings
from beeline.fitting.tasks import refuse_without_free_intercept
from beeline.model import Model
from beeline.training.concerns import warn_of

__all__ = ["StreamStep", "StreamTraining", "fit_stream"]

_BUFFER = 64 << 20  # bytes of rows that are mixed, where nothing is said about memory
_READING = 256 << 20  # bytes for reading them
_PART = 8  # of the memory: rows that are mixed; as many are gathered meanwhile
_ENTRY_BYTES, _ROW_BYTES = 12, 48  # of rows, and of what is held of each beside it


class StreamStep(NamedTuple):
    """How far training on a stream is.

    Attributes
    ----------
    rows, seconds
        Rows that were learned from, and the time since the start.
    loss, error
        Progressive validation of the last rows: means of the loss and, of a classifier, of wrong classes, over rows as
        they were scored before they were learned from. NaN where there is none.
    mean_loss, mean_error
        The same over all rows.
    """

    rows: int
    seconds: float
    loss: float
    error: float
    mean_loss: float
    mean_error: float

    def __str__(self) -> str:
        wrong = "" if math.isnan(self.error) else f"   wrong {percentage(self.error)}"
        return f"rows {self.rows:10,}   loss {self.loss:.6g}{wrong}   {self.seconds:.1f} s"


StreamCallback = Callable[[StreamStep], bool | None]


def fit_stream(
    source: Any,  # noqa: ANN401
    *,
    start: Model | str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    shuffle: bool = True,
    callback: StreamCallback | None = None,
    **options: Any,  # noqa: ANN401
) -> Model:
    """Train a model on rows that come once, in bounded memory, by stochastic steps.

    Minimises alpha·Ω(w) + the mean of weight_i·l_i. Features and classes may appear at any time. Rows are mixed in
    memory, as many as fit an eighth of it (64 MB where nothing is said); rows that are sorted over longer runs than
    that should be shuffled first.

    Parameters
    ----------
    source
        An iterator of batches, each (X, y) or (X, y, weights), with text or numbers as labels; an object with XGBoost's
        `next` and `reset`; a stream of Arrow record batches; a file, folder or store, or "-" for standard input; or a
        list of these, one after the other.
    start
        A model to go on from, or its file: to the same bits as if the rows had come in one training. One that has no
        state, of another solver, gives its weights.
    time_limit
        Stop after so many seconds, and take what was learned until then; None: at the end of the rows.
    memory
        How much memory data may take, as bytes or a text such as `400M`.
    shuffle
        Whether rows are mixed; otherwise they are learned from in their order.
    callback
        Is called with a `StreamStep` after each buffer of rows; returning True stops the training.
    **options
        What to train: `loss`, `regularizer`, `alpha`, `class_weight`, `intercept`, `multiclass`, `solver`, `seed`, as
        in `Settings`; with `start` it has them. How a file or an Arrow stream is read: the fields of `ReadOptions`.

    Returns
    -------
    Model
        It has a state, by which it goes on, also from its file.

    Examples
    --------
    >>> import beeline
    >>> batches = (([[0.0], [3.0]], ["low", "high"]) for _ in range(20))
    >>> model = beeline.fit_stream(batches, loss="hinge")
    >>> model.predict([[1.0], [2.0]]).tolist()
    ['low', 'high']
    """
    reading = {name: options.pop(name) for name in [f.name for f in fields(ReadOptions)] if name in options}
    if start is not None:
        for name in options:
            raise ParameterError(Argument(name), " is what the model says that training goes on from; leave it out")
        model = start if isinstance(start, Model) else Model.load(start)
        online, recipe = Online.of_model(model), model.recipe
    else:
        online, recipe = Online(online_settings(options)), None
    training = StreamTraining(online, recipe, time_limit=time_limit, memory=memory, shuffle=shuffle, callback=callback)
    for one in source if isinstance(source, list) else [source]:
        training.add(one, ReadOptions(**reading))
    model = training.model()
    warn_of(training.learned.concerns)
    return model


@dataclass(eq=False)
class StreamTraining:
    """A training on one source after the other.

    Parameters
    ----------
    online
        What learns, or what makes it of the first labels, the texts that these stand for, and whether they are
        written with decimals.
    recipe
        How the rows before were made; None: there were none, or they were arrays.
    time_limit, memory, shuffle, callback
        As in `fit_stream`.
    progress
        Is told how far reading is.

    Attributes
    ----------
    status
        Why it ended, as a report says it: `unproven` at the end of the rows.
    streams
        What was read.
    """

    online: Online | Callable[[AnyArray, tuple[str, ...] | None, bool], Online]
    recipe: Recipe | None = None
    time_limit: float | None = None
    memory: str | int | None = None
    shuffle: bool = True
    callback: StreamCallback | None = None
    progress: ReadProgress | None = None
    status: str = "unproven"

    def __post_init__(self) -> None:
        if (limit := self.time_limit) is not None and not 0 < as_number("time_limit", limit) < math.inf:
            raise ParameterError(Argument("time_limit"), f" must be positive and finite, not {limit!r}")
        budget = None if self.memory is None else parse_size(self.memory)
        self._room = _BUFFER if budget is None else max(1, budget // _PART)
        self._reading = _READING if budget is None else max(1, budget // 2)
        self._began = time.perf_counter()
        self.streams: list[RowStream] = []

    def add(self, source: Any, options: ReadOptions) -> None:  # noqa: ANN401
        """Learn from a source, unless a limit or somebody has ended the training; Ctrl-C ends it."""
        if self.status != "unproven":
            return
        try:
            stream = open_row_stream(source, options, self.progress, self.recipe)
            self.streams.append(stream)
            self._learn(stream)
        except KeyboardInterrupt:
            self.status = "interrupted"
        if self.streams and (recipe := self.streams[-1].known_recipe) is not None:
            self.recipe = recipe

    def model(self) -> Model:
        """The model so far."""
        return self.learned.model(recipe=self.recipe, status=self.status, seconds=self._seconds)

    @property
    def learned(self) -> Online:
        """What has learned."""
        if not isinstance(self.online, Online):
            raise DataError("there were no rows to learn from")
        return self.online

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._began

    def _learn(self, stream: RowStream) -> None:
        buffers = _buffers(stream.rows(self._reading), self._room)
        for block, parts in buffers if stream.from_program else self._ahead(buffers):
            recipe = stream.known_recipe
            if not isinstance(self.online, Online):
                self.online = self.online(*parts[0], recipe is not None and recipe.label_decimals)
            refuse_without_free_intercept(recipe, self.online.settings.the_intercept)
            online, labels, row = self.online, [], 0
            for names, texts in parts:
                labels.append(online.number(names, texts, row))
                row += len(names)
            found = online.point(online.learn(block, np.concatenate(labels), shuffle=self.shuffle))
            if self._late():
                return
            if self.callback is not None:
                every = online.point(online.total)
                step = StreamStep(every.rows, self._seconds, found.loss, found.error, every.loss, every.error)
                if self.callback(step):
                    self.status = "callback"
                    return

    def _late(self) -> bool:
        if self.time_limit is not None and self._seconds >= self.time_limit:
            self.status = "time"
        return self.status == "time"

    def _ahead(self, items: Iterator[_Buffer]) -> Iterator[_Buffer]:
        """The items, made on another thread while those before are learned from, until the time is over."""
        ready: queue.Queue[_Buffer | BaseException | None] = queue.Queue(maxsize=1)
        stopped = threading.Event()

        def put(item: _Buffer | BaseException | None) -> None:
            while not stopped.is_set():
                try:
                    ready.put(item, timeout=0.1)
                    return
                except queue.Full:
                    continue

        def run() -> None:
            try:
                for item in items:
                    put(item)
                    if stopped.is_set():
                        return
                put(None)
            except BaseException as error:  # handed to the thread that waits for it
                put(error)

        threading.Thread(target=run, name="beeline-stream", daemon=True).start()
        try:
            while True:
                left = None if self.time_limit is None else max(0.0, self.time_limit - self._seconds)
                try:
                    item = ready.get(timeout=left)
                except queue.Empty:
                    self.status = "time"
                    return
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stopped.set()


class _Buffer(NamedTuple):
    """Rows that are mixed with each other, and their labels, part by part, with the texts that these stand for."""

    block: Block
    labels: list[tuple[AnyArray, tuple[str, ...] | None]]


def _buffers(rows: Iterator[LabelledRows], room: int) -> Iterator[_Buffer]:
    """The rows in buffers of about so many bytes: where they end follows from the rows, however they were read."""
    held: list[LabelledRows] = []
    size = 0.0
    for one in rows:
        if held and not _alike(held[-1].block, one.block):
            yield _joined(held)
            size = 0.0
        start, n, ends = 0, one.block.n_rows, _sizes(one.block)
        while start < n:
            before = ends[start - 1] if start else 0.0
            stop = int(np.searchsorted(ends, before + room - size, side="right"))
            if stop <= start and held:
                yield _joined(held)
                size = 0.0
                continue
            stop = max(stop, start + 1)
            held.append(LabelledRows(one.block.rows(start, stop), one.labels[start:stop], one.texts))
            size += float(ends[stop - 1] - before)
            start = stop
    if held:
        yield _joined(held)


def _sizes(block: Block) -> Floats:
    """The bytes of a row and all before it, as they count."""
    if block.indptr is None:
        entries: Any = np.full(block.n_rows, block.n_features)
    else:
        entries = np.diff(block.indptr)
    return np.cumsum(_ROW_BYTES + _ENTRY_BYTES * entries.astype(np.float64))


def _alike(one: Block, other: Block) -> bool:
    """Whether rows can lie in one block."""
    widths = one.is_sparse or one.n_features == other.n_features
    weighted = (one.weights is None) == (other.weights is None)
    return one.is_sparse == other.is_sparse and widths and weighted and one.values.dtype == other.values.dtype


def _joined(held: list[LabelledRows]) -> _Buffer:
    """All rows that are held, which then are not."""
    labels = [(rows.labels, rows.texts) for rows in held]
    blocks = [replace(rows.block, labels=None, queries=None) for rows in held]
    held.clear()
    return _Buffer(concatenate(blocks), labels)
