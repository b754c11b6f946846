"""`.npz` archives, read in step."""

import io
import zipfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beeline.data.files.finding import find_files
from beeline.data.npz.reader import NpzReader
from beeline.data.options import ReadOptions
from beeline.data.recipe.recipe import Recipe
from beeline.exceptions import BeelineError, DataError, FormatError, ParameterError

X = np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 5, 6]])
Y = np.array([1, -1, 1, -1])


def reader(path, **options):
    return NpzReader(find_files(path), ReadOptions(**options))


def streamed(path, memory, **options):
    source = reader(path, **options)
    source.prepare(memory)
    return list(source.blocks(memory))


@pytest.fixture
def save(tmp_path):
    def to_file(compressed=False, name="t.npz", **arrays):
        path = tmp_path / name
        (np.savez_compressed if compressed else np.savez)(path, **arrays)
        return path

    return to_file


@pytest.mark.parametrize("compressed", [False, True])
def test_dense_rows_with_all_that_goes_beside_them(save, compressed):
    path = save(compressed, X=X, y=Y, weights=[1.0, 2, 0, 1], queries=[7, 7, 8, 8])
    data = reader(path).read()
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.labels, Y)
    np.testing.assert_array_equal(data.weights, [1, 2, 0, 1])
    np.testing.assert_array_equal(data.queries, [7, 7, 8, 8])
    assert data.recipe.feature_names is None
    assert data.X.dtype == np.float64


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_a_matrix_saved_by_scipy(tmp_path, make):
    scipy.sparse.save_npz(tmp_path / "t.npz", make(X))
    data = reader(tmp_path / "t.npz").read()
    assert data.block.is_sparse
    np.testing.assert_array_equal(data.block.to_dense(), X)
    assert data.labels is None
    assert not reader(tmp_path / "t.npz", layout="dense").read().block.is_sparse


def test_csr_arrays_with_labels(save):
    csr = scipy.sparse.csr_array(X)
    path = save(data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape, labels=Y)
    data = reader(path).read()
    np.testing.assert_array_equal(data.block.to_dense(), X)
    np.testing.assert_array_equal(data.labels, Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64, bool, np.float16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_types_and_orders_of_dense_arrays(save, dtype, order):
    path = save(X=np.array(X, dtype, order=order))
    for wanted in ("float32", "float64"):
        data = reader(path, dtype=wanted).read()
        assert data.X.dtype == wanted
        np.testing.assert_array_equal(data.X, X.astype(dtype))
    assert reader(path, layout="sparse").read().block.is_sparse


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 3000), st.booleans(), st.integers(0, 2**32 - 1))
def test_any_memory_gives_the_same_rows(tmp_path, n, d, memory, is_sparse, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-3, 4, (n, d)) * (rng.random((n, d)) < 0.4)
    path = tmp_path / "t.npz"
    if is_sparse:
        csr = scipy.sparse.csr_array(rows.astype(float))
        arrays = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": csr.shape}
    else:
        arrays = {"X": rows}
    np.savez(path, y=np.arange(n), **arrays)
    for scale in ("none", "standard"):
        whole = reader(path, scale=scale).read()
        blocks = streamed(path, memory, scale=scale)
        np.testing.assert_allclose(np.vstack([b.to_dense() for b in blocks]), whole.block.to_dense(), atol=1e-12)
        np.testing.assert_array_equal(np.concatenate([b.labels for b in blocks]), np.arange(n))
    if memory < 32 and not is_sparse:
        assert len(blocks) == n


def test_unsorted_and_repeated_entries_of_csr_are_put_in_order(save):
    path = save(data=[1.0, 2.0, 3.0], indices=[2, 0, 2], indptr=[0, 3], shape=[1, 3])
    np.testing.assert_array_equal(reader(path).read().block.to_dense(), [[2, 0, 4]])


def test_several_archives_and_a_recipe(save):
    paths = [save(name="a.npz", X=X), save(name="b.npz", X=2 * X)]
    data = reader(paths, scale="maxabs").read()
    assert data.n_rows == 8
    assert np.abs(data.X).max() == 1
    again = reader(paths[0], recipe=data.recipe).read()
    np.testing.assert_array_equal(again.X, data.X[:4])
    with pytest.raises(DataError, match=r"3 features do not match the 5 of the recipe"):
        reader(paths[0], recipe=Recipe(5))
    with pytest.raises(DataError, match=r"c.npz: 2 features do not match the 3 of .*a.npz"):
        reader([paths[0], save(name="c.npz", X=X[:, :2])])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": X}, "'data' is not among Z"),
        ({"X": X, "extra": Y}, "array 'extra' is not known"),
        ({"X": X, "y": Y, "labels": Y}, "labels twice"),
        ({"X": X, "y": Y[:2]}, r"array 'y' has shape \(2,\), not one number for each of 4 rows"),
        ({"X": Y}, "X must have rows and columns"),
        ({"X": np.array([["a"]])}, "X holds <U1, not numbers"),
        ({"X": np.array([[object()]], object)}, "array 'X' holds Python objects, which are never loaded"),
        ({"X": np.array([[1.0, np.nan]])}, "NaN or infinite"),
        ({"X": X, "weights": [1, 1, 1, -1]}, "weights must not be negative"),
        ({"X": X, "queries": [1.5, 1, 1, 1]}, "query ids must be one whole number"),
        ({"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [1, 1], "format": "csc"}, "'csc', not CSR"),
        ({"data": [1.0], "indices": [0], "indptr": [0, 1, 1], "shape": [1, 1]}, "indptr must have 2 entries"),
        ({"data": [1.0], "indices": [0, 0], "indptr": [0, 1], "shape": [1, 1]}, "same length"),
        ({"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [1, 1, 1]}, "shape of a matrix must be two whole"),
        ({"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [1, -1]}, "shape of a matrix must be two whole"),
        ({"data": [1.0], "indices": [5], "indptr": [0, 1], "shape": [1, 2]}, "CSR|index"),
        ({"data": [1.0, 2.0], "indices": [0, 0], "indptr": [0, 2, 1], "shape": [2, 2]}, "indptr"),
        ({"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1], "shape": [1, 2]}, "do not end"),
        ({"data": [1.0], "indices": [0], "indptr": [1, 1], "shape": [1, 2]}, "begin with 0"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(save, arrays, message):
    path = save(**arrays)
    with pytest.raises(BeelineError, match=message) as caught:
        reader(path).read()
    assert "t.npz" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_large_for_float32(save):
    with pytest.raises(DataError, match="infinite"):
        reader(save(X=np.array([[1e300]])), dtype="float32").read()


def test_a_broken_archive(save):
    path = save(X=np.arange(3000.0).reshape(1000, 3))
    whole = path.read_bytes()
    path.write_bytes(whole[:10_000])
    with pytest.raises(FormatError, match=r"t.npz: this is no valid .npz file"):
        reader(path)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive, zipfile.ZipFile(io.BytesIO(whole)) as good:
        archive.writestr("X.npy", good.read("X.npy")[:5000])
    path.write_bytes(content.getvalue())
    with pytest.raises(FormatError, match="array 'X' ends too early"):
        reader(path).read()
    altered = bytearray(whole)
    altered[5000] ^= 255
    path.write_bytes(bytes(altered))
    with pytest.raises(FormatError, match="array 'X' cannot be read: Bad CRC-32"):
        reader(path).read()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("rows", ["dense", "by columns", "sparse"])
def test_any_damaged_byte_is_told_or_does_no_harm(save, compressed, rows):
    csr = scipy.sparse.csr_array(X)
    path = save(
        compressed,
        y=Y,
        **{
            "dense": {"X": X},
            "by columns": {"X": np.asfortranarray(X)},
            "sparse": {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": csr.shape},
        }[rows],
    )
    whole, told = path.read_bytes(), []
    for place in range(0, len(whole), 3):
        altered = bytearray(whole)
        altered[place] ^= 255
        path.write_bytes(bytes(altered))
        try:
            np.testing.assert_array_equal(reader(path, format="npz").read().block.to_dense(), X)
        except BeelineError as error:
            told.append(str(error))
    assert len(told) > len(whole) / 12
    assert all("t.npz" in sentence and "\n" not in sentence for sentence in told)


def test_a_header_that_lies_about_the_size_takes_no_memory(save, tmp_path):
    path = tmp_path / "t.npz"
    for name, claimed in (("X", "(10000000000, 3)"), ("X", "(-2, 3)"), ("shape", "(100000000000,)")):
        arrays = {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [1, 1]} if name == "shape" else {"X": X}
        content = io.BytesIO()
        np.savez(content, **arrays)
        with zipfile.ZipFile(content) as good, zipfile.ZipFile(path, "w") as archive:
            for member in good.namelist():
                stored = good.read(member)
                if member == f"{name}.npy":
                    header = stored[10:128].decode()
                    begin, end = header.index("(") - 1, header.index("),") + 1
                    lie = f"{header[: begin + 1]}{claimed}{header[end:]}".rstrip().ljust(117) + "\n"
                    stored = stored[:10] + lie.encode() + stored[128:]
                archive.writestr(member, stored)
        with pytest.raises(FormatError, match=r"t.npz: array .*(has the impossible shape|ends too early|its shape is)"):
            reader(path).read()


def test_arrays_by_columns_must_fit_the_memory(save):
    path = save(X=np.asfortranarray(np.ones((100, 50))))
    with pytest.raises(FormatError, match=r"lies column by column.*ascontiguousarray"):
        streamed(path, 1000)
    assert sum(b.n_rows for b in streamed(path, 100_000)) == 100


@pytest.mark.parametrize("options", [{"label": "y"}, {"missing": "zero"}, {"zero_based": True}, {"header": True}])
def test_options_without_a_meaning_are_refused(save, options):
    with pytest.raises(ParameterError, match=r"has no meaning for .npz files"):
        reader(save(X=X), **options)
