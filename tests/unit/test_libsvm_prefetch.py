"""A prefetch changes nothing but time."""

from dataclasses import replace

import numpy as np
import pytest

from beeline.cli.input.prefetch import begin_prefetch
from beeline.data.files.finding import find_files
from beeline.data.options import ReadOptions
from beeline.data.text import prefetch as libsvm_prefetch
from beeline.data.text.dialect import first_dialect
from beeline.data.text.libsvm import LibsvmReader
from beeline.exceptions import FormatError


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(libsvm_prefetch, "_STEP", 1000)
    yield
    libsvm_prefetch.drop_prefetch()


def write(path, n=2000, base=1, bad=None, seed=0):
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        features = np.sort(rng.choice(40, rng.integers(0, 6), replace=False)) + base
        lines.append(f"{rng.integers(-1, 2)} " + " ".join(f"{j}:{rng.normal():.4g}" for j in features))
        if i == bad:
            lines.append("1 7:x")
    path.write_text("\n".join(lines) + "\n")
    return path


def start(path, **options):
    chosen = ReadOptions(**options)
    libsvm_prefetch.start_prefetch(find_files(path)[0], replace(first_dialect(chosen), queries=False), chosen)


def same(one, other):
    a, b = one.block, other.block
    assert one.recipe == other.recipe
    assert (a.n_features, a.values.dtype) == (b.n_features, b.values.dtype)
    for name in ("values", "indices", "indptr", "labels"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("base", [0, 1])
def test_rows_are_those_without_a_head_start(tmp_path, base, wait):
    path = write(tmp_path / "a.svm", base=base)
    plain = LibsvmReader(find_files(path), ReadOptions()).read()
    start(path)
    prefetch = libsvm_prefetch._started
    if wait:
        prefetch._thread.join()
        assert base == 0 or prefetch.consumed == path.stat().st_size
    same(LibsvmReader(find_files(path), ReadOptions()).read(), plain)
    assert libsvm_prefetch._started is None


def test_a_bad_line_is_named_as_without_a_head_start(tmp_path):
    path = write(tmp_path / "a.svm", bad=1500)
    with pytest.raises(FormatError) as plain:
        LibsvmReader(find_files(path), ReadOptions()).read()
    start(path)
    with pytest.raises(FormatError) as prefetch:
        LibsvmReader(find_files(path), ReadOptions()).read()
    assert str(prefetch.value) == str(plain.value)
    assert "line 1502" in str(prefetch.value)


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"zero_based": True}, {"n_features": 100}])
def test_a_head_start_in_another_way_is_dropped(tmp_path, options):
    path = write(tmp_path / "a.svm")
    plain = LibsvmReader(find_files(path), ReadOptions(**options)).read()
    start(path)
    same(LibsvmReader(find_files(path), ReadOptions(**options)).read(), plain)
    assert libsvm_prefetch._started is None


def test_a_file_that_has_changed_is_read_anew(tmp_path):
    path = write(tmp_path / "a.svm")
    start(path)
    libsvm_prefetch._started._thread.join()
    write(path, n=1000, seed=1)
    assert LibsvmReader(find_files(path), ReadOptions()).read().n_rows == 1000


def test_several_files_are_read_without_it(tmp_path):
    paths = [write(tmp_path / "a.svm"), write(tmp_path / "b.svm", seed=1)]
    start(paths[0])
    assert LibsvmReader(find_files(paths), ReadOptions()).read().n_rows == 4000


@pytest.mark.parametrize(
    "arguments",
    [
        "train -o {old} {text}",
        "train {text} -o {old} --C 2",
        "train --loss hinge {text}",
        "select --resume {old} {text}",
    ],
)
def test_the_command_finds_its_file(tmp_path, arguments):
    text, old = write(tmp_path / "a.svm"), write(tmp_path / "old.svm", n=10)
    begin_prefetch(arguments.format(text=text, old=old).split())
    assert libsvm_prefetch._started.identity[2] == text.stat().st_size


@pytest.mark.parametrize(
    "arguments",
    [
        "convert {text} b.store",
        "train {text} --help",
        "train missing.svm",
        "train {csv}",
        "train {text} --memory 64M",
        "train {text} --memory=64M",
    ],
)
def test_nothing_is_begun_where_nothing_would_be_read(tmp_path, arguments):
    text, csv = write(tmp_path / "a.svm"), tmp_path / "a.csv"
    csv.write_text("a,y\n1,2\n")
    begin_prefetch(arguments.format(text=text, csv=csv).split())
    assert libsvm_prefetch._started is None
