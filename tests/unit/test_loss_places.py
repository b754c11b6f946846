"""NAME@K: a loss that counts the first K places."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from beeline import losses
from beeline.cli.app import app
from beeline.exceptions import ParameterError
from beeline.losses import LOSSES, GroupLoss, get_loss


class FirstPlaces(GroupLoss):
    """One that has places, and does nothing else of note."""

    def __init__(self, k: int = 5) -> None:
        self.k = k

    def value_and_grad(self, z, y, weights):
        return float(z @ z), 2 * z


@pytest.fixture
def first_places(monkeypatch):
    monkeypatch.setitem(LOSSES, "first_places", FirstPlaces)
    losses.loss_settings.cache_clear()
    yield
    losses.loss_settings.cache_clear()


def test_places_are_the_setting_k(first_places):
    assert get_loss("first_places@10").settings == {"k": 10}
    assert get_loss("first_places").settings == {"k": 5}
    assert get_loss("first_places", k=7).settings == {"k": 7}


@pytest.mark.parametrize(
    ("spelled", "settings", "words"),
    [
        ("hinge@10", {}, "the loss 'hinge' counts no first places; write 'hinge'"),
        ("first_places@0", {}, "must be a positive whole number, as in 'first_places@10', not '0'"),
        ("first_places@", {}, "positive whole number"),
        ("first_places@-1", {}, "positive whole number"),
        ("first_places@1.5", {}, "positive whole number"),
        ("first_places@²", {}, "positive whole number"),
        ("first_places@10", {"k": 10}, "'first_places@10' says k already"),
        ("first_place@10", {}, "there is no loss 'first_place'; did you mean 'first_places'"),
    ],
)
def test_what_is_wrong_with_places_is_said(first_places, spelled, settings, words):
    with pytest.raises(ParameterError, match=words.replace("(", r"\(")):
        get_loss(spelled, **settings)


@pytest.mark.parametrize(("spelled", "words"), [("hinge@10", "counts no first places"), ("hing@10", "did you mean")])
def test_the_command_line_says_it_too(tmp_path, spelled, words):
    (tmp_path / "t.svm").write_text("+1 1:1\n-1 1:2\n")
    ran = CliRunner().invoke(app, ["train", str(tmp_path / "t.svm"), "-o", str(tmp_path / "m"), "--loss", spelled])
    assert ran.exit_code == 2
    assert words in " ".join(ran.output.split())
