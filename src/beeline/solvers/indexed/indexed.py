"""Indexed learning: only rows that matter are read (Yen, Chang, Lin, Lin & Lin 2013)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from beeline.exceptions import ParameterError
from beeline.objective import Objective
from beeline.solvers.base import ROUNDING_GAP, Solver
from beeline.solvers.indexed.ibcd import BlockLearning
from beeline.solvers.indexed.learning import Learning
from beeline.solvers.needs import Needs
from beeline.solvers.options import SolverOptions, option
from beeline.solvers.result import Result, Status, Step
from beeline.solvers.state import State

__all__ = ["Indexed", "IndexedOptions"]

IndexKind = Literal["auto", "boxes", "chunks", "forest"]
Variant = Literal["whole", "ibcd"]
BlockMethod = Literal["dual", "newton"]
Stop = Literal["count", "sample"]
Begin = Literal["sample", "convex"]
_OF_WHOLE = ("inner",)
_OF_IBCD = ("block", "stop", "query_rows", "block_rows", "sweeps", "threshold", "epsilon", "begin")


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
    variant: Variant = option(  # noqa: RUF009 — a field
        "whole",
        "What is solved between two queries: `whole`, the active set; `ibcd`, a block of it, as in the paper.",
        choices=get_args(Variant),
    )
    block: BlockMethod = option(  # noqa: RUF009 — a field
        "dual",
        "How `ibcd` solves a block: by `dual` coordinate descent, or for squared losses by `newton` in the primal.",
        choices=get_args(BlockMethod),
    )
    stop: Stop = option(  # noqa: RUF009 — a field
        "count",
        "When `ibcd` stops: a query that went through the index finds few rows (`count`), or few random rows are "
        "missing (`sample`), which reads less.",
        choices=get_args(Stop),
    )
    query_rows: int = option(1000, "n: how many rows a query of `ibcd` looks for.", least=1)
    block_rows: int | None = option(
        None,
        "M: how many rows of the active set a block of `ibcd` has at most, beside new ones; None: what fits an eighth "
        "of the memory.",
        least=1,
    )
    sweeps: int = option(10, "How often `ibcd` descends upon a block, by `dual`.", least=1)
    threshold: float = option(
        0.1, "T: `ibcd` passes over leaves of rows that lie farther from mattering, by their scores.", least_number=0.0
    )
    epsilon: float | None = option(
        None,
        "ε: `ibcd` stops when fewer rows are missing than this part of those that are classified wrongly; None: the "
        "tolerance.",
        least_number=0.0,
    )
    begin: Begin = option(  # noqa: RUF009 — a field
        "sample",
        "From where `ibcd` begins to cut off: the optimum of the convex loss on a `sample`, or on all rows (`convex`).",
        choices=get_args(Begin),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        other, own = ("ibcd", _OF_IBCD) if self.variant == "whole" else ("whole", _OF_WHOLE)
        for name in own:
            if name in self.given:
                raise ParameterError(f"the solver's {name} is for variant={other!r}; leave it out", parameter="solver")

    def refine(self, needs: Needs) -> Needs:
        """Newton's method needs a curvature."""
        return replace(needs, loss=("squared_flat",)) if self.block == "newton" else needs


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

    `variant="ibcd"` is algorithm 1 as published, to compare with. From random rows solved at the same C (I5), each
    outer round takes the rows OUT of S, with their share of w (I7). A query asks for n rows outside of S that matter at
    w^(t,k) and are IN at wᵗ, best bin first in trees in random order where the index is a forest, and gives those that
    it finds at random (I8). A block B has them and the next rows of a cyclic reader over S, as many as were looked at
    (I9); it is solved by dual coordinate descent (I14), with U = c for the hinge, or in the primal (16) by Newton's
    method (I15). Leaves whose rows all have margins above 1 + T, or are OUT, are shrunk (I22), and opened again before
    the end. It ends when S is solved to ε_S = tol/2 and |N| < n_ε = ε(1 − Acc)|D|, after a query over the whole index,
    which is then a certificate for a convex loss; or when |N|/n_e < n_ε/|D| among random leaves, whole trees of a
    forest (I12), at least n rows and 3|D|/n_ε. ε is `tol`, T is 0.1, and J has to fall by tol/10 for another round
    (I23). Unless `verify` says no, rounds are held against J of all rows, one pass each, and the best one is kept.

    Passes are counted in bytes read. A result's `facts` have the size of S (`active`), what the last query found
    (`new`), how many rows were looked at (`looked`), `bytes_read`, `cache_hits`, and the seconds of queries and of
    solving (12) (`search_seconds`, `solve_seconds`); the trace has the same after every query (I13).

    Memory: the index's knowledge of leaves; of the rest, S, which is written to disk where it is larger than a third,
    and chunks that were read last. Some 64 bytes beside each row of S stay in memory; where that is more than half of
    the rest, so many rows matter that an index does not pay, and a solver that streams goes on over all of them.

    Options are those of `IndexedOptions`.
    """

    name = "indexed"
    needs = Needs(loss=("flat",), omega="l2", nonnegative=False, one_score=True, rows="index", convex=False)
    kind_of_options = IndexedOptions
    options: IndexedOptions

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One query at a time, and the problem over the active set, or over a block of it."""
        run = BlockLearning if self.options.variant == "ibcd" else Learning
        return run(self, objective).steps(start)

    def resumes(self, objective: Objective) -> bool:
        """From one query to the next, where the active set is solved as a whole."""
        return self.options.variant == "whole"

    def concern(self, result: Result) -> str | None:
        """Also where cutting off would have given up a class."""
        if result.status is Status.UNPROVEN and result.facts.get("crowded"):
            return f"{self.name} {result.sentence}; raise s or C, or scale the labels, or give a rare class more weight"
        if result.status is Status.UNPROVEN and result.facts.get("convex_gap", 0.0) > max(self.tol, ROUNDING_GAP):
            return f"{self.name} {result.sentence}; scale the features, or name another solver by inner"
        return super().concern(result)
