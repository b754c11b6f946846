"""Smaller types for rows of LIBSVM text: taken only where nothing that is written is lost."""

from dataclasses import replace

import numpy as np
import pytest

from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.data.files.finding import find_files
from beeline.data.options import ReadOptions
from beeline.data.text import dialect
from beeline.data.text.libsvm import LibsvmReader
from beeline.fitting import Settings, fit
from beeline.kernels import _kernels
from beeline.training.labels import count_labels, find_classes


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(dialect, "_MANY", 0)


@pytest.fixture(params=[0, 1, 2])
def instructions(request):
    _kernels.limit_libsvm_instructions(request.param)
    yield
    _kernels.limit_libsvm_instructions(2)


def read(path, text, narrow=True, **options):
    path = path / "rows.svm"
    path.write_text(text)
    return LibsvmReader(find_files(path), ReadOptions(**options), chunk_bytes=64).read(narrow=narrow)


def texts(seed=0, n=300, largest=3):
    """Lines whose numbers have up to six digits, in all ways of writing."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        features = np.sort(rng.choice(60, rng.integers(0, 20), replace=False)) + 1
        ways = ("{:.6g}", "{:.3f}", "{:.0f}", "{:.2e}", "{:.5e}")
        numbers = [rng.choice(ways).format(rng.normal() * 10.0 ** rng.integers(largest - 9, largest)) for _ in features]
        lines.append(f"{rng.choice((-1, 1))} " + " ".join(f"{j}:{x}" for j, x in zip(features, numbers, strict=True)))
    return "\n".join(lines) + "\n"


@pytest.mark.usefixtures("instructions")
def test_six_digits_are_kept(tmp_path):
    text = texts()
    wide, small = (read(tmp_path, text, narrow).block for narrow in (False, True))
    assert (wide.values.dtype, small.values.dtype) == (np.float64, np.float32)
    assert (small.indices.dtype, small.indptr.dtype) == (np.uint16, np.int32)
    assert np.array_equal(small.values, wide.values.astype(np.float32))
    assert [f"{x:.6g}" for x in small.values.tolist()] == [f"{x:.6g}" for x in wide.values.tolist()]
    for name in ("indices", "indptr", "labels"):
        assert np.array_equal(getattr(small, name), getattr(wide, name))


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("number", ["0.5000000", "16777216", "-1.25e3", "0", "1048576.5", "123456", "1e-37"])
def test_what_float32_keeps_is_kept(tmp_path, number):
    values = read(tmp_path, texts() + f"1 1:1 2:2 3:{number} 4:4 5:5 6:6 7:7 8:8 9:9\n").block.values
    assert values.dtype == np.float32
    assert float(values[-7]) == float(np.float32(float(number)))


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("number", ["1234567.3", "16777217", "0.1234567", "1e39", "1e-40", "1600000001", "1.0000001e0"])
def test_one_number_that_float32_would_change_keeps_all_as_they_are(tmp_path, number):
    text = texts() + f"1 1:1 2:2 3:{number} 4:4 5:5 6:6 7:7 8:8 9:9\n"
    wide, small = (read(tmp_path, text, narrow).block for narrow in (False, True))
    assert small.values.dtype == np.float64
    assert np.array_equal(small.values, wide.values)
    assert small.values[-7] == float(number)


@pytest.mark.parametrize(
    ("last", "kind"), [(65536, np.uint16), (65537, np.int32), (2**31, np.int32), (2**31 + 1, np.int64)]
)
def test_indices_take_as_many_bits_as_they_need(tmp_path, last, kind):
    data = read(tmp_path, texts() + f"1 3:1 {last}:2\n")
    assert (data.block.indices.dtype, data.n_features) == (kind, last)
    assert data.block.indices[-1] == last - 1


def test_types_that_are_asked_for_are_given(tmp_path):
    assert read(tmp_path, texts(), dtype="float64").block.values.dtype == np.float64
    assert read(tmp_path, texts(), narrow=False).block.values.dtype == np.float64
    assert read(tmp_path, texts(), scale="maxabs").block.values.dtype == np.float64


def test_few_rows_stay_as_they_are(tmp_path, monkeypatch):
    monkeypatch.undo()
    assert read(tmp_path, texts()).block.values.dtype == np.float64


def test_verbs_of_small_indices(tmp_path):
    small = read(tmp_path, texts()).block
    usual = replace(small, indices=small.indices.astype(np.int32), indptr=small.indptr.astype(np.int64))
    rng = np.random.default_rng(0)
    w, u, h = rng.normal(size=60), rng.normal(size=small.n_rows), rng.random(small.n_rows)
    W = rng.normal(size=(60, 3))
    picked = rng.permutation(small.n_rows)[:50]
    for verb in (
        lambda b: b.scores(w),
        lambda b: b.scores(W),
        lambda b: b.transposed(u),
        lambda b: b.gram_matvec(h, w)[0],
        lambda b: b.gram(h),
        lambda b: b.gather(picked).scores(w),
        lambda b: b.features(np.arange(5, 30)).to_dense(),
        lambda b: b.rows(10, 40).to_dense(),
    ):
        assert np.array_equal(verb(small), verb(usual))


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
@pytest.mark.parametrize("solver", ["auto", "dual_cd"])
def test_models_agree(tmp_path, loss, solver):
    text = texts(n=400, largest=1)
    models = [
        fit(read(tmp_path, text, narrow), Settings(loss=loss, solver=solver, C=0.1)).model for narrow in (False, True)
    ]
    assert np.array_equal(models[0].classes, models[1].classes)
    assert np.allclose(models[0].weights, models[1].weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8, np.uint8, np.int64])
def test_labels_are_numbered_in_little_memory(kind):
    rng = np.random.default_rng(0)
    names = np.array([0, 3, 7, 100] if kind == np.uint8 else [-100, -1, 3, 100], kind)
    y = names[rng.integers(0, 4, 200_000)]
    classes = find_classes(y, None)
    assert classes.names.dtype == kind
    assert classes.numbers.dtype == np.int8
    assert np.array_equal(classes.names, names)
    assert np.array_equal(classes.names[classes.numbers], y)
    assert count_labels(y) == 4


def test_labels_far_apart_are_counted():
    y = np.array([0.0, 1e300, -5.0, 1e300])
    assert count_labels(y) == 3
    assert count_labels(np.append(y, 0.5)) is None


def test_labels_can_be_given_away():
    data = ArrayDataset(Block(np.eye(3), 3, labels=np.arange(3.0)))
    assert np.array_equal(data.give_labels(), np.arange(3.0))
    assert data.labels is None
