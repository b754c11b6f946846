"""Writing a store, in bounded memory, so that it is there whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from beeline import __version__
from beeline._sentences import Argument
from beeline._words import count
from beeline.data.core.block import Block
from beeline.data.store.folder import PartialFolder, sync_file, writing
from beeline.data.store.form import Form
from beeline.data.store.manifest import MANIFEST, Manifest
from beeline.data.store.mapping import MappedPart
from beeline.data.store.parts import PartWriter
from beeline.data.store.shuffle import Shuffler
from beeline.data.store.store import Store
from beeline.exceptions import DataError, ParameterError, StoreError

if TYPE_CHECKING:
    import os

    from beeline.data.recipe.recipe import Recipe

__all__ = ["StoreWriter"]


class StoreWriter:
    """Writes blocks of rows to a new store.

    A context manager: leaving it without `finish` removes everything that was written. Until `finish` has brought
    every byte to the disk, nothing at `path` changes.

    Parameters
    ----------
    path
        The folder to make.
    overwrite
        Whether a store that is there already may be replaced.
    memory
        Bytes that may be held beyond the block at hand.
    shuffle
        A seed: the rows are stored in an order drawn at random, whole queries at a time where there are query ids.
        None: as they come.
    chunk_bytes, part_bytes
        The size of a chunk, and the size at which a new file is begun.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        memory: int = 512 << 20,
        shuffle: int | None = None,
        chunk_bytes: int = 512 << 10,
        part_bytes: int = 512 << 20,
    ) -> None:
        for name, value in (("memory", memory), ("chunk_bytes", chunk_bytes), ("part_bytes", part_bytes)):
            if value < 1:
                raise ParameterError(Argument(name), f" must be at least 1, not {value}")
        if shuffle is not None and shuffle < 0:
            raise ParameterError(f"the seed of a shuffle must not be negative, and {shuffle} is", parameter="seed")
        self._memory, self._seed = memory, shuffle
        self._sizes = (chunk_bytes, part_bytes)
        self._place = PartialFolder(Path(path), overwrite=overwrite)
        self._folder: Path | None = None
        self._begin()

    def _begin(self) -> None:
        self._form: Form | None = None
        self._n_features = self._n_rows = 0
        self._drafts: list[PartWriter] = []
        self._shuffler: Shuffler | None = None

    def __enter__(self) -> StoreWriter:
        self._folder = self._place.create()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def write(self, block: Block) -> None:
        """Add the rows of a block; nothing of it is kept when this returns.

        Blocks may differ in the type of their indices and values and in the number of features; the store takes the
        widest.
        """
        folder = self._working_folder()
        if not block.n_rows:
            return
        form = Form.of(block)
        self._form = form if self._form is None else self._form.joined(form)
        self._n_features = max(self._n_features, block.n_features)
        self._n_rows += block.n_rows
        with writing(self._place.target):
            if self._seed is not None:
                if self._shuffler is None:
                    self._shuffler = Shuffler(folder / "shuffle", self._seed, self._memory)
                self._shuffler.write(block)
                return
            self._draft(folder, self._form).write(block)

    def restart(self) -> None:
        """Throw away what was written so far."""
        self._working_folder()
        self._abandon()
        with writing(self._place.target):
            for draft in self._drafts:
                shutil.rmtree(draft.folder)
        self._begin()

    def finish(self, recipe: Recipe | None = None, n_features: int | None = None) -> Store:
        """Bring everything to the disk, put the store in place and open it.

        Parameters
        ----------
        recipe
            How raw rows became these rows.
        n_features
            The number of features; None takes the largest a block had.
        """
        folder = self._working_folder()
        if self._form is None:
            raise DataError(f"there are no rows to write to {self._place.target}")
        n_features = self._n_features if n_features is None else n_features
        if n_features < self._n_features:
            raise ParameterError(
                f"rows of {count(self._n_features, 'feature')} do not fit into a store of {n_features}",
                parameter="n_features",
            )
        if self._form.width is not None:
            self._form = replace(self._form, width=n_features)
        with writing(self._place.target):
            files = self._finish_parts(folder, self._form)
            manifest = Manifest(
                n_rows=self._n_rows,
                n_features=n_features,
                nnz=sum(int(part.chunks.nnz.sum()) for part in files.parts),
                form=self._form,
                parts=tuple(files.parts),
                row_order={"kind": "source"} if self._seed is None else {"kind": "shuffled", "seed": self._seed},
                statistics=files.statistics.to_json(),
                recipe=None if recipe is None else recipe.to_json(),
                made_by=f"beeline {__version__}",
            )
            sync_file(folder / MANIFEST, manifest.to_bytes())
        self._folder = None
        return Store(self._place.commit(), manifest)

    def discard(self) -> None:
        """Remove everything that was written and not finished."""
        self._abandon()
        self._place.discard()
        self._folder = None

    def _working_folder(self) -> Path:
        if self._folder is None:
            raise StoreError(f"the writer of {self._place.target} is not open; use it in a with statement, once")
        return self._folder

    def _abandon(self) -> None:
        for draft in self._drafts:
            draft.abandon()
        if self._shuffler is not None:
            self._shuffler.discard()

    def _draft(self, folder: Path, form: Form) -> PartWriter:
        """The files for rows of this form; those of rows that came before it widened stay as they are till the end."""
        if not self._drafts or self._drafts[-1].form != form:
            if self._drafts:
                self._drafts[-1].close()
            place = folder / f"draft-{len(self._drafts)}"
            place.mkdir()
            self._drafts.append(PartWriter(place, form, *self._sizes))
        return self._drafts[-1]

    def _finish_parts(self, folder: Path, form: Form) -> PartWriter:
        """All rows in files of one form."""
        if self._shuffler is None and len(self._drafts) == 1 and self._drafts[0].form == form:
            (draft,) = self._drafts
            for part in draft.close():
                (draft.folder / part.name).rename(folder / part.name)
            draft.folder.rmdir()
            return draft
        final = PartWriter(folder, form, *self._sizes)
        drafts, self._drafts = self._drafts, [*self._drafts, final]
        for block in self._drafted(drafts) if self._shuffler is None else self._shuffler.sorted_blocks(form):
            final.write(block)
        final.close()
        return final

    def _drafted(self, drafts: list[PartWriter]) -> Iterator[Block]:
        for draft in drafts:
            for info in draft.close():
                part = MappedPart(draft.folder / info.name, info, draft.form)
                for chunk in range(len(info.chunks.rows)):
                    yield part.block(chunk, self._n_features)
                    part.drop(chunk)
                part.path.unlink()
            draft.folder.rmdir()
