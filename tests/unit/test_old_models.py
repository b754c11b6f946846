"""Model files of every version of the format that there was are still read, and predict what they did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from beeline import SGDClassifier, from_arrays
from beeline.model import Model
from beeline.model.file import VERSION

DATA = Path(__file__).parents[1] / "data"
FOLDERS = {int(folder.name.removeprefix("models-")): folder for folder in DATA.glob("models-*")}
FILES = [
    pytest.param(folder / f"{name}.model", told, id=f"{version}-{name}")
    for version, folder in sorted(FOLDERS.items())
    for name, told in json.loads((folder / "expected.json").read_text(encoding="utf-8")).items()
]


def test_every_version_has_its_files():
    assert set(FOLDERS) == set(range(1, VERSION + 1))
    for folder in FOLDERS.values():
        names = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        assert {f"{name}.model" for name in names} == {path.name for path in folder.glob("*.model")}


@pytest.mark.parametrize(("file", "told"), FILES)
def test_it_predicts_what_it_did(file, told):
    model = Model.load(file)
    of_table = "columns" in told
    rows = model.dataset(pa.table(told["columns"])) if of_table else from_arrays(np.array(told["rows"]))
    predicted = model.predict(rows)
    if predicted.dtype.kind == "f":
        np.testing.assert_allclose(predicted, told["predict"], rtol=1e-12)
    else:
        assert predicted.tolist() == told["predict"]
    np.testing.assert_allclose(model.decision_function(rows), told["scores"], rtol=1e-12, atol=1e-15)
    if "probabilities" in told:
        np.testing.assert_allclose(model.predict_proba(rows), told["probabilities"], rtol=1e-12)
    assert model.report is not None
    assert model.report.sentence


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=lambda folder: folder.name)
def test_training_goes_on_from_a_state(folder):
    online = SGDClassifier.from_model(folder / "streamed.model")
    X = np.eye(4)[[0, 1, 2]]
    assert online.partial_fit(X, [0, 1, 2]).report_.n_rows == 83
    assert online.predict(X).shape == (3,)


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=lambda folder: folder.name)
def test_it_is_written_again_as_it_is_now(folder, tmp_path):
    model = Model.load(folder / "logistic.model")
    model.save(tmp_path / "again.model")
    again = Model.load(tmp_path / "again.model")
    np.testing.assert_array_equal(again.weights, model.weights)
    assert again.settings == model.settings
