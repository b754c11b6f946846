"""The model: answers, agreement with data, and its file."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from beeline.data.core.arrays import from_arrays
from beeline.data.recipe.recipe import Column, Recipe
from beeline.data.recipe.scaling import Scaling
from beeline.exceptions import DataError, ModelError, ParameterError, SourceError
from beeline.model import Model, Report

REPORT = Report(
    sentence="stopped after 3 passes, at most 0.01 % above the optimum",
    status="converged",
    solver="newton",
    objective=1.5,
    gap=1e-4,
    passes=3.0,
    iterations=2,
    seconds=0.1,
    n_rows=10,
)


def make(classes=(0, 1), n_features=4, seed=0, **others):
    rng = np.random.default_rng(seed)
    names = None if classes is None else np.array(classes)
    outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    loss = "squared" if classes is None else "logistic"
    settings = {"link": "none" if classes is None else "logistic"} | others
    return Model(
        weights=rng.standard_normal((n_features, outputs)),
        intercepts=rng.standard_normal(outputs),
        classes=names,
        loss=loss,
        **settings,
    )


X = np.random.default_rng(1).standard_normal((30, 4))


class TestAnswers:
    def test_two_classes(self):
        model = make(("no", "yes"))
        z = X @ model.weights[:, 0] + model.intercepts[0]
        np.testing.assert_allclose(model.decision_function(X), z)
        assert model.predict(X).tolist() == np.where(z > 0, "yes", "no").tolist()
        p = 1 / (1 + np.exp(-z))
        np.testing.assert_allclose(model.predict_proba(X), np.column_stack([1 - p, p]))

    def test_several_classes(self):
        model = make((3, 5, 9))
        z = X @ model.weights + model.intercepts
        np.testing.assert_allclose(model.decision_function(X), z)
        assert model.predict(X).tolist() == np.array([3, 5, 9])[z.argmax(1)].tolist()
        p = 1 / (1 + np.exp(-z))
        np.testing.assert_allclose(model.predict_proba(X), p / p.sum(1, keepdims=True))

    def test_softmax(self):
        model = make((0, 1, 2), link="softmax")
        e = np.exp(X @ model.weights + model.intercepts)
        np.testing.assert_allclose(model.predict_proba(X), e / e.sum(1, keepdims=True))

    def test_platt(self):
        model = make((0, 1, 2), link="platt", platt=np.array([[-1.0, 0.5], [-2.0, 0.0], [-0.3, -1.0]]))
        z = X @ model.weights + model.intercepts
        p = 1 / (1 + np.exp(model.platt[:, 0] * z + model.platt[:, 1]))
        np.testing.assert_allclose(model.predict_proba(X), p / p.sum(1, keepdims=True))

    def test_regression(self):
        model = make(None)
        np.testing.assert_allclose(model.predict(X), X @ model.weights[:, 0] + model.intercepts[0])

    @pytest.mark.parametrize("scale", [1e3, 1e6])
    def test_extreme_scores_have_probabilities(self, scale):
        for model in (make((0, 1)), make((0, 1, 2)), make((0, 1, 2), link="softmax")):
            p = model.predict_proba(scale * X)
            assert np.isfinite(p).all()
            np.testing.assert_allclose(p.sum(1), 1)

    def test_hopeless_rows_give_even_odds(self):
        model = make((0, 1, 2))
        assert model.probabilities(np.full((1, 3), -1e5)).tolist() == [[1 / 3] * 3]

    def test_dense_sparse_block_and_data_set_agree(self):
        model = make((0, 1, 2))
        sparse = scipy.sparse.csr_array(X)
        expected = model.decision_function(X)
        for rows in (sparse, from_arrays(X), from_arrays(sparse), from_arrays(sparse).block):
            np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-12)

    def test_streams_in_small_blocks(self):
        model = make((0, 1, 2))
        blocks = list(model.stream(from_arrays(X), memory=3 * 4 * 8))
        assert len(blocks) > 5
        np.testing.assert_array_equal(np.concatenate([z for _, z in blocks]), model.decision_function(X))

    def test_no_rows(self):
        model = make((0, 1, 2))
        empty = np.empty((0, 4))
        assert model.predict(empty).shape == (0,)
        assert model.predict_proba(empty).shape == (0, 3)
        assert model.decision_function(empty).shape == (0, 3)

    def test_no_probabilities_says_how_to_get_them(self):
        with pytest.raises(ParameterError, match="probability=True"):
            make((0, 1), link="none").predict_proba(X)
        with pytest.raises(ParameterError, match="regression"):
            make(None).predict_proba(X)


class TestAgreementWithData:
    def test_more_features_than_the_model(self):
        with pytest.raises(DataError, match=r"have 5 features but the model was trained on 4"):
            make().predict(np.zeros((2, 5)))

    def test_dense_rows_with_too_few_features(self):
        with pytest.raises(DataError, match="only 3 features"):
            make().predict(np.zeros((2, 3)))

    def test_sparse_rows_that_end_early_have_zeros_there(self):
        model = make()
        wide, narrow = X.copy(), scipy.sparse.csr_array(X[:, :2])
        wide[:, 2:] = 0
        np.testing.assert_allclose(model.decision_function(narrow), model.decision_function(wide))

    def test_something_else(self):
        with pytest.raises(DataError, match="not dict"):
            make().predict({"x": [1.0]})
        with pytest.raises(SourceError, match=r"rows\.csv: no such file"):
            make().predict("rows.csv")

    @pytest.mark.parametrize(
        ("other", "what"),
        [
            (Recipe(4, scaling=Scaling("maxabs", factor=np.ones(4))), "scaling"),
            (Recipe(4, index_base=0), "numbering"),
            (Recipe(1, columns=(Column("a", "numeric", 0),)), "columns"),
        ],
    )
    def test_another_recipe(self, other, what):
        data = from_arrays(X)
        data.recipe = other
        with pytest.raises(DataError, match=f"another {what}"):
            make(recipe=Recipe(4)).predict(data)

    def test_labels_become_class_numbers(self):
        assert make((3, 5, 9)).label_numbers(np.array([9.0, 3.0, 5.0])).tolist() == [2, 0, 1]

    def test_text_labels_go_through_the_data_set_s_own_numbers(self):
        model = make(("blue", "red"))
        recipe = Recipe(4, label_categories=("red", "blue"))
        assert model.label_numbers(np.array([0.0, 1.0, 1.0]), recipe).tolist() == [1, 0, 0]

    def test_a_label_never_seen(self):
        with pytest.raises(DataError, match=r"row 1 has the label 7.*knows 3, 5, 9"):
            make((3, 5, 9)).label_numbers(np.array([3, 7]))

    def test_texts_against_numbers(self):
        with pytest.raises(DataError, match="labels are numbers but the model's classes are texts"):
            make(("a", "b")).label_numbers(np.array([0.0, 1.0]))


class TestFrames:
    def test_go_through_the_recipe(self):
        frame = pd.DataFrame({"town": ["a", "ç", "b\n"], "age": [1.0, 2.0, 3.0], "y": ["no", "yes", "no"]})
        model = make(("no", "yes"), recipe=RECIPE)
        rows = np.array([[1.0, 1, 0, 0], [2.0, 0, 0, 1], [3.0, 0, 1, 0]])
        scaled = (rows - RECIPE.scaling.shift) * RECIPE.scaling.factor
        np.testing.assert_allclose(model.decision_function(frame), model.decision_function(scaled))
        np.testing.assert_allclose(model.decision_function(frame.drop(columns="y")), model.decision_function(scaled))

    def test_without_a_recipe_names_must_agree(self):
        model = make(feature_names=["a", "b", "c", "d"])
        frame = pd.DataFrame(X, columns=list("abcd"))
        np.testing.assert_array_equal(model.decision_function(frame), model.decision_function(X))
        with pytest.raises(DataError, match="columns d, c, b, a, but the model was trained on a, b, c, d"):
            model.predict(frame[list("dcba")])


class TestShapes:
    @pytest.mark.parametrize(
        "change",
        [
            {"weights": np.zeros(4)},
            {"intercepts": np.zeros(2)},
            {"classes": np.array([1])},
            {"classes": np.array([1, 2, 3])},
            {"weights": np.full((4, 1), np.nan)},
            {"link": "platt"},
            {"platt": np.zeros((1, 2))},
            {"link": "magic"},
            {"feature_names": ["a"]},
            {"classes": None, "link": "softmax"},
            {"link": "exp"},
            {"multilabel": True},
        ],
    )
    def test_what_does_not_fit_is_refused(self, change):
        fields = {"weights": np.zeros((4, 1)), "intercepts": np.zeros(1), "classes": np.array([0, 1])}
        with pytest.raises(ModelError):
            Model(**{**fields, "loss": "logistic", "link": "logistic", **change})


RECIPE = Recipe(
    4,
    columns=(Column("age", "numeric", 0, fill=0.1), Column("town", "categories", 1, ("a", "b\n", "ç"))),
    label="y",
    label_categories=("no", "yes"),
    scaling=Scaling("standard", shift=np.array([1 / 3, 0, 0, 0]), factor=np.array([1e-9, 1, 1, 1])),
)


class TestFile:
    @pytest.mark.parametrize(
        "model",
        [
            make((0, 1)),
            make((-1.0, 1.0)),
            make((False, True)),
            make(("ä", "b\n")),
            make((1, 2, 3), link="softmax", feature_names=["a", "b", "ü", "d"]),
            make(None, recipe=RECIPE, settings={"C": 0.1, "class_weight": {"a": 2.0}}, report=REPORT),
            make((0, 1), link="platt", platt=np.array([[-1.5, 0.1]]), loss_settings={"width": 0.5}),
            make(np.array(["x", "y"], dtype=object)),
        ],
        ids=str,
    )
    def test_round_trip(self, tmp_path, model):
        path = tmp_path / "m.beeline"
        model.save(path)
        again = Model.load(path)
        np.testing.assert_array_equal(again.weights, model.weights)
        np.testing.assert_array_equal(again.intercepts, model.intercepts)
        for name in ("loss", "loss_settings", "link", "feature_names", "recipe", "settings", "report", "kind"):
            assert getattr(again, name) == getattr(model, name), name
        if model.classes is not None:
            assert again.classes.dtype == model.classes.dtype
            assert again.classes.tolist() == model.classes.tolist()
            assert again.predict(X).tolist() == model.predict(X).tolist()
        if model.platt is not None:
            np.testing.assert_array_equal(again.platt, model.platt)
        assert again.version

    def test_sparse_weights_take_little_room(self, tmp_path):
        weights = np.zeros((100_000, 5))
        weights[::1000] = np.random.default_rng(0).standard_normal((100, 5))
        model = Model(weights=weights, intercepts=np.zeros(5), classes=np.arange(5), loss="hinge")
        path = tmp_path / "m"
        model.save(path)
        assert path.stat().st_size < 500 * 12 + 2000  # against 4 MB
        np.testing.assert_array_equal(Model.load(path).weights, weights)

    def test_all_zero_weights(self, tmp_path):
        model = Model(weights=np.zeros((50, 3)), intercepts=np.ones(3), classes=np.arange(3), loss="hinge")
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(Model.load(tmp_path / "m").weights, model.weights)

    def test_classes_that_json_cannot_hold(self, tmp_path):
        model = make(np.array([(1, 2), (3, 4)], dtype="i,i").astype(object))
        with pytest.raises(ModelError, match="cannot be saved"):
            model.save(tmp_path / "m")

    def test_the_same_model_gives_the_same_file(self, tmp_path):
        model = make((1, 2, 3), recipe=RECIPE, feature_names=["a", "b", "ü", "d"], report=REPORT)
        model.save(tmp_path / "a")
        Model.load(tmp_path / "a").save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_other_tools_can_read_it(self, tmp_path):
        from safetensors.numpy import load_file

        model = make((1, 2, 3), feature_names=["a", "b", "ü", "d"])
        model.save(tmp_path / "m")
        tensors = load_file(tmp_path / "m")
        np.testing.assert_array_equal(tensors["weights"], model.weights)
        assert tensors["feature_names.json"].tobytes().decode() == '["a", "b", "ü", "d"]'

    def test_nothing_is_left_behind(self, tmp_path):
        make().save(tmp_path / "m")
        make().save(tmp_path / "m")
        assert [path.name for path in tmp_path.iterdir()] == ["m"]

    def test_loading_imports_nothing_but_arrays(self, tmp_path):
        make().save(tmp_path / "m")
        code = "import sys; from beeline import Model; Model.load(sys.argv[1]);"
        code += "print([m for m in ('sklearn', 'pyarrow', 'scipy', 'onnx', 'pickle5') if m in sys.modules])"
        run = [sys.executable, "-c", code, str(tmp_path / "m")]
        assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "[]"

    def test_pickles(self):
        model = pickle.loads(pickle.dumps(make((0, 1, 2), recipe=RECIPE)))
        assert model.predict(X).tolist() == make((0, 1, 2), recipe=RECIPE).predict(X).tolist()


class TestNames:
    def test_features_by_name_or_number(self):
        assert make(feature_names=["a", "b", "c", "d"]).feature_name(2) == "c"
        assert make(recipe=Recipe(4, index_base=1)).feature_name(2) == "3"
        assert make().feature_name(2) == "2"

    def test_outputs(self):
        assert make(("no", "yes")).output_name(0) == "yes"
        assert make((1, 2, 3)).output_name(0) == "1"
        assert make(None).output_name(0) == "value"

    def test_repr(self):
        assert repr(make((1, 2, 3))) == "Model(logistic, multiclass, 4 features, 3 outputs)"
