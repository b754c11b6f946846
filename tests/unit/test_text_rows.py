"""Rows as scikit-learn's vectorizers give them: the features of a row come in no order."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from row_orders import unsorted
from sklearn.base import clone, is_classifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from beeline import Block, ElasticNet, Lasso, LinearModel, LinearSVC, LinearSVR, LogisticRegression
from beeline.kernels import num_threads, set_num_threads

WORDS = np.array([f"{a}{b}" for a in "zqmfa" for b in "klmnopqrstuv"])
RNG = np.random.default_rng(0)
CLASSES = RNG.integers(0, 3, 150)
# Each class has words that it likes; the first to be met are the last in the alphabet.
TEXTS = [
    " ".join(WORDS[(RNG.zipf(1.5, size=25) + 11 * label * RNG.integers(0, 2, 25)) % len(WORDS)]) for label in CLASSES
]

ESTIMATORS = [
    LogisticRegression(),
    LogisticRegression(multi_class="ovr", solver="newton"),
    LogisticRegression(l1_ratio=1.0),
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVC(multi_class="crammer_singer"),
    LinearModel(loss="hinge", solver="smoothed_newton"),
    LinearModel(loss="hinge", solver="bundle", tol=1e-3),
    LinearModel(loss="logistic", solver="lbfgs"),
    Lasso(alpha=0.01),
    ElasticNet(alpha=0.01),
    LinearSVR(),
]


TFIDF = TfidfVectorizer().fit_transform(TEXTS)


def rows_and_labels(estimator):
    X = sp.csr_matrix((TFIDF.data.copy(), TFIDF.indices.copy(), TFIDF.indptr.copy()), TFIDF.shape)
    assert not X.has_sorted_indices
    return X, CLASSES if is_classifier(estimator) else CLASSES.astype(float)


def in_order(X):
    fresh = sp.csr_array((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    fresh.sort_indices()
    return fresh


@pytest.fixture
def no_sorting(monkeypatch):
    """Whoever would sort the features of rows fails."""

    def fail(*_):
        raise AssertionError("the features of the rows were sorted")

    for kind in (sp.csr_matrix, sp.csr_array):
        for name in ("sort_indices", "sorted_indices", "sum_duplicates"):
            monkeypatch.setattr(kind, name, fail)
    monkeypatch.setattr(Block, "_canonical_copy", fail)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_rows_in_any_order_train_the_same_model(estimator):
    X, y = rows_and_labels(estimator)
    mixed, sorted_rows, dense = (clone(estimator).fit(rows, y) for rows in (X, in_order(X), X.toarray()))
    for other in (sorted_rows, dense):
        assert mixed.report_.objective == pytest.approx(other.report_.objective, rel=2 * estimator.tol)
    np.testing.assert_allclose(mixed.predict(X), mixed.predict(X.toarray()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_nobody_sorts_or_touches_the_rows(estimator, no_sorting):
    X, y = rows_and_labels(estimator)
    before = [array.tobytes() for array in (X.data, X.indices, X.indptr)]
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    clone(estimator).fit(X, y).predict(X)
    assert before == [array.tobytes() for array in (X.data, X.indices, X.indptr)]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_repeated_entries_count_as_their_sum(estimator):
    X, y = rows_and_labels(estimator)
    halves = sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    repeated = unsorted(halves)
    before = repeated.indices.tobytes()
    model, expected = clone(estimator).fit(repeated, y), clone(estimator).fit(in_order(X), y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)  # halves add up without rounding
    np.testing.assert_allclose(model.predict(repeated), expected.predict(in_order(X)), rtol=1e-12, atol=1e-12)
    assert before == repeated.indices.tobytes()


VECTORIZERS = [CountVectorizer(), TfidfVectorizer(), HashingVectorizer(n_features=256)]


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=str)
def test_pipelines(vectorizer):
    pipeline = make_pipeline(vectorizer, LogisticRegression()).fit(TEXTS, CLASSES)
    X = pipeline[0].transform(TEXTS)
    direct = LogisticRegression().fit(X.toarray(), CLASSES)
    assert pipeline[-1].report_.objective == pytest.approx(direct.report_.objective, rel=2e-4)
    assert pipeline.score(TEXTS, CLASSES) == pytest.approx(direct.score(X.toarray(), CLASSES), abs=0.02)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_same_bits_for_any_threads(estimator):
    X, y = rows_and_labels(estimator)
    before, found = num_threads(), set()
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            found.add(clone(estimator).fit(X, y).coef_.tobytes())
    finally:
        set_num_threads(before)
    assert len(found) == 1
