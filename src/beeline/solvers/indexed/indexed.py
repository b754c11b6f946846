"""Indexed learning: only rows that matter are read (Yen, Chang, Lin, Lin & Lin 2013)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from beeline.objective import Objective
from beeline.solvers.base import ROUNDING_GAP, Solver
from beeline.solvers.indexed.learning import Learning
from beeline.solvers.needs import Needs
from beeline.solvers.options import SolverOptions, option
from beeline.solvers.result import Result, Status, Step
from beeline.solvers.state import State

__all__ = ["Indexed", "IndexedOptions"]

IndexKind = Literal["auto", "boxes", "chunks", "forest"]


@dataclass(frozen=True, kw_only=True)
class IndexedOptions(SolverOptions):
    """Options of indexed learning."""

    verify: bool = option(
        True, "Whether a pass over all rows may be taken in the end for a certificate, where the index gives none."
    )
    inner: str = option("auto", "The solver of the problems over the active set, by its name.")
    index: IndexKind = option(  # noqa: RUF009 — a field
        "auto", "Which index of a store; `auto`: the one that reads least.", choices=get_args(IndexKind)
    )


class Indexed(Solver):
    """Minimises J with L2 regularization over the rows that matter, which an index finds (IBCD, algorithm 1).

    The loss is zero over an interval of scores, so that most rows do not matter at the optimum; of a loss that is cut
    off (2), outliers do not either. The active set S holds rows that matter. A query (I8) reads chunks of rows that may
    have others, by what the index knows of them: bounds on their scores, or some of their rows. Then the problem over S
    is solved, from where the last one ended, and the next query asks at its solution. That goes on until nothing is
    left to be found.

    It begins with the index's random rows (I5), of which each stands for many. Three things are not as in the paper,
    and each was measured (docs/design.md). *S is solved as a whole*, by a solver that suits it; with single blocks of
    it weights move too little for a query. *Rows stand for others that were not read yet*: chunks are read at random,
    the sooner the more of their rows should matter, and a row counts as many times as its chunk was unlikely to be read
    by now, so that J over S is an estimate of J at any time. *Random rows are guards*: the weights move towards the
    solution over S only as far as J falls, with random rows that do not matter standing for all that were not read.
    Without them, weights jump to where millions of rows come to matter.

    What is proven: with an index of boxes, no row that was passed over matters, so that J and its bound are those of
    all rows. With another one, S is solved to the tolerance and what is missing is estimated; unless `verify` says no,
    one pass over all rows then makes it a certificate, or finds what is missing. J of a loss that is cut off is not
    convex: the end is a local optimum, as with `relaxation`.

    Passes are counted in bytes read. A result's `facts` have the size of S (`active`), what the last query found
    (`new`), how many rows were looked at (`looked`), `bytes_read`, `cache_hits`, and the seconds of queries and of
    solving (12) (`search_seconds`, `solve_seconds`); the trace has the same after every query (I13).

    Memory: the index's knowledge of leaves, S, which is written to disk where it is larger than a third of the memory,
    and chunks that were read last.

    Options are those of `IndexedOptions`.
    """

    name = "indexed"
    needs = Needs(loss=("flat",), omega="l2", nonnegative=False, one_score=True, rows="index", convex=False)
    kind_of_options = IndexedOptions
    options: IndexedOptions

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One query at a time, and the problem over the active set."""
        return Learning(self, objective).steps(start)

    def resumes(self, objective: Objective) -> bool:
        """Always, from one query to the next."""
        return True

    def concern(self, result: Result) -> str | None:
        """Also where cutting off would have given up a class."""
        if result.status is Status.UNPROVEN and result.facts.get("crowded"):
            return f"{self.name} {result.sentence}; raise s or C, or scale the labels, or give a rare class more weight"
        if result.status is Status.UNPROVEN and result.facts.get("convex_gap", 0.0) > max(self.tol, ROUNDING_GAP):
            return f"{self.name} {result.sentence}; scale the features, or name another solver by inner"
        return super().concern(result)
