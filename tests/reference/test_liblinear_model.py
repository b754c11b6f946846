"""LIBLINEAR's text models, both ways, against LIBLINEAR itself."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from liblinear.liblinearutil import load_model, predict, save_model, train

from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import Scaling
from beeline.exceptions import FormatError, ModelError, SourceError
from beeline.model import Model

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 6))
SCORES = X @ RNG.standard_normal((6, 3))
LABELS = {
    "binary": np.where(SCORES[:, 0] > 0, 1, -1),
    "flipped": np.where(SCORES[:, 0] > 0, -1, 1),  # the label that comes first stands for positive scores
    "several": SCORES.argmax(1) * 10 - 10,
    "real": SCORES[:, 0],
}


def run(model, probabilities=False):
    labels, _, values = predict([], scipy.sparse.csr_matrix(X), model, "-q -b 1" if probabilities else "-q")
    return np.array(labels), np.array(values)


@pytest.mark.parametrize("bias", ["", "-B 1", "-B 0.5"])
@pytest.mark.parametrize(
    ("solver", "kind"),
    [(s, kind) for s in (0, 1, 2, 3, 4, 5, 6, 7) for kind in ("binary", "flipped", "several")]
    + [(s, "real") for s in (11, 12, 13)],
)
def test_reads_what_liblinear_wrote(tmp_path, solver, kind, bias):
    theirs = train(LABELS[kind], scipy.sparse.csr_matrix(X), f"-q -s {solver} {bias}")
    save_model(str(tmp_path / "m"), theirs)
    ours = Model.from_liblinear(tmp_path / "m")
    labels, _ = run(theirs)
    np.testing.assert_allclose(ours.predict(X), labels, rtol=1e-12, atol=1e-15)
    if solver in (0, 6, 7):
        _, probabilities = run(theirs, probabilities=True)
        order = np.argsort(theirs.get_labels())
        np.testing.assert_allclose(ours.predict_proba(X), probabilities[:, order], rtol=1e-9, atol=1e-14)


def our_model(kind, loss, intercept, **settings):
    outputs = 3 if kind == "several" else 1
    classes = None if kind == "real" else np.unique(LABELS[kind])
    return Model(
        weights=RNG.standard_normal((6, outputs)),
        intercepts=RNG.standard_normal(outputs) if intercept else np.zeros(outputs),
        classes=classes,
        loss=loss,
        link="logistic" if loss == "logistic" else "none",
        settings=settings,
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("kind", "loss", "settings", "name"),
    [
        ("binary", "logistic", {}, "L2R_LR"),
        ("binary", "logistic", {"regularizer": "l1"}, "L1R_LR"),
        ("binary", "hinge", {}, "L2R_L1LOSS_SVC_DUAL"),
        ("binary", "hinge", {"multiclass": "crammer_singer"}, "L2R_L1LOSS_SVC_DUAL"),
        ("several", "squared_hinge", {}, "L2R_L2LOSS_SVC"),
        ("several", "squared_hinge", {"regularizer": "elastic_net"}, "L2R_L2LOSS_SVC"),
        ("several", "hinge", {"multiclass": "crammer_singer"}, "MCSVM_CS"),
        ("several", "logistic", {"multiclass": "softmax"}, "MCSVM_CS"),
        ("several", "logistic", {"multiclass": "ovr"}, "L2R_LR"),
        ("real", "epsilon_insensitive", {}, "L2R_L1LOSS_SVR_DUAL"),
        ("real", "squared_epsilon_insensitive", {}, "L2R_L2LOSS_SVR"),
        ("real", "squared", {"regularizer": "l1"}, "L2R_L2LOSS_SVR"),
    ],
)
def test_liblinear_reads_what_we_write(tmp_path, kind, loss, settings, name, intercept):
    ours = our_model(kind, loss, intercept, **settings)
    ours.to_liblinear(tmp_path / "m")
    assert (tmp_path / "m").read_text().startswith(f"solver_type {name}\n")
    labels, _ = run(load_model(str(tmp_path / "m")))
    np.testing.assert_allclose(labels, ours.predict(X), rtol=1e-12)
    again = Model.from_liblinear(tmp_path / "m")
    np.testing.assert_array_equal(again.weights, ours.weights)
    np.testing.assert_array_equal(again.intercepts, ours.intercepts)


def test_scaling_is_folded_into_the_weights(tmp_path):
    scaling = Scaling("standard", shift=np.arange(6.0), factor=np.arange(1.0, 7.0))
    ours = our_model("several", "hinge", True)
    ours = Model(**{**vars(ours), "recipe": Recipe(6, scaling=scaling)})
    ours.to_liblinear(tmp_path / "m")
    labels, _ = run(load_model(str(tmp_path / "m")))
    np.testing.assert_array_equal(labels, ours.predict((X - scaling.shift) * scaling.factor))


def test_what_liblinear_cannot_say_is_refused(tmp_path):
    texts = Model(weights=np.zeros((2, 1)), intercepts=np.zeros(1), classes=np.array(["a", "b"]), loss="hinge")
    with pytest.raises(ModelError, match=r"whole numbers, not .*'a'.*ONNX"):
        texts.to_liblinear(tmp_path / "m")
    halves = Model(weights=np.zeros((2, 1)), intercepts=np.zeros(1), classes=np.array([0.5, 1]), loss="hinge")
    with pytest.raises(ModelError, match="whole numbers"):
        halves.to_liblinear(tmp_path / "m")
    unit = our_model("real", "squared", False)
    with pytest.raises(ModelError, match="unit norm"):
        Model(**{**vars(unit), "recipe": Recipe(6, scaling=Scaling("unit-norm"))}).to_liblinear(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["binary", "several", "real"])
def test_features_keep_their_names_and_liblinear_does_not_mind(tmp_path, kind, intercept):
    names = ["age", "city=Zürich", "a\nb", '"', "", "# feature 1"]
    ours = our_model(kind, "squared" if kind == "real" else "hinge", intercept)
    ours = Model(**{**vars(ours), "feature_names": names})
    ours.to_liblinear(tmp_path / "m")
    assert '# feature 1 "age"\n' in (tmp_path / "m").read_text()
    labels, _ = run(load_model(str(tmp_path / "m")))
    np.testing.assert_allclose(labels, ours.predict(X), rtol=1e-12)
    again = Model.from_liblinear(tmp_path / "m")
    assert again.feature_names == names
    np.testing.assert_array_equal(again.weights, ours.weights)
    np.testing.assert_array_equal(again.intercepts, ours.intercepts)


HEADER = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends before the weights"),
        ("hello\n", "begins with 'hello'"),
        (HEADER + "1 \n", "weights for 1 features, not 2"),
        (HEADER + "1 \n2 \n3 \n", "line 9: the file goes on behind the weights for 2 features"),
        (HEADER + '1 \n2 \n# feature 1 "a"\n', "names for 1 features, not 2"),
        (HEADER + '1 \n2 \n# feature 2 "a"\n', "line 9: this line must be # feature 1 and the name in quotation marks"),
        (HEADER + "1 \n2 \n# feature 1 a\n", "line 9: this line must be # feature 1 and"),
        (HEADER + "1 \n2 \n# feature 1 7\n", "line 9: this line must be # feature 1 and"),
        (HEADER + "1 \n2 3 \n", "line 8: this line has 2 weights, not 1"),
        (HEADER + "1 \nx \n", "not a number"),
        (HEADER + "1 \nnan \n", "line 8: a weight is not finite"),
        (HEADER.replace("L2R_LR", "L3R"), "line 1: there is no LIBLINEAR solver 'L3R'"),
        (HEADER.replace("L2R_LR", "ONECLASS_SVM"), "one-class"),
        (HEADER.replace("nr_class 2", "nr_class x"), "nr_class must be"),
        (HEADER.replace("nr_class 2", "nr_class 1").replace("1 -1", "1"), "single class"),
        (HEADER.replace("label 1 -1", "label 1"), "nr_class is 2 but the labels are '1'"),
        (HEADER.replace("label 1 -1", "label 1 1"), "nr_class is 2 but"),
        (HEADER.replace("label 1 -1", "label a b"), "whole numbers"),
        (HEADER.replace("bias -1", "bias"), "bias must be a number"),
        (HEADER.replace("L2R_LR", "L2R_L2LOSS_SVR"), "no labels"),
    ],
)
def test_flawed_text(tmp_path, text, reason):
    path = tmp_path / "m"
    path.write_text(text)
    with pytest.raises(FormatError, match=reason):
        Model.from_liblinear(path)


def test_binary_and_missing_files(tmp_path):
    (tmp_path / "m").write_bytes(b"\xff\xfe" * 10)
    with pytest.raises(FormatError, match="not a LIBLINEAR model"):
        Model.from_liblinear(tmp_path / "m")
    with pytest.raises(SourceError, match="no such file"):
        Model.from_liblinear(tmp_path / "n")
