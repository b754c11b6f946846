"""Write small model files of the current format version, with what they predict, for tests/unit/test_old_models.py.

Files of a version that was released are never written anew: they are what users have. A new version of the format gets
a folder of its own: tools/make_model_files.py tests/data/models-VERSION
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import beeline

RNG = np.random.default_rng(7)
X = RNG.normal(size=(80, 4)).round(3)
TWO = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no")
THREE = np.digitize(X[:, 0] - X[:, 2], [-0.7, 0.7])
NUMBERS = (2 * X[:, 0] - X[:, 3] + 1).round(3)
SETS = (X[:, :3] > 0.2).astype(int)
NEW = RNG.normal(size=(5, 4)).round(3)


def trained() -> dict[str, Any]:
    """An estimator for each part that a file may have."""
    few = np.hstack([X, np.zeros((80, 60))])
    return {
        "logistic": beeline.LogisticRegression().fit(X, TWO),
        "softmax": beeline.LogisticRegression().fit(X, THREE),
        "one-vs-rest": beeline.LinearSVC().fit(X, THREE),
        "calibrated": beeline.LinearSVC(probability=True).fit(X, TWO),
        "searched": beeline.LinearSVC(C="auto", loss="hinge", cv=3).fit(X, TWO),
        "sparse": beeline.Lasso(alpha=0.1).fit(few, NUMBERS),
        "rates": beeline.PoissonRegressor().fit(X, np.round(np.exp(X[:, 0]))),
        "quantile": beeline.QuantileRegressor(quantile=0.8, alpha=0.01).fit(X, NUMBERS),
        "several-numbers": beeline.MultiTaskRegressor().fit(X, np.column_stack([NUMBERS, -NUMBERS])),
        "sets": beeline.LinearModel("multilabel_logistic").fit(X, SETS),
        "streamed": beeline.SGDClassifier(loss="hinge").partial_fit(X, THREE),
    }


def of_table(folder: Path) -> dict[str, Any]:
    """A model with a recipe: categories, scaling, names of features and labels."""
    with TemporaryDirectory() as place:
        table = Path(place) / "table.csv"
        colours = np.array(["red", "green", "blue"])[np.arange(80) % 3]
        lines = (f"{x:g},{colour},{label}" for x, colour, label in zip(X[:, 0], colours, TWO, strict=True))
        table.write_text("size,colour,answer\n" + "\n".join(lines) + "\n", encoding="utf-8")
        data = beeline.read(table, label="answer", scale="standard")
    model = beeline.LogisticRegression(C=10.0).fit(data).model_
    model.save(folder / "table.model")
    new = {"size": [-1.5, 0.0, 2.5], "colour": ["red", "blue", "green"]}
    return {"columns": new} | _answers(model, model.dataset(_frame(new)))


def _frame(columns: dict[str, list[Any]]) -> Any:
    import pyarrow as pa

    return pa.table(columns)


def _answers(model: Any, rows: Any) -> dict[str, Any]:
    answers = {"predict": model.predict(rows).tolist(), "scores": model.decision_function(rows).tolist()}
    if model.link in ("logistic", "softmax", "platt"):
        answers["probabilities"] = model.predict_proba(rows).tolist()
    return answers


def main() -> None:
    """Write the files and `expected.json`."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    expected = {"table": of_table(folder)}
    for name, estimator in trained().items():
        estimator.model_.save(folder / f"{name}.model")
        rows = np.hstack([NEW, np.zeros((len(NEW), estimator.n_features_in_ - NEW.shape[1]))])
        expected[name] = {"rows": rows.tolist()} | _answers(estimator.model_, beeline.from_arrays(rows))
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
