"""LIBSVM text read slowly and plainly, line by line: what the real reader must agree with, bit for bit."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np

DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SPECIAL = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def is_huge(digits: bytes) -> bool:
    return len(digits.lstrip(b"0")) > 18


class BadLineError(Exception):
    def __init__(self, kind: str, column: int) -> None:
        self.kind, self.column = kind, column


class QuestionError(Exception):
    """A line that is good in another dialect."""


@dataclass(frozen=True)
class Rules:
    base: int = 1
    base_guessed: bool = True
    sets: bool = False
    sets_guessed: bool = True
    unlabelled: tuple | None = None
    n_features: int | None = None
    float32: bool = False
    allow_nonfinite: bool = False
    skip: bool = False
    targets: bool = True


@dataclass
class Rows:
    labels: list = field(default_factory=list)  # one list a row
    queries: list = field(default_factory=list)
    entries: list = field(default_factory=list)  # one list of (column, value) a row
    bad: list = field(default_factory=list)  # (file, line, column, kind)
    rules: Rules = field(default_factory=Rules)

    @property
    def has_queries(self) -> bool:
        return bool(self.queries) and self.queries[0] is not None

    @property
    def n_features(self) -> int:
        if self.rules.n_features is not None:
            return self.rules.n_features
        return max((j + 1 for row in self.entries for j, _ in row), default=0)


class BadTextError(Exception):
    def __init__(self, *place: object) -> None:
        self.place = place  # file, line, column, kind


def number(text: bytes, column: int, rules: Rules, kind: str) -> float:
    if not DECIMAL.fullmatch(text) and not SPECIAL.fullmatch(text):
        raise BadLineError(f"bad {kind}", column)
    x = float(text)
    with np.errstate(over="ignore"):
        stored = float(np.float32(x)) if rules.float32 and kind == "value" else x
    if not np.isfinite(stored) and not rules.allow_nonfinite:
        raise BadLineError(f"nonfinite {kind}", column)
    return stored


def parse_labels(text: bytes, column: int, rules: Rules) -> tuple[list[float], str | None]:
    question = None
    if b"," in text and not rules.sets:
        if not rules.sets_guessed:
            raise BadLineError("several labels", column)
        question = "sets"
    labels = []
    for part in text.split(b","):
        labels.append(number(part, column, rules, "label"))
        column += len(part) + 1
    return labels, question


def parse_entry(text: bytes, column: int, last: int, rules: Rules) -> tuple[int, float, str | None]:
    if b":" not in text:
        raise BadLineError("no colon", column)
    index_text, value_text = text.split(b":", 1)
    if not re.fullmatch(rb"\d+", index_text):
        raise BadLineError("bad index", column)
    if is_huge(index_text):
        raise BadLineError("huge index", column)
    index = int(index_text)
    question = None
    if index == last:
        raise BadLineError("repeated index", column)
    if index < last:
        raise BadLineError("unsorted index", column)
    if rules.n_features is not None and index > rules.n_features + rules.base - 1:
        raise BadLineError("index beyond", column)
    if index < rules.base:
        if not rules.base_guessed:
            raise BadLineError("zero index", column)
        question = "zero"
    return index, number(value_text, column + len(index_text) + 1, rules, "value"), question


def parse_line(line: bytes, rules: Rules, queries: bool | None) -> tuple | None:
    """(labels, query, entries), or None when the line holds no row."""
    text = line.removesuffix(b"\r").split(b"#", 1)[0]
    fields = [(m.start() + 1, m.group()) for m in re.finditer(rb"[^ \t]+", text)]
    if not fields:
        return None
    end = (len(text) + 1, b"")
    labels: list[float] = []
    questions = []
    if b":" not in fields[0][1]:
        column, first = fields.pop(0)
        labels, question = parse_labels(first, column, rules)
        questions.append(question)
    elif not rules.sets:
        if not rules.sets_guessed:
            raise BadLineError("missing label", fields[0][0])
        questions.append("unlabelled")
    column, following = fields[0] if fields else end
    query = None
    if following.startswith(b"qid:"):
        if not re.fullmatch(rb"\d+", following[4:]) or is_huge(following[4:]):
            raise BadLineError("bad query", column)
        query = int(following[4:])
        fields.pop(0)
    entries, last = [], -1
    for at, entry in fields:
        last, x, question = parse_entry(entry, at, last, rules)
        questions.append(question)
        entries.append((last - rules.base, x))
    if queries is not None and queries != (query is not None):
        raise BadLineError("missing query" if queries else "unexpected query", column)
    for question in filter(None, questions):
        raise QuestionError(question, column if question != "unlabelled" else 0)
    return labels, query, entries


def walk(texts: dict[str, bytes], rules: Rules) -> Rows:
    rows = Rows(rules=rules)
    several = False
    for name, text in texts.items():
        lines = text.split(b"\n")
        for i, line in enumerate(lines if lines[-1] else lines[:-1]):
            queries = rows.has_queries if rows.queries else None
            try:
                row = parse_line(line, rules, queries)
            except BadLineError as bad:
                if rules.skip:
                    rows.bad.append((name, i + 1, bad.column, bad.kind))
                    continue
                if rules.unlabelled and not several:
                    raise BadTextError(*rules.unlabelled) from None
                raise BadTextError(name, i + 1, bad.column, bad.kind) from None
            except QuestionError as question:
                first = re.search(rb"[^ \t]", line)
                question.place = (name, i + 1, first.start() + 1, "missing label")
                raise
            if row is None:
                continue
            several |= len(row[0]) > 1
            rows.labels.append(row[0])
            rows.queries.append(row[1])
            rows.entries.append(row[2])
    if rules.unlabelled and not several:
        if not rules.skip:
            raise BadTextError(*rules.unlabelled)
        raise QuestionError("single")
    return rows


def reference(texts: dict[str, bytes], rules: Rules) -> Rows:
    if not rules.targets and rules.sets_guessed:  # lines with a label, with several, and with none
        rules = replace(rules, sets=True, sets_guessed=False)
    while True:
        try:
            return walk(texts, rules)
        except QuestionError as question:
            kind = question.args[0]
            if kind == "sets":
                rules = replace(rules, sets=True, sets_guessed=False, unlabelled=None)
            elif kind == "unlabelled":
                rules = replace(rules, sets=True, sets_guessed=False, unlabelled=question.place)
            elif kind == "single":
                rules = replace(rules, sets=False, sets_guessed=False, unlabelled=None)
            else:
                rules = replace(rules, base=0, base_guessed=False)
                if rules.unlabelled:
                    rules = replace(rules, sets=False, sets_guessed=True, unlabelled=None)


def assert_same(rows: Rows, data) -> None:
    """Compare with a data set; floats by their bits, so that −0 and NaN count."""
    block = data.block
    assert data.n_rows == len(rows.entries)
    assert data.n_features == rows.n_features
    assert data.recipe.index_base == rows.rules.base
    flat = [entry for row in rows.entries for entry in row]
    dtype = np.float32 if rows.rules.float32 else np.float64
    assert block.indptr.tolist() == np.cumsum([0, *map(len, rows.entries)]).tolist()
    assert block.indices.tolist() == [j for j, _ in flat]
    assert block.values.dtype == dtype
    assert block.values.tobytes() == np.array([x for _, x in flat], dtype).tobytes()
    if not rows.rules.targets:
        assert block.labels is None
        assert block.queries is None
        return
    if rows.rules.sets:
        assert [labels.tolist() for labels in block.labels] == rows.labels
    else:
        assert block.labels.tobytes() == np.array([y for (y,) in rows.labels]).tobytes()
    if rows.has_queries:
        assert block.queries.tolist() == rows.queries
    else:
        assert block.queries is None
