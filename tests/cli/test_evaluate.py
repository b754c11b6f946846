"""`beeline evaluate`: what people read, and what --json has."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import write_svm
from outcomes import done_well, one_line

from beeline import Model, evaluate, read


@pytest.fixture
def weighted(tmp_path):
    """Two classes of texts, each row of weight 2 or 1.5."""
    rng = np.random.default_rng(0)
    lines = ["a,b,w,y"]
    for a, b in rng.standard_normal((60, 2)):
        lines.append(f"{a},{b},{2 if b > 0 else 1.5},{'good' if a + rng.standard_normal() > 0 else 'bad'}")
    (tmp_path / "w.csv").write_text("\n".join(lines) + "\n")
    return "w.csv"


@pytest.fixture
def many(tmp_path):
    """Thirty classes in a row, of which neighbours are taken for one another."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 30
    write_svm(tmp_path / "many.svm", np.eye(30)[(y + (rng.random(300) < 0.2)) % 30], y)
    return "many.svm"


def test_the_positive_class_is_named_and_can_be_chosen(quickly, rows):
    done_well(quickly("train", rows, "-o", "m"))
    larger, smaller = (
        json.loads(done_well(quickly("evaluate", "m", rows, "--json", *more))) for more in ((), ("--positive", "-1"))
    )
    assert (larger["positive"], smaller["positive"]) == ("1", "-1")
    (right_minus, wrong_minus), (wrong_plus, right_plus) = larger["confusion"]
    assert larger["measures"]["recall"] == pytest.approx(right_plus / (right_plus + wrong_plus))
    assert smaller["measures"]["recall"] == pytest.approx(right_minus / (right_minus + wrong_minus))
    assert larger["measures"]["auc"] == pytest.approx(smaller["measures"]["auc"])
    assert "of class -1" in done_well(quickly("evaluate", "m", rows, "--positive", "-1"))
    assert "--positive must be one of -1, 1, not '7'" in one_line(quickly("evaluate", "m", rows, "--positive", "7"), 2)


def test_weights_are_told_as_people_write_them(quickly, weighted):
    done_well(quickly("train", weighted, "-o", "m", "--label", "y", "--weight", "w"))
    out = done_well(quickly("evaluate", "m", weighted))
    facts = json.loads(done_well(quickly("evaluate", "m", weighted, "--json")))
    assert out.splitlines()[0] == f"m on 60 rows of weight {facts['weight']:g}"
    assert facts["weight"] == pytest.approx(np.sum(facts["confusion"]))
    assert ".0 " not in "".join(out.splitlines()[-2:])  # the confusion table
    assert all(isinstance(cell, int) or not cell.is_integer() for row in facts["confusion"] for cell in row)


def test_many_classes_show_what_matters(quickly, many):
    done_well(quickly("train", many, "-o", "m", "--loss", "squared_hinge"))
    out = done_well(quickly("evaluate", "m", many))
    facts = json.loads(done_well(quickly("evaluate", "m", many, "--json")))
    assert "the lowest F1 of 30; --json shows all" in out
    assert "as 7" not in out
    head = out.splitlines().index("label  most often taken for  rows  of the class")
    first = facts["top_confusions"][0]
    told = out.splitlines()[head + 1].split()
    assert told[:3] == [first["label"], first["predicted"], str(first["rows"])]
    assert len(facts["per_class"]) == 30
    assert len(facts["confusion"]) == 30
    assert len(facts["curves"]) == 10


def test_what_does_not_fit_is_said_in_the_words_of_the_command_line(quickly, many):
    done_well(quickly("train", many, "-o", "m", "--loss", "squared_hinge"))
    out = done_well(quickly("evaluate", "m", many, "--memory", "10K"))
    assert "ROC areas and average precisions are left out" in out
    assert "give more --memory" in out
    assert "ROC area macro           undefined" in out


def test_quantiles_and_rates(quickly, tmp_path, numbers):
    done_well(quickly("train", numbers, "-o", "m", "--loss", "quantile", "--loss-setting", "tau=0.9"))
    out = done_well(quickly("evaluate", "m", numbers))
    assert "of labels are at or below the prediction; wanted 0.9" in out
    facts = json.loads(done_well(quickly("evaluate", "m", numbers, "--json")))
    assert facts["tau"] == 0.9
    assert facts["measures"]["coverage"] == pytest.approx(0.9, abs=0.05)
    X = np.random.default_rng(0).standard_normal((50, 2))
    write_svm(tmp_path / "counts.svm", X, np.random.default_rng(1).poisson(np.exp(X[:, 0])))
    done_well(quickly("train", "counts.svm", "-o", "p", "--loss", "poisson"))
    assert "D²        0." in done_well(quickly("evaluate", "p", "counts.svm"))


def test_the_command_says_what_the_function_says(quickly, tmp_path, rows):
    done_well(quickly("train", rows, "-o", "m"))
    facts = json.loads(done_well(quickly("evaluate", "m", rows, "--json")))
    model = Model.load(tmp_path / "m")
    found = evaluate(model, read(rows, recipe=model.recipe))
    assert facts == {"model": "m"} | json.loads(json.dumps(found.to_json()))


def test_the_page(quickly, tmp_path, rows):
    done_well(quickly("train", rows, "-o", "m"))
    out = done_well(quickly("evaluate", "m", rows, "--report", "page.html"))
    assert out.startswith("m on 120 rows\n")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "the positive class is 1" in page
    assert "rows.svm" in page
    assert "above the optimum" in page


def test_a_page_is_written_over_nothing_else(quickly, tmp_path, rows):
    done_well(quickly("train", rows, "-o", "m"))
    before = (tmp_path / "m").read_bytes(), rows.read_bytes()
    for target, words in (("m", "is read by this command"), (rows, "is read by this command"), (".", "is a folder")):
        assert words in one_line(quickly("evaluate", "m", rows, "--report", target), 2)
    (tmp_path / "notes").write_text("mine")
    assert "is not a page" in one_line(quickly("evaluate", "m", rows, "--report", "notes"), 2)
    assert (tmp_path / "notes").read_text() == "mine"
    assert ((tmp_path / "m").read_bytes(), rows.read_bytes()) == before


def test_a_page_says_what_was_left_out_in_the_words_of_the_command_line(quickly, tmp_path, many):
    done_well(quickly("train", many, "-o", "m", "--loss", "squared_hinge"))
    done_well(quickly("evaluate", "m", many, "--memory", "10K", "--report", "p.html"))
    assert "give more --memory." in (tmp_path / "p.html").read_text(encoding="utf-8")


@pytest.fixture
def ranked(tmp_path):
    """Twenty queries of documents, and two models of them."""
    rng = np.random.default_rng(0)
    lines = []
    for query in range(20):
        for a, b in rng.standard_normal((rng.integers(2, 9), 2)):
            lines.append(f"{max(0, round(a + rng.standard_normal()))} qid:{query + 100} 1:{a:.3f} 2:{b:.3f}")
    (tmp_path / "r.svm").write_text("\n".join(lines) + "\n")
    return "r.svm"


def test_rankings(quickly, ranked, tmp_path):
    done_well(quickly("train", ranked, "-o", "m", "--loss", "squared"))
    out = done_well(quickly("evaluate", "m", ranked, "--per-query", "q.csv"))
    assert out.splitlines()[0].endswith("rows of 20 queries")
    facts = json.loads(done_well(quickly("evaluate", "m", ranked, "--json", "--per-query", "q.jsonl")))
    for name, words in (("ndcg@10", "NDCG@10"), ("map", "MAP    "), ("mrr", "MRR    ")):
        assert f"{words}  {facts['measures'][name]:.6g}" in out
    lines = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert [line["query"] for line in lines] == list(range(100, 120))
    assert np.mean([line["map"] for line in lines]) == pytest.approx(facts["measures"]["map"])
    table = (tmp_path / "q.csv").read_text().splitlines()
    assert table[0] == "query,rows,relevant,weight,ndcg@1,ndcg@5,ndcg@10,map,mrr"
    assert len(table) == 21


def test_measures_of_rankings_can_be_chosen(quickly, ranked):
    done_well(quickly("train", ranked, "-o", "m", "--loss", "squared"))
    named = quickly("evaluate", "m", ranked, "--measures", "ndcg@3:letor4,precision@2", "--json")
    assert list(json.loads(done_well(named))["measures"])[3:] == ["ndcg@3:letor4", "precision@2"]
    assert "there is no measure of rankings 'nice'" in one_line(
        quickly("evaluate", "m", ranked, "--measures", "nice"), 2
    )
    assert "a whole number from 1" in one_line(quickly("evaluate", "m", ranked, "--measures", "ndcg@0"), 2)


def test_rankings_need_query_ids(quickly, rows):
    done_well(quickly("train", rows, "-o", "m"))
    for more in (("--measures", "map"), ("--per-query", "q.csv")):
        told = one_line(quickly("evaluate", "m", rows, *more), 1)
        assert (
            "the rows have no query ids, which measures of rankings need; name the column that holds them by --qid"
            in told
        )
    assert "must end in .csv, or in .jsonl" in one_line(quickly("evaluate", "m", rows, "--per-query", "q.txt"), 2)


def test_against_another_model(quickly, ranked, rows):
    done_well(quickly("train", ranked, "-o", "m", "--loss", "squared"))
    assert quickly("train", ranked, "-o", "n", "--loss", "squared", "--C", "1e-3").returncode in (0, 3)
    again = json.loads(done_well(quickly("evaluate", "m", ranked, "--against", "n", "--json")))
    assert (again["other"], again["against"]["unit"], again["against"]["pairs"]) == ("n", "query", 20)
    out = done_well(quickly("evaluate", "m", ranked, "--against", "n", "--seed", "3"))
    assert "against n" in out
    assert "over the 20 queries" in out
    assert out.endswith("10,000 times each, seed 3\n")
    done_well(quickly("train", rows, "-o", "c"))
    (one,) = json.loads(done_well(quickly("evaluate", "c", rows, "--against", "c", "--json")))["against"][
        "differences"
    ][:1]
    assert (one["measure"], one["difference"], one["p"]) == ("accuracy", 0, 1)
