"""Finding, recognising and opening files."""

from __future__ import annotations

import bz2
import gzip
import os
from pathlib import Path

import pyarrow as pa
import pytest

from beeline.data.files.finding import detect_format, find_files, open_random, open_stream
from beeline.exceptions import DataError, FormatError, ParameterError, SourceError

TEXT = b"1 1:0.5 3:2\n-1 2:1\n" * 5000


def packed(kind, data=TEXT):
    return {
        "none": lambda d: d,
        "gzip": gzip.compress,
        "bz2": bz2.compress,
        "zstd": lambda d: pa.compress(d, codec="zstd", asbytes=True),
    }[kind](data)


def all_of(file, size=1000):
    told = []
    stream = open_stream(file, told.append)
    pieces = list(iter(lambda: stream.read(size), b""))
    stream.close()
    return b"".join(pieces), sum(told)


@pytest.mark.parametrize("kind", ["none", "gzip", "bz2", "zstd"])
def test_compression_is_found_by_content_not_by_name(tmp_path, kind):
    path = tmp_path / "data.txt"
    path.write_bytes(packed(kind))
    (file,) = find_files(path)
    assert (file.compression, file.size, file.is_plain) == (kind, path.stat().st_size, kind == "none")
    assert all_of(file) == (TEXT, file.size)
    assert detect_format(file) == "libsvm"


@pytest.mark.parametrize("kind", ["gzip", "bz2", "zstd"])
def test_several_compressed_members_are_read_to_the_end(tmp_path, kind):
    path = tmp_path / "data"
    path.write_bytes(packed(kind) + packed(kind))
    assert all_of(find_files(path)[0])[0] == TEXT + TEXT


@pytest.mark.parametrize("kind", ["gzip", "bz2", "zstd"])
def test_a_truncated_or_altered_compressed_file_is_named(tmp_path, kind):
    whole = bytearray(packed(kind))
    path = tmp_path / "data.svm"
    path.write_bytes(whole[:-5])
    with pytest.raises(SourceError, match=r"data\.svm: cannot be read"):
        all_of(find_files(path)[0])


def test_a_folder_stands_for_its_files_in_order(tmp_path):
    for name in ["b.svm", "a.svm", "deep/c.svm", "_SUCCESS", ".hidden", "_deep/d.svm"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1 1:1\n")
    names = [Path(f.path).name for f in find_files(tmp_path)]
    assert names == ["a.svm", "b.svm", "c.svm"]
    assert [Path(f.path).name for f in find_files(f"file://{tmp_path}")] == names
    assert len(find_files([tmp_path / "a.svm", str(tmp_path / "b.svm")])) == 2


@pytest.mark.parametrize("source", ["nowhere", "file:///nowhere/at/all", []])
def test_what_is_not_there_is_named(source):
    with pytest.raises(SourceError, match=r"no such file or folder|no file was given"):
        find_files(source)


def test_an_empty_folder_and_an_unknown_scheme_are_named(tmp_path):
    with pytest.raises(SourceError, match="holds no file"):
        find_files(tmp_path)
    with pytest.raises(SourceError, match=r"foo://bar: cannot be read"):
        find_files("foo://bar")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b,c\n1,2,3\n", "csv"),
        (b"a\tb\n1\t2\n", "csv"),
        (b"time;value\n10:30;5\n", "csv"),
        (b"1,3 1:2\n", "libsvm"),
        (b"# a comment\n2 qid:1 1:0.5 # doc\n\n0\n", "libsvm"),
        (b" 1:0.5 2:1\n1,2 1:1\n", "libsvm"),
        (b"1:0.5 3:2\n7:1\n", "libsvm"),
        (b"qid:3 1:0.5\n", "libsvm"),
        (b"10:30,5\n10:31,6\n", "csv"),
        (b"10:30:15\t5\n", "csv"),
        (b"PAR1....", "parquet"),
        (b"ARROW1\0\0", "arrow"),
        (b"\xff\xff\xff\xff....", "arrow"),
        (b"PK\x03\x04....", "npz"),
    ],
)
def test_the_format_is_told_by_the_content(tmp_path, content, expected):
    path = tmp_path / "data"
    path.write_bytes(content)
    assert detect_format(find_files(path)[0]) == expected


@pytest.mark.parametrize("content", [b"", b"just words\n", b"\0\0\0\0"])
def test_content_that_tells_nothing_asks_for_the_format(tmp_path, content):
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"data: the format cannot be told.*LIBSVM text, CSV, Parquet, Arrow or npz"):
        detect_format(find_files(path)[0])


def test_random_access_refuses_compression(tmp_path):
    path = tmp_path / "t.parquet.gz"
    path.write_bytes(packed("gzip"))
    with pytest.raises(DataError, match="decompress it first"):
        open_random(find_files(path)[0])


@pytest.mark.parametrize("source", [None, 3, [1.5], [["a"]]])
def test_what_is_no_source_is_refused_by_its_type(source):
    with pytest.raises(ParameterError, match="a source is a path"):
        find_files(source)


def test_paths_may_come_from_a_generator(tmp_path):
    (tmp_path / "a.svm").write_bytes(TEXT)
    assert [Path(f.path).name for f in find_files(tmp_path.glob("*.svm"))] == ["a.svm"]


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match=r"pipe: is not a regular file.*save it first"):
        find_files(tmp_path / "pipe")


def test_a_store_among_the_sources_is_named(tmp_path):
    (tmp_path / "old.store").mkdir()
    (tmp_path / "old.store" / "manifest.json").write_text("{}")
    with pytest.raises(SourceError, match=r"old\.store: is a store, and stores are read one at a time"):
        find_files([tmp_path / "old.store", tmp_path / "old.store"])
