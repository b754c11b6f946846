"""What a solver needs of an objective, as data, and the one place where an objective is held against it.

The sentences of refusals, what `auto` may choose from, the losses' lists of solvers and the table in the documentation
all come from `Needs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from beeline.data.core.memory import available_memory
from beeline.data.options import size_in_words
from beeline.losses import LOSSES, Loss, ScalarLoss, Truncated, VectorLoss
from beeline.objective import Intercept, Objective
from beeline.solvers.budget import held_bytes
from beeline.solvers.bundle.planes import balances

__all__ = [
    "FEWER_THAN_2_32",
    "LossNeed",
    "Needs",
    "OmegaNeed",
    "OwnOmegaNeed",
    "RowsNeed",
    "in_words",
    "may_use_index",
    "refusal",
    "unmet",
]

LossNeed = Literal["smooth", "curvature", "conjugate", "rounded", "kinks", "flat", "squared_flat"]
OmegaNeed = Literal["any", "l2", "l2_part", "l1_or_nonnegative"]
OwnOmegaNeed = Literal["any", "differentiable", "none"]
RowsNeed = Literal["passes", "gathered", "blocks", "index", "working_set", "memory"]

FEWER_THAN_2_32 = 2**32 - 1  # what rows can be counted by in 32 bits
# Losses that are zero over an interval of scores, and whose dual is known.
LOSSES_WITH_FLATS = frozenset(("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"))

Unmet = tuple[str, str]
"""(the name of a need, the rest of a sentence about it, into which {loss!r} and the like are put only when it is said).

`auto` asks all solvers about every problem, however small, and to spell their reasons out takes longer than to know
them.
"""


@dataclass(frozen=True)
class Needs:
    """What a solver needs of loss, regularizer and rows; by default, nothing but convexity and some regularizer.

    Attributes
    ----------
    loss
        What the loss must be or have: `smooth`; `curvature`; `conjugate`; `rounded`, kinks that can be rounded off by a
        loss whose slopes are feasible for the dual; `kinks`, flat pieces along one score that say where they meet;
        `flat`, zero over an interval of scores, with a dual that is known, cut off or not; `squared_flat`, such a
        loss with a curvature.
    duals
        The compiled losses whose dual it knows; None: it needs none.
    losses, losses_named
        The only kinds of loss that it is for, and how they are called; none: any. Where there are `duals`, those that
        it takes beside them.
    convex
        Whether the loss must be convex. A solver that goes on without has no certificate to give then.
    one_score
        Whether a row may have one score only.
    level_intercepts
        Whether several free intercepts must follow from the scores, which takes a curvature or kinks that can be
        rounded off.
    intercepts
        The kinds of intercept that it can take.
    omega
        What Ω must be: `any` but nothing, `l2` and nothing else, one with an `l2_part`, or `l1_or_nonnegative`.
    own_omega
        Which regularizers of one's own it can take, of which no more is known than values, gradients and a modulus:
        `any`, those that are `differentiable` everywhere, or `none`.
    nonnegative
        Whether it can keep weights at zero or above.
    rows
        How it looks at the rows: in `passes`, block by block, with no more than vectors of rows kept, where the rows
        are; in passes, with such vectors `gathered` in this process; in `blocks` that are read into this process, with
        some numbers a row; those that an `index` finds; with some numbers a row and the entries of a `working_set` of
        features; or with all rows in the `memory` of this process.
    most_rows, most_outputs
        How many it can count; None: any number.
    most_features
        How many features it can take, or else rows in memory: it makes a matrix of either; None: any number.
    instead
        Sentences of its own, by the name of the need, with {loss!r} and {omega!r} in them.
    """

    loss: tuple[LossNeed, ...] = ()
    duals: frozenset[str] | None = None
    losses: tuple[type[Loss], ...] = ()
    losses_named: str = ""
    convex: bool = True
    one_score: bool = False
    level_intercepts: bool = False
    intercepts: tuple[Intercept, ...] = get_args(Intercept)
    omega: OmegaNeed = "any"
    own_omega: OwnOmegaNeed = "none"
    nonnegative: bool = True
    rows: RowsNeed = "passes"
    most_rows: int | None = None
    most_outputs: int | None = None
    most_features: int | None = None
    instead: Mapping[str, str] = field(default_factory=dict)


def unmet(needs: Needs, objective: Objective) -> Unmet | None:
    """What keeps a solver with these needs from taking the objective; None where nothing does."""
    counts_rows = (
        needs.most_rows is not None or needs.most_features is not None or needs.rows in ("blocks", "index", "memory")
    )
    found = _of_loss(needs, objective) or _of_omega(needs, objective)
    if found is None and objective.rows.memory is not None:
        found = _of_memory(needs, objective, objective.rows.memory)
    return _of_rows(needs, objective) if found is None and counts_rows else found


def refusal(needs: Needs, objective: Objective) -> str | None:
    """Why a solver with these needs cannot take the objective, as the rest of a sentence; None where it can."""
    if (found := unmet(needs, objective)) is None:
        return None
    need, sentence = found
    o = objective
    return needs.instead.get(need, sentence).format(loss=o.loss, omega=o.regularizer, rows=o.rows, outputs=o.n_outputs)


def _of_loss(needs: Needs, o: Objective) -> Unmet | None:  # noqa: PLR0911 — a list of questions, the next where one is met
    """The first thing that the loss has not."""
    loss = o.loss
    if needs.duals is None and needs.losses and not isinstance(loss, needs.losses):
        return "losses", f"is for {needs.losses_named}, not {{loss!r}}"
    if needs.duals is not None and loss.compiled not in needs.duals and not isinstance(loss, needs.losses):
        return "duals", "does not know the dual of {loss!r}"
    for need in needs.loss:
        if not _has(need, o):
            return need, _LOSS_SENTENCES[need]
    if needs.convex and not loss.convex:
        return "convex", "needs a convex loss, unlike {loss!r}"
    if needs.one_score and o.n_outputs > 1:
        return "one_score", "needs a loss of one score a row, unlike {loss!r}"
    if needs.most_outputs is not None and o.n_outputs > needs.most_outputs:
        return "most_outputs", f"can take {needs.most_outputs:,} classes, not {{outputs:,}}"
    if o.intercept not in needs.intercepts:
        return "intercepts", f"cannot have a {o.intercept} intercept; it takes {' or '.join(needs.intercepts)}"
    if needs.level_intercepts and not balances(o):
        return "level_intercepts", "needs a loss with a curvature for several free intercepts, unlike {loss!r}"
    return None


_LOSS_SENTENCES: dict[LossNeed, str] = {
    "smooth": "needs a smooth loss, unlike {loss!r}",
    "curvature": "needs a loss with a curvature, which {loss!r} has not",
    "conjugate": "needs a loss with a conjugate, which {loss!r} has not",
    "rounded": "needs a loss whose kinks can be rounded off, unlike {loss!r}",
    "kinks": "needs a piecewise linear loss of one score a row, unlike {loss!r}",
    "flat": "needs a hinge or an ε-insensitive loss, squared or not, cut off or not, unlike {loss!r}",
    "squared_flat": "needs a squared hinge or a squared ε-insensitive loss for block='newton', unlike {loss!r}",
}


def _has(need: LossNeed, o: Objective) -> bool:
    loss = o.loss
    if need == "smooth":
        return loss.smooth
    if need == "curvature":
        return o.has_curvature
    if need == "conjugate":
        return o.has_conjugate
    if need == "rounded":
        return o.has_conjugate and loss.has_smoothed
    if need in ("flat", "squared_flat"):
        inner = loss.loss if isinstance(loss, Truncated) else loss
        return inner.compiled in LOSSES_WITH_FLATS and (need == "flat" or inner.smooth)
    return isinstance(loss, ScalarLoss) and loss.piecewise_linear and not o.couples_rows


def _of_omega(needs: Needs, o: Objective) -> Unmet | None:
    """The first thing that Ω is not."""
    omega = o.regularizer
    l1, l2, own = omega.l1, omega.l2, not omega.separable
    refused = own and needs.own_omega == "none"
    if needs.omega == "l2":
        unfit = refused or bool(l1) or not l2
    elif needs.omega == "l1_or_nonnegative":
        unfit = refused or (not l1 > 0 and not omega.nonnegative)
    else:
        unfit = refused or not (l2 or (l1 and needs.omega == "any"))
    if unfit:
        own_only = refused and needs.omega == "any"
        return "omega", "needs L2, L1 or both, not {omega!r}" if own_only else _OMEGA_SENTENCES[needs.omega]
    if own and needs.own_omega == "differentiable" and not omega.differentiable:
        return "own_omega", "needs a regularizer with a gradient everywhere, unlike {omega!r}"
    if omega.nonnegative and not needs.nonnegative:
        return "nonnegative", "cannot keep weights at zero or above, as {omega!r} asks"
    return None


_OMEGA_SENTENCES: dict[OmegaNeed, str] = {
    "l2": "needs L2 regularization, not {omega!r}",
    "l1_or_nonnegative": "needs L1, elastic net or weights that may not be negative, not {omega!r}",
    "l2_part": "needs an L2 part in the regularizer, unlike {omega!r}",
    "any": "needs a regularizer, unlike {omega!r}",
}


def _of_memory(needs: Needs, o: Objective, memory: int) -> Unmet | None:
    """By how much a solver would hold more than was said that may be held."""
    if (held := held_bytes(o, needs.rows)) <= memory:
        return None
    what = "all rows" if needs.rows in ("memory", "working_set") else "what belongs to all rows"
    return (
        "memory",
        f"needs about {size_in_words(held)} to hold {what}, more than the memory of {size_in_words(memory)}",
    )


def _of_rows(needs: Needs, o: Objective) -> Unmet | None:
    """What there is too much of."""
    rows = o.rows
    if needs.rows == "blocks" and not rows.in_process:
        return "rows", "needs the rows in this process, or on its disk"
    if needs.rows == "index" and rows.index is None:
        return "rows", "needs an index of the rows, which `beeline index` builds for a store"
    if needs.rows == "memory" and not _fits_memory(o):
        return "rows", "needs the rows in memory, and {rows!r} is too large"
    if needs.most_rows is not None and rows.n_rows > needs.most_rows:
        return "most_rows", f"can take {needs.most_rows:,} rows, not {{rows.n_rows:,}}"
    most = needs.most_features
    if most is not None and o.size > most and not (rows.in_memory and rows.n_rows <= most):
        return "most_features", f"can take {most:,} features, or as many rows in memory, not {{rows!r}}"
    return None


def _fits_memory(o: Objective) -> bool:
    """Whether all rows are in memory, or could be, with what is kept of each."""
    rows = o.rows
    return rows.in_memory or rows.memory is not None or held_bytes(o, "memory") <= available_memory()


def may_use_index(loss: str) -> bool:
    """Whether a loss of the library, by its name, has rows that do not matter."""
    meant: Loss | None = LOSSES[loss]() if loss in LOSSES else None
    if isinstance(meant, VectorLoss):
        meant = meant.output_loss
    inner = meant.loss if isinstance(meant, Truncated) else meant
    return inner is not None and inner.compiled in LOSSES_WITH_FLATS


def in_words(needs: Needs) -> Iterator[tuple[str, str]]:
    """(column, what it takes) for the table in the documentation: loss, regularizer, rows."""
    yield "loss", "; ".join(_loss_in_words(needs))
    own = _OWN_OMEGA_IN_WORDS[needs.own_omega]
    yield "regularizer", _OMEGA_IN_WORDS[needs.omega] + own + ("; weights ≥ 0" if needs.nonnegative else "")
    several = f"up to {needs.most_outputs:,}" if needs.most_outputs is not None else "any number"
    one = needs.one_score or "kinks" in needs.loss or (needs.duals is not None and not needs.losses)
    yield "scores a row", "one" if one else several
    yield "intercept", ", ".join(needs.intercepts)
    rows = _ROWS_IN_WORDS[needs.rows]
    yield "rows", rows if needs.most_features is None else f"{rows}; up to {needs.most_features:,} features, or rows"
    yield "not convex", "no" if needs.convex else "yes, without a certificate"


def _loss_in_words(needs: Needs) -> Iterator[str]:
    if needs.losses:
        yield needs.losses_named
    if needs.duals is not None:
        yield ", ".join(f"`{name}`" for name in sorted(needs.duals))
    if needs.loss:
        yield ", ".join(_LOSS_IN_WORDS[need] for need in needs.loss)
    if not (needs.losses or needs.duals is not None or needs.loss):
        yield "any"
    if needs.level_intercepts:
        yield "for several free intercepts curved, or kinks that can be rounded off"


_LOSS_IN_WORDS: dict[LossNeed, str] = {
    "smooth": "smooth",
    "curvature": "curved",
    "conjugate": "with a conjugate",
    "rounded": "kinks that can be rounded off",
    "kinks": "piecewise linear",
    "flat": "hinges and ε-insensitive losses, squared or not, cut off or not",
    "squared_flat": "squared hinges and ε-insensitive losses, cut off or not",
}
_OMEGA_IN_WORDS: dict[OmegaNeed, str] = {
    "any": "L2, L1, elastic net",
    "l2": "L2",
    "l2_part": "L2, elastic net",
    "l1_or_nonnegative": "L1, elastic net",
}
_OWN_OMEGA_IN_WORDS: dict[OwnOmegaNeed, str] = {
    "any": ", one's own",
    "differentiable": ", one's own with a gradient everywhere",
    "none": "",
}
_ROWS_IN_WORDS: dict[RowsNeed, str] = {
    "passes": "in passes",
    "gathered": "in passes, some numbers a row here",
    "blocks": "in blocks, some numbers a row here",
    "index": "those that an index finds",
    "working_set": "in passes, some features here",
    "memory": "all here",
}
