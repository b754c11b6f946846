"""`beeline info`, run for real."""

from __future__ import annotations

import json

import pytest


def table(text: str) -> dict[str, str]:
    """The lines `key   value` of the output."""
    lines = (line.split(None, 1) for line in text.splitlines()[1:] if len(line.split(None, 1)) == 2)
    return {key: value.strip() for key, value in lines}


@pytest.fixture
def store(quickly, people):
    assert quickly("convert", people, "p.store", "--label", "target", "--scale", "minmax").returncode == 0
    return "p.store"


def test_a_store(quickly, store):
    done = quickly("info", store)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("p.store  beeline store\n")
    shown = table(done.stdout)
    assert shown["rows"] == "3"
    assert shown["features"] == "4  (dense, float64)"
    assert shown["scaling"] == "minmax"
    assert shown["values"] == "0 … 1"
    assert "label no" in done.stdout
    assert shown["numbers"] == "age, w"
    assert shown["categories"] == "city: Oslo, Paris"


def test_a_store_as_json(quickly, store):
    facts = json.loads(quickly("info", store, "--json").stdout)
    assert facts["format"] == "store"
    assert facts["density"] == facts["nonzeros"] / 12
    assert facts["recipe"]["scaling"]["kind"] == "minmax"
    assert facts["recipe"]["label_categories"] == ["no", "yes"]
    assert "feature_ranges" not in facts


def test_the_ranges_of_features(quickly, store, people):
    facts = json.loads(quickly("info", store, "--features", "--json").stdout)
    ranges = {f.pop("feature"): f for f in facts["feature_ranges"]}
    assert ranges["age"]["min"] == 0
    assert ranges["age"]["max"] == 1
    assert ranges["city=Oslo"] == {"min": 0, "max": 1, "mean": pytest.approx(1 / 3)}
    raw = json.loads(quickly("info", people, "--label", "target", "--features", "--json").stdout)
    assert raw["feature_ranges"][0] == {"feature": "age", "min": 28, "max": 45, "mean": pytest.approx(104 / 3)}
    assert "city=Oslo" in quickly("info", people, "--label", "target", "--features").stdout


def test_a_store_and_its_source_agree(beeline, example_data):
    source = example_data / "covtype-train.csv.gz"
    options = ["--label", "Cover_Type", "--json"]
    made = json.loads(beeline("convert", source, "c.store", *options).stdout)
    raw = json.loads(beeline("info", source, *options).stdout)
    kept = json.loads(beeline("info", "c.store", "--json").stdout)
    same = ["rows", "features", "nonzeros", "density", "layout", "dtype", "values", "labels", "recipe"]
    assert {k: raw[k] for k in same} == {k: kept[k] for k in same} == {k: made[k] for k in same}
    assert raw["format"] == "csv"
    assert raw["bytes"] == source.stat().st_size


def test_libsvm_text(quickly, svm):
    done = quickly("info", svm)
    shown = table(done.stdout)
    assert done.stdout.startswith(f"{svm}  LIBSVM text\n")
    assert shown["nonzeros"] == "5  (41.7 % of all entries)"
    assert shown["values"] == "-3 … 2  (and zeros)"
    assert shown["recipe"] == "features numbered from 1"
    assert json.loads(quickly("info", svm, "--features", "--json").stdout)["feature_ranges"][0] == {
        "feature": "1",
        "min": -3,
        "max": 0.5,
        "mean": pytest.approx(-2.5 / 3),
    }


def test_queries_and_label_sets(quickly, tmp_path):
    (tmp_path / "rank.svm").write_text("2 qid:1 1:1\n1 qid:1 1:2\n0 qid:7 1:3\n")
    assert table(quickly("info", "rank.svm").stdout)["queries"] == "2"
    (tmp_path / "sets.svm").write_text("1,3 1:1\n2 1:2\n1,2,3 1:3\n")
    facts = json.loads(quickly("info", "sets.svm", "--json").stdout)
    assert facts["labels"]["kind"] == "sets"
    assert facts["labels"]["distinct"] == {"values": [1, 2, 3], "counts": [2, 2, 2]}


def test_what_looks_like_markup_is_text(quickly, tmp_path):
    (tmp_path / "odd.csv").write_text("[red]a[/red],b\n1,[bold]x[/bold]\n2,\x1b[31my\n")
    done = quickly("info", "odd.csv")
    assert done.returncode == 0, done.stderr
    assert "[red]a[/red]" in done.stdout
    assert "[bold]x[/bold]" in done.stdout
    assert "\x1b" not in done.stdout


def test_an_altered_store_is_named(quickly, store, tmp_path):
    part = next((tmp_path / store).glob("*.arrow"))
    part.write_bytes(part.read_bytes()[:-1])
    done = quickly("info", store)
    assert done.returncode == 1
    assert part.name in done.stderr
    assert done.stderr.count("\n") == 1
