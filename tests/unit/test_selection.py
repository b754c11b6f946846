"""The search for C: against brute force, for every kind of task, interrupted, resumed, in every layout."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

from beeline import (
    ElasticNet,
    Lasso,
    LinearModel,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    Model,
    convert,
    open_store,
    read,
    select_C,
)
from beeline.exceptions import LabelError, ParameterError, SourceError
from beeline.losses import ScalarLoss
from beeline.selection import End, PathPoint, Selection
from beeline.selection.folds import make_folds
from beeline.selection.rescaling import Rescaling
from beeline.selection.runners import _InLockstep, _InParallel
from beeline.selection.scoring import get_metric


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:240], y[:240]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:150] * 10, y[:150] / 50


def brute_force(X, y, make, C, folds):
    """The mean score of models trained anew for every fold."""
    scores = [make(C).fit(X[f.train], y[f.train]).score(X[f.test], y[f.test]) for f in folds]
    return float(np.average(scores, weights=[f.test.sum() for f in folds]))


# Right


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_the_curve_is_that_of_models_trained_one_by_one(cancer, loss):
    X, y = cancer
    selection = select_C(X, loss, y, tol=1e-8, seed=3, C_max=1.0 if loss == "squared_hinge" else 0.1)
    folds = make_folds(5, y.astype(float), classes=True, seed=3)
    for point in selection.curve[::4]:
        expected = brute_force(X, y, lambda C: LinearSVC(C=C, loss=loss, tol=1e-8, max_passes=1e5), point.C, folds)
        assert abs(point.score - expected) < 1.5 / len(y)


def test_the_best_is_the_smallest_of_the_best():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 8))
    y = X @ rng.normal(size=8) + 2 * rng.normal(size=300) > 0  # which no weights separate
    selection = select_C(X, "squared_hinge", y, stop="paper")
    best = max(point.score for point in selection.curve)
    assert selection.best_C == min(point.C for point in selection.curve if point.score == best)
    assert selection.best_score == best
    assert selection.end is End.SETTLED
    assert all(point.stop_ratio <= selection.stop_tol for point in selection.curve[-3:])
    assert [point.settled for point in selection.curve[-4:]] == [False, True, True, True]


def test_log_loss_is_least_not_most(cancer):
    selection = select_C(cancer[0], "logistic", cancer[1])
    assert selection.metric == "log_loss"
    assert selection.best_score == min(point.score for point in selection.curve)
    assert "log_loss" in selection.sentence


def test_one_standard_error_takes_a_smaller_one(cancer):
    selection = select_C(cancer[0], "logistic", cancer[1])
    careful = selection.with_rule("one_se")
    assert careful.best_C < selection.best_C
    assert careful.best_score <= selection.best_score + selection.best.standard_error
    assert select_C(cancer[0], "logistic", cancer[1], rule="one_se").best_C == careful.best_C


def test_cold_starts_give_the_same_scores(cancer):
    selection = select_C(cancer[0], "squared_hinge", cancer[1], tol=1e-5, compare_cold=True)
    assert selection.cold is not None
    assert [p.C for p in selection.cold.curve] == [p.C for p in selection.curve]
    assert_allclose([p.score for p in selection.cold.curve], [p.score for p in selection.curve], atol=0.01)
    passes = [sum(p.passes for p in s.curve) for s in (selection, selection.cold)]
    assert passes[0] < passes[1]


def test_one_vector_a_fold():
    """Held-out rows never touch the weights that judge them: shuffled labels are not predicted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 150))
    y = rng.integers(0, 2, size=120)
    selection = select_C(X, "logistic", y, metric="accuracy", all_the_way=True)
    assert all(abs(point.score - 0.5) < 0.2 for point in selection.curve)


# Every kind of task


@pytest.mark.parametrize(
    ("loss", "settings"),
    [
        ("logistic", {}),
        ("logistic", {"multiclass": "ovr"}),
        ("hinge", {}),
        ("squared_hinge", {"class_weight": "balanced"}),
        ("hinge", {"multiclass": "crammer_singer", "C_max": 4.0}),
        ("logistic", {"regularizer": "l1"}),
        ("squared_hinge", {"regularizer": "elastic_net"}),
        ("soft_hinge", {"intercept": "regularized"}),
    ],
)
def test_three_classes(iris, loss, settings):
    selection = select_C(*iris[:1], loss, iris[1], metric="accuracy", **settings)
    assert selection.best_score > 0.9
    assert len(selection.curve) > 5


@pytest.mark.parametrize(
    ("loss", "settings"),
    [
        ("squared", {}),
        ("squared", {"regularizer": "l1"}),
        ("epsilon_insensitive", {}),
        ("squared_epsilon_insensitive", {"intercept": "none"}),
    ],
)
def test_regressions(diabetes, loss, settings):
    selection = select_C(diabetes[0], loss, diabetes[1], **settings)
    assert selection.metric == "rmse"
    first, best = selection.curve[0].score, selection.best_score
    assert best < (0.95 * first if settings.get("intercept") != "none" else first)


def test_epsilon_is_searched_for_too(diabetes):
    X, y = diabetes[0][:60], diabetes[1][:60]
    selection = select_C(X, "squared_epsilon_insensitive", y, search_epsilon=True, C_max=2.0**4, delta=8)
    epsilons = [point.epsilon for point in selection.curve]
    assert_allclose(list(dict.fromkeys(epsilons)), np.arange(19, -1, -1) * np.abs(y).max() / 20)
    assert selection.best.epsilon in epsilons
    assert selection.best_score == min(point.score for point in selection.curve)
    svr = LinearSVR(C="auto", epsilon="auto", loss="squared_epsilon_insensitive", cv=3).fit(X, y)
    assert svr.epsilon_ == svr.selection_.best.epsilon
    with pytest.raises(ParameterError, match="give C='auto' too"):
        LinearSVR(epsilon="auto").fit(X, y)


class LogCosh(ScalarLoss):
    """A loss of one's own, with a curvature."""

    name = "own"
    labels = "real"

    def value_and_grad(self, z, y):
        r = z - y
        return np.log(np.cosh(r)), np.tanh(r)

    def curvature(self, z, y):
        return 1 / np.cosh(z - y) ** 2


def test_a_loss_of_ones_own(diabetes):
    selection = select_C(diabetes[0], LogCosh(), diabetes[1], metric="mae")
    assert selection.best_score < selection.curve[0].score


def test_every_estimator_takes_auto(cancer, iris, diabetes):
    for estimator, (X, y) in (
        (LinearSVC(C="auto"), cancer),
        (LogisticRegression(C="auto"), iris),
        (LinearModel(C="auto", loss="hinge", regularizer="l2"), cancer),
        (LinearSVR(C="auto"), diabetes),
        (Lasso(alpha="auto"), diabetes),
        (ElasticNet(alpha="auto"), diabetes),
    ):
        fitted = estimator.set_params(tol=1e-9).fit(X, y)
        best = fitted.selection_.best_C
        assert fitted.score(X, y) > (0.9 if hasattr(fitted, "classes_") else 0.3)
        if hasattr(estimator, "alpha"):
            assert_allclose(fitted.alpha_, 1 / (best * len(y)))
        else:
            assert best == fitted.C_
        given = {"alpha": fitted.alpha_} if hasattr(estimator, "alpha") else {"C": fitted.C_}
        again = type(estimator)(**{**estimator.get_params(), **given}).fit(X, y)
        assert_allclose(again.coef_, fitted.coef_, rtol=1e-3, atol=1e-3)
        assert not hasattr(again, "selection_")


def test_a_saved_model_knows_what_was_found(cancer, tmp_path):
    fitted = LinearSVC(C="auto").fit(*cancer)
    fitted.model_.save(tmp_path / "m")
    assert Model.load(tmp_path / "m").settings["C"] == fitted.C_


# Folds of all kinds


def test_groups_stay_whole(cancer):
    X, y = cancer
    groups = np.arange(len(y)) // 8
    ours = select_C(X, "squared_hinge", y, groups=groups, folds=4)
    folds = make_folds(4, y.astype(float), classes=True, groups=groups)
    given = select_C(X, "squared_hinge", y, folds=[(fold.train, fold.test) for fold in folds])
    assert [p.fold_scores for p in ours.curve] == [p.fold_scores for p in given.curve]
    with pytest.raises(ParameterError, match=r"groups must be one a row, 240 in all, not of shape \(3,\)"):
        select_C(X, "hinge", y, groups=[1, 2, 3])
    fitted = LinearSVC(C="auto", cv=4).fit(X, y, groups=groups)
    assert [p.score for p in fitted.selection_.curve] == [p.score for p in ours.curve]


def test_queries_stay_whole(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{1 if (x := rng.normal()) > 0 else -1} qid:{i // 5} 1:{x:.3f} 2:{rng.normal():.3f}" for i in range(100)]
    (tmp_path / "q.svm").write_text("\n".join(lines) + "\n")
    data = read(tmp_path / "q.svm")
    assert data.queries is not None
    inside = select_C(data, "squared_hinge")
    given = select_C(data, "squared_hinge", groups=data.queries)
    assert [p.fold_scores for p in inside.curve] == [p.fold_scores for p in given.curve]


def test_a_single_hold_out(cancer):
    selection = select_C(cancer[0], "squared_hinge", cancer[1], folds=0.25)
    assert len(selection.best.fold_scores) == 1
    assert selection.best.fold_weights == (60.0,)
    assert selection.best.spread == 0


def test_weights_count(cancer):
    """A weight of 2 is the row twice, in training and in the score; rows of weight 0 are not there."""
    X, y = cancer[0][:80], cancer[1][:80]
    weights = np.where(np.arange(80) < 20, 2.0, 1.0)
    folds = make_folds(4, y.astype(float), classes=True)
    twice = np.append(np.arange(80), np.arange(20))
    repeated = [(np.flatnonzero(f.train[twice]), np.flatnonzero(f.test[twice])) for f in folds]
    pairs = [(np.flatnonzero(f.train), np.flatnonzero(f.test)) for f in folds]
    weighted = select_C(X, "logistic", y, sample_weight=weights, folds=pairs, C_min=2.0**-8, C_max=1.0, tol=1e-8)
    plain = select_C(X[twice], "logistic", y[twice], folds=repeated, C_min=2.0**-8, C_max=1.0, tol=1e-8)
    assert_allclose([p.score for p in weighted.curve], [p.score for p in plain.curve], rtol=1e-5)
    assert_allclose(weighted.best.fold_weights, plain.best.fold_weights)
    zero = np.where(np.arange(80) < 20, 0.0, 1.0)
    left_out = select_C(X, "squared_hinge", y, sample_weight=zero)
    assert sum(left_out.best.fold_weights) == 60


# The same for all


def test_dense_sparse_and_store_are_the_same(cancer, tmp_path):
    X, y = cancer
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    convert(tmp_path / "rows.npz", tmp_path / "rows.store")
    for loss in ("logistic", "hinge"):
        dense, sparse, store = (
            select_C(data, loss, y, C_max=0.5)
            for data in (X, scipy.sparse.csr_matrix(X), open_store(tmp_path / "rows.store"))
        )
        for other in (sparse, store):
            assert other.best_C == pytest.approx(dense.best_C)
            assert_allclose([p.score for p in other.curve], [p.score for p in dense.curve], rtol=1e-6, atol=0.009)


def test_smooth_losses_go_in_lockstep_and_agree_with_parallel(cancer):
    together = select_C(cancer[0], "logistic", cancer[1], tol=1e-7)
    apart = select_C(cancer[0], "logistic", cancer[1], tol=1e-7, solver="dual_cd", max_passes=1e4, C_max=1.0)
    scores = [[p.score for p in selection.curve if p.C <= 1.0] for selection in (together, apart)]
    assert len(scores[0]) > 12
    assert_allclose(*scores, rtol=1e-3)


def test_scaling_is_learned_inside_folds(tmp_path):
    """The outlier of the rows that are held out must not shrink the features of those that are trained on."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3)) * [1, 10, 100]
    X[0] *= 50
    y = (X[:, 1] > 0).astype(int)
    text = "\n".join(
        ["a,b,c,y", *(",".join(map(repr, [*row.tolist(), int(label)])) for row, label in zip(X, y, strict=True))]
    )
    (tmp_path / "t.csv").write_text(text + "\n")
    for scaling, learn in (
        ("standard", lambda t: (t.mean(0), t.std(0))),
        ("minmax", lambda t: (t.min(0), np.ptp(t, 0))),
    ):
        data = read(tmp_path / "t.csv", label="y", scale=scaling)
        folds = [(np.arange(30, 90), np.arange(30)), (np.arange(60), np.arange(60, 90))]
        for loss, tolerance in (("logistic", 1e-4), ("hinge", 5e-2)):
            found = select_C(data, loss, folds=folds, C_min=1.0, C_max=1.0, tol=1e-9)
            for k, (train, test) in enumerate(folds):
                low, width = learn(X[train])
                fold = (X - low) / width
                model = LinearModel(loss, C=1.0, tol=1e-10).fit(fold[train], y[train])
                z = model.decision_function(fold[test]) * np.where(y[test] == 1, 1, -1)
                expected = np.mean(np.logaddexp(0, -z)) if loss == "logistic" else np.mean(z > 0)
                assert_allclose(found.curve[0].fold_scores[k], expected, rtol=tolerance)


def test_a_feature_that_is_scaled_already_is_scaled_inside_folds_too(tmp_path):
    """What lies between 0 and 1 by itself is no indicator: without its largest rows a fold sees another range."""
    rng = np.random.default_rng(2)
    X = np.column_stack([np.linspace(0, 1, 90) ** 4, rng.normal(size=90)])
    y = (X[:, 1] > 0).astype(int)
    lines = ["a,b,kind,y", *(f"{a!r},{b!r},{'uv'[i % 2]},{y[i]}" for i, (a, b) in enumerate(X.tolist()))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    data = read(tmp_path / "t.csv", label="y", scale="minmax")
    (scaling,) = [Rescaling.of(data).learned(np.arange(90) < 60)]
    assert_allclose(1 / scaling.factor[0], X[59, 0])
    assert_array_equal(scaling.factor[2:], 1.0)


# Ended before its end


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_callback_ends_the_search(cancer, loss):
    seen: list[PathPoint] = []
    selection = select_C(cancer[0], loss, cancer[1], on_point=lambda p: seen.append(p) or len(seen) == 4)
    assert selection.end is End.CALLBACK
    assert list(selection.curve) == seen
    assert selection.start is not None


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_an_interrupt_keeps_what_was_found(cancer, loss, monkeypatch):
    kind = _InLockstep if loss == "logistic" else _InParallel
    real, calls = kind.go, []

    def go(self, C):
        calls.append(C)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(self, C)

    monkeypatch.setattr(kind, "go", go)
    fitted = LinearModel(loss, C="auto").fit(*cancer)
    assert fitted.selection_.end is End.INTERRUPTED
    assert len(fitted.selection_.curve) == 4
    assert fitted.selection_.best_C == fitted.C_
    calls[:] = [0] * 4
    with pytest.raises(KeyboardInterrupt):
        select_C(cancer[0], loss, cancer[1])


@pytest.mark.filterwarnings("ignore:at no C:beeline.exceptions.ModelWarning")  # of the part before it was ended
@pytest.mark.parametrize(
    ("loss", "settings"), [("logistic", {}), ("hinge", {}), ("squared_epsilon_insensitive", {"search_epsilon": True})]
)
def test_a_path_can_be_resumed(cancer, diabetes, tmp_path, loss, settings):
    X, y = cancer if loss != "squared_epsilon_insensitive" else (diabetes[0][:120], diabetes[1][:120])
    settings = {**settings, "C_max": 0.1 if loss == "hinge" else 200.0}
    file = tmp_path / "path"
    whole = select_C(X, loss, y, **settings)
    stop_at = 12 if "search_epsilon" in settings else 5
    seen: list[PathPoint] = []
    select_C(X, loss, y, resume=file, on_point=lambda p: seen.append(p) or len(seen) == stop_at, **settings)
    fresh: list[PathPoint] = []
    resumed = select_C(X, loss, y, resume=file, on_point=fresh.append, **settings)
    assert [(p.C, p.epsilon) for p in resumed.curve] == [(p.C, p.epsilon) for p in whole.curve]
    assert len(fresh) == len(whole.curve) - stop_at
    assert_same_path(resumed, whole)
    assert [p.fold_scores for p in resumed.curve[:stop_at]] == [p.fold_scores for p in seen]
    done: list[PathPoint] = []
    again = select_C(X, loss, y, resume=file, on_point=done.append, **settings)
    assert not done
    assert [p.fold_scores for p in again.curve] == [p.fold_scores for p in resumed.curve]
    assert_array_equal(again.start.weights, resumed.start.weights)


def assert_same_path(found, expected):
    """To the same bits, but for seconds, and for passes, which are sums of parts of passes."""
    for name in ("C", "fold_scores", "loss", "training_loss", "stop_ratio", "settled", "residual_correlation"):
        ours, theirs = ([getattr(point, name) for point in path.curve] for path in (found, expected))
        assert_array_equal(ours, theirs, err_msg=name)
    assert found.best_C == expected.best_C
    assert_array_equal(found.start.weights, expected.start.weights)
    assert_array_equal(found.start.intercepts, expected.start.intercepts)


def resumed_after(stop_at, file, *task, **settings):
    """A search that was ended after so many values of C each time, until it is done."""
    while True:
        count = itertools.count(1)
        found = select_C(*task, resume=file, on_point=lambda _, n=count: next(n) == stop_at, **settings)
        if found.end is not End.CALLBACK:
            return found


@pytest.mark.filterwarnings("ignore::beeline.exceptions.ModelWarning")  # of the parts before it was done
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "huber", "softmax"])
@pytest.mark.parametrize("stop_at", [1, 3])
def test_a_resumed_search_finds_the_same_bits(tmp_path, loss, stop_at):
    """Each C is begun from what the one before has left: scores, Hessians, dual variables, and the way it came."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20)) * np.geomspace(1, 30, 20)
    scores = X[:, :3] @ rng.normal(size=(3, 3)) + rng.normal(size=(600, 3)) * 3
    y = scores.argmax(axis=1) if loss == "softmax" else scores[:, 0] if loss == "huber" else scores[:, 0] > 0
    whole = select_C(X, loss, y, C_max=1.0)
    assert len(whole.curve) > 5
    assert_same_path(resumed_after(stop_at, tmp_path / "path", X, loss, y, C_max=1.0), whole)


@pytest.mark.filterwarnings("ignore::beeline.exceptions.ModelWarning")
def test_a_resumed_search_over_many_features_finds_the_same_bits(tmp_path):
    """With diagonals for Hessians, where each C begins on the way from the last two."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((400, 6000), density=0.01, rng=rng, format="csr")
    y = X @ rng.normal(size=6000) + 0.1 * rng.normal(size=400) > 0
    whole = select_C(X, "logistic", y)
    assert_same_path(resumed_after(2, tmp_path / "path", X, "logistic", y), whole)


def test_a_path_of_another_search_is_refused(cancer, tmp_path):
    X, y = cancer
    file = tmp_path / "path"
    select_C(X, "logistic", y, resume=file, on_point=lambda p: True)
    for changed, name in (
        ({"loss": "squared_hinge"}, "loss"),
        ({"metric": "accuracy"}, "metric"),
        ({"seed": 1}, "labels, weights, folds and rows"),
        ({"intercept": "none"}, "intercept"),
        ({"delta": 4.0}, "delta"),
    ):
        options = {"loss": "logistic", **changed}
        with pytest.raises(ParameterError, match=f"differs in its {name}"):
            select_C(X, options.pop("loss"), y, resume=file, **options)
    with pytest.raises(ParameterError, match="differs in its rows"):
        select_C(X[:200], "logistic", y[:200], resume=file)
    with pytest.raises(ParameterError, match="labels, weights, folds and rows"):
        select_C(np.abs(X), "logistic", y, resume=file)  # of the same norms


def test_a_path_belongs_to_one_metric_not_to_its_name(cancer, tmp_path):
    X, y = cancer[0][:150], cancer[1][:150]
    right, wrong = (
        (lambda e, A, t: float((e.predict(A) == t).mean())),
        (lambda e, A, t: -float((e.predict(A) == t).mean())),
    )
    select_C(X, "logistic", y, metric=right, resume=tmp_path / "path", on_point=lambda p: True)
    with pytest.raises(ParameterError, match="metric's code"):
        select_C(X, "logistic", y, metric=wrong, resume=tmp_path / "path")


def test_the_same_metric_is_known_again():
    """In another process its code lies elsewhere, and sets have another order."""
    source = "def score(e, A, t, k={k}):\n    return sum([p in {{'a', 'b', 'c'}} for p in e.predict(A)]) + k"

    def made(k):
        names = {"__name__": "metrics_of_mine"}
        exec(compile(source.format(k=k), "mine.py", "exec"), names)
        return get_metric(names["score"], 2, "logistic").identity

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_a_damaged_path_is_refused(cancer, tmp_path):
    X, y = cancer
    file = tmp_path / "path"
    select_C(X, "logistic", y, resume=file, on_point=lambda p: True)
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    with pytest.raises(SourceError, match="cut short; remove it"):
        select_C(X, "logistic", y, resume=file)
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(SourceError, match="altered after it was written"):
        select_C(X, "logistic", y, resume=file)
    LinearSVC().fit(X, y).model_.save(file)
    with pytest.raises(SourceError, match="no path of a search"):
        select_C(X, "logistic", y, resume=file)


# Bad input, and words


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fold": 3}, "no option 'fold'; did you mean 'folds'"),
        ({"folds": 1}, "folds must lie between 2"),
        ({"metric": "log_loss"}, "needs probabilities"),
        ({"rule": "first"}, "rule must be one of best, one_se"),
        ({"delta": 1.0}, "delta must be greater than 1"),
        ({"C_min": 2.0, "C_max": 1.0}, "C_min, 2, must not be greater than C_max, 1"),
        ({"tol": 0}, "tol must be positive"),
        ({"search_epsilon": True}, "has no epsilon to search for"),
        ({"solver": "nobody"}, "no solver 'nobody'"),
    ],
)
def test_what_cannot_be(cancer, options, message):
    with pytest.raises(ParameterError, match=message):
        select_C(cancer[0], "hinge", cancer[1], **options)


def test_a_fold_of_one_class_is_refused(cancer):
    y = np.array([0] * 5 + [1] * 5)
    with pytest.raises(LabelError, match="fold 0 trains on have only one class"):
        select_C(cancer[0][:10], "hinge", y, folds=[(np.arange(5), np.arange(5, 10))])


def test_features_of_very_different_scales_are_searched_to_the_end():
    """The gradient is that of the largest features: it would end the search where the others have hardly begun."""
    X, y = load_breast_cancer(return_X_y=True)
    loose, tight = (select_C(X, "logistic", y, tol=tol) for tol in (1e-4, 1e-7))
    assert loose.best_score < 1.1 * tight.best_score


def test_the_loss_comes_second(cancer):
    with pytest.raises(ParameterError, match="second argument of select_C is the loss; give labels as y="):
        select_C(*cancer)


def test_groups_without_a_search_are_refused(cancer):
    with pytest.raises(ParameterError, match="no meaning without a search"):
        LinearSVC().fit(*cancer, groups=np.arange(240))


def test_no_c_at_all_is_refused(cancer):
    with pytest.raises(ParameterError, match="C must be positive and finite, or 'auto', not None"):
        LinearSVC(C=None).fit(*cancer)


def test_the_words_of_a_rule(cancer):
    careful = select_C(cancer[0], "logistic", cancer[1], rule="one_se")
    assert "the smallest within one standard error of the best of" in repr(careful)


def test_only_auto_is_a_word(cancer):
    with pytest.raises(ParameterError, match="C must be positive and finite, or 'auto', not 'best'"):
        LinearSVC(C="best").fit(*cancer)


def test_scores_that_are_too_many_for_the_memory(cancer, monkeypatch):
    monkeypatch.setattr("beeline.selection.runners.available_memory", lambda: 1000)
    words = r"5 folds of 240 rows need 75 KB for their scores and 1000 bytes are free.* folds=0\.2"
    with pytest.raises(ParameterError, match=words):
        select_C(cancer[0], "hinge", cancer[1])


def test_a_selection_as_json(cancer):
    selection = select_C(cancer[0], "logistic", cancer[1])
    record = json.loads(json.dumps(selection.to_json(), allow_nan=False))
    assert record["best_C"] == selection.best_C
    assert record["end"] == selection.end.name.lower()
    assert record["null_score"] > record["best_score"]
    assert record["curve"][0]["stop_ratio"] is None
    assert len(record["curve"]) == len(selection.curve)
    assert record["curve"][3]["fold_scores"] == list(selection.curve[3].fold_scores)


def point(C, scores, epsilon=None):
    return PathPoint(C, tuple(scores), (1.0,) * len(scores), 0.1, 1.0, math.nan, epsilon)


def test_a_selection_by_hand():
    curve = (point(1.0, [0.7, 0.8]), point(2.0, [math.nan, 0.9]), point(4.0, [0.85, 0.87]), point(8.0, [0.86, 0.86]))
    selection = Selection(curve, "accuracy", True, End.LIMIT, 0.01)
    assert selection.best_C == 4.0
    assert selection.best_score == pytest.approx(0.86)
    assert selection.seconds == pytest.approx(0.4)
    assert Selection(curve, "rmse", False, End.LIMIT, 0.01).best_C == 1.0
    assert Selection((point(1.0, [math.nan]),), "auc", True, End.LIMIT, 0.01).best_C == 1.0
    with pytest.raises(ParameterError, match="at least one C"):
        Selection((), "accuracy", True, End.LIMIT, 0.01)
