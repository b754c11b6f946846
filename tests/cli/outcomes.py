"""What a command that has ended must look like."""

from __future__ import annotations

__all__ = ["SHORT", "done_well", "done_with_note", "one_line"]

# A short path: fewer values of C than it takes the weights to settle.
SHORT = ("--C-min", "0.0625", "--C-max", "8", "--folds", "3")


def done_well(done):
    """The output of a command that had nothing to complain about."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def done_with_note(done):
    """The one line that a command had to say about how it did its work."""
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("beeline: note: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("beeline: note: ")


def one_line(done, code):
    """The one line by which a command says why it leaves with this code."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("beeline: error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr
