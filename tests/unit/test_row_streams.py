"""Rows that are walked once: pipes, batches and Arrow streams."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import beeline
from beeline.data.files.finding import standard_input
from beeline.data.options import ReadOptions
from beeline.data.streaming import open_row_stream
from beeline.exceptions import DataError, FormatError, LabelError, ParameterError, SourceError

SVM = b"1 1:0.5 3:2\n-1 2:1\n1 7:3\n"
CSV = b"colour,size,kind\nred,1,a\nblue,2,b\nred,3,a\n"


@pytest.fixture
def piped(monkeypatch):
    """Standard input with these bytes."""

    def pipe(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return pipe


def walk(source, memory=1 << 22, recipe=None, **options):
    """All rows, dense, with labels as they are called, and the recipe."""
    stream = open_row_stream(source, ReadOptions(**options), recipe=recipe)
    rows, labels = [], []
    for block, numbers, texts in stream.rows(memory):
        rows += block.to_dense().tolist() if block.is_sparse else block.values.tolist()
        labels += numbers.tolist() if texts is None else [texts[int(k)] for k in numbers]
    return rows, labels, stream


def test_a_pipe_is_opened_again_until_it_is_released():
    pipe = standard_input(io.BytesIO(bytes(range(100)))).pipe
    assert pipe.open().read(10) == bytes(range(10))
    second = pipe.open()
    assert second.read(5) == bytes(range(5))
    pipe.release()
    assert second.read(200) == bytes(range(5, 100))
    assert second.read(1) == b""
    with pytest.raises(SourceError, match="only once"):
        pipe.open()


@pytest.mark.parametrize("packed", [False, True])
def test_libsvm_text(piped, packed):
    piped(gzip.compress(SVM) if packed else SVM)
    rows, labels, stream = walk("-")
    assert labels == [1, -1, 1]
    assert rows[2] == [0, 0, 0, 0, 0, 0, 3]
    assert stream.known_recipe.index_base == 1


def test_features_that_count_from_0_are_found_in_the_first_rows_or_asked_for(piped):
    piped(b"1 1:1\n-1 0:2\n")
    assert walk("-")[2].known_recipe.index_base == 0
    piped(b"1 1:1\n" * 200_000 + b"-1 0:2\n")
    with pytest.raises(ParameterError, match="zero_based"):
        walk("-", memory=1 << 18)
    piped(b"1 1:1\n" * 200_000 + b"-1 0:2\n")
    assert len(walk("-", memory=1 << 18, zero_based=True)[0]) == 200_001


@pytest.mark.parametrize("packed", [False, True])
def test_a_table_is_learned_from_its_first_rows(piped, packed):
    piped(gzip.compress(CSV) if packed else CSV)
    rows, labels, stream = walk("-", label="kind")
    assert labels == ["a", "b", "a"]
    assert rows == [[0, 1, 1], [1, 0, 2], [0, 1, 3]]
    assert stream.known_recipe.feature_names == ["colour=blue", "colour=red", "size"]


def test_what_a_table_says_later(tmp_path):
    first = "".join(f"red,{k},a\n" for k in range(5000))
    (tmp_path / "t.csv").write_text("colour,size,kind\nblue,1,b\n" + first + "green,7,new\nred,8,newer\n")
    rows, labels, stream = walk(tmp_path / "t.csv", memory=1 << 16, label="kind")
    assert labels[:2] == ["b", "a"]
    assert labels[-2:] == ["new", "newer"]
    assert rows[-2:] == [[0, 0, 7], [0, 1, 8]]
    assert stream.reader.unknown_categories == {"colour": 1}
    assert stream.known_recipe.label_categories == ("a", "b", "new", "newer")


def test_more_rows_by_the_recipe_of_those_before(piped):
    piped(CSV)
    recipe = walk("-", label="kind")[2].known_recipe
    piped(b"size,kind,colour\n9,c,blue\n")
    rows, labels, stream = walk("-", recipe=recipe)
    assert (rows, labels) == ([[1, 0, 9]], ["c"])
    assert stream.known_recipe.label_categories == ("a", "b", "c")


def test_arrow_streams():
    batches = [pa.record_batch({"x": [1.0, 2.0], "y": ["u", "v"]}), pa.record_batch({"x": [3.0], "y": ["w"]})]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    assert walk(reader, label="y")[:2] == ([[1], [2], [3]], ["u", "v", "w"])


def test_batches_of_a_program():
    def batches():
        yield [[1, 2], [3, 4]], ["a", "b"]
        yield np.array([[5.0, 6.0]]), ["c"], [2.0]

    assert walk(batches())[:2] == ([[1, 2], [3, 4], [5, 6]], ["a", "b", "c"])
    wider = [(scipy.sparse.csr_array(np.eye(k)), np.ones(k)) for k in (2, 3)]
    assert [len(row) for row in walk(iter(wider))[0]] == [2, 2, 3, 3, 3]
    data = beeline.from_arrays(np.eye(2), np.array([1.0, 2.0]))
    assert walk(iter([data]))[1] == [1, 2]


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (([[1.0]],), "batch 0: there must be a label"),
        (([[1.0]], [1, 2]), "batch 0: there must be a label"),
        (([[1.0]], [1], [1], [1]), "batch 0: a batch is"),
        (([[np.nan]], [1]), "batch 0: "),
    ],
)
def test_bad_batches(batch, words):
    with pytest.raises(DataError, match=words):
        walk(iter([batch]))
    with pytest.raises(DataError, match="batch 1: it has 2 features, and those before have 1"):
        walk(iter([([[1.0]], [1]), ([[1.0, 2.0]], [1])]))


def test_what_is_refused(piped, tmp_path):
    with pytest.raises(ParameterError, match="scale='standard' has to see all rows"):
        walk("-", scale="standard")
    with pytest.raises(ParameterError, match="not int"):
        walk(3)
    with pytest.raises(ParameterError, match="batches of arrays"):
        walk(iter([]), label="y")
    piped(b"1,2 1:1\n")
    with pytest.raises(LabelError, match="sets of labels"):
        walk("-")
    piped(b"PAR1" + bytes(100))
    with pytest.raises(DataError, match="pipe"):
        walk("-")
    piped(SVM + b"1 1:x\n")
    with pytest.raises(FormatError, match="standard input, line 4"):
        walk("-")
    piped(SVM)
    with pytest.raises(ParameterError, match="n_features"):
        walk("-", layout="dense")
    piped(SVM)
    assert len(walk("-", layout="dense", n_features=9)[0][0]) == 9
