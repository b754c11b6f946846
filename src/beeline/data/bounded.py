"""Sources of any size as data sets within a memory budget: in memory where they fit, otherwise through a store."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beeline import __version__
from beeline._sentences import Argument, Sentence
from beeline.data.convert import convert, is_store, open_reader, open_store
from beeline.data.core.block import concatenate
from beeline.data.core.dataset import ArrayDataset, Dataset
from beeline.data.core.memory import available_memory
from beeline.data.files.finding import SourceFile, as_paths, find_files, names_files
from beeline.data.files.scratch import folder_for_a_while, scratch_folder
from beeline.data.options import ReadOptions, parse_size, size_in_words
from beeline.data.reader import Reader, warn_of_passed_over
from beeline.data.text.prefetch import drop_prefetch
from beeline.exceptions import ParameterError, StoreError

if TYPE_CHECKING:
    from beeline.data.reader import Progress
    from beeline.data.store import Store

__all__ = ["Room", "bounded_rows", "read_bounded"]

# How many bytes of rows a byte of a source becomes, at most: short tokens of text, and what compresses well.
_PLAIN, _PACKED = 4, 16
_PIECE = 64 << 20
_MOST_TO_CONVERT = 512 << 20  # of memory; more makes no conversion faster
_LEAST_TO_CONVERT = 1 << 16  # bytes, below which a store could hold no row
_PART = 8  # of the budget, that rows from a store take while they are copied


@dataclass(frozen=True)
class Room:
    """Where rows may be.

    Attributes
    ----------
    rows
        Bytes that rows may take to be held in memory.
    budget
        Bytes for all that is held, where they were said.
    near
        Rows that do not fit lie in a folder beside this file, until the end.
    cache
        A folder where they are kept instead, for the next time; rows that fit too.
    tell
        Is told in a sentence where rows are kept, if not in memory.
    """

    rows: int
    budget: int | None = None
    near: Path | None = None
    cache: Path | None = None
    tell: Callable[[str], None] | None = None

    def say(self, sentence: str) -> None:
        """Tell it, where somebody wants to know."""
        if self.tell is not None:
            self.tell(sentence)

    def say_passed_over(self, reader: Reader) -> None:
        """Tell what a reader has passed over; where nobody is told sentences, warn of it."""
        if self.tell is None:
            warn_of_passed_over(reader)
        for sentence in reader.passed_over():
            self.say(sentence)


@contextmanager
def bounded_rows(
    paths: list[str], reading: dict[str, Any], room: Room, progress: Progress | None = None, *, narrow: bool = False
) -> Iterator[Dataset]:
    """A data set with all rows of a store, or of a source: in memory if they fit, otherwise on disk in a store.

    Parameters
    ----------
    paths, reading
        A store, or a source and the options to read it by.
    room
        Where rows may be.
    narrow
        Whether values may be float32 where that keeps every digit that is written.
    """
    options = ReadOptions.named(reading)
    if len(paths) == 1 and is_store(paths[0]):
        options.refuse(reading, "a store, which is read as it is")
        if room.cache is not None:
            raise ParameterError(Argument("cache"), " has no meaning for a store, which is read as it is; leave it out")
        yield _loaded(open_store(paths[0]), room)
        return
    files = find_files(paths)
    if room.cache is None and _expected_bytes(files) <= room.rows:
        reader = open_reader(paths, options, progress)
        data = reader.read(narrow=narrow)
        drop_prefetch()
        room.say_passed_over(reader)
        yield data
        return
    drop_prefetch()
    with ExitStack() as stack:
        folder = stack.enter_context(_store_folder(files, options, room))
        store = _made_before(folder)
        if store is None:
            memory = max(_LEAST_TO_CONVERT, min(2 * room.rows, room.budget or _MOST_TO_CONVERT, _MOST_TO_CONVERT))
            reader = open_reader(paths, options, progress)
            store = convert(reader, folder, memory=memory, overwrite=True)
            room.say_passed_over(reader)
        yield _loaded(store, room)


def read_bounded(
    source: Any,  # noqa: ANN401
    memory: str | int | None,
    cache: str | os.PathLike[str] | None,
    progress: Progress | None,
    reading: dict[str, Any],
) -> Dataset:
    """As `bounded_rows`, for as long as somebody has the data set."""
    if not names_files(source):
        name = "cache" if memory is None else "memory"
        kind = type(source).__name__
        raise ParameterError(Argument(name), f" has no meaning for a source that is no file, but {kind}; leave it out")
    budget = available_memory() if memory is None else parse_size(memory)
    room = Room(budget // 2, None if memory is None else budget, cache=None if cache is None else Path(cache))
    stack = ExitStack()
    data = stack.enter_context(bounded_rows(as_paths(source), reading, room, progress))
    if isinstance(data, ArrayDataset) or memory is None:  # in memory, or in a cache, which stays
        stack.close()
        return data
    bounded = data.within(max(1, budget // _PART))
    weakref.finalize(bounded, stack.close)
    return bounded


@contextmanager
def _store_folder(files: list[SourceFile], options: ReadOptions, room: Room) -> Iterator[Path]:
    """Where the store of a source is, or is to be."""
    name, more = Path(files[0].name).name, f" and {len(files) - 1} more" if len(files) > 1 else ""
    if room.cache is not None:
        path = _cached(files, options, room.cache)
        state = "kept, for the next time, in" if _made_before(path) is None else "read from"
        room.say(f"the rows of {name}{more} are {state} {path}")
        yield path
        return
    near = room.near if room.near is not None else scratch_folder() / "beeline"
    folder = near.parent / f".{near.name}.rows-{os.getpid()}-{secrets.token_hex(4)}"
    with folder_for_a_while(folder):
        try:
            folder.mkdir()
        except OSError as error:
            sentence = f"{folder.parent} cannot be written: {error.strerror}; name another folder by "
            raise StoreError(Sentence(sentence, Argument("cache"))) from error
        room.say(
            f"{name}{more} may take more than {size_in_words(room.rows)}, which is what rows may take of memory; they "
            f"are kept in a store in {folder.parent.resolve()} until the end"
        )
        yield folder / "rows"


def _cached(files: list[SourceFile], options: ReadOptions, cache: Path) -> Path:
    """The store of these files, as they are now and read in this way, in a cache."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        recipe = None if options.recipe is None else options.recipe.to_json()
        what = [[_state(file) for file in files], asdict(replace(options, recipe=None)), recipe, __version__]
    except OSError as error:
        raise StoreError(f"{cache} cannot be used as a cache: {error.strerror}; name another folder") from error
    digest = hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:16]
    return cache / f"{Path(files[0].path).name}-{digest}.store"


def _made_before(path: Path) -> Store | None:
    """The store, unless there is none or it is damaged."""
    try:
        return open_store(path) if is_store(path) else None
    except StoreError:
        return None


def _state(file: SourceFile) -> list[Any]:
    """What tells a file from others, and from itself before it was changed."""
    if file.size is None:
        raise ParameterError(
            Argument("cache"), f" has no meaning for {file.name}, which can be read only once; leave it out"
        )
    if file.filesystem is None:
        status = os.stat(file.path)  # noqa: PTH116
        return [os.path.realpath(file.path), status.st_size, status.st_mtime_ns]
    changed = file.filesystem.get_file_info(file.path).mtime_ns
    if changed is None:
        why = f" needs to know when {file.name} was changed, which its file system does not tell; leave it out"
        raise ParameterError(Argument("cache"), why)
    return [file.name, file.size, changed]


def _loaded(store: Store, room: Room) -> Dataset:
    """The store's rows in memory where they fit: every pass over them is faster there."""
    if store.nbytes > room.rows:
        return store
    if room.budget is not None:
        block = store.within(max(1, room.budget // _PART)).rows(0, store.n_rows)
        return ArrayDataset(block, store.recipe)
    return ArrayDataset(concatenate(list(store.blocks(_PIECE))), store.recipe)


def _expected_bytes(files: list[SourceFile]) -> float:
    total = 0.0
    for file in files:
        packed = file.compression != "none" or file.name.endswith((".parquet", ".npz"))
        total += float("inf") if file.size is None else file.size * (_PACKED if packed else _PLAIN)
    return total
