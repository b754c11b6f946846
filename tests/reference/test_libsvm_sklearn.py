"""LIBSVM text against scikit-learn's reader, on generated and on real files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from beeline.data.files.finding import find_files
from beeline.data.options import ReadOptions
from beeline.data.text.libsvm import LibsvmReader


def assert_same(path, **options) -> None:
    data = LibsvmReader(find_files(path), ReadOptions(**options), chunk_bytes=10_000).read()
    open_ = gzip.open if str(path).endswith(".gz") else open
    with open_(path, "rb") as file:
        X, y, *queries = load_svmlight_file(file, query_id=data.queries is not None)
    assert data.shape == X.shape
    assert data.labels.tolist() == y.tolist()
    # scikit-learn drops explicit zeros.
    ours = data.X.tocsr()
    assert (ours != X).nnz == 0
    for ids in queries:
        assert data.queries.tolist() == ids.tolist()


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("with_queries", [True, False])
def test_generated(tmp_path, zero_based, with_queries):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 40)) * 10.0 ** rng.integers(-12, 12, (500, 40)) * (rng.random((500, 40)) < 0.2)
    X[0, [0, 39]] = 1.0
    queries = np.sort(rng.integers(0, 20, 500)) if with_queries else None
    path = tmp_path / "a.svm"
    dump_svmlight_file(
        scipy.sparse.csr_array(X), rng.integers(-1, 2, 500), str(path), zero_based=zero_based, query_id=queries
    )
    assert_same(path)


@pytest.mark.parametrize(
    ("name", "file"),
    [("a9a", "a9a.gz"), ("a9a", "a9a.t.gz"), ("w8a", "w8a.gz"), ("mq2008", "test.txt.gz"), ("mq2008", "vali.txt.gz")],
)
def test_real(shared_data, name, file):
    assert_same(shared_data(name) / file)
