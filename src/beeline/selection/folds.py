"""Which rows are trained on and which are held out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from beeline._sentences import Argument
from beeline._types import AnyArray, Ints
from beeline.exceptions import ParameterError

__all__ = ["Fold", "Splitting", "make_folds", "stratified_folds"]

_FEW_CLASSES = 100

Splitting: TypeAlias = int | float | Iterable[Any] | Any
"""K folds; a part of the rows to hold out once; a splitter of scikit-learn's kind; or pairs of train and test rows."""


@dataclass(frozen=True, eq=False)
class Fold:
    """One split.

    Attributes
    ----------
    train, test
        Masks: the rows to train on and those held out. A row may be in neither, never in both.
    """

    train: AnyArray
    test: AnyArray


def make_folds(
    how: Splitting, numbers: AnyArray, *, classes: bool, groups: AnyArray | None = None, seed: int = 0
) -> list[Fold]:
    """The folds.

    Parameters
    ----------
    how
        As in `Splitting`.
    numbers
        A label a row; classes are spread evenly over the folds. Rows of a negative class take no part.
    classes
        Whether labels are classes.
    groups
        A group a row; rows of a group stay together.
    seed
        Of the random order.
    """
    if isinstance(how, int | np.integer) and not isinstance(how, bool):
        if not 2 <= how <= len(numbers):
            raise ParameterError(
                Argument("folds"), f" must lie between 2 and the number of rows, {len(numbers)}, not {how}"
            )
        held = _fold_numbers(numbers, int(how), classes=classes, groups=groups, seed=seed)
        return [_fold(held == k, numbers, classes) for k in range(int(how))]
    if isinstance(how, float | np.floating):
        if not 0 < how < 1:
            raise ParameterError(
                Argument("folds"), f" must be a whole number of folds or a part of the rows below 1, not {how}"
            )
        return [_fold(_held_out(float(how), numbers, classes, groups, seed), numbers, classes)]
    return _own_folds(how, numbers, groups)


def stratified_folds(numbers: AnyArray, n_folds: int, seed: int) -> AnyArray:
    """A fold number a row: random, with each class spread evenly over the folds.

    The only row of a class belongs to no fold, −1: no model would know the class without it.
    """
    # Class after class, and in few bytes a row: all that searches do else with rows on disk takes no more.
    shuffled, kind = _shuffled(len(numbers), seed), _fold_type(n_folds)
    names, counts = np.unique(numbers, return_counts=True)
    folds: AnyArray = np.empty(len(numbers), kind)
    first = 0
    if len(names) > _FEW_CLASSES:
        folds[shuffled[np.argsort(numbers[shuffled], kind="stable")]] = np.arange(len(numbers)) % n_folds
    else:
        of_shuffled = numbers[shuffled]
        for name, count in zip(names, counts, strict=True):
            folds[shuffled[of_shuffled == name]] = (np.arange(first, first + count) % n_folds).astype(kind)
            first += int(count)
    if (counts == 1).any():
        folds[np.isin(numbers, names[counts == 1])] = -1
    return folds


def _shuffled(n: int, seed: int) -> AnyArray:
    """The numbers of n rows in random order."""
    shuffled = np.random.default_rng(seed).permutation(n)
    return shuffled.astype(np.int32) if n < 2**31 else shuffled


def _fold_type(n_folds: int) -> type:
    return np.int8 if n_folds < 2**7 else np.int64


def _fold_numbers(numbers: AnyArray, n_folds: int, *, classes: bool, groups: AnyArray | None, seed: int) -> AnyArray:
    if groups is None:
        return stratified_folds(numbers, n_folds, seed) if classes else _random_folds(len(numbers), n_folds, seed)
    names, sizes, of_row, order = _shuffled_groups(groups, seed)
    if len(names) < n_folds:
        raise ParameterError(f"{n_folds} folds need as many groups, and the rows have {len(names)}", parameter="groups")
    filled, fold_of = np.zeros(n_folds, np.int64), np.empty(len(names), np.int64)
    for group in order:  # the largest first, each to the fold that has the fewest rows
        fold_of[group] = int(filled.argmin())
        filled[fold_of[group]] += sizes[group]
    folds: Ints = fold_of[of_row]
    return folds


def _random_folds(n: int, n_folds: int, seed: int) -> AnyArray:
    kind = _fold_type(n_folds)
    folds: AnyArray = np.empty(n, kind)
    folds[_shuffled(n, seed)] = (np.arange(n) % n_folds).astype(kind)
    return folds


def _shuffled_groups(groups: AnyArray, seed: int) -> tuple[AnyArray, Ints, Ints, Ints]:
    """(the groups, their sizes, the number of each row's group, the groups from the largest, equals shuffled)."""
    try:
        names, of_row, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    except TypeError:
        raise ParameterError(
            Argument("groups"), " of different types cannot be told apart; make all numbers or all texts"
        ) from None
    shuffled = np.random.default_rng(seed).permutation(len(names))
    return names, sizes, of_row.reshape(-1), shuffled[np.argsort(-sizes[shuffled], kind="stable")]


def _held_out(part: float, numbers: AnyArray, classes: bool, groups: AnyArray | None, seed: int) -> AnyArray:
    """A mask of about that part of the rows, of each class the same part."""
    if groups is None:
        shuffled = np.random.default_rng(seed).permutation(len(numbers))
        order = shuffled[np.argsort(numbers[shuffled], kind="stable")] if classes else shuffled
        held = np.zeros(len(numbers), bool)
        ends = np.floor(np.arange(len(numbers) + 1) * part)
        held[order] = ends[1:] > ends[:-1]
        return held
    names, sizes, of_row, _ = _shuffled_groups(groups, seed)
    order = np.random.default_rng(seed).permutation(len(names))
    enough = np.cumsum(sizes[order]) <= math.ceil(part * len(numbers))
    chosen = np.zeros(len(names), bool)
    chosen[order[enough]] = True
    if not chosen.any():
        chosen[order[0]] = True
    mask: AnyArray = chosen[of_row]
    return mask


def _own_folds(how: Any, numbers: AnyArray, groups: AnyArray | None) -> list[Fold]:  # noqa: ANN401
    n, numbers = len(numbers), np.asarray(numbers, np.float64)
    if hasattr(how, "split") and not isinstance(how, str):
        try:
            pairs = how.split(np.zeros((n, 1)), numbers, groups)
            pairs = list(pairs)
        except ValueError as error:
            raise ParameterError(f"the splitter {how!r} cannot split these rows: {error}", parameter="folds") from error
    elif isinstance(how, Iterable) and not isinstance(how, str):
        pairs = list(how)
    else:
        raise ParameterError(
            Argument("folds"),
            f" must be a number, a part of the rows, a splitter or pairs of train and test rows, not {how!r}",
        )
    if not pairs:
        raise ParameterError(Argument("folds"), " must have at least one pair of train and test rows")
    return [_own_fold(k, pair, n) for k, pair in enumerate(pairs)]


def _own_fold(k: int, pair: Any, n: int) -> Fold:  # noqa: ANN401
    try:
        train, test = (_mask(np.asarray(rows), n) for rows in pair)
    except (TypeError, ValueError, IndexError) as error:
        raise ParameterError(
            f"fold {k} must be a pair of train and test rows among {n} rows: {error}", parameter="folds"
        ) from error
    if np.any(train & test):
        row = int(np.argmax(train & test))
        raise ParameterError(
            f"fold {k} trains on row {row} and holds it out; its score would be too good", parameter="folds"
        )
    if not (train.any() and test.any()):
        raise ParameterError(f"fold {k} has no rows to {'hold out' if train.any() else 'train on'}", parameter="folds")
    return Fold(train, test)


def _mask(rows: AnyArray, n: int) -> AnyArray:
    if rows.dtype == bool:
        if len(rows) != n:
            raise ValueError(f"a mask has {len(rows)} rows")
        return rows
    if rows.size and (rows.dtype.kind not in "iu" or rows.min() < -n or rows.max() >= n):
        raise ValueError("rows are whole numbers from 0")
    mask = np.zeros(n, bool)
    mask[rows.astype(np.int64)] = True
    return mask


def _fold(test: AnyArray, numbers: AnyArray, classes: bool) -> Fold:
    takes_part = numbers >= 0 if classes else np.ones(len(numbers), bool)
    test = test & takes_part
    return Fold(~test & takes_part, test)
