"""`beeline train --loss roc_area` and its kind: settings, refusals, measures of what they were trained for."""

from __future__ import annotations

import json

import numpy as np
import pytest
from outcomes import done_well


@pytest.fixture
def rare(tmp_path):
    """A file of which one row in ten is positive."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    z = X @ [2.0, -1.0, 0.5] + 0.3 * random.normal(size=300)
    y = (z > np.quantile(z, 0.9)).astype(int)
    lines = [f"{a} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(row)) for a, row in zip(y, X, strict=True)]
    (tmp_path / "rare.svm").write_text("\n".join(lines) + "\n")
    return "rare.svm"


@pytest.mark.parametrize(
    ("loss", "settings", "measure"),
    [
        ("roc_area", (), "auc"),
        ("roc_area", ("max_fpr=0.1",), "partial_auc@0.1"),
        ("f_beta", ("beta=2",), "f2"),
        ("precision", ("k=25",), "precision@25"),
        ("break_even", (), "break_even"),
        ("balanced_error", (), "balanced_accuracy"),
    ],
)
def test_what_a_model_was_trained_for_is_measured(quickly, rare, loss, settings, measure):
    more = [word for setting in settings for word in ("--loss-setting", setting)]
    done_well(quickly("train", rare, "-o", "m", "--loss", loss, *more, "--C", "1000"))
    found = json.loads(done_well(quickly("evaluate", "m", rare, "--json")))
    assert found["measures"][measure] > 0.7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--loss", "roc_area", "--intercept", "free"), "take --intercept none, or say nothing about it"),
        (("--loss", "roc_area", "--class-weight", "balanced"), "--class-weight changes nothing about the loss"),
        (
            ("--loss", "precision", "--loss-setting", "k=40"),
            "cannot all be of the class 1.0, of which there are 30 rows",
        ),
        (("--loss", "recall", "--loss-setting", "k=400"), "and there are 300 rows; take fewer"),
        (("--loss", "roc_area", "--loss-setting", "max_fpr=2"), "max_fpr must be above 0 and at most 1, not 2"),
    ],
)
def test_what_is_refused(quickly, rare, arguments, words):
    done = quickly("train", rare, "-o", "m", *arguments)
    assert done.returncode != 0
    assert words in done.stderr
