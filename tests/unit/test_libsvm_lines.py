"""Lines of LIBSVM text, one by one: what is read from the good ones, and how the bad ones are told."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from libsvm_tools import SENTENCES, instructions, read, reader, save

from beeline.exceptions import DataError, FormatError

# line: label, entries (features counted from 1)
GOOD = {
    b"1": (1.0, []),
    b"+1 1:1": (1.0, [(1, 1.0)]),
    b"-1 1:-2": (-1.0, [(1, -2.0)]),
    b"1.0 1:1": (1.0, [(1, 1.0)]),
    b"1e0 1:1": (1.0, [(1, 1.0)]),
    b"-1. 1:.5": (-1.0, [(1, 0.5)]),
    b".5 1:5.": (0.5, [(1, 5.0)]),
    b"-0 1:-0": (-0.0, [(1, -0.0)]),
    b"0.1 1:0.1": (0.1, [(1, 0.1)]),
    b"3.14159 1:+2.5E+3": (3.14159, [(1, 2500.0)]),
    b"1  2:3\t 4:5  ": (1.0, [(2, 3.0), (4, 5.0)]),
    b"\t 1\t1:1\t2:2\t": (1.0, [(1, 1.0), (2, 2.0)]),
    b"1 1:1 2:2\r": (1.0, [(1, 1.0), (2, 2.0)]),
    b"1 1:1 2:2 \r": (1.0, [(1, 1.0), (2, 2.0)]),
    b"1\r": (1.0, []),
    b"1 1:1 2:2 # 3:3 a:b": (1.0, [(1, 1.0), (2, 2.0)]),
    b"1 1:1#2:2": (1.0, [(1, 1.0)]),
    b"1#": (1.0, []),
    b"1 1:1 # comment\r": (1.0, [(1, 1.0)]),
    b"1 1:0 2:0.0 3:1": (1.0, [(1, 0.0), (2, 0.0), (3, 1.0)]),
    b"1 0001:0007": (1.0, [(1, 7.0)]),
    b"1 00000000000000000000000000000000003:1": (1.0, [(3, 1.0)]),
    b"12345678 12345678:12345678": (12345678.0, [(12345678, 12345678.0)]),
    b"123456789 123456789:123456789": (123456789.0, [(123456789, 123456789.0)]),
    b"1 1:9007199254740993": (1.0, [(1, 9007199254740992.0)]),
    b"1 1:90071992547409.93": (1.0, [(1, 90071992547409.93)]),
    b"1 1:0.30000000000000004": (1.0, [(1, 0.30000000000000004)]),
    b"1 1:1e-400 2:1e22 3:1e-22 4:1e23": (1.0, [(1, 0.0), (2, 1e22), (3, 1e-22), (4, 1e23)]),
    b"1 " + b" ".join(b"%d:%d" % (i, -i) for i in range(1, 40)): (1.0, [(i, float(-i)) for i in range(1, 40)]),
    b"1 " + b" ".join(b"%d:%d.25" % (i, i) for i in range(1, 40)): (1.0, [(i, i + 0.25) for i in range(1, 40)]),
}

# line: column, kind
BAD = {
    b"abc 1:1": (1, "bad label"),
    b"1x 1:1": (1, "bad label"),
    b"0x10 1:1": (1, "bad label"),
    b"1_0 1:1": (1, "bad label"),
    b"+-1 1:1": (1, "bad label"),
    b"\xff\xfe 1:1": (1, "bad label"),
    b"  - 1:1": (3, "bad label"),
    b"nan 1:1": (1, "nonfinite label"),
    b"-inf 1:1": (1, "nonfinite label"),
    b"1 2": (3, "no colon"),
    b"1 1:1 abc": (7, "no colon"),
    b"1 a:1": (3, "bad index"),
    b"1 1:1 :2": (7, "bad index"),
    b"1 -1:1": (3, "bad index"),
    b"1 +1:1": (3, "bad index"),
    b"1 1.5:1": (3, "bad index"),
    b"1 1:1 qid:1": (7, "bad index"),
    b"1 3:1 3:2": (7, "repeated index"),
    b"1 5:1 3:2": (7, "unsorted index"),
    b"1 1:1 2:2 3:3 4:4 5:5 6:6 8:8 7:7 9:9": (31, "unsorted index"),
    b"1 1000000000000000000:1": (3, "huge index"),
    b"1 99999999999999999999999999:1": (3, "huge index"),
    b"1 1:": (5, "bad value"),
    b"1 1: 2:2": (5, "bad value"),
    b"1 1:abc": (5, "bad value"),
    b"1 1:1:1": (5, "bad value"),
    b"1 1:--1": (5, "bad value"),
    b"1 1:-": (5, "bad value"),
    b"1 1:.": (5, "bad value"),
    b"1 1:1e": (5, "bad value"),
    b"1 1:1e+": (5, "bad value"),
    b"1 1:1.2.3": (5, "bad value"),
    b"1 1:0x10": (5, "bad value"),
    b"1 1:1_000": (5, "bad value"),
    b"1 1:1,5": (5, "bad value"),
    b"1 1:1f": (5, "bad value"),
    b"1 1:nan(1)": (5, "bad value"),
    b"1 1:1\x00": (5, "bad value"),
    b"1 1:1\x0b": (5, "bad value"),
    b"1 1:1\r 2:2": (5, "bad value"),
    b"1 1:1\r\r": (5, "bad value"),
    b"1 1:1 \r\r": (7, "no colon"),
    b"1 1:NaN": (5, "nonfinite value"),
    b"1 1:-Infinity": (5, "nonfinite value"),
    b"1 1:1e309": (5, "nonfinite value"),
    b"1 1:-1" + b"0" * 400: (5, "nonfinite value"),
    b"1 qid:1 1:1": (3, "unexpected query"),
    b"1 qid:x 1:1": (3, "bad query"),
    b"1:1 2:2": (1, "missing label"),
    b"  1:1": (3, "missing label"),
    b"qid:3 1:1": (1, "unexpected query"),
    b"1,2,x 1:1": (5, "bad label"),
    b"1, 1:1": (3, "bad label"),
    b",1 1:1": (1, "bad label"),
}


@pytest.fixture(params=[0, 1, 2], ids=["baseline", "avx2", "avx512"], autouse=True)
def each_instruction_set(request):
    with instructions(request.param):
        yield


@pytest.mark.parametrize("line", GOOD, ids=repr)
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_good_line(line, end, tmp_path):
    if line.endswith(b"\r") and end == b"\r\n":
        line = line[:-1]
    label, entries = GOOD.get(line) or GOOD[line + b"\r"]
    text = b"7 1:1 3:3\n" + line + end
    data = read(save(tmp_path, text), zero_based=False)
    assert data.n_rows == 2
    assert (data.labels[1], math.copysign(1, data.labels[1])) == (label, math.copysign(1, label))
    row = data.rows(1, 2)
    start, stop = row.indptr
    assert (row.indices[start:stop] + 1).tolist() == [j for j, _ in entries]
    assert row.values[start:stop].tobytes() == np.array([x for _, x in entries]).tobytes()


@pytest.mark.parametrize("line", [line for line in GOOD if b":" in line.split(b"#")[0]], ids=repr)
@pytest.mark.parametrize("lead", [b"", b" "])
def test_a_line_needs_no_label_where_none_is_wanted(line, lead, tmp_path):
    _, rest = line.split(maxsplit=1)
    data = read(save(tmp_path, lead + rest + b"\n7 1:1 3:3\n" + lead + rest + b"\n2,3 4:4\n"), targets=False)
    entries = GOOD[line][1]
    n = len(entries)
    assert data.labels is None
    assert data.block.indptr.tolist() == [0, n, n + 2, 2 * n + 2, 2 * n + 3]
    for start in (0, n + 2):
        assert (data.block.indices[start : start + n] + 1).tolist() == [j for j, _ in entries]
        assert data.block.values[start : start + n].tobytes() == np.array([x for _, x in entries]).tobytes()


@pytest.mark.parametrize("line", BAD, ids=repr)
def test_bad_line_is_told_with_its_place(line, tmp_path):
    column, kind = BAD[line]
    before = b"7 1:1 3:3\n\n# comment\r\n"
    path = save(tmp_path, before + line + b"\n7 1:1\n8 x:1\n")
    with pytest.raises(FormatError, match=SENTENCES[kind]) as error:
        read(path)
    assert (error.value.file, error.value.line, error.value.column) == (str(path), 4, column)
    assert str(error.value).startswith(f"{path}, line 4, column {column}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("line", BAD, ids=repr)
def test_bad_line_is_skipped_when_asked(line, tmp_path):
    column, _ = BAD[line]
    source = save(tmp_path, b"7 1:1 3:3\n" + line + b"\n8 1:1 2:-2 #\n")
    lines = reader(source, skip_bad_lines=True)
    data = lines.read()
    assert data.labels.tolist() == [7, 8]
    assert data.block.indptr.tolist() == [0, 2, 4]
    assert data.block.values.tolist() == [1, 3, 1, -2]
    assert lines.bad_lines.count == 1
    assert re.match(rf"{source}, line 2, column {column}: ", lines.bad_lines.examples[0])


def test_a_long_text_is_shortened_in_the_message(tmp_path):
    with pytest.raises(FormatError, match="'" + "y" * 40 + "…' is not a number") as error:
        read(save(tmp_path, b"y" * 10000 + b" 1:1\n"))
    assert len(error.value.reason) < 200


def test_lines_without_fields_hold_no_row(tmp_path):
    data = read(save(tmp_path, b"\n \n\t\r\n# 1 1:1\n  # x\n\r\n1 1:1\n\n2 2:1\n\n"))
    assert data.labels.tolist() == [1, 2]


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n", b" \t \r\n"])
def test_no_row_at_all(text, tmp_path):
    with pytest.raises(DataError, match="the source has no rows"):
        read(save(tmp_path, text))


def test_nonfinite_values_pass_when_allowed(tmp_path):
    text = b"inf 1:nan 2:-INF 3:Infinity 4:1e999 5:+NaN 6:1\n1 1:1\n"
    data = read(save(tmp_path, text), allow_nonfinite=True)
    assert data.labels.tolist() == [math.inf, 1.0]
    np.testing.assert_array_equal(data.block.values[:6], [math.nan, -math.inf, math.inf, math.inf, math.nan, 1.0])


def test_float32_is_the_rounded_float64(tmp_path):
    # The nearest float32 of the decimal differs from the nearest float32 of its nearest float64.
    decimal = b"1.00000005960464477540"
    data = read(save(tmp_path, b"1 1:" + decimal + b" 2:0.1 3:16777217\n"), dtype="float32")
    assert data.block.values.dtype == np.float32
    assert data.block.values.tolist() == np.array([float(decimal), 0.1, 16777217.0]).astype(np.float32).tolist()
    with pytest.raises(FormatError, match="the value '1e39' is not finite"):
        read(save(tmp_path, b"1 1:1e39\n"), dtype="float32")
    assert read(save(tmp_path, b"1 1:1e39\n")).block.values.tolist() == [1e39]


HARD = [
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "4.9406564584124654e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "9007199254740993",
    "9007199254740992.5",
    "0.1e-6",
    "123456789012345678",
    "1234567890123456789012345678901234567890",
    "0.000000000000000000000000000012345678901234567",
    "7.2057594037927933e16",
    "6.02214076e23",
    "1e22",
    "1e23",
    "99999999.99999999",
    "99999999.999999999",
    "0." + "0" * 400 + "1e401",
    "1" + "0" * 400 + "e-400",
    "9" * 800 + "e-792",
    "0e999999999999999999999",
    "0.0e-999999999999999999999",
    "1e-999999999999999999999",
    "8.41e21",
    "5e-324",
    "3e-324",
    "0.00000000000000000",
]


@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_floats_are_exact(sign, tmp_path):
    text = "1 " + " ".join(f"{i + 1}:{sign}{x}" for i, x in enumerate(HARD)) + "\n"
    data = read(save(tmp_path, text.encode()))
    expected = np.array([float(sign + x) for x in HARD])
    assert data.block.values.tobytes() == expected.tobytes()


def test_every_length_of_decimal_is_exact(tmp_path):
    rng = np.random.default_rng(0)
    numbers = []
    for whole in range(20):
        for places in range(20):
            if whole + places:
                digits = "".join(map(str, rng.integers(0, 10, whole + places)))
                numbers.append(digits[:whole] + ("." if places else "") + digits[whole:])
    text = "1 " + " ".join(f"{i + 1}:{x}" for i, x in enumerate(numbers)) + "\n"
    data = read(save(tmp_path, text.encode()))
    assert data.block.values.tobytes() == np.array([float(x) for x in numbers]).tobytes()
