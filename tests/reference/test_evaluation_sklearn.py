"""`beeline.evaluate`, measure by measure, against scikit-learn's; with weights and without, whole and in blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics as theirs

import beeline
from beeline import LinearModel, LinearSVC, LogisticRegression, evaluate, from_arrays
from beeline.evaluation import values
from beeline.exceptions import DataError, LabelError, ParameterError
from beeline.losses import get_loss

RNG = np.random.default_rng(0)
X = RNG.standard_normal((240, 4))
WEIGHTS = RNG.integers(0, 4, 240) * 0.5
TWO = np.where(X[:, 0] + RNG.standard_normal(240) > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.7 * RNG.standard_normal(240), [-0.6, 0.6]) * 10
COUNTS = RNG.poisson(np.exp(0.6 * X[:, 0])).astype(float)
AMOUNTS = RNG.gamma(2.0, np.exp(0.4 * X[:, 0]) / 2)
SHARES = 1 / (1 + np.exp(-X[:, 0] - RNG.standard_normal(240)))
SETS = X[:, :3] + RNG.standard_normal((240, 3)) > 0

weighted = pytest.mark.parametrize("c", [None, WEIGHTS], ids=["plain", "weighted"])
everywhere = pytest.mark.parametrize("memory", [None, "4K"], ids=["whole", "in blocks"])


def expect(found, expected):
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


@weighted
@everywhere
@pytest.mark.parametrize("positive", ["yes", "no"])
def test_two_classes(c, memory, positive):
    model = LogisticRegression().fit(X, TWO)
    found = evaluate(model, X, TWO, sample_weight=c, positive=positive, memory=memory)
    predicted, p = model.predict(X), model.predict_proba(X)
    z = model.decision_function(X) * (1 if positive == "yes" else -1)
    one, more = {"pos_label": positive, "sample_weight": c}, {"sample_weight": c}
    expect(
        found.measures,
        {
            "accuracy": theirs.accuracy_score(TWO, predicted, **more),
            "precision": theirs.precision_score(TWO, predicted, **one),
            "recall": theirs.recall_score(TWO, predicted, **one),
            "f1": theirs.f1_score(TWO, predicted, **one),
            "auc": theirs.roc_auc_score(positive == TWO, z, **more),
            "average_precision": theirs.average_precision_score(positive == TWO, z, **more),
            "log_loss": theirs.log_loss(TWO, p, **more),
        },
    )
    assert found.positive == positive
    assert found.weight == (None if c is None else c.sum())
    np.testing.assert_allclose(found.confusion, theirs.confusion_matrix(TWO, predicted, **more))


@weighted
@everywhere
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_several_classes(c, memory, kind):
    model = kind().fit(X, THREE)
    memory = None if memory is None else "12K"  # a third of the rows at a time, and all scores: 240 × 3 × 8 bytes
    found = evaluate(model, X, THREE, sample_weight=c, memory=memory)
    predicted = model.predict(X)
    z = model.predict_proba(X) if kind is LogisticRegression else model.decision_function(X)
    each = {"average": None, "sample_weight": c}
    columns = {
        "precision": theirs.precision_score(THREE, predicted, **each),
        "recall": theirs.recall_score(THREE, predicted, **each),
        "f1": theirs.f1_score(THREE, predicted, **each),
        "auc": [theirs.roc_auc_score(k == THREE, z[:, i], sample_weight=c) for i, k in enumerate((0, 10, 20))],
        "average_precision": [
            theirs.average_precision_score(k == THREE, z[:, i], sample_weight=c) for i, k in enumerate((0, 10, 20))
        ],
    }
    for name, expected in columns.items():
        np.testing.assert_allclose([getattr(one, name) for one in found.per_class], expected, rtol=1e-9, err_msg=name)
        assert found.measures[f"{name}_macro"] == pytest.approx(np.mean(expected))
    if kind is LogisticRegression:
        area = theirs.roc_auc_score(THREE, z, multi_class="ovr", average="macro", sample_weight=c)
        assert found.measures["auc_macro"] == pytest.approx(area)
        assert found.measures["log_loss"] == pytest.approx(theirs.log_loss(THREE, z, sample_weight=c))
    assert [one.name for one in found.per_class] == ["0", "10", "20"]
    assert [one.rows for one in found.per_class] == [
        (np.ones(240) if c is None else c)[k == THREE].sum() for k in (0, 10, 20)
    ]
    assert set(found.curves) == {"0", "10", "20"}


@weighted
def test_calibration_of_two_classes(c):
    model = LogisticRegression().fit(X, TWO)
    found = evaluate(model, X, TWO, sample_weight=c)
    p, c = model.predict_proba(X)[:, 1], np.ones(240) if c is None else c
    for one in found.calibration:
        here = (p * 10).astype(int) == int(one.probability * 10)
        assert one.rows == pytest.approx(c[here].sum())
        assert one.probability == pytest.approx(np.average(p[here], weights=c[here]))
        assert one.share == pytest.approx(np.average(TWO[here] == "yes", weights=c[here]))
    assert sum(one.rows for one in found.calibration) == pytest.approx(c.sum())


@weighted
@everywhere
@pytest.mark.parametrize("loss", ["quantile", "soft_quantile"])
def test_quantiles(c, memory, loss):
    y = X[:, 0] + RNG.standard_normal(240)
    model = LinearModel(get_loss(loss, tau=0.8)).fit(X, y)
    found = evaluate(model, X, y, sample_weight=c, memory=memory)
    predicted = model.predict(X)
    pinball = theirs.mean_pinball_loss(y, predicted, alpha=0.8, sample_weight=c)
    expect(found.measures, {"pinball": pinball, "coverage": np.average(y <= predicted, weights=c)})
    expect(found.measures, {"mae": theirs.mean_absolute_error(y, predicted, sample_weight=c)})
    assert found.tau == 0.8


@weighted
@everywhere
@pytest.mark.parametrize(
    ("loss", "settings", "y", "power"),
    [("poisson", {}, COUNTS, 1), ("gamma", {}, AMOUNTS, 2), ("tweedie", {"power": 1.3}, COUNTS, 1.3)],
    ids=["poisson", "gamma", "tweedie"],
)
def test_rates(c, memory, loss, settings, y, power):
    model = LinearModel(get_loss(loss, **settings)).fit(X, y)
    found = evaluate(model, X, y, sample_weight=c, memory=memory)
    more = {"power": power, "sample_weight": c}
    expect(
        found.measures,
        {
            "deviance": theirs.mean_tweedie_deviance(y, model.predict(X), **more),
            "d2": theirs.d2_tweedie_score(y, model.predict(X), **more),
            "r2": theirs.r2_score(y, model.predict(X), sample_weight=c),
        },
    )


@weighted
@everywhere
def test_shares(c, memory):
    model = LinearModel("cross_entropy").fit(X, SHARES)
    found = evaluate(model, X, SHARES, sample_weight=c, memory=memory)

    def deviance(p):
        terms = SHARES * np.log(SHARES / p) + (1 - SHARES) * np.log((1 - SHARES) / (1 - p))
        return 2 * np.average(terms, weights=c)

    whole, mean = deviance(model.predict(X)), deviance(np.average(SHARES, weights=c))
    expect(found.measures, {"deviance": whole, "d2": 1 - whole / mean})


def test_shares_of_zero_and_one_have_the_d2_of_log_loss():
    y = (TWO == "yes").astype(float)
    model = LinearModel("cross_entropy").fit(X, y)
    expected = theirs.d2_log_loss_score(y, model.predict(X))
    assert evaluate(model, X, y).measures["d2"] == pytest.approx(expected, rel=1e-9)


@weighted
def test_sets_of_labels(c):
    model = LinearModel("multilabel_logistic").fit(X, SETS)
    found = evaluate(model, X, SETS, sample_weight=c)
    predicted, more = model.predict(X), {"sample_weight": c, "zero_division": 0}
    expect(
        found.measures,
        {
            "exact_sets": theirs.accuracy_score(SETS, predicted, sample_weight=c),
            "f1_micro": theirs.f1_score(SETS, predicted, average="micro", **more),
            "f1_macro": theirs.f1_score(SETS, predicted, average="macro", **more),
            "precision_macro": theirs.precision_score(SETS, predicted, average="macro", **more),
            "recall_macro": theirs.recall_score(SETS, predicted, average="macro", **more),
        },
    )
    recalls = theirs.recall_score(SETS, predicted, average=None, **more)
    np.testing.assert_allclose([one.recall for one in found.per_class], recalls)


def test_weights_of_the_data_are_those_given():
    model = LogisticRegression().fit(X, TWO == "yes")
    mine = evaluate(model, from_arrays(X, (TWO == "yes") * 1.0, weights=WEIGHTS))
    assert mine.measures == evaluate(model, X, TWO == "yes", sample_weight=WEIGHTS).measures


def test_scores_that_do_not_fit_are_given_up_and_that_is_said():
    model = LogisticRegression().fit(X, THREE)
    found, whole = (evaluate(model, X, THREE, memory=memory) for memory in ("4K", None))
    assert math.isnan(found.measures["auc_macro"])
    assert found.measures["f1_macro"] == whole.measures["f1_macro"]
    (note,) = found.notes
    assert "3 classes, 5.62 KB; give more memory" in note
    assert whole.notes == ()


def test_classes_without_rows_are_left_out_of_mean_areas():
    model = LogisticRegression().fit(X, THREE)
    some = THREE != 10
    found = evaluate(model, X[some], THREE[some])
    areas = [one.auc for one in found.per_class]
    assert math.isnan(areas[1])
    assert found.measures["auc_macro"] == pytest.approx((areas[0] + areas[2]) / 2)
    assert found.notes == ("1 class has no rows here: means of ROC areas and average precisions are over the others",)
    assert found.to_json()["per_class"][1]["auc"] is None


def test_top_confusions_are_the_largest_cells_beside_the_diagonal():
    model = LogisticRegression().fit(X, THREE)
    found = evaluate(model, X, THREE, sample_weight=WEIGHTS)
    wrong = found.confusion - np.diag(np.diag(found.confusion))
    first = found.top_confusions(2)[0]
    i, j = np.unravel_index(wrong.argmax(), wrong.shape)
    assert (first.label, first.predicted) == (found.classes[i], found.classes[j])
    assert first.rows == wrong.max()
    assert first.share == pytest.approx(wrong.max() / found.confusion[i].sum())
    assert len(found.top_confusions(100)) == np.count_nonzero(wrong)


def test_labels_that_rates_cannot_have():
    model = LinearModel("gamma").fit(X, AMOUNTS)
    found = evaluate(model, X, AMOUNTS - AMOUNTS.min())
    assert math.isnan(found.measures["deviance"])
    assert "labels of 'gamma' must be positive and finite" in found.notes[0]
    assert found.measures["rmse"] > 0


def test_the_sample_of_residuals_is_bounded_and_does_not_depend_on_blocks(monkeypatch):
    monkeypatch.setattr(values, "_MOST_ROWS", 50)
    model = LinearModel("squared").fit(X, COUNTS)
    one, other = (evaluate(model, X, COUNTS, memory=memory).residuals for memory in (None, "2K"))
    assert one.is_sample
    assert len(one.labels) == 50
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.predicted, other.predicted)


def test_any_source_gives_the_same(tmp_path):
    rows = "\n".join(",".join(map(repr, [*x.tolist(), y])) for x, y in zip(X, THREE.tolist(), strict=True))
    (tmp_path / "rows.csv").write_text(f"a,b,c,d,y\n{rows}\n")
    store = beeline.convert(tmp_path / "rows.csv", tmp_path / "rows.store", label="y")
    model = LogisticRegression().fit(store)
    model.model_.save(tmp_path / "m")
    expected = evaluate(model, store).measures
    for data in (tmp_path / "rows.csv", [str(tmp_path / "rows.csv")], tmp_path / "rows.store"):
        assert evaluate(tmp_path / "m", data).measures == expected
    assert evaluate(model.model_, X, THREE).measures == pytest.approx(expected)
    assert "accuracy 0." in str(evaluate(model, store))


def test_what_makes_no_sense_is_said():
    two, three = LogisticRegression().fit(X, TWO), LogisticRegression().fit(X, THREE)
    with pytest.raises(ParameterError, match=r"^positive must be one of no, yes, not 'maybe'$"):
        evaluate(two, X, TWO, positive="maybe")
    with pytest.raises(ParameterError, match="positive has no meaning for more than two classes"):
        evaluate(three, X, THREE, positive=10)
    with pytest.raises(LabelError, match="no labels to compare with; name the column that holds them by label='NAME'"):
        evaluate(two, X)
    with pytest.raises(LabelError, match="the labels are texts, and the model predicts numbers"):
        evaluate(LinearModel("squared").fit(X, COUNTS), X, TWO)
    with pytest.raises(DataError, match="give one for each row"):
        evaluate(two, X, TWO[:-1])
    with pytest.raises(DataError, match="y has 241 entries, and there are 240 rows"):
        evaluate(two, X, [*TWO, "no"])
    with pytest.raises(ParameterError, match="model must be a Model, a fitted estimator or the name of a file"):
        evaluate(3, X, TWO)
    with pytest.raises(ParameterError, match="label has no meaning but for files; leave it out"):
        evaluate(two, X, TWO, label="y")


def test_bad_weights_and_labels_are_said_with_their_row():
    two, counts = LogisticRegression().fit(X, TWO), LinearModel("squared").fit(X, COUNTS)
    for weight, words in ((-1.0, "weights must not be negative; the one of row 3 is -1.0"), (math.nan, "row 3 is not")):
        c = np.ones(len(X))
        c[3] = weight
        with pytest.raises(DataError, match=words):
            evaluate(two, X, TWO, sample_weight=c)
    for model, y in ((two, TWO), (counts, COUNTS)):
        with pytest.raises(DataError, match="all weights are zero: there is nothing to measure"):
            evaluate(model, X, y, sample_weight=np.zeros(len(X)))
        with pytest.raises(LabelError, match="row 0 has the label None; give it one that is known, or remove the row"):
            evaluate(model, X, [None] * len(X))
    y = COUNTS.copy()
    y[5] = math.nan
    with pytest.raises(LabelError, match="row 5 has the label nan"):
        evaluate(counts, X, y)
    y[5] = -1
    found = evaluate(LinearModel("poisson").fit(X, COUNTS), X, y, memory="2K")
    assert found.notes[0].endswith("labels of 'poisson' must be finite numbers that are not negative, and row 5 has -1")
