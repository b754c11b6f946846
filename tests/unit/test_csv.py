"""CSV files: what is read, in any cut, and what is refused with which sentence."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from beeline.data.files.finding import find_files
from beeline.data.options import ReadOptions
from beeline.data.tables import csv_text
from beeline.data.tables.reader import TableReader
from beeline.exceptions import BeelineError, DataError, FormatError, LabelError, ParameterError


@pytest.fixture
def write(tmp_path):
    def to_file(text, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return to_file


def reader(path, **options):
    return TableReader(find_files(path), ReadOptions(format="csv", **options))


def read(path, **options):
    return reader(path, **options).read()


def rows(path, **options):
    data = read(path, **options)
    return data.block.to_dense().tolist()


def test_a_table_of_numbers_and_text(write):
    path = write("age,protocol,ok,y\n1,tcp,true,2\n2.5,udp,false,3\n-3,tcp,true,2\n")
    data = read(path, label="y")
    assert data.feature_names == ["age", "protocol=tcp", "protocol=udp", "ok"]
    assert data.block.to_dense().tolist() == [[1, 1, 0, 1], [2.5, 0, 1, 0], [-3, 1, 0, 1]]
    assert data.labels.tolist() == [2, 3, 2]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,x\n2,y\n",
        "a,b\r\n1,x\r\n2,y\r\n",
        "a,b\n1,x\n2,y",
        "\ufeffa,b\n1,x\n2,y\n",
        "a;b\n1;x\n2;y\n",
        "a\tb\n1\tx\n2\ty\n",
        "a|b\n1|x\n2|y\n",
        '"a","b"\n"1","x"\n"2","y"\n',
        "\n\na,b\n1,x\n\n2,y\n\n",
        '"a";"b"\n1;x\n2;"y"\n',
    ],
)
def test_ways_to_write_the_same_table(write, text):
    data = read(write(text))
    assert data.feature_names == ["a", "b=x", "b=y"]
    assert data.block.to_dense().tolist() == [[1, 1, 0], [2, 0, 1]]


def test_compressed_and_several_files_match_by_name(write):
    first = write("a,b\n1,x\n")
    second = write(gzip.compress(b"b,a\ny,2\n"), "u.csv.gz")
    data = read([first, second])
    assert data.feature_names == ["a", "b=x", "b=y"]
    assert data.block.to_dense().tolist() == [[1, 1, 0], [2, 0, 1]]


def test_quoted_fields_hold_delimiters_quotes_and_newlines(write):
    path = write('a,b\n1,"x, ""y""\nz"\n2,"x, ""y""\nz"\n3,plain\n')
    data = read(path)
    assert data.feature_names == ["a", "b=plain", 'b=x, "y"\nz']
    assert data.block.to_dense().tolist() == [[1, 0, 1], [2, 0, 1], [3, 1, 0]]


def test_a_stray_quote_inside_a_field_is_just_a_character(write):
    assert read(write('a,b\n1,5" pipe\n2,6" pipe\n')).feature_names == ["a", 'b=5" pipe', 'b=6" pipe']


def test_numbers_become_fractional_late(write):
    text = "a,b\n" + "1,2\n" * 500 + "1.5,9223372036854775808\n" + "3,4\n"
    expected = [[1, 2]] * 500 + [[1.5, 2.0**63], [3, 4]]
    assert rows(write(text)) == expected
    assert [b.tolist() for b in stream(write(text), memory=1)] == expected


def stream(path, memory, **options):
    source = reader(path, **options)
    source.prepare(memory)
    return np.vstack([block.to_dense() for block in source.blocks(memory)])


def test_any_cut_gives_the_same_rows(write, monkeypatch):
    monkeypatch.setattr(csv_text, "_SMALLEST_PIECE", 1)
    rng = np.random.default_rng(0)
    lines = [f'{rng.integers(9)},"{"x" * rng.integers(3)}\n{rng.integers(3)}",{rng.normal()},' for _ in range(60)]
    path = write("a,b,c,d\n" + "\n".join(lines) + "\n")
    options = {"missing": "zero", "label": "b", "scale": "standard"}
    whole = read(path, **options)
    for memory in (1, 10_000, 1_000_000):
        source = reader(path, **options)
        source.prepare(memory)
        blocks = list(source.blocks(memory))
        np.testing.assert_allclose(np.vstack([b.to_dense() for b in blocks]), whole.block.to_dense(), rtol=1e-12)
        np.testing.assert_array_equal(np.concatenate([b.labels for b in blocks]), whole.labels)
        assert replace(source.recipe, scaling=whole.recipe.scaling) == whole.recipe


def test_no_header_names_columns_by_number(write):
    data = read(write("1,x\n2,y\n"), header=False, label="f1")
    assert data.feature_names == ["f2=x", "f2=y"]
    assert data.labels.tolist() == [1, 2]


def test_names_may_be_numbers_when_it_is_said(write):
    assert read(write("0,1\n5,6\n"), header=True).feature_names == ["0", "1"]


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        ("", {}, DataError, r"t\.csv: the file is empty"),
        ("\ufeff\n\n", {}, DataError, "the file is empty"),
        ("a,b\n", {}, DataError, "there are no rows"),
        ("1,2\n3,4\n", {}, FormatError, r"line 1: .*numbers where names.*header=False"),
        ("a,b,a\n1,2,3\n", {}, DataError, r"2 columns have the name 'a'.*header=False"),
        (",b\n1,2\n", {}, FormatError, r"column 1 has no name.*ignore=\[''\]"),
        ("a,b\n1,2\n3\n", {}, FormatError, r"t\.csv, line 3: the record has 1 field, not 2"),
        ("a,b\n1,2\n\n3,4,5\n", {}, FormatError, r"line 4: the record has 3 fields, not 2"),
        ('a,b\n"1\n",2\n', {}, FormatError, r"line 2: column 'a' has the value '1\\n'"),
        ("a,b\n" + "1,2\n" * 9 + "x,2\n" + "1,y\n", {}, FormatError, r"line 11: column 'a' .*'x'.*text=\['a'\]"),
        ('a,b\n1,"open\n2,3\n', {}, FormatError, r"line 2: a field begins with a quote"),
        ("a,b\n1,\n", {}, DataError, r"line 2: column 'b' has no value.*missing='zero'"),
        ("a,b\n1,2\nNA,3\n", {}, DataError, r"line 3: column 'a' has no value"),
        ("a,b\n1,inf\n", {}, DataError, r"line 2: column 'b' is infinite.*allow_nonfinite"),
        ("a,b\n1,\n2,\n", {"missing": "mean"}, DataError, r"column 'b' has no value at all.*ignore=\['b'\]"),
        ("a,when\n1,2024-01-31\n", {}, DataError, r"column 'when' holds dates or times.*ignore=\['when'\]"),
        ("a,b\n1,2\n", {"label": "B2"}, DataError, r"no column 'B2' \(label\); did you mean 'b'\?"),
        ("a,b\n1,2\n", {"ignore": ("zzz",)}, DataError, r"no column 'zzz' \(ignore\); the columns are 'a', 'b'"),
        ("a,b\n1,2\n", {"label": "a", "weight": "a"}, ParameterError, "both label and weight"),
        ("a,b\n1,2\n", {"ignore": ("a", "b")}, DataError, "no column is left"),
        (
            "a,y\n1,\n",
            {"label": "y"},
            LabelError,
            r"the label \(column 'y'\) is missing in 1 row: .*t\.csv, line 2; .*missing='drop'",
        ),
        ("a,w\n1,1\n2,-1\n", {"weight": "w"}, DataError, r"line 3: the weight \(column 'w'\) is -1\.0, below 0"),
        ("a,w\n1,x\n", {"weight": "w"}, DataError, r"weight \(column 'w'\) must be one number"),
        ("a,q\n1,1.5\n", {"query": "q"}, DataError, r"query ids \(column 'q'\) must be whole numbers"),
        ("a,q\n1,1\n2,\n", {"query": "q"}, DataError, r"line 3: the query id \(column 'q'\) is missing"),
        ("a,b\n1,x\n2,y\n3,z\n", {"max_categories": 2}, DataError, r"column 'b' has more than 2 .*ignore=\['b'\]"),
        ("a,b\n1,2\n", {"zero_based": True}, ParameterError, "zero_based has no meaning for tables"),
        (b"a,b\n1,\xff\n", {}, FormatError, r"t\.csv, line 2.*not UTF-8"),
        (b"\xff\xfea\x00", {}, FormatError, "UTF-16"),
        (b"a,b\r1,2\r", {}, FormatError, "carriage return alone"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(write, text, options, error, message):
    with pytest.raises(error, match=message) as caught:
        read(write(text), **options)
    assert "\n" not in str(caught.value)


def test_a_value_that_stops_being_boolean(write):
    text = "a,b\n" + "true,1\n" * 300_000 + "maybe,1\n"
    with pytest.raises(FormatError, match=r"line 300002: column 'a' has the value 'maybe', which is not true or false"):
        read(write(text))


def test_a_slip_in_a_column_of_numbers_does_not_make_it_categories(write):
    text = "a\n" + "".join(f"{k}.5\n" for k in range(50)) + "oops\n"
    with pytest.raises(FormatError, match=r"line 52: column 'a' has the value 'oops'"):
        read(write(text))
    assert read(write(text), text=("a",)).n_features == 51


def test_bad_lines_are_counted_when_the_user_asks(write):
    good = "1,2\n" * 40
    text = "a,b\n" + good + "x,1\n" + good + "1,2,3\n" + good + "7\n" + "0.5,3\n"
    for memory in (1, 1 << 20):
        source = reader(write(text), skip_bad_lines=True)
        source.prepare(memory)
        blocks = list(source.blocks(memory))
        assert sum(block.n_rows for block in blocks) == 121
        assert source.bad_lines.count == 3
        assert [example.split(", ")[1].split(":")[0] for example in source.bad_lines.examples] == [
            "line 42",
            "line 83",
            "line 124",
        ]
    source = reader(write(text), skip_bad_lines=True)
    assert source.read().n_rows == 121
    assert source.bad_lines.count == 3


def test_missing_values_are_filled(write):
    path = write("a,b,c\n1,x,4\n,,5\n3,y,NaN\n")
    assert rows(path, missing="zero") == [[1, 1, 0, 4], [0, 0, 0, 5], [3, 0, 1, 0]]
    data = read(path, missing="mean")
    assert data.block.to_dense().tolist() == [[1, 1, 0, 4], [2, 0, 0, 5], [3, 0, 1, 4.5]]
    assert [column.fill for column in data.recipe.columns] == [2, 0, 4.5]


def test_missing_values_pass_as_nan_when_nonfinite_ones_are_allowed(write):
    data = read(write("a,b\n1,2\n,inf\n"), allow_nonfinite=True, layout="dense")
    np.testing.assert_array_equal(data.X, [[1, 2], [np.nan, np.inf]])


def test_a_column_that_begins_empty_is_typed_by_what_follows(write, monkeypatch):
    monkeypatch.setattr(csv_text, "HEAD", 12)
    text = "a,b,c,d\n1,,,\n1,,,\n2,x,7,\n"
    assert rows(write(text), missing="zero") == [[1, 0, 0, 0], [1, 0, 0, 0], [2, 1, 7, 0]]


def test_text_labels_are_numbered_in_order_and_recorded(write):
    data = read(write("x,y\n1,no\n2,yes\n3,maybe\n"), label="y")
    assert data.labels.tolist() == [1, 2, 0]
    assert data.recipe.label_categories == ("maybe", "no", "yes")


def test_numeric_labels_may_be_read_as_text(write):
    data = read(write("x,y\n1,07\n2,7\n"), label="y", text=("y",))
    assert data.recipe.label_categories == ("07", "7")


def test_weights_and_query_ids(write):
    path = write("x,w,q\n1,0.5,9007199254740993\n2,2,7\n")
    data = read(path, weight="w", query="q")
    assert data.weights.tolist() == [0.5, 2]
    assert data.queries.tolist() == [9007199254740993, 7]
    data = read(write("x,q\n1,b\n2,a\n3,b\n"), query="q")
    assert data.queries.tolist() == [0, 1, 0]


def test_dense_or_sparse_by_what_is_smaller(write):
    assert not read(write("a,b\n1,2\n3,4\n")).block.is_sparse
    wide = write("a," + ",".join(f"z{k}" for k in range(20)) + "\n" + ("1," + ",".join("0" * 20) + "\n") * 5)
    assert read(wide).block.is_sparse
    assert read(wide).nnz == 5
    assert not read(wide, layout="dense").block.is_sparse
    assert read(write("a,b\n1,2\n3,4\n"), layout="sparse").block.is_sparse


def test_scaling_that_shifts_makes_rows_dense_unless_they_are_to_be_sparse(write):
    path = write("a,b\n1,x\n3,y\n")
    data = read(path, scale="standard")
    assert not data.block.is_sparse
    assert data.X.tolist() == [[-1, 1, 0], [1, 0, 1]]
    with pytest.raises(ParameterError, match="rows cannot be sparse; take layout='dense'"):
        read(path, recipe=data.recipe, layout="sparse")
    assert read(path, scale="standard", layout="sparse").block.to_dense().tolist() == [[1, 1, 0], [3, 0, 1]]
    assert read(path, scale="maxabs", layout="sparse").block.is_sparse


class TestRecipe:
    @pytest.fixture
    def recipe(self, write):
        text = "age,protocol,id,y\n1,tcp,7,no\n2,udp,8,yes\n,tcp,9,no\n"
        return read(write(text), label="y", ignore=("id",), missing="mean", scale="maxabs").recipe

    def test_new_rows_are_treated_alike(self, write, recipe):
        source = reader(write("y,id,protocol,age\nyes,1,udp,4\nno,1,icmp,\n"), recipe=recipe)
        data = source.read()
        assert data.block.to_dense().tolist() == [[2, 0, 1], [0.75, 0, 0]]
        assert data.labels.tolist() == [1, 0]
        assert source.unknown_categories == {"protocol": 1}
        assert data.recipe is recipe

    def test_labels_may_be_absent(self, write, recipe):
        data = read(write("protocol,age\nudp,4\n"), recipe=recipe)
        assert data.labels is None
        assert data.n_features == 3

    @pytest.mark.parametrize(
        ("text", "options", "message"),
        [
            ("age\n4\n", {}, "no column 'protocol', which the recipe needs"),
            ("age,protocol,more\n4,tcp,1\n", {}, r"does not know column 'more'; leave it out with extra='ignore'$"),
            ("age,protocol\nold,tcp\n", {}, "line 2: column 'age' has the value 'old', which is not a number"),
            ("age,protocol,y\n1,tcp,perhaps\n", {}, "label 'perhaps'.*none of the 2 labels"),
            ("age,protocol\n1,\n", {"missing": "zero"}, "missing has no meaning"),
        ],
    )
    def test_what_does_not_fit_is_said(self, write, recipe, text, options, message):
        with pytest.raises(BeelineError, match=message) as caught:
            read(write(text), recipe=recipe, **options)
        assert "text=" not in str(caught.value)

    def test_an_unknown_label_may_be_ignored(self, write, recipe):
        data = read(write("age,protocol,y\n1,tcp,perhaps\n"), recipe=recipe, ignore=("y",))
        assert data.labels is None

    def test_a_recipe_of_numbered_features_is_refused(self, write):
        from beeline.data.recipe.recipe import Recipe

        with pytest.raises(DataError, match="numbered features"):
            read(write("a\n1\n"), recipe=Recipe(1))


def test_a_very_long_record_and_one_that_never_ends(write, monkeypatch):
    long = "x" * 3_000_000
    assert read(write(f"a,b\n1,{long}\n2,y\n")).feature_names == ["a", f"b={long}", "b=y"]
    monkeypatch.setattr(csv_text, "_LONGEST_RECORD", 1000)
    monkeypatch.setattr(csv_text, "_LARGEST_PIECE", 500)
    with pytest.raises(FormatError, match="line 3: a field begins with a quote"):
        read(write('a,b\n1,2\n2,"' + "z\n" * 3000))


def test_wide_tables_have_long_headers(write):
    n = 20_000
    path = write(",".join(f"column_{k}" for k in range(n)) + "\n" + ",".join("1" * n) + "\n")
    data = read(path)
    assert data.n_features == n
    assert data.nnz == n


def test_progress_is_told(write):
    class Told:
        stages, n_bytes, n_rows = (), 0, 0

        def start(self, stage, total_bytes):
            self.stages += ((stage, total_bytes),)
            self.n_bytes = self.n_rows = 0

        def advance(self, n_bytes, n_rows=0):
            self.n_bytes += n_bytes
            self.n_rows += n_rows

    path = write("a,b\n1,x\n2,y\n")
    size = path.stat().st_size
    told = Told()
    source = TableReader(find_files(path), ReadOptions(), told)
    source.prepare(1 << 20)
    list(source.blocks(1 << 20))
    assert told.stages == (("learning", size), ("reading", size))
    assert (told.n_bytes, told.n_rows) == (size, 2)
