"""Messages of the library, in the words of the command line."""

from __future__ import annotations

import pytest

from beeline.cli.output.drawing import count, number, percent, size
from beeline.cli.output.errors import _in_options, printable


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("the format cannot be told; say it with format=", "the format cannot be told; say it with --format"),
        ("say it with format=, or else convert it", "say it with --format, or else convert it"),
        ("zero_based has no meaning for CSV; leave it out", "--zero-based has no meaning for CSV; leave it out"),
        ("query has no meaning for npz; leave it out", "--qid has no meaning for npz; leave it out"),
        ("n_features must be at least 1, not 0", "--n-features must be at least 1, not 0"),
        ("x exists; say overwrite to replace it", "x exists; say --overwrite to replace it"),
        ("read with layout dense instead", "read with --layout dense instead"),
        ("say header=False, or header=True", "say --no-header, or --header"),
        ("say header=False (--no-header)", "say --no-header"),
        ("leave it out with ignore (--ignore d), or turn", "leave it out with --ignore d, or turn"),
        ("fill it with missing='zero'", "fill it with --missing 'zero'"),
        ("the label of row 3 is not a number", "the label of row 3 is not a number"),
        ("a.csv, line 2: text in a column of numbers", "a.csv, line 2: text in a column of numbers"),
        ("my-format=x.csv: no such file", "my-format=x.csv: no such file"),
    ],
)
def test_arguments_are_called_by_their_options(message, shown):
    assert _in_options(message) == shown


def test_numbers_are_written_for_people():
    assert [size(n) for n in (1, 999, 1000, 1_234_567, 5 * 10**12)] == [
        "1 bytes",
        "999 bytes",
        "1.0 kB",
        "1.2 MB",
        "5.0 TB",
    ]
    assert [count(1, "row"), count(2000, "row"), count(2, "class")] == ["1 row", "2,000 rows", "2 classes"]
    assert [number(x) for x in (3.0, -2, 1234567.0, 0.1, 1e-12, 1e300, "nan")] == [
        "3",
        "-2",
        "1,234,567",
        "0.1",
        "1e-12",
        "1e+300",
        "nan",
    ]
    assert [percent(x) for x in (0.0, 1.0, 0.5, 0.0001)] == ["0.0 %", "100.0 %", "50.0 %", "0.01 %"]


def test_control_characters_are_shown_and_not_obeyed():
    assert printable("a\x1b[31m\tb\n") == "a\\x1b[31m\\tb\\n"
    assert printable("Zürich") == "Zürich"
