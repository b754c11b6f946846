"""From what `train` and `select` were told to rows, settings and a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beeline.cli.output.concerns import Concerns
from beeline.cli.output.errors import print_note
from beeline.cli.output.progress import progress_bar

if TYPE_CHECKING:
    from beeline._types import AnyArray
    from beeline.cli.options.training import TrainingOptions
    from beeline.data.core.dataset import Dataset
    from beeline.data.store import Store
    from beeline.fitting import Fitted, Settings
    from beeline.selection import Selection

__all__ = ["Prepared", "fitted", "prepare"]

_ROUGH = 1e-6  # the tolerance down to which the digits that float32 keeps are enough
_WORTH_A_WORD = 64 << 20  # bytes of rows on disk


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows, and how to learn from them.

    Attributes
    ----------
    data, settings
        The rows, and the settings with what depends on the rows.
    why
        Why the loss was chosen; None where it was given.
    concerns
        What is to be warned of in the end.
    """

    data: Dataset
    settings: Settings
    why: str | None
    concerns: Concerns = field(default_factory=Concerns)


@contextmanager
def prepare(
    sources: list[str], reading: dict[str, Any], options: TrainingOptions, settings: Settings, near: Path
) -> Iterator[Prepared]:
    """Read the rows, and complete the settings by what is known then.

    Parameters
    ----------
    sources, reading
        A store, or a source and the options to read it by.
    options, settings
        What the user said, and what follows from it before the data are known.
    near
        Rows that do not fit in memory are kept beside this file until the end.
    """
    from beeline.cli.input.choosing import choose_loss, parse_class_weights
    from beeline.data.bounded import Room, bounded_rows

    narrow, why, resources = settings.tol >= _ROUGH, None, settings.resources
    cache = None if options.cache is None else Path(options.cache)
    room = Room(resources.rows_in_memory, resources.budget, near, cache, tell=print_note)
    with ExitStack() as stack:
        data: Dataset | None = _indexed_store(sources, reading, options)
        if data is None:
            with progress_bar() as progress:
                data = stack.enter_context(bounded_rows(sources, reading, room, progress, narrow=narrow))
        _tell_pass(data)
        if options.named_loss is None:
            choice = choose_loss(data)
            choice.announce()
            settings, why = replace(settings, loss=choice.loss), choice.why
        texts = data.recipe is not None and data.recipe.label_categories is not None
        weights = parse_class_weights(options.class_weight or [], texts=texts)
        settings = replace(settings, class_weight=weights)
        yield Prepared(data, settings, why)


def _indexed_store(sources: list[str], reading: dict[str, Any], options: TrainingOptions) -> Store | None:
    """The store, where it has an index that may be of use; then it is not brought into memory."""
    from beeline.data.convert import is_store, open_store

    if len(sources) != 1 or not is_store(sources[0]) or options.cache is not None:
        return None
    from beeline.data.options import ReadOptions
    from beeline.index import indexes_of
    from beeline.solvers.needs import may_use_index
    from beeline.training.indexing import SMALL

    if options.solver not in ("auto", "indexed") or not may_use_index(options.loss_name):
        return None
    ReadOptions(**reading).refuse(reading, "a store, which is read as it is")
    store = open_store(sources[0])
    if options.solver == "indexed":
        return store  # also without an index, which is said then
    return store if store.nbytes >= SMALL and indexes_of(store) else None


def _tell_pass(data: Dataset) -> None:
    """Say how long a pass over rows on disk will take, about."""
    from beeline.data.core.dataset import ArrayDataset

    if isinstance(data, ArrayDataset):
        return
    from beeline.cli.output.drawing import byte_size
    from beeline.data.store import Store
    from beeline.data.store.reading import read_speed

    if isinstance(data, Store) and data.nbytes >= _WORTH_A_WORD:
        speed = read_speed(data)
        seconds = data.nbytes / speed
        print_note(
            f"{byte_size(data.nbytes)} at {byte_size(int(speed))}/s: {seconds:.{0 if seconds >= 10 else 1}f} s a pass"
        )


def fitted(prepared: Prepared, selection: Selection | None = None) -> Fitted:
    """The model and how it was trained, with the C that a search found where there was one."""
    from beeline.cli.output.training_line import training_line
    from beeline.fitting import fit

    # A search has read the labels before; without one they are needed only this once.
    data = prepared.data
    labels = _labels_to_use_up(data) if selection is None else None
    with prepared.concerns.gathered(), training_line(prepared.settings.tol) as callback:
        # Whether somebody watches or not, every iteration is seen: the same bits, and a trace for pages.
        seen = callback or (lambda _: None)
        tell = print_note if selection is None else None  # a search has said it
        trained = fit(data, prepared.settings, labels, callback=seen, start=selection, tell=tell)
    assert trained.model.report is not None
    prepared.concerns.add(trained.model.report.concerns)
    return trained


def _labels_to_use_up(data: Dataset) -> AnyArray | None:
    """The labels of rows in memory, which are then nowhere else; None: those of the data."""
    from beeline.data.core.dataset import ArrayDataset
    from beeline.data.core.labels import LabelSets

    texts = data.recipe is not None and data.recipe.label_categories is not None
    if texts or not isinstance(data, ArrayDataset) or data.labels is None or isinstance(data.labels, LabelSets):
        return None
    return data.give_labels()  # type: ignore[return-value]
