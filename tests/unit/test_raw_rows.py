"""Estimators and models on rows as people have them: frames with text, files, labels that mean nothing."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import cross_val_score

import beeline
from beeline.exceptions import DataError, DataWarning, FormatError, ParameterError

RNG = np.random.default_rng(3)
N = 120
AGE = RNG.integers(20, 60, N).astype(float)
CITY = RNG.choice(["Oslo", "Paris", "Rome"], N)
Y = np.where(AGE / 10 + 3 * (CITY == "Paris") + RNG.standard_normal(N) > 5, "yes", "no")
FRAME = pd.DataFrame({"age": AGE, "city": CITY})
FRAMES = {
    "pandas": FRAME,
    "pandas categories": FRAME.astype({"city": "category"}),
    "pandas objects": FRAME.astype({"city": object}),
    "polars": pl.DataFrame({"age": AGE, "city": CITY}),
    "pyarrow": pa.table({"age": AGE, "city": CITY}),
}


def indicators():
    return np.column_stack([AGE, *(name == CITY for name in ("Oslo", "Paris", "Rome"))]).astype(float)


@pytest.mark.parametrize("kind", FRAMES)
def test_text_in_a_frame_becomes_indicators(kind):
    frame = FRAMES[kind]
    model = beeline.LogisticRegression(tol=1e-9).fit(frame, Y)
    plain = beeline.LogisticRegression(tol=1e-9).fit(indicators(), Y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-3, atol=1e-5)
    assert model.model_.feature_names == ["age", "city=Oslo", "city=Paris", "city=Rome"]
    np.testing.assert_array_equal(model.predict(frame), plain.predict(indicators()))
    np.testing.assert_allclose(model.predict_proba(frame), plain.predict_proba(indicators()), rtol=1e-3)
    assert model.score(frame, Y) == plain.score(indicators(), Y)
    loaded = model.model_
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (beeline.LinearSVC(), pd.Series(Y)),
        (beeline.SGDClassifier(), Y),
        (beeline.LinearSVR(C=10), AGE),
        (beeline.LogisticRegression(C="auto"), (Y == "yes").astype(int)),
    ],
    ids=str,
)
def test_other_estimators_take_frames_too(estimator, y):
    assert estimator.fit(FRAME, y).score(FRAME, y) > 0.7
    assert estimator.model_.recipe.columns[1].categories == ("Oslo", "Paris", "Rome")


def test_scikit_learn_cuts_frames_for_cross_validation():
    assert cross_val_score(beeline.LogisticRegression(), FRAME, Y, cv=3).mean() > 0.7


def test_categories_that_nobody_has_seen_are_told():
    model = beeline.LogisticRegression().fit(FRAME, Y)
    new = pd.DataFrame({"city": ["Oslo", "Bonn", "Wien"], "age": [30.0, 40.0, 50.0]})
    with pytest.warns(DataWarning, match="column 'city' has 2 values that the recipe does not know") as told:
        model.predict(new)
    assert told[0].filename == __file__
    with pytest.warns(DataWarning, match="'city' has 2 values"):
        model.model_.decision_function(new)


@pytest.mark.parametrize("missing", [{"age": [1.0, None, 9.0]}, {"age": [1.0, np.nan, 9.0], "city": ["a", "b", "b"]}])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_missing_values_point_to_what_reads_them(make, missing):
    frame = make(missing)
    words = r"row 2: column 'age' has no value; fill .*missing='mean'.*: these are arguments of beeline\.read\(frame"
    with pytest.raises(DataError, match=words):
        beeline.LogisticRegression().fit(frame, [0, 1, 1])
    data = beeline.read(frame, missing="mean")
    assert beeline.LogisticRegression().fit(data, [0, 1, 1]).predict(frame).shape == (3,)


def test_a_frame_of_numbers_goes_the_way_of_scikit_learn():
    numbers = pd.DataFrame({"a": AGE, "b": pd.array([1, 0] * (N // 2), "Int64")})
    model = beeline.LogisticRegression().fit(numbers, Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.model_.recipe is None
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(numbers[["b", "a"]])


@pytest.fixture
def trained(tmp_path):
    path = tmp_path / "train.csv"
    FRAME.assign(bought=Y).to_csv(path, index=False)
    data = beeline.read(path, label="bought")
    return beeline.LogisticRegression().fit(data), path


@pytest.mark.parametrize("labels", ["absent", "empty", "unseen"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_predictions_need_no_labels(tmp_path, trained, labels, kind):
    model = trained[0]
    frame = FRAME if labels == "absent" else FRAME.assign(bought=None if labels == "empty" else "perhaps")
    source = tmp_path / f"new.{kind}"
    if kind == "csv":
        frame.to_csv(source, index=False)
    elif kind == "parquet":
        frame.to_parquet(source)
    else:
        source = frame
    for face in (model, model.model_):
        np.testing.assert_array_equal(face.predict(source), model.predict(FRAME))
        np.testing.assert_array_equal(face.predict_proba(source), model.predict_proba(FRAME))
        np.testing.assert_array_equal(face.decision_function(source), model.decision_function(FRAME))


def test_files_are_scored_with_their_labels(trained):
    model, path = trained
    assert model.score(path) == model.score(FRAME, Y)
    assert model.score(FRAME.assign(bought=Y)) == model.score(FRAME, Y)
    assert model.score([path, str(path)]) == model.score(FRAME, Y)
    np.testing.assert_array_equal(model.predict([path, path]), np.tile(model.predict(FRAME), 2))


def test_files_of_other_kinds(tmp_path, trained):
    store = beeline.convert(trained[1], tmp_path / "rows.store", label="bought")
    np.testing.assert_array_equal(trained[0].predict(tmp_path / "rows.store"), trained[0].predict(store))
    (tmp_path / "rows.svm").write_text("1 1:1 2:2\n-1 1:-1\n")
    model = beeline.LinearSVC().fit(beeline.read(tmp_path / "rows.svm"))
    (tmp_path / "new.svm").write_text("7 1:1 2:2 5:2\n7 1:-1\n")  # a label and a feature that nobody knows
    with pytest.warns(DataWarning, match="1 entry of features that the model has never seen"):
        assert model.predict(tmp_path / "new.svm").tolist() == [1, -1]


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_lines_of_text_need_no_label(tmp_path, scale):
    rows, bare = tmp_path / "rows.svm", tmp_path / "bare.svm"
    rows.write_text("1 1:1 2:2\n-1 1:-1\n1 2:3\n-1 1:-2 2:1\n")
    bare.write_text("1:1 2:2\n-1 1:-1\n 2:3 # the third\n1:-2 2:1\n")
    data = beeline.read(rows, scale=scale)
    model = beeline.LogisticRegression().fit(data)
    for face in (model, model.model_):
        np.testing.assert_array_equal(face.predict(bare), model.predict(data))
        np.testing.assert_array_equal(face.predict_proba(bare), model.predict_proba(data))
        np.testing.assert_array_equal(face.decision_function(bare), model.decision_function(data))
    assert model.score(bare, [1, -1, 1, -1]) == 1  # with labels from elsewhere
    with pytest.raises(FormatError, match=r"bare\.svm, line 1, column 1: .*has no label"):
        model.score(bare)


def test_a_model_of_named_features_finds_the_columns_of_a_file(tmp_path):
    numbers = pd.DataFrame({"a": AGE, "b": AGE[::-1]})
    model = beeline.LogisticRegression().fit(numbers, Y)
    numbers[["b", "a"]].to_csv(tmp_path / "new.csv", index=False)
    np.testing.assert_array_equal(model.predict(tmp_path / "new.csv"), model.predict(numbers))


def test_extra_columns_are_all_named(trained):
    model, path = trained
    recipe, wide = model.model_.recipe, FRAME.assign(**{f"more{k}": k for k in range(10)})
    words = r"does not know columns 'more0', 'more1', .*'more7' and 2 more; leave them out with extra='ignore'"
    for use in (model.predict, lambda frame: beeline.read(frame, recipe=recipe)):
        with pytest.raises(DataError, match=words):
            use(wide)
    data = beeline.read(wide, recipe=recipe, extra="ignore")
    np.testing.assert_array_equal(model.predict(data), model.predict(FRAME))
    with pytest.raises(ParameterError, match="extra has no meaning for a table whose columns are all learned from"):
        beeline.read(path, label="bought", extra="ignore")
    with pytest.raises(ParameterError, match="extra must be one of error, ignore"):
        beeline.read(wide, recipe=recipe, extra="drop")


def test_columns_that_a_model_does_not_know_are_left_out_where_it_predicts(tmp_path, trained):
    estimator = trained[0]
    model, wide = estimator.model_, FRAME.assign(more=1.0)
    wide.assign(bought=Y).to_csv(tmp_path / "wide.csv", index=False)
    for rows in (wide, tmp_path / "wide.csv"):
        for method in ("predict", "decision_function", "predict_proba"):
            for asked in (estimator, model):
                with pytest.raises(DataError, match=r"column 'more'; leave it out with extra='ignore'$"):
                    getattr(asked, method)(rows)
                found = getattr(asked, method)(rows, extra="ignore")
                np.testing.assert_array_equal(found, getattr(asked, method)(FRAME))
        assert estimator.score(rows, Y, extra="ignore") == estimator.score(FRAME, Y)
        found = beeline.evaluate(estimator, rows, Y, extra="ignore")
        assert found.measures == beeline.evaluate(estimator, FRAME, Y).measures


def test_frames_of_numbers_may_have_extra_columns_too():
    numbers = pd.DataFrame({"a": AGE, "b": AGE[::-1]})
    fitted, wide = beeline.LogisticRegression().fit(numbers, Y), numbers.assign(more=1)[["more", "b", "a"]]
    for asked in (fitted, fitted.model_):
        np.testing.assert_array_equal(asked.predict(wide, extra="ignore"), fitted.predict(numbers))
    columns = {"a": AGE, "b": AGE, "more": AGE}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        with pytest.raises(ValueError, match=r"unseen at fit time:\n- more\nLeave such .* extra='ignore'\.$"):
            fitted.predict(frame)
    with pytest.raises(ValueError, match=r"missing:\n- b\n$"):
        fitted.predict(numbers.rename(columns={"b": "c"}))
    detector = beeline.NoveltyDetector().fit(numbers)
    np.testing.assert_array_equal(detector.predict(wide, extra="ignore"), detector.predict(numbers))


def test_extra_has_no_meaning_for_arrays():
    X = np.c_[AGE, AGE[::-1]]
    model = beeline.LogisticRegression().fit(X, Y)
    for use in (model.predict, model.model_.predict, lambda X, **extra: beeline.evaluate(model, X, Y, **extra)):
        with pytest.raises(ParameterError, match="extra has no meaning"):
            use(X, extra="ignore")
    assert not hasattr(model, "set_predict_request")  # nothing that a pipeline would hand on
