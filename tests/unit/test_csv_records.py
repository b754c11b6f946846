"""Where CSV records begin and end."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beeline.kernels import last_record_end, record_starts

fields = st.text(alphabet=list('ab,"\n\r ;'), max_size=6)
rows = st.lists(st.lists(fields, min_size=2, max_size=3), max_size=6)


def written(rows, quoting, end):
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator=end).writerows(rows)
    return text.getvalue().encode()


@given(rows, st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]), st.sampled_from(["\n", "\r\n"]))
def test_records_begin_where_the_csv_module_wrote_them(rows, quoting, end):
    parts = [written([row], quoting, end) for row in rows]
    text = b"".join(parts)
    offsets, lines = record_starts(text, ",")
    expected, at = [], 0
    for part in parts:
        expected.append((at, text.count(b"\n", 0, at)))
        at += len(part)
    assert list(zip(offsets, lines, strict=True)) == expected
    assert last_record_end(text, ",")[0] == len(text)


@given(rows, st.data())
def test_a_cut_text_ends_with_the_last_whole_record(rows, data):
    text = written(rows, csv.QUOTE_ALL, "\n")
    cut = data.draw(st.integers(0, len(text)))
    ends = [*record_starts(text, ",")[0][1:], len(text)] if text else [0]
    assert last_record_end(text[:cut], ",")[0] == max([end for end in ends if end <= cut], default=0)


@pytest.mark.parametrize(
    ("text", "end", "newlines", "opened"),
    [
        (b"", 0, False, -1),
        (b"a,b", 0, False, -1),
        (b'a,"b\nc"\nd', 8, True, -1),
        (b'1,5" pipe\n2,3\n', 14, False, -1),
        (b'1,2\n3,"four\n', 4, False, 6),
        (b'1,2\n3,"fo""ur\n', 4, False, 6),
        (b'1,2\n3,"four"', 4, False, -1),
        (b'"', 0, False, 0),
    ],
)
def test_quotes_count_only_where_a_field_begins(text, end, newlines, opened):
    assert last_record_end(text, ",") == (end, newlines, opened)
