"""The faces of the data layer: `read` into memory, `convert` to a store on disk.

The way of the rows::

    source ── find_files ── Reader ──┬── read() ───────────────── ArrayDataset
                                     └── blocks() ── StoreWriter ── Store

Both ways begin with `prepare`, which learns the recipe where there is anything to learn.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._sentences import Argument
from beeline.data.batches import BatchReader, gives_batches, is_arrow_stream, spooled
from beeline.data.core.arrays import from_arrays, is_array
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset, Dataset
from beeline.data.files.finding import SourceFile, common_format, find_files
from beeline.data.files.scratch import folder_for_a_while
from beeline.data.options import ReadOptions, parse_size
from beeline.data.reader import Progress, Reader, RestartReading, warn_of_passed_over
from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import ScalingLearner
from beeline.data.tables.frames import from_frame, is_frame
from beeline.exceptions import DataError, ParameterError, StoreError

if TYPE_CHECKING:
    from beeline.data.store import Store, StoreWriter

__all__ = ["by_recipe", "convert", "is_store", "open_files", "open_reader", "open_store", "read"]

Source = Any
"""A path, a URI, several of them, a folder, an object in memory (arrays, SciPy matrices, frames, Arrow tables), or an
iterator of batches."""


def read(
    source: Source,
    *,
    memory: str | int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,  # noqa: ANN401
) -> Dataset:
    """Read a source into memory, or as much of it as there is memory for.

    Parameters
    ----------
    source
        A file, several files, a folder or a URI that pyarrow knows (s3, gs, hdfs), holding LIBSVM text, CSV,
        Parquet, Arrow or npz, plain or compressed; a store; or arrays, SciPy matrices, data frames and Arrow tables.
    memory
        How much memory data may take, as bytes or a text such as `400M`. Rows of files that would take more than half
        of it stay on disk, in a store that is there for as long as the data set. None: all rows are held in memory.
    cache
        A folder that keeps the rows of files as a store. It is read instead of them as long as they, and the options to
        read them, are the same.
    progress
        Is told how far the reading is.
    **options
        The fields of `ReadOptions`.

    Returns
    -------
    Dataset
        The rows in memory; a `Store` where they do not fit. Arrays are not copied when their layout already fits.
    """
    if memory is not None or cache is not None:
        from beeline.data.bounded import read_bounded

        return read_bounded(source, memory, cache, progress, options)
    if isinstance(source, ArrayDataset) and not options:
        return source
    chosen = ReadOptions.named(options)
    if is_frame(source):
        return from_frame(source, chosen, progress)
    reader = _as_reader(source, chosen, progress)
    data = reader.read()
    warn_of_passed_over(reader)
    return data


def convert(  # noqa: PLR0913 — what a user may give
    source: Source,
    path: str | os.PathLike[str],
    *,
    memory: str | int = "512M",
    shuffle: bool = False,
    seed: int | None = None,
    merge: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,  # noqa: ANN401
) -> Store:
    """Convert a source of any size to a store on disk, in bounded memory.

    Parameters
    ----------
    source
        As for `read`; also a data set, to write it down, or a reader, to ask it afterwards what it passed over; or an
        iterator of batches, each an X, (X, y) or (X, y, weights), or an object with XGBoost's `next` and `reset`. It is
        walked once, and no more than a batch is held. A stream of Arrow record batches goes through a temporary file.
    path
        The store's folder. It appears under this name only when it is complete.
    memory
        How much memory the conversion may use for data, as bytes or a text such as `512M`.
    shuffle, seed
        Put the rows (or whole queries) in a random order, the same for the same seed (0 when not given).
    merge
        Keep one row of all that have the same features and label, with their weights added. It takes 64 bytes a row of
        the memory and, but for a data set, the room of the rows on the disk once more for a while.
    overwrite
        Replace a store that is already there.
    progress
        Is told how far the conversion is.
    **options
        The fields of `ReadOptions`.

    Returns
    -------
    Store
        The finished store, opened.
    """
    from beeline.data.store import StoreWriter

    for name, value in (("merge", merge), ("overwrite", overwrite)):
        if not isinstance(value, bool | np.bool_):
            raise ParameterError(Argument(name), f" must be True or False, not {value!r}")
    if seed is not None and not shuffle:
        raise ParameterError(
            Argument("seed"), " has no meaning without ", Argument("shuffle"), "; leave it out, or shuffle the rows"
        )
    if is_arrow_stream(source):
        with spooled(source) as file:
            return convert(
                file,
                path,
                memory=memory,
                shuffle=shuffle,
                seed=seed,
                merge=merge,
                overwrite=overwrite,
                progress=progress,
                **options,
            )
    budget = parse_size(memory)
    chosen = ReadOptions.named(options)
    walked = reader = _as_reader(source, chosen, progress)
    with ExitStack() as stack:
        if merge:
            from beeline.data.merging import MergingReader

            plain = isinstance(source, Dataset) and chosen == ReadOptions()
            rows = source if plain else stack.enter_context(_written_down(reader, Path(path), budget // 2))
            reader = MergingReader(rows, reader.progress)
        writer = StoreWriter(path, overwrite=overwrite, memory=budget // 2, shuffle=(seed or 0) if shuffle else None)
        with writer:
            n_features = _write_all(reader, writer, budget // 2)
            store = writer.finish(reader.recipe, n_features)
    if not isinstance(source, Reader):  # whoever made it asks it
        warn_of_passed_over(walked)
    return store


@contextmanager
def _written_down(reader: Reader, path: Path, memory: int) -> Iterator[Dataset]:
    """A store of the rows beside a path, for a while: what is walked twice has to lie somewhere."""
    from beeline.data.store import StoreWriter

    folder = path.parent / f".{path.name}.rows-{os.getpid()}-{secrets.token_hex(4)}"
    with folder_for_a_while(folder), StoreWriter(folder, overwrite=False, memory=memory, shuffle=None) as writer:
        n_features = _write_all(reader, writer, memory)
        yield writer.finish(reader.recipe, n_features)


def open_reader(source: Source, options: ReadOptions, progress: Progress | None = None) -> Reader:
    """The reader for files, all of one format, or for a store."""
    if isinstance(source, str | os.PathLike) and is_store(source):
        return DatasetReader(open_store(source), options, progress)
    files = find_files(source)
    _check_no_headless_store(files)
    return open_files(files, options, progress)


def open_files(files: list[SourceFile], options: ReadOptions, progress: Progress | None = None) -> Reader:
    """The reader for files that were found, all of one format."""
    options = replace(options, format=common_format(files) if options.format == "auto" else options.format)
    if options.format == "libsvm":
        from beeline.data.text.libsvm import LibsvmReader

        return LibsvmReader(files, options, progress)
    if options.format == "npz":
        from beeline.data.npz.reader import NpzReader

        return NpzReader(files, options, progress)
    from beeline.data.tables.reader import TableReader

    return TableReader(files, options, progress)


def by_recipe(options: ReadOptions, recipe: Recipe | None, kind: str) -> ReadOptions:
    """The options for more rows of a kind of file, by a recipe learned before.

    Numbered features that are not scaled may go beyond it: of such a recipe only the number of the first one counts.
    """
    if recipe is None:
        return options
    if kind == "libsvm" and recipe.columns is None and recipe.scaling.kind == "none":
        if options.scale != "none":
            raise ParameterError(
                Argument("scale", options.scale), " has no meaning here: the model was trained without scaling"
            )
        if options.hash not in (None, recipe.hash_bits):
            raise ParameterError(
                Argument("hash", options.hash), f" contradicts the recipe, which has {recipe.hash_bits}"
            )
        if recipe.hash_bits is not None:
            return replace(options, hash=recipe.hash_bits)
        if options.zero_based is None:
            return replace(options, zero_based=recipe.index_base == 0)
        return options
    return replace(options, recipe=recipe)


def _check_no_headless_store(files: list[SourceFile]) -> None:
    """Without its manifest a store would read as a plain table, labels among the features."""
    for file in files:
        folder = Path(file.path).parent
        if re.fullmatch(r"part-\d{5}\.arrow", Path(file.path).name) and not is_store(folder):
            raise StoreError(f"{folder} looks like a store that has lost its manifest.json; convert the source again")


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether the path is a folder with a manifest."""
    return (Path(path) / "manifest.json").is_file()


def open_store(path: str | os.PathLike[str], memory: str | int | None = None) -> Store:
    """Open a store that `convert` has written.

    Parameters
    ----------
    path
        The folder.
    memory
        The default budget of `Store.blocks`, in bytes or as a text such as `64M`.
    """
    from beeline.data.store import open_store as open_folder

    return open_folder(path, memory)


def _as_reader(source: Source, options: ReadOptions, progress: Progress | None) -> Reader:
    if isinstance(source, Reader):
        options.refuse((f.name for f in fields(options)), "a reader, which was made with its own")
        source.progress = progress or source.progress
        return source
    if is_frame(source):
        return DatasetReader(from_frame(source, options), ReadOptions(), progress)
    if is_array(source):
        return DatasetReader(from_arrays(source, allow_nonfinite=options.allow_nonfinite), options, progress)
    if isinstance(source, Dataset):
        return DatasetReader(source, options, progress)
    if gives_batches(source):
        return BatchReader(source, options, progress)
    return open_reader(source, options, progress)


def _write_all(reader: Reader, writer: StoreWriter, memory: int) -> int:
    """Write every block; returns the number of features."""
    reader.prepare(memory)
    while True:
        n_features = None
        try:
            for block in reader.blocks(memory):
                writer.write(block)
                n_features = block.n_features
        except RestartReading:
            writer.restart()
            continue
        if n_features is None:
            raise DataError("the source has no rows")
        return n_features


class DatasetReader(Reader):
    """Walks a data set that already exists, and scales it if asked."""

    def __init__(self, data: Dataset, options: ReadOptions, progress: Progress | None = None) -> None:
        super().__init__(progress)
        meaningful = ("scale", "allow_nonfinite")
        options.refuse((f.name for f in fields(options) if f.name not in meaningful), "a data set or array")
        if options.scale != "none" and data.recipe is not None and data.recipe.scaling.kind != "none":
            raise ParameterError(
                f"the data are already scaled ({data.recipe.scaling.kind}); scale the source instead", parameter="scale"
            )
        self._data, self._kind = data, options.scale
        self._recipe = data.recipe or Recipe(n_features=data.n_features)

    def prepare(self, memory: int) -> None:
        """Learn the scaling, in one walk."""
        if self._kind == "none":
            return
        learner = ScalingLearner(self._kind)
        if learner.learns:
            self.progress.start("learning", None)
            for block in self._data.blocks(memory):
                learner.add(block)
                self.progress.advance(block.nbytes, block.n_rows)
        self._recipe = replace(self._recipe, scaling=learner.finish(self._data.n_features, self._recipe.indicators))

    def blocks(self, memory: int) -> Iterator[Block]:
        """All rows in order, scaled."""
        self.progress.start("reading", None)
        for block in self._data.blocks(memory):
            yield from [block] if self._kind == "none" else self._recipe.scaling.pieces(block, memory)
            self.progress.advance(block.nbytes, block.n_rows)

    @property
    def recipe(self) -> Recipe:
        """The data set's own recipe, with the scaling added."""
        return self._recipe
