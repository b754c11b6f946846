"""Sentences that know their arguments, and errors that carry them."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest

from beeline import LinearSVC, read
from beeline._sentences import Argument, Sentence
from beeline.exceptions import DataError, FormatError, ParameterError


def _shout(argument):
    return f"<{argument.name}>"


def test_a_sentence_is_its_text():
    sentence = Sentence("say ", Argument("header", False), " or ", Argument("delimiter"))
    assert sentence == "say header=False or delimiter"
    assert isinstance(sentence, str)
    assert sentence.argument == "header"
    assert Sentence("nothing").argument is None


def test_sentences_are_joined_filled_in_and_spelled():
    inner = Sentence("pass ", Argument("multilabel", True))
    joined = Sentence("line {n}: ", inner).format(n="{3}") + "; {n} stays"
    assert joined == "line {3}: pass multilabel=True; {n} stays"
    assert joined.spelled(_shout) == "line {3}: pass <multilabel>; {n} stays"


@pytest.mark.parametrize("copied", [deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_keep_their_arguments_in_another_process(copied):
    error = copied(ParameterError("a ", Argument("C"), " of 3 with ", Argument("tol", 1e-3), parameter="epsilon"))
    assert str(error) == "a C of 3 with tol=0.001"
    assert error.parameter == "epsilon"
    assert error.args[0].spelled(_shout) == "a <C> of 3 with <tol>"
    error = copied(FormatError(Sentence("say ", Argument("header", True)), "a.csv", 3))
    assert str(error) == "a.csv, line 3: say header=True"
    assert error.args[0].spelled(_shout) == "a.csv, line 3: say <header>"


def test_the_parameter_is_the_first_that_is_named():
    assert ParameterError(Argument("C"), " and ", Argument("tol")).parameter == "C"
    assert ParameterError("something is wrong").parameter is None


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        (lambda: LinearSVC(C=-1).fit([[0.0], [1.0]], [0, 1]), "C"),
        (lambda: LinearSVC(tol="x").fit([[0.0], [1.0]], [0, 1]), "tol"),
        (lambda: LinearSVC(solver="none").fit([[0.0], [1.0]], [0, 1]), "solver"),
        (lambda: LinearSVC(fit_intercept=3).fit([[0.0], [1.0]], [0, 1]), "fit_intercept"),
        (lambda: read("x", scale="twice"), "scale"),
    ],
)
def test_who_catches_an_error_knows_the_parameter(wrong, parameter):
    with pytest.raises(ParameterError) as caught:
        wrong()
    assert caught.value.parameter == parameter


def test_other_errors_carry_sentences_too(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    with pytest.raises(DataError, match="say header=False, and if it is names, say header=True") as caught:
        read(tmp_path / "a.csv", label="1")
    assert "say <header>," in caught.value.args[0].spelled(_shout)
