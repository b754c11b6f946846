"""The estimators: every kind of input, every parameter, and what users see."""

from __future__ import annotations

import doctest
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import beeline
from beeline import ElasticNet, Lasso, LinearModel, LinearSVC, LinearSVR, LogisticRegression
from beeline.data.core.arrays import from_arrays
from beeline.data.recipe.recipe import Column, Recipe
from beeline.estimators import classifiers, linear_model, regressors
from beeline.exceptions import ConvergenceWarning, DataError, LabelError, ParameterError
from beeline.losses import EpsilonInsensitive
from beeline.regularizers import ElasticNet as ElasticNetRegularizer

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 5))
W = RNG.standard_normal((5, 3))
TARGET = X @ W[:, 0] + 0.1 * RNG.standard_normal(120)
TWO = np.where(X @ W[:, 0] + 0.5 * RNG.standard_normal(120) > 0, "yes", "no")
THREE = np.array([10, 20, 30])[(X @ W + 0.5 * RNG.standard_normal((120, 3))).argmax(1)]

CLASSIFIERS = [LinearSVC(), LinearSVC(loss="hinge"), LogisticRegression(), LinearModel(loss="squared_hinge")]
REGRESSIONS = [LinearSVR(), Lasso(alpha=0.01), ElasticNet(alpha=0.01), LinearModel(loss="squared")]
ALL = CLASSIFIERS + REGRESSIONS


def labels_for(estimator, several=True):
    return (THREE if several else TWO) if is_classifier(estimator) else TARGET


def fitted(estimator, X=X, **parameters):
    return clone(estimator).set_params(**parameters).fit(X, labels_for(estimator))


@pytest.mark.parametrize("estimator", ALL, ids=str)
class TestInput:
    def test_sparse_and_wide_indices(self, estimator):
        expected = fitted(estimator, tol=1e-9).coef_
        csr = scipy.sparse.csr_array(X)
        wide = scipy.sparse.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), X.shape)
        for rows in (csr, wide, scipy.sparse.csc_matrix(X), scipy.sparse.coo_array(X)):
            model = fitted(estimator, rows, tol=1e-9)
            np.testing.assert_allclose(model.coef_, expected, atol=1e-4)
            assert model.predict(rows).tolist() == pytest.approx(model.predict(X).tolist())

    def test_float32_and_int(self, estimator):
        rounded = np.round(X * 4)
        expected = fitted(estimator, rounded, tol=1e-9).coef_
        for kind in (np.float32, np.int64, np.int8):
            np.testing.assert_allclose(fitted(estimator, rounded.astype(kind), tol=1e-9).coef_, expected, atol=1e-4)

    def test_data_frames_keep_their_names(self, estimator):
        frame = pd.DataFrame(X, columns=list("abcde"))
        model = fitted(estimator, frame)
        assert model.feature_names_in_.tolist() == list("abcde")
        assert model.model_.feature_names == list("abcde")
        assert len(model.predict(frame)) == 120
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[list("edcba")])

    def test_a_data_set_with_labels_inside(self, estimator):
        numbers = np.unique(labels_for(estimator), return_inverse=True)[1] if is_classifier(estimator) else TARGET
        data = from_arrays(X, numbers)
        model = clone(estimator).fit(data)
        direct = clone(estimator).fit(X, numbers)
        np.testing.assert_array_equal(model.coef_, direct.coef_)
        assert model.score(data) == direct.score(X, numbers)
        assert not hasattr(model, "feature_names_in_")

    def test_a_store_gives_the_same_model(self, estimator, tmp_path):
        numbers = np.unique(labels_for(estimator), return_inverse=True)[1] if is_classifier(estimator) else TARGET
        data = from_arrays(X, numbers)
        store = beeline.convert(data, tmp_path / "rows.store")
        on_disk, in_memory = (clone(estimator).set_params(tol=1e-9).fit(rows) for rows in (store, data))
        np.testing.assert_allclose(on_disk.coef_, in_memory.coef_, atol=1e-5)
        assert on_disk.score(store) == pytest.approx(in_memory.score(data), rel=1e-8)
        assert len(on_disk.predict(store)) == 120

    def test_copies_nothing_of_the_caller(self, estimator):
        rows = X.copy()
        rows.setflags(write=False)
        fitted(estimator, rows)

    def test_pickle_and_clone(self, estimator):
        model = fitted(estimator)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert str(clone(model).get_params()) == str(model.get_params())

    def test_the_model_can_be_saved(self, estimator, tmp_path):
        model = fitted(estimator)
        model.model_.save(tmp_path / "m")
        again = beeline.Model.load(tmp_path / "m")
        assert again.predict(X).tolist() == model.predict(X).tolist()
        assert again.report == model.report_

    def test_shapes_and_report(self, estimator):
        model = fitted(estimator)
        assert model.coef_.shape == ((3, 5) if is_classifier(estimator) else (5,))
        assert np.shape(model.intercept_) == ((3,) if is_classifier(estimator) else ())
        assert model.n_iter_ >= 1
        assert "above the optimum" in model.report_.sentence
        assert model.report_.converged
        assert len(model.results_) >= 1

    def test_same_seed_same_bits_from_several_threads(self, estimator):
        rows, y = np.tile(X, (100, 1)) + 0.1 * RNG.standard_normal((12_000, 5)), np.tile(labels_for(estimator), 100)
        model = clone(estimator).set_params(random_state=3, tol=1e-2)
        expected, found = clone(model).fit(rows, y).coef_, []
        work = [threading.Thread(target=lambda: found.append(clone(model).fit(rows, y))) for _ in range(4)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert len(found) == 4
        for model in found:
            np.testing.assert_array_equal(model.coef_, expected)

    def test_before_fit(self, estimator):
        assert not hasattr(clone(estimator), "coef_")
        assert not hasattr(clone(estimator), "report_")
        with pytest.raises(ValueError, match="not fitted"):
            clone(estimator).predict(X)


class TestParameters:
    @pytest.mark.parametrize("estimator", ALL, ids=str)
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("tol", 0),
            ("tol", "small"),
            ("max_passes", -1),
            ("solver", "magic"),
            ("fit_intercept", "maybe"),
            ("fit_intercept", None),
        ],
    )
    def test_bad_values_are_refused(self, estimator, name, value):
        with pytest.raises(ParameterError, match=name):
            fitted(estimator, **{name: value})

    @pytest.mark.parametrize(
        ("estimator", "name"),
        [
            (LinearSVC(C=0), "C must be positive"),
            (LinearSVC(loss="logistic"), "loss must be one of"),
            (LinearSVC(multi_class="softmax"), "multi_class must be one of"),
            (LinearSVC(multi_class="crammer_singer", loss="squared_hinge"), "extends the loss 'hinge' to more classes"),
            (LinearSVC(multi_class="crammer_singer", l1_ratio=0.5, solver="class_dual_cd"), "take bundle"),
            (LinearSVC(class_weight="even"), "class_weight must be"),
            (LinearSVC(class_weight={10: 2, 7: 1}), "names the class 7, .* 10, 20, 30"),
            (LinearSVC(class_weight={10: -2}), "class_weight of 10 must be"),
            (LinearSVC(l1_ratio=2), "l1_ratio must lie between"),
            (LogisticRegression(multi_class="crammer_singer"), "multi_class must be one of"),
            (LinearSVR(epsilon=-1), "epsilon must not be negative"),
            (LinearSVR(loss="huber"), "loss must be one of"),
            (Lasso(alpha=0), "alpha must be positive"),
            (LinearModel(loss="magic"), "there is no loss 'magic'"),
            (LinearModel(regularizer="l3"), "there is no regularizer 'l3'"),
            (LinearModel(loss="squared", class_weight="balanced"), "class_weight has no meaning for a regression"),
            (LinearModel(loss="squared", probability=True), "probability has no meaning for a regression"),
        ],
        ids=str,
    )
    def test_what_cannot_be(self, estimator, name):
        y = TARGET if "SVR" in str(estimator) or "Lasso" in str(estimator) or "squared'" in str(estimator) else THREE
        with pytest.raises(ParameterError, match=name):
            estimator.fit(X, y)

    def test_intercepts(self):
        shifted = X + 3
        none = LogisticRegression(fit_intercept=False, multi_class="ovr").fit(shifted, TWO)
        assert none.intercept_.tolist() == [0.0]
        free = LogisticRegression(tol=1e-10).fit(shifted, TWO)
        regularized = LogisticRegression(fit_intercept="regularized", tol=1e-10).fit(shifted, TWO)
        targets = LogisticRegression(fit_intercept=False, tol=1e-10).fit(np.hstack([shifted, np.ones((120, 1))]), TWO)
        np.testing.assert_allclose(regularized.intercept_, targets.coef_[:, -1], rtol=1e-4)
        assert abs(free.intercept_[0] - regularized.intercept_[0]) > 1e-3
        # A free intercept makes the model blind to a shift of the rows.
        np.testing.assert_allclose(free.coef_, LogisticRegression(tol=1e-10).fit(X, TWO).coef_, atol=1e-4)

    def test_class_weights_mean_sample_weights(self):
        each = {"yes": 3.0, "no": 0.5}
        by_class = LogisticRegression(class_weight=each, tol=1e-10).fit(X, TWO)
        by_row = LogisticRegression(tol=1e-10).fit(X, TWO, sample_weight=[each[label] for label in TWO])
        np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-6)

    def test_balanced(self):
        counts = {label: np.sum(label == TWO) for label in ("yes", "no")}
        each = {label: 120 / (2 * count) for label, count in counts.items()}
        balanced = LinearSVC(class_weight="balanced", tol=1e-10).fit(X, TWO)
        np.testing.assert_allclose(balanced.coef_, LinearSVC(class_weight=each, tol=1e-10).fit(X, TWO).coef_, atol=1e-6)

    def test_balanced_counts_weights_as_repetition(self):
        counts = RNG.integers(0, 4, 120)
        many = np.repeat(np.arange(120), counts)
        weighted = LinearSVC(class_weight="balanced", tol=1e-10).fit(X, THREE, sample_weight=counts)
        repeated = LinearSVC(class_weight="balanced", tol=1e-10).fit(X[many], THREE[many])
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)

    def test_own_loss_and_regularizer_objects(self):
        model = LinearModel(loss=EpsilonInsensitive(0.3), tol=1e-8).fit(X, TARGET)
        svr = LinearSVR(epsilon=0.3, tol=1e-8).fit(X, TARGET)
        np.testing.assert_array_equal(model.coef_, svr.coef_)
        assert model.model_.loss_settings == {"epsilon": 0.3}
        net = LinearModel(regularizer=ElasticNetRegularizer(0.3), C=0.1).fit(X, TWO)
        logistic = LogisticRegression(l1_ratio=0.3, C=0.1).fit(X, TWO)
        np.testing.assert_array_equal(net.coef_, logistic.coef_)

    def test_l1_makes_zeros(self):
        assert np.sum(LogisticRegression(l1_ratio=1.0, C=0.05).fit(X, TWO).coef_ == 0) > 0

    def test_random_state_objects(self):
        a = LinearSVC(loss="hinge", random_state=np.random.RandomState(0)).fit(X, TWO)
        b = LinearSVC(loss="hinge", random_state=np.random.RandomState(0)).fit(X, TWO)
        np.testing.assert_array_equal(a.coef_, b.coef_)

    def test_warm_start(self):
        cold = LogisticRegression(tol=1e-10, warm_start=True).fit(X, THREE)
        first = cold.report_.passes
        assert cold.fit(X, THREE).report_.passes < first
        assert cold.fit(X, TWO).classes_.tolist() == ["no", "yes"]  # another problem begins anew


class TestWatching:
    def test_callback_sees_iterations_and_can_stop(self):
        steps = []
        model = LogisticRegression(tol=1e-12, callback=lambda step: steps.append(step) or len(steps) == 2).fit(X, TWO)
        assert len(steps) == 2
        assert model.report_.status == "callback"
        assert "stopped by the callback" in model.report_.sentence

    def test_ctrl_c_keeps_the_best_so_far(self):
        def interrupt(step):
            if step.passes > 2:
                raise KeyboardInterrupt

        model = LogisticRegression(tol=1e-12, callback=interrupt).fit(X, TWO)
        assert model.report_.status == "interrupted"
        assert "was interrupted after" in model.report_.sentence
        assert model.score(X, TWO) > 0.7

    def test_ctrl_c_before_calibration_still_gives_probabilities(self):
        def interrupt(step):
            raise KeyboardInterrupt

        model = LinearSVC(probability=True, callback=interrupt).fit(X, TWO)
        assert model.report_.status == "interrupted"
        assert model.predict_proba(X).shape == (120, 2)

    def test_pass_limit_warns_with_the_distance(self):
        with pytest.warns(ConvergenceWarning, match=r"above the optimum; raise max_passes \(now 3\)") as caught:
            model = LogisticRegression(tol=1e-14, max_passes=3).fit(X, TWO)
        assert len(caught) == 1
        assert model.report_.status == "limit"

    def test_verbose(self, capsys):
        LogisticRegression(verbose=True).fit(X, TWO)
        first = capsys.readouterr().out.splitlines()[0]
        assert first.startswith("pass ")
        assert "objective" in first
        assert "gap" in first


class TestProbabilities:
    def test_logistic_has_them(self):
        for y in (TWO, THREE):
            p = LogisticRegression().fit(X, y).predict_proba(X)
            np.testing.assert_allclose(p.sum(1), 1)

    def test_svm_has_them_on_request(self):
        assert not hasattr(LinearSVC(), "predict_proba")
        model = LinearSVC(probability=True).fit(X, THREE)
        p = model.predict_proba(X)
        assert p.shape == (120, 3)
        assert np.mean(model.classes_[p.argmax(1)] == THREE) > 0.7
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)

    def test_general_model(self):
        assert hasattr(LinearModel(), "predict_proba")
        assert not hasattr(LinearModel(loss="hinge"), "predict_proba")
        assert hasattr(LinearModel(loss="hinge", probability=True), "predict_proba")
        assert not hasattr(LinearModel(loss="squared"), "decision_function")

    def test_a_class_with_one_row(self):
        y = TWO.copy().astype("U5")
        y[3] = "maybe"
        assert LinearSVC(probability=True).fit(X, y).predict_proba(X).shape == (120, 3)

    def test_binary_scores_agree_with_classes(self):
        model = LinearSVC().fit(X, TWO)
        z = model.decision_function(X)
        assert z.shape == (120,)
        assert model.predict(X).tolist() == np.where(z > 0, "yes", "no").tolist()


class TestWithScikitLearn:
    def test_pipeline_and_grid_search(self):
        search = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.01, 1.0]}, cv=3)
        assert search.fit(X, THREE).best_score_ > 0.7

    def test_cross_validation_of_a_regression(self):
        assert cross_val_score(Lasso(alpha=0.001), X, TARGET, cv=3).mean() > 0.9

    def test_kinds(self):
        assert all(is_classifier(e) for e in CLASSIFIERS)
        assert all(is_regressor(e) for e in REGRESSIONS)

    def test_import_of_beeline_does_not_import_scikit_learn(self):
        assert "LinearSVC" in dir(beeline)


class TestLabels:
    def test_one_class(self):
        with pytest.raises(LabelError, match="only one class, yes"):
            LinearSVC().fit(X, np.full(120, "yes"))

    def test_rows_of_weight_zero_count_as_absent(self):
        weights = (THREE != 20).astype(float)
        weighted = LinearSVC(tol=1e-10).fit(X, THREE, sample_weight=weights)
        assert weighted.classes_.tolist() == [10, 30]
        kept = LinearSVC(tol=1e-10).fit(X[THREE != 20], THREE[THREE != 20])
        np.testing.assert_allclose(weighted.coef_, kept.coef_, atol=1e-6)

    def test_no_weight_at_all(self):
        with pytest.raises(DataError, match="all sample weights are zero"):
            Lasso().fit(X, TARGET, sample_weight=np.zeros(120))

    @pytest.mark.parametrize("weights", [np.ones(3), np.ones((120, 1)), -np.ones(120), np.full(120, np.nan)])
    def test_bad_weights(self, weights):
        with pytest.raises(ValueError, match="sample_weight"):
            LinearSVC().fit(X, TWO, sample_weight=weights)

    def test_weights_twice(self):
        data = from_arrays(X, THREE, weights=np.ones(120))
        with pytest.raises(ParameterError, match="already have weights"):
            LinearSVC().fit(data, sample_weight=np.ones(120))

    def test_weights_inside_the_data(self):
        weights = RNG.random(120)
        inside = LinearSVC(tol=1e-8).fit(from_arrays(X, THREE, weights=weights))
        np.testing.assert_array_equal(inside.coef_, LinearSVC(tol=1e-8).fit(X, THREE, sample_weight=weights).coef_)

    def test_data_without_labels(self):
        with pytest.raises(LabelError, match="have no labels"):
            LinearSVC().fit(from_arrays(X))
        with pytest.raises(LabelError, match="pass y"):
            LinearSVC().fit(X, TWO).score(from_arrays(X))
        assert LinearSVC().fit(from_arrays(X), TWO).classes_.tolist() == ["no", "yes"]

    def test_real_labels_for_a_classifier(self):
        with pytest.raises(LabelError, match="names no class"):
            LinearSVC().fit(from_arrays(X, TARGET))
        with pytest.raises(ValueError, match="continuous"):
            LinearSVC().fit(X, TARGET)

    def test_labels_of_another_length(self):
        with pytest.raises(LabelError, match="120 in all"):
            LinearSVC().fit(from_arrays(X), TWO[:5])

    def test_text_labels_of_a_data_set(self):
        data = from_arrays(X, (TWO == "yes").astype(float))
        columns = tuple(Column(name, "numeric", j) for j, name in enumerate("abcde"))
        data.recipe = Recipe(5, columns=columns, label_categories=("yes", "no"))  # 0 stands for yes
        model = LogisticRegression().fit(data)
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.feature_names_in_.tolist() == list("abcde")
        assert np.mean(model.predict(data) == np.where(TWO == "yes", "no", "yes")) > 0.8
        assert model.score(data) > 0.8
        with pytest.raises(LabelError, match="texts such as 'yes'"):
            Lasso().fit(data)


def test_frames_go_through_the_recipe_of_the_training_data():
    frame = pd.DataFrame(X * 100, columns=list("abcde")).assign(place=np.where(X[:, 4] > 0, "town", "land"), y=TWO)
    data = beeline.read(frame, label="y", scale="standard")
    model = LogisticRegression().fit(data)
    assert model.n_features_in_ == 7
    assert model.predict(frame).tolist() == model.predict(data).tolist()
    assert model.score(frame, TWO) == model.score(data)


@pytest.mark.parametrize("module", [classifiers, regressors, linear_model])
def test_examples_in_docstrings(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("kind", [LinearSVC, LogisticRegression, LinearSVR, Lasso, ElasticNet, LinearModel])
def test_every_parameter_is_documented(kind):
    text = kind.__doc__
    assert "<" not in text.replace("<=", "")
    for name in kind().get_params():
        assert f"\n{name} : " in text, name


class TestLabelsThatCannotBeLearned:
    X = np.random.default_rng(0).normal(size=(6, 2))

    @pytest.mark.parametrize("rows", ["arrays", "data set"])
    @pytest.mark.parametrize(
        ("label", "words"), [(None, "row 4 has the label None"), (np.nan, "row 4 has the label nan")], ids=str
    )
    def test_missing_ones_are_named_with_their_row(self, rows, label, words):
        X = self.X if rows == "arrays" else beeline.from_arrays(self.X)
        y = [0, 1, 0, 1, label, 1]
        for model in (beeline.Ridge(), beeline.LogisticRegression()):
            with pytest.raises(LabelError, match=f"^{words}; give it one that is known, or remove the row$"):
                model.fit(X, y)

    def test_texts_are_no_numbers(self):
        for X in (self.X, beeline.from_arrays(self.X)):
            with pytest.raises(LabelError, match="row 0 has the label 'a'; a regression needs numbers"):
                beeline.Ridge().fit(X, list("ababab"))

    def test_several_numbers_are_for_another_estimator(self):
        with pytest.raises(LabelError, match=r"y has 2 columns, and Ridge learns one .* take MultiTaskRegressor"):
            beeline.Ridge().fit(self.X, self.X)

    def test_columns_of_one_name_are_no_matter_of_arguments(self):
        frame = pd.DataFrame(self.X, columns=["a", "a"])
        with pytest.raises(DataError) as caught:
            beeline.Ridge().fit(frame, self.X[:, 0])
        assert "beeline.read(frame" not in str(caught.value)

    def test_a_callback_takes_one_argument(self):
        with pytest.raises(ParameterError, match="callback must be a function of one argument"):
            beeline.Ridge(callback=lambda: 1).fit(self.X, self.X[:, 0])

    def test_rows_with_labels_are_made_a_data_set(self, tmp_path):
        with pytest.raises(ParameterError, match=r"not tuple; of rows with labels make a data set, by from_arrays"):
            beeline.convert((self.X, self.X[:, 0]), tmp_path / "e.store")

    def test_the_column_of_labels_is_named(self, tmp_path):
        (tmp_path / "a.csv").write_text("x,y\n1,0\n2,1\n3,0\n")
        recipe = beeline.read(tmp_path / "a.csv", label="y").recipe
        (tmp_path / "b.csv").write_text("x\n1\n2\n3\n")
        with pytest.raises(LabelError, match=r"no labels: there is no column 'y'; name the column .* by label='NAME'$"):
            beeline.LogisticRegression().fit(beeline.read(tmp_path / "b.csv", recipe=recipe))
