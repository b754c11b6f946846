"""Any text: read or refused in one sentence, and the same however it is cut."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from beeline.data.files.finding import find_files
from beeline.data.options import ReadOptions
from beeline.data.tables import csv_text
from beeline.data.tables.reader import TableReader
from beeline.exceptions import BeelineError

VALUES = ["a", "b", "1", "2.5", "-3e4", "true", "NA", "nan", "inf", "é", "2024-01-31", "1,2\n", "x,y\n", '"q\nr",5\n']
MARKS = [",", ",", ";", "\t", " ", "\n", "\n", "\r\n", "\r", '"', '""', "\ufeff", "\x00"]
pieces = st.sampled_from(VALUES + MARKS)
texts = st.lists(pieces, max_size=40).map("".join).map(str.encode) | st.binary(max_size=60)


def outcome(path, options, memory):
    """The rows, or the sentence."""
    try:
        reader = TableReader(find_files(path), options)
        if memory is None:
            rows = reader.read().block.to_dense()
        else:
            reader.prepare(memory)
            rows = [block.to_dense() for block in reader.blocks(memory)]
            if not rows:
                return f"{path}: there are no rows", None
            rows = np.vstack(rows)
    except BeelineError as error:
        return str(error), None
    return rows.tolist(), (reader.recipe, reader.bad_lines.count, reader.bad_lines.examples)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(texts, st.sampled_from([None, True, False]), st.booleans())
@example(b'a,b\n1,"2\n3,4\n', None, False)
@example(b'a,b\n1,2"3\n"4"5,6\n', None, False)
@example(b"a\n\n1\n\n2\n", None, False)
@example(b"inf\n\n", False, False)
@example(b"inf,a\n2.5\n", False, True)
@example(b"1\n\r\n\n2\ninf\n\n3\n", False, False)
def test_any_text_in_any_cut(tmp_path, text, header, skip):
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    options = ReadOptions(format="csv", header=header, missing="zero", skip_bad_lines=skip)
    with pytest.MonkeyPatch.context() as patch:
        whole = outcome(path, options, None)
        assert whole[1] is not None or "\n" not in whole[0]
        patch.setattr(csv_text, "_SMALLEST_PIECE", 1)
        assert outcome(path, options, 1) == whole
        assert outcome(path, options, 500) == whole
