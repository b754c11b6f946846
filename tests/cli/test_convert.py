"""`beeline convert`, run for real."""

from __future__ import annotations

import json

import numpy as np
import pytest

import beeline as package


def test_a_file_becomes_a_store(beeline, svm, tmp_path):
    done = beeline("convert", svm, "small.store")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("small.store: 3 rows × 4 features (sparse), 2 different labels, ")
    assert done.stdout.count("\n") == 1
    store = package.open_store(tmp_path / "small.store")
    np.testing.assert_array_equal(store.rows(0, 3).to_dense(), [[0.5, 0, 0, 2], [0, 1, 0, 0], [-3, 0, 0.25, 0]])


def test_json_is_one_object_and_nothing_else(quickly, svm):
    done = quickly("convert", svm, "small.store", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert (facts["rows"], facts["features"], facts["nonzeros"]) == (3, 4, 5)
    assert facts["labels"]["distinct"] == {"values": [-1, 1], "counts": [1, 2]}
    assert facts["seconds"] > 0


def test_several_sources_are_joined_in_order(quickly, svm, tmp_path):
    other = tmp_path / "other.svm"
    other.write_text("7 1:7\n")
    assert quickly("convert", other, svm, "joined.store").returncode == 0
    assert package.open_store(tmp_path / "joined.store").labels.tolist() == [7, 1, -1, 1]


def test_the_columns_of_a_table(quickly, people, tmp_path):
    done = quickly("convert", people, "p.store", "--label", "target", "--weight", "w", "--ignore", "age")
    assert done.returncode == 0, done.stderr
    store = package.open_store(tmp_path / "p.store")
    assert store.feature_names == ["city=Oslo", "city=Paris"]
    assert store.recipe.label_categories == ("no", "yes")
    assert store.labels.tolist() == [1, 0, 0]
    assert store.weights.tolist() == [1, 2, 1]


def test_repeated_options_add_up(quickly, people, tmp_path):
    options = ["--label", "target", "--ignore", "age", "--ignore", "w", "--dtype", "float32"]
    assert quickly("convert", people, "p.store", *options).returncode == 0
    store = package.open_store(tmp_path / "p.store")
    assert store.feature_names == ["city=Oslo", "city=Paris"]
    assert store.manifest.form.value_type == "float32"


@pytest.mark.parametrize("names", ["age,w", "age, w"])
def test_one_option_takes_several_columns(quickly, people, tmp_path, names):
    done = quickly("convert", people, "p.store", "--label", "target", "--ignore", names)
    assert done.returncode == 0, done.stderr
    assert package.open_store(tmp_path / "p.store").feature_names == ["city=Oslo", "city=Paris"]


def test_a_column_with_a_comma_is_quoted(quickly, tmp_path):
    table = tmp_path / "comma.csv"
    table.write_text('"a,b",c,y\n1,2,0\n3,4,1\n')
    assert quickly("convert", table, "p.store", "--label", "y", "--ignore", '"a,b"').returncode == 0
    assert package.open_store(tmp_path / "p.store").feature_names == ["c"]


def test_like_applies_the_recipe_of_another_store(quickly, people, tmp_path):
    assert quickly("convert", people, "train.store", "--label", "target", "--scale", "minmax").returncode == 0
    test = tmp_path / "test.csv"
    test.write_text("age,city,w,target\n62,Oslo,1,yes\n")
    done = quickly("convert", test, "test.store", "--like", "train.store")
    assert done.returncode == 0, done.stderr
    train, store = (package.open_store(tmp_path / f"{name}.store") for name in ("train", "test"))
    assert store.feature_names == train.feature_names
    assert store.rows(0, 1).to_dense()[0, 0] == pytest.approx((62 - 28) / (45 - 28))
    assert store.labels.tolist() == [1]


def test_shuffle_needs_no_luck(quickly, tmp_path):
    source = tmp_path / "many.svm"
    source.write_text("".join(f"{i} 1:{i}\n" for i in range(1, 1001)))
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert quickly("convert", source, f"{name}.store", "--shuffle", "--seed", seed).returncode == 0
    a, b, c = (package.open_store(tmp_path / f"{name}.store").labels.tolist() for name in "abc")
    assert a == b
    assert a != c
    assert sorted(a) == list(range(1, 1001)) != a


def test_an_existing_store_is_replaced_only_when_asked(quickly, svm, people):
    assert quickly("convert", svm, "x.store").returncode == 0
    refused = quickly("convert", people, "x.store", "--label", "target")
    assert refused.returncode == 1
    assert "exists already" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert quickly("convert", people, "x.store", "--label", "target", "--overwrite").returncode == 0
    assert json.loads(quickly("info", "x.store", "--json").stdout)["features"] == 4


def test_bad_lines_are_counted_and_reported(quickly, tmp_path):
    source = tmp_path / "bad.svm"
    source.write_text("1 1:1\n1 2:x\n-1 1:2\n1 3:1 2:1\n")
    stopped = quickly("convert", source, "x.store")
    assert stopped.returncode == 1
    assert stopped.stderr.startswith("beeline: error: ")
    assert "bad.svm, line 2, column 5" in stopped.stderr
    assert not (tmp_path / "x.store").exists()
    done = quickly("convert", source, "x.store", "--skip-bad-lines")
    assert done.returncode == 0
    assert "beeline: warning: 2 bad lines skipped" in done.stderr
    assert "bad.svm, line 2" in done.stderr
    assert "bad.svm, line 4" in done.stderr
    facts = json.loads(quickly("convert", source, "y.store", "--skip-bad-lines", "--json").stdout)
    assert facts["bad_lines"]["count"] == 2
    assert facts["rows"] == 2


def test_the_number_of_threads_does_not_matter(beeline, example_data, tmp_path):
    source = example_data / "covtype-train.csv.gz"
    for threads in (1, 3):
        options = ("--label", "Cover_Type", "--scale", "standard", "--threads", threads)
        assert beeline("convert", source, f"{threads}.store", *options).returncode == 0
    one, three = (sorted((tmp_path / f"{n}.store").iterdir()) for n in (1, 3))
    assert [p.name for p in one] == [p.name for p in three]
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in three]


def test_equal_rows_become_one_with_a_weight(quickly, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1 2:2\n-1 1:1\n1 1:1 2:2\n1 1:1 2:2\n")
    assert quickly("convert", "rows.svm", "m.store", "--merge").returncode == 0
    facts = json.loads(quickly("info", "m.store", "--json").stdout)
    assert (facts["rows"], facts["weights"]["max"]) == (2, 3)
    (tmp_path / "ranked.svm").write_text("1 qid:1 1:1\n0 qid:1 1:1\n")
    refused = quickly("convert", "ranked.svm", "r.store", "--merge")
    assert refused.returncode == 1
    assert "belong to queries cannot be merged; leave --merge out" in refused.stderr
    assert not (tmp_path / "r.store").exists()


def test_a_column_of_names_is_doubted_in_the_words_of_the_command_line(quickly, tmp_path):
    source = tmp_path / "orders.csv"
    source.write_text("y,id\n" + "".join(f"{i % 2},order-{i}\n" for i in range(60)))
    for command in (("convert", source, "x.store"), ("train", source, "-o", "x.model")):
        done = quickly(*command, "--label", "y")
        assert done.stderr.count("text column 'id' has 60 different values in 60 rows") == 1, done.stderr
        assert "leave the column out with --ignore id\n" in done.stderr
