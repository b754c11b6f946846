"""What is known or guessed about LIBSVM text before it is read, and the sentences for what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from beeline._sentences import Argument, Sentence
from beeline.data.options import ReadOptions
from beeline.exceptions import DataError, FormatError, ParameterError
from beeline.kernels import LIBSVM_MOST_INDEX, LibsvmDialect

__all__ = ["LONG_LINE", "Dialect", "Problem", "as_error", "first_dialect", "is_question", "kernel_settings", "narrows"]

# (flaw, line, column, text), as the kernel gives it; the numbers of the flaws are those of libsvm_line.h.
Problem = tuple[int, int, int, bytes]

LONG_LINE = 17
_MISSING_LABEL = 2
_ASKS_SETS, _ASKS_EMPTY_SETS, _ASKS_ZERO_BASED, _ASKS_DOUBLE = 32, 33, 34, 36
_LONGEST_TEXT = 40
_MANY = 8 << 20  # bytes of text

_SENTENCES = {
    1: "the label {text} is not a number",
    2: Sentence(
        "the line begins with {text} and has no label; pass ", Argument("multilabel", True), " if rows may have none"
    ),
    3: Sentence(
        "there are several labels, {text}, in text that is read with ",
        Argument("multilabel", False),
        "; pass ",
        Argument("multilabel", True),
    ),
    4: Sentence("the label {text} is not finite; correct it or pass ", Argument("allow_nonfinite", True)),
    5: "{text} is not a query id; write qid: and a whole number",
    6: "the row has no query id although rows before it have one; write qid:N behind its label",
    7: "the row has the query id {text} although rows before it have none; give one to every row or to none",
    8: "{text} is not of the form index:value",
    9: "the feature index {text} is not a whole number",
    10: Sentence(
        "there is a feature index 0 although features are said to count from 1; pass ", Argument("zero_based", True)
    ),
    11: "the feature index {text} is repeated; each may occur once in a line",
    12: "the feature index {text} is smaller than the one before it; sort the indices of each line",
    13: "the feature index {text} lies beyond the {n_features} features that the data are said to have",
    14: f"the feature index {{text}} is larger than {LIBSVM_MOST_INDEX}",
    15: "the value {text} is not a number",
    16: Sentence("the value {text} is not finite; correct it or pass ", Argument("allow_nonfinite", True)),
    17: "the line is longer than 1 GiB; this is not LIBSVM text",
}


@dataclass(frozen=True)
class Dialect:
    """How text is read: what the user said, and guesses that the text may correct.

    Attributes
    ----------
    base, base_guessed
        The index of the first feature. The guess is 1; an index 0 in any good line makes it 0.
    sets, sets_guessed
        Whether labels are sets. The guess is that they are not; a comma in the label of any good line corrects it.
        Where labels are not wanted they are sets from the beginning: these may be empty, have commas or not.
    unlabelled
        A line without a label was met while labels were guessed to be single. It is good if a comma turns up
        somewhere, and this error if not.
    queries
        Whether rows have query ids, as the first good row has or has not; None before it was seen.
    index_bits
        How many bits an index takes: 32, 64 where an index needs them, 16 to begin with where `narrow` allows.
    narrow
        Whether values may be float32 as long as that keeps all numbers as they are written.
    n_features
        The number of features, when it is given: larger indices are errors.
    """

    base: int = 1
    base_guessed: bool = True
    sets: bool = False
    sets_guessed: bool = True
    unlabelled: FormatError | None = None
    queries: bool | None = None
    index_bits: int = 32
    narrow: bool = False
    n_features: int | None = None

    def for_kernel(self, options: ReadOptions) -> LibsvmDialect:
        """The same as the kernel wants it."""
        dialect = LibsvmDialect()
        dialect.base, dialect.base_guessed = self.base, self.base_guessed
        dialect.sets, dialect.sets_guessed = self.sets, self.sets_guessed
        dialect.last_index = LIBSVM_MOST_INDEX if self.n_features is None else self.n_features + self.base - 1
        dialect.queries = -1 if self.queries is None else int(self.queries)
        dialect.index_bits = self.index_bits
        dialect.allow_nonfinite = options.allow_nonfinite
        dialect.skip_bad_lines = options.skip_bad_lines
        dialect.single_precision = self.narrow or options.value_type == "float32"
        dialect.faithful = self.narrow
        return dialect

    def corrected(self, problem: Problem, file: str) -> Dialect:
        """The dialect that a good line asks for."""
        flaw = problem[0]
        # Which row is the first good one may depend on the dialect, and so may which line is the first bad one.
        again = replace(self, queries=None)
        if self.unlabelled is not None:
            again = replace(again, sets=False, sets_guessed=True, unlabelled=None)
        if flaw == _ASKS_SETS:
            return replace(again, sets=True, sets_guessed=False, unlabelled=None)
        if flaw == _ASKS_EMPTY_SETS:
            error = as_error((_MISSING_LABEL, *problem[1:]), file, self.n_features)
            return replace(again, sets=True, sets_guessed=False, unlabelled=error)
        if flaw == _ASKS_ZERO_BASED:
            return replace(again, base=0, base_guessed=False)
        if flaw == _ASKS_DOUBLE:
            return replace(again, narrow=False)
        return replace(again, index_bits=2 * self.index_bits)

    def narrowed(self) -> Dialect:
        """The same dialect with the smallest types, which the text may ask to widen."""
        return replace(self, index_bits=16, narrow=True)

    def with_single_labels(self) -> Dialect:
        """The dialect when no comma turned up: lines without a label are bad after all."""
        return replace(self, sets=False, sets_guessed=False, unlabelled=None, queries=None)


def kernel_settings(dialect: Dialect, options: ReadOptions) -> tuple[object, ...]:
    """All that decides what the kernel makes of a text."""
    return replace(dialect, unlabelled=None), options.allow_nonfinite, options.skip_bad_lines, options.value_type


def first_dialect(options: ReadOptions) -> Dialect:
    """Return what the user said, completed by guesses."""
    base, n_features = options.zero_based, options.n_features
    recipe = options.recipe
    if recipe is not None:
        if recipe.columns is not None:
            raise DataError("the recipe is for a table with named columns and cannot be used for LIBSVM text")
        if base is not None and base != (recipe.index_base == 0):
            raise ParameterError(
                Argument("zero_based", base), f" contradicts the recipe, which counts from {recipe.index_base}"
            )
        if n_features not in (None, recipe.n_features):
            raise ParameterError(
                Argument("n_features", n_features), f" contradicts the recipe, which has {recipe.n_features}"
            )
        if options.hash not in (None, recipe.hash_bits):
            raise ParameterError(
                Argument("hash", options.hash), f" contradicts the recipe, which has {recipe.hash_bits}"
            )
        if options.scale != "none":
            raise ParameterError(
                Argument("scale", options.scale), " cannot be learned anew with a recipe; leave one of them out"
            )
        base, n_features = recipe.index_base == 0, recipe.n_features
    bits = options.hash if recipe is None else recipe.hash_bits
    if bits is not None:
        if recipe is None and (base is not None or n_features is not None):
            given = "n_features" if base is None else "zero_based"
            raise ParameterError(Argument(given), " has no meaning with ", Argument("hash"), "; leave one of them out")
        base, n_features = True, None  # any number goes
    # Sets let every label pass, and none: where nobody wants labels there is nothing to find out about them.
    sets = options.multilabel if options.targets or options.multilabel is not None else True
    return Dialect(
        base=0 if base else 1,
        base_guessed=base is None,
        sets=bool(sets),
        sets_guessed=sets is None,
        n_features=n_features,
        index_bits=32 if bits is None else 64,
    )


def narrows(options: ReadOptions, size: int | None) -> bool:
    """Whether rows may be kept in smaller types: where that is left open, and there are enough of them to matter."""
    open_ = options.dtype == "auto" and options.scale == "none" and options.recipe is None and options.hash is None
    return open_ and size is not None and size >= _MANY


def is_question(problem: Problem) -> bool:
    """Whether the line is good, but in another dialect than was guessed."""
    return problem[0] >= _ASKS_SETS


def as_error(problem: Problem, file: str, n_features: int | None) -> FormatError:
    """Say what is wrong with a line."""
    flaw, line, column, text = problem
    shown = text.decode("utf-8", "backslashreplace")
    shown = repr(shown + "…" if len(text) >= _LONGEST_TEXT else shown)
    return FormatError(_SENTENCES[flaw].format(text=shown, n_features=n_features), file, line, column)
