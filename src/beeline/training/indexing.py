"""Whether a task is learned through an index of its store, and which: where that reads least."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from beeline._sentences import Argument
from beeline._words import percentage
from beeline.data.core.dataset import ArrayDataset
from beeline.exceptions import ParameterError, StoreError
from beeline.solvers.registry import SolverLike, solver_name, the_solver
from beeline.training.task import Task

if TYPE_CHECKING:
    from beeline.data.store import Store
    from beeline.solvers.indexed.indexed import Indexed

__all__ = ["SMALL", "with_index", "without_index"]

_PAYS = 0.5  # of all bytes: an index that reads more is no faster than a pass
SMALL = 64 << 20  # bytes of rows, which are trained on before an index is looked at


def with_index(task: Task, solver: SolverLike = "auto", seed: int = 0) -> tuple[Task, str | None]:
    """(the task over the rows of the index that reads least, or as it is; why, in a sentence, where there is an index).

    The solver may say which index, or that there is to be one; `auto` takes one only where it pays.
    """
    if isinstance(task.data, ArrayDataset) or task.index is not None or solver_name(solver) not in ("auto", "indexed"):
        return task, None
    from beeline.data.store import Store

    return _through_index(task, task.data, solver, seed) if isinstance(task.data, Store) else (task, None)


def _through_index(task: Task, store: Store, solver: SolverLike, seed: int) -> tuple[Task, str | None]:
    """As `with_index`, of a store."""
    from beeline.index import indexes_of, open_index
    from beeline.solvers.indexed.indexed import Indexed

    named = meant if isinstance(meant := the_solver(solver), Indexed) else None
    kinds = indexes_of(store)
    if named is not None and named.options.index != "auto":
        kinds = [named.options.index]
    if named is None and (store.nbytes < SMALL or not kinds):
        return task, None
    if not kinds:
        raise StoreError(f"{store.path} has no index, which the solver 'indexed' needs; build one by `beeline index`")
    if named is not None and len(kinds) == 1:
        return replace(task, index=open_index(store, kinds[0])), None
    return _best(task, store, kinds, named, seed)


def without_index(task: Task, solver: SolverLike = "auto") -> Task:
    """The task over the rows as they lie, for folds that each scale the features by their own rows."""
    if task.index is None:
        return task
    if solver_name(solver) == "indexed":
        raise ParameterError(
            "each fold scales the features by its own rows, and an index knows them as all rows have scaled them; "
            "convert the source without ",
            Argument("scale"),
            ", or take another solver",
            parameter="solver",
        )
    return task.with_data(task.data)


def _best(task: Task, store: Store, kinds: list[str], named: Indexed | None, seed: int) -> tuple[Task, str | None]:
    """The task over the index that reads least, if that pays or the solver asks for it."""
    from beeline.index import open_index
    from beeline.solvers.indexed.indexed import Indexed
    from beeline.solvers.indexed.probing import probe

    found = []
    for kind in kinds:
        candidate = replace(task, index=open_index(store, kind))
        objective = candidate.objectives()[0]
        if (named or Indexed()).takes(objective):
            found.append((probe(objective, seed).share, kind, candidate))
    if not found:
        if named is not None:
            raise ParameterError(f"the solver 'indexed' {named.refusal(objective)}", parameter="solver")
        return task, None
    share, kind, candidate = min(found, key=lambda one: one[0])
    about = f"by the index of {kind} some {percentage(share, 2)} of the rows have to be read"
    if named is None and share > _PAYS:
        return task, f"{about}, so that all rows are read instead"
    return candidate, f"{about}, which is what is done"
