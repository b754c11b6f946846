"""LIBSVM text under Hypothesis: however it is cut, and whoever reads it, it agrees with the plain reference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from libsvm_reference import BadTextError, Rules, assert_same, reference
from libsvm_tools import SENTENCES, instructions, options_of, read_streamed, reader, save, threads

from beeline.data.core.block import concatenate
from beeline.data.core.dataset import ArrayDataset
from beeline.data.reader import RestartReading
from beeline.exceptions import DataError, FormatError

NAMES = count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("libsvm")


blanks = st.sampled_from([b" ", b"  ", b"\t", b" \t "])
ends = st.sampled_from([b"\n", b"\r\n"])
comments = st.sampled_from([b"", b"", b"", b"#", b" # 3:4 qid:7 x,y", b"\t#d:1"])
floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**9), 10**9).map(str),
    st.decimals(-1000, 1000, places=6).map(str),
    st.floats(-1e6, 1e6).map("{:.3e}".format),
)


@st.composite
def lines(draw, base: int, queries: bool, sets: bool):
    """One good line."""
    fields = []
    labels = draw(st.lists(floats, min_size=0 if sets else 1, max_size=3 if sets else 1))
    if labels:
        fields.append(",".join(labels).encode())
    if queries:
        fields.append(b"qid:%d" % draw(st.integers(0, 10**12)))
    indices = draw(st.sets(st.one_of(st.integers(base, 60), st.integers(base, 2**31)), max_size=25))
    fields += [b"%d:%s" % (index, draw(floats).encode()) for index in sorted(indices)]
    text = b""
    for i, field in enumerate(fields):
        text += (draw(blanks) if i else b"") + field
    lead = draw(st.sampled_from([b"", b"", b" "])) if labels or not sets else b" "
    return lead + text + draw(st.sampled_from([b"", b"", b" "])) + draw(comments)


@st.composite
def texts(draw):
    """Good text, with lines that hold no row between."""
    base, queries, sets = draw(st.integers(0, 1)), draw(st.booleans()), draw(st.booleans())
    several = draw(st.lists(lines(base, queries, sets), min_size=1, max_size=8))
    if sets:
        several.append(b"1,2 qid:1 1:1" if queries else b"1,2 1:1")
    text = b""
    for line in several:
        text += draw(st.sampled_from([b"", b"", b"\n", b"# x\r\n", b" \n"])) + line + draw(ends)
    return text if draw(st.booleans()) else text.rstrip(b"\r\n")


# Pieces that make bad lines likely, and nearly good ones.
fragments = st.sampled_from(
    [b"1", b"-1", b"+1", b"0", b" ", b" ", b" ", b"\t", b"\n", b"\n", b"\r\n", b"\r", b":", b"#", b",", b"qid:3",
     b"qid:", b"1:1", b"2:2", b"3:-3.5", b"4:1e5", b"5:nan", b"6:", b"0:1", b"7:7", b"2147483648:1", b"16:123456789.5",
     b"8:8 9:9 10:10 11:11 12:12 13:13 14:14 15:15", b"99999999999999999999:1", b".", b"-", b"e", b"1,2", b"x",
     b"qid:-1", b"\x00", b"\xff", b"1 1:1 2:2 3:3\n", b"-1 1:0.5 2:-2\n", b"1 qid:1 1:1\n"]
)  # fmt: skip
pieces = st.lists(fragments, max_size=30).map(b"".join)
rule_sets = st.builds(
    Rules,
    base_guessed=st.booleans(),
    sets_guessed=st.booleans(),
    n_features=st.sampled_from([None, None, None, 5, 14]),
    float32=st.booleans(),
    allow_nonfinite=st.booleans(),
    skip=st.booleans(),
    targets=st.booleans(),
)


@dataclass(frozen=True)
class Way:
    """How a text is read."""

    ending: str = ""
    chunk_bytes: int = 1
    threads: int = 2
    instructions: int = 2
    streamed: bool = False

    def read(self, source) -> ArrayDataset:
        with threads(self.threads), instructions(self.instructions):
            if not self.streamed:
                return source.read()
            source.prepare(4000)
            while True:
                try:
                    return ArrayDataset(concatenate(list(source.blocks(4000))), source.recipe)
                except RestartReading:
                    continue


ways = st.builds(
    Way,
    ending=st.sampled_from(["", ".gz"]),
    chunk_bytes=st.sampled_from([1, 7, 64, 1 << 18]),
    threads=st.sampled_from([1, 2, 4]),
    instructions=st.sampled_from([0, 1, 2]),
    streamed=st.booleans(),
)


def check(folder: Path, parts: list[bytes], rules: Rules, way: Way) -> None:
    """Read the parts as files and compare with the reference: rows, or the first bad line, or the skipped ones."""
    folder = folder / str(next(NAMES))
    folder.mkdir()
    paths = [save(folder, part, f"{i}.svm{way.ending}") for i, part in enumerate(parts)]
    source = reader(paths, way.chunk_bytes, **options_of(rules))
    try:
        rows = reference({str(path): part for path, part in zip(paths, parts, strict=True)}, rules)
    except BadTextError as bad:
        file, line, column, kind = bad.place
        with pytest.raises(FormatError, match=SENTENCES[kind]) as error:
            way.read(source)
        assert (error.value.file, error.value.line, error.value.column) == (file, line, column)
        return
    if not rows.entries:
        with pytest.raises(DataError, match=r"no rows|no block"):
            way.read(source)
    else:
        assert_same(rows, way.read(source))
    assert source.bad_lines.count == len(rows.bad)
    for told, (file, line, column, kind) in zip(source.bad_lines.examples, rows.bad, strict=False):
        assert told.startswith(f"{file}, line {line}, column {column}: ")
        assert re.search(SENTENCES[kind], told)
    assert len(source.bad_lines.examples) == min(10, len(rows.bad))


@given(text=texts(), float32=st.booleans(), way=ways)
def test_good_text(folder, text, float32, way):
    rules = Rules(float32=float32, allow_nonfinite=float32)  # a float64 may be too large for float32
    assert reference({"a": text}, rules).entries
    check(folder, [text], rules, way)


@given(text=texts(), way=ways)
@example(text=b"1:0.5 3:2\n1 2:2\nqid:7\n", way=Way())
def test_text_whose_labels_are_not_wanted(folder, text, way):
    """The same rows as of the text with its labels, also where some of these are taken away."""
    lines = text.split(b"\n")
    lines[::2] = [re.sub(rb"^\s*[^\s:#]+(?=\s+[\dq])", b"", line) for line in lines[::2]]
    for some in (text, b"\n".join(lines)):
        check(folder, [some], Rules(targets=False), way)


@given(parts=st.lists(pieces, min_size=1, max_size=3), rules=rule_sets, way=ways)
@example(parts=[b"1:1\n1 0:1 5:1\n2,3 4:1\n"], rules=Rules(n_features=5), way=Way())
@example(parts=[b"1 5:1\n1:1\n0 0:1\n"], rules=Rules(n_features=5), way=Way())
@example(parts=[b"qid:1 1:1\n1 1:1\n2 0:5\n"], rules=Rules(skip=True), way=Way(streamed=True))
@example(parts=[b"5:nan", b"1 qid:1 1:1\n"], rules=Rules(skip=True), way=Way(streamed=True))
def test_nearly_good_text(folder, parts, rules, way):
    check(folder, parts, rules, way)


@given(text=st.binary(max_size=200), rules=rule_sets, way=ways)
def test_any_bytes(folder, text, rules, way):
    if not way.ending and text[:2] in (b"\x1f\x8b", b"BZ", b"\x28\xb5"):
        text = b" " + text  # not to be taken for a compressed file
    check(folder, [text], rules, way)


@given(x=st.floats(allow_nan=False, allow_infinity=False), shown=st.sampled_from(["", ".17g", ".16e", ".20f", ".9g"]))
def test_floats_are_read_as_python_reads_them(folder, x, shown):
    text = format(x, shown)
    path = save(folder, f"{text} 1:{text} 2:{text}\n".encode(), f"{next(NAMES)}.svm")
    data = reader(path, allow_nonfinite=True).read()
    expected = np.full(2, float(text)).tobytes()
    assert data.block.values.tobytes() == expected
    assert data.labels.tobytes() == expected[:8]


def long_and_short_lines() -> bytes:
    rng = np.random.default_rng(1)
    lines = []
    for i in range(500):
        n = int(rng.choice([0, 3, 40, 40, 900]))
        indices = np.sort(rng.choice(100_000, n, replace=False)) + 1
        values = rng.integers(-300, 300, n) if i % 2 else rng.standard_normal(n).round(int(rng.integers(1, 18)))
        entries = " ".join(f"{j}:{x}" for j, x in zip(indices, values, strict=True))
        lines.append(f"{i % 5} {entries}{' # a:b' if i % 7 == 0 else ''}")
        if i % 11 == 0:
            lines.append("# x:y")
    return "\n".join(lines).encode()


def test_large_text_in_many_chunks(tmp_path):
    """Some lines are far longer than a chunk; the same bits for every cut and number of threads."""
    text = long_and_short_lines()
    rows = reference({"a": text}, Rules())
    for ending, chunk_bytes, n_threads, memory in [
        ("", 1 << 18, 2, None),
        ("", 1000, 4, None),
        (".gz", 5000, 2, None),
        ("", 3000, 2, 200_000),
        (".gz", 1 << 18, 1, 500_000),
    ]:
        path = save(tmp_path, text, f"a.svm{ending}")
        with threads(n_threads):
            data = reader(path, chunk_bytes).read() if memory is None else read_streamed(path, memory, chunk_bytes)
        assert_same(rows, data)
