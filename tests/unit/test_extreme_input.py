"""What users give that lies at the edge: one weight for all rows, values that overflow, features on no common scale."""

from __future__ import annotations

import dataclasses
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import beeline
from beeline import ElasticNet, Lasso, LinearModel, LinearSVC, LogisticRegression, MultiTaskRegressor
from beeline.data.core.magnitude import LARGEST
from beeline.exceptions import ConvergenceWarning, DataError, LabelError, ModelWarning, ParameterError
from beeline.solvers import Bundle

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
TARGET = X[:, 0] + 0.3 * RNG.standard_normal(60)
TWO = np.where(TARGET > 0, 1, 0)
THREE = np.digitize(TARGET, [-0.5, 0.5])


class TestOneWeightForAllRows:
    def test_is_that_weight_for_each(self):
        scalar = LogisticRegression().fit(X, TWO, sample_weight=3.0)
        each = LogisticRegression().fit(X, TWO, sample_weight=np.full(60, 3.0))
        np.testing.assert_array_equal(scalar.coef_, each.coef_)

    def test_says_nothing_where_losses_are_averaged(self):
        weighted = ElasticNet(0.1).fit(X, TARGET, sample_weight=123)
        np.testing.assert_allclose(weighted.coef_, ElasticNet(0.1).fit(X, TARGET).coef_, rtol=1e-9)

    def test_in_a_score(self):
        model = Lasso(0.1).fit(X, TARGET)
        assert model.score(X, TARGET, sample_weight=2.0) == pytest.approx(model.score(X, TARGET), rel=1e-12)

    @pytest.mark.parametrize("weight", [0.0, -1.0, np.nan])
    def test_that_is_no_weight(self, weight):
        with pytest.raises(ValueError, match="weight"):
            Lasso().fit(X, TARGET, sample_weight=weight)


def with_one_large(value=1e148):
    rows = X.copy()
    rows[7, 2] = value
    return rows


class TestValuesThatOverflow:
    SENTENCE = r"^row 7 has the value 1e\+148 for feature 2, so large that products overflow; scale the features$"

    @pytest.mark.parametrize(
        ("estimator", "y"),
        [
            (LogisticRegression(), TWO),
            (LogisticRegression(C="auto"), THREE),
            (LinearSVC(loss="hinge"), TWO),
            (Lasso(), TARGET),
            (LinearModel("squared", nonnegative=True), TARGET),
            (MultiTaskRegressor(), np.column_stack([TARGET, TARGET])),
            (LinearModel("multilabel_logistic"), np.column_stack([TWO, 1 - TWO])),
            (beeline.NoveltyDetector(), None),
        ],
        ids=lambda value: str(value) if hasattr(value, "fit") else "",
    )
    def test_are_named(self, estimator, y):
        with pytest.raises(DataError, match=self.SENTENCE):
            estimator.fit(with_one_large(), y)

    @pytest.mark.parametrize("value", [-1e148, 1e100, np.finfo(float).max])
    def test_of_any_sign_and_size(self, value):
        with pytest.raises(DataError, match=r"row 7 .* for feature 2, .* scale the features"):
            Lasso().fit(with_one_large(value), TARGET)

    def test_in_sparse_rows(self):
        with pytest.raises(DataError, match=self.SENTENCE):
            Lasso().fit(scipy.sparse.csr_array(with_one_large()), TARGET)

    def test_in_a_frame_have_the_name_of_their_column(self):
        frame = pd.DataFrame(with_one_large(), columns=list("abcd")).assign(label=TARGET)
        with pytest.raises(DataError, match=r"^row 7 has the value 1e\+148 for feature 'c'"):
            Lasso().fit(beeline.read(frame, label="label"))

    def test_in_text_have_the_number_that_they_have_there(self, tmp_path):
        (tmp_path / "rows.svm").write_text("1 1:0.5\n-1 2:-1e148\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"^row 1 has the value -1e\+148 for feature 2,"):
            LogisticRegression().fit(beeline.read(tmp_path / "rows.svm"))

    def test_in_a_store(self, tmp_path):
        store = beeline.convert(beeline.from_arrays(with_one_large(), TARGET), tmp_path / "large.store")
        with pytest.raises(DataError, match=r"^row 7 has the value 1e\+148 for feature 3,"):  # stores count from 1
            Lasso().fit(store)

    def test_in_a_store_of_ordinary_values_are_not_looked_for(self, tmp_path):
        store = beeline.convert(beeline.from_arrays(X, TARGET), tmp_path / "rows.store")
        assert store.value_range == (X.min(), X.max())
        assert Lasso(0.1).fit(store).report_.converged

    def test_as_labels(self):
        y = TARGET.copy()
        y[3] = -1e148
        with pytest.raises(LabelError, match=r"^row 3 has the label -1e\+148, .* scale the labels$"):
            Lasso().fit(X, y)

    @pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC(loss="hinge"), Lasso(0.1)], ids=str)
    def test_just_below_end_in_numbers(self, estimator):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = estimator.fit(with_one_large(0.9 * LARGEST), TWO)
        assert np.isfinite(model.coef_).all()

    def test_can_be_predicted(self):
        assert np.isfinite(Lasso(0.1).fit(X, TARGET).predict(with_one_large())).all()


def test_a_mixture_that_is_no_number():
    for l1_ratio in (None, "half"):
        with pytest.raises(ParameterError, match="l1_ratio must be a number"):
            LogisticRegression(l1_ratio=l1_ratio).fit(X, TWO)


def test_rounding_that_ends_training_far_from_the_optimum_is_said():
    with pytest.warns(ConvergenceWarning, match=r"newton .* above the optimum; .*scale the features"):
        model = LogisticRegression().fit(1e20 * X, TWO)
    assert model.report_.status in ("stalled", "limit")


class TestWeightsOfClasses:
    """Only differences count: the optimum's weights add up to zero over the classes."""

    @pytest.mark.parametrize("C", [1.0, 1e12])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_of_a_softmax_add_up_to_zero(self, C, intercept):
        model = LogisticRegression(C=C, fit_intercept=intercept).fit(X, THREE)
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-13 * np.abs(model.coef_).max())
        assert abs(model.intercept_.sum()) <= 1e-13 * max(1, np.abs(model.intercept_).max())

    def test_of_a_margin_add_up_to_zero(self):
        model = LinearSVC(multi_class="crammer_singer").fit(X, THREE)
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-14)

    def test_that_an_earlier_model_shifted_are_back(self):
        model = LogisticRegression(C=1e12, warm_start=True).fit(X, THREE)
        expected = model.coef_
        model.model_ = dataclasses.replace(model.model_, weights=model.model_.weights + 0.5)
        np.testing.assert_allclose(model.fit(X, THREE).coef_, expected, rtol=1e-3)


class TestWhatIsNoSetting:
    """One sentence of ours for each, whatever Python would have said."""

    @pytest.mark.parametrize(
        ("fit", "sentence"),
        [
            (lambda: LinearSVC(C=10**400).fit(X, TWO), "C must be at most 1.8e308, not a number of 401 digits"),
            (lambda: beeline.LinearSVR(epsilon=10**400).fit(X, TARGET), "epsilon must be at most 1.8e308"),
            (
                lambda: beeline.LinearSVR(epsilon=np.inf).fit(X, TARGET),
                "epsilon must not be negative and must be finite",
            ),
            (lambda: beeline.select_C(X, "hinge", TWO, C_min="x"), "C_min must be a number, not 'x'"),
            (lambda: beeline.select_C(X, "hinge", TWO, delta="x"), "delta must be a number, not 'x'"),
            (lambda: beeline.select_C(X, "hinge", TWO, max_passes=None), "max_passes must be a number, not None"),
            (lambda: beeline.select_C(X, "hinge", TWO, seed=-1), "seed must not be negative, not -1"),
            (lambda: beeline.select_C(X, "hinge", TWO, seed="x"), "seed must be a whole number, not 'x'"),
            (lambda: beeline.select_C(X, "hinge", TWO, groups=0), "groups must be one a row, 60 in all"),
            (lambda: beeline.select_C(X, "hinge", TWO, groups=["a", None] * 30), "groups of row 1 is None; give one"),
            (
                lambda: beeline.select_C(X, "hinge", TWO, groups=np.array(["a", 1] * 30, object)),
                "groups of different types",
            ),
            (lambda: beeline.select_C(X, "hinge", TWO, on_point=0), "on_point must be a function, not 0"),
            (lambda: LinearModel(loss=[1]).fit(X, TWO), r"there is no loss \[1\]"),
            (lambda: LinearModel(regularizer=[1]).fit(X, TWO), r"there is no regularizer \[1\]"),
            (
                lambda: LinearModel(solver=[1]).fit(X, TWO),
                r"solver must be a name, a pair of a name and its options, or a solver, not \[1\]",
            ),
            (lambda: LinearModel(class_weight={1: "a"}).fit(X, TWO), "class_weight of 1 must be a number, not 'a'"),
            (lambda: LinearModel(class_weight={1: 0}).fit(X, TWO), "class_weight leaves fewer than two classes"),
            (lambda: LinearModel(callback=0).fit(X, TWO), "callback must be a function, not 0"),
            (lambda: beeline.set_num_threads("x"), "the number of threads must be a whole number, not 'x'"),
            (lambda: beeline.convert(X, "never.store", memory=None), "None is not a size"),
        ],
    )
    def test_is_said_so(self, fit, sentence):
        with pytest.raises(ParameterError, match=sentence):
            fit()

    @pytest.mark.parametrize(
        ("labels", "sentence"),
        [
            (["a", None] * 30, "row 1 has the label None; give it one that is known, or remove the row"),
            (["a", 1] * 30, "labels of different types cannot be told apart"),
        ],
    )
    def test_labels_of_several_types(self, labels, sentence):
        with pytest.raises(LabelError, match=sentence):
            LogisticRegression().fit(X, np.array(labels, object))

    def test_texts_for_a_regression(self):
        with pytest.raises(LabelError, match="row 3 has the label 'a'; a regression needs numbers"):
            beeline.LinearSVR().fit(X, ["1", "2", "3", *["a"] * 57])

    def test_many_passes(self):
        assert LogisticRegression(max_passes=1e20).fit(X, TWO).report_.gap < 1e-4

    @pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
    def test_a_cost_beyond_all_use(self, loss):
        with pytest.warns(ConvergenceWarning):
            LinearModel(loss, C=1e300).fit(X, TWO)

    @pytest.mark.parametrize(
        ("loss", "settings"),
        [
            ("f_beta", {}),
            ("all_threshold_hinge", {}),
            ("ndcg@10", {}),
            ("hinge", {"solver": Bundle(variant="line"), "fit_intercept": False}),
        ],
    )
    def test_a_cost_whose_square_no_double_holds(self, loss, settings):
        """As the programmes of the bundle method would have it; slopes alone would still be numbers."""
        queries = {"groups": np.arange(60) // 10} if loss.startswith("ndcg") else {}
        with (
            pytest.warns(ModelWarning, match="the model is no better than"),
            pytest.warns(ConvergenceWarning, match="can make no more progress in double precision after 1 pass"),
        ):
            LinearModel(loss, C=1e300, **settings).fit(X, TWO, **queries)

    @pytest.mark.parametrize(
        ("loss", "C", "said"),
        [
            ("roc_area", 1e300, "C times the weight of a row is 1e+300, too large for double precision; take a sm"),
            ("roc_area", 1e-300, "C times the weight of a row is 1e-300, too small for double precision; take a la"),
            ("ndcg@10", 1e150, "C times the weight of a row is 1e+150, too large for double precision"),
        ],
    )
    def test_a_loss_is_not_to_blame_for_costs(self, loss, C, said):
        queries = {"groups": np.arange(60) // 10} if loss.startswith("ndcg") else {}
        with pytest.raises(ParameterError, match=re.escape(said)):
            LinearModel(loss, C=C).fit(X, TWO, **queries)
