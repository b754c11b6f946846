"""`beeline predict --rank` and `--trec`, and pages of rankings."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from outcomes import done_well, one_line


@pytest.fixture
def ranked(quickly, tmp_path):
    """A file of documents, and a model of them: `m`."""
    rng = np.random.default_rng(0)
    lines = []
    for query in (7, 3, 12):
        for a, b in rng.standard_normal((5, 2)):
            lines.append(f"{max(0, round(a + rng.standard_normal()))} qid:{query} 1:{a:.3f} 2:{b:.3f}")
        lines.append(lines[-1])  # a document twice, and so a score twice
    (tmp_path / "r.svm").write_text("\n".join(lines) + "\n")
    done_well(quickly("train", "r.svm", "-o", "m", "--loss", "squared"))
    return "r.svm"


def scores(quickly, ranked):
    return [float(line) for line in done_well(quickly("predict", "m", ranked)).split()]


@pytest.mark.parametrize("memory", ["1G", "100"])
def test_ranks_are_written_in_the_order_of_the_rows(quickly, ranked, memory):
    z = np.array(scores(quickly, ranked))
    lines = list(csv.DictReader(done_well(quickly("predict", "m", ranked, "--rank", "--memory", memory)).splitlines()))
    assert [line["query"] for line in lines] == ["7"] * 6 + ["3"] * 6 + ["12"] * 6
    assert [float(line["score"]) for line in lines] == z.tolist()
    for begin in (0, 6, 12):
        ranks = [int(line["rank"]) for line in lines[begin : begin + 6]]
        assert ranks == (1 + np.argsort(np.argsort(-z[begin : begin + 6], kind="stable"))).tolist()
        assert ranks[5] == ranks[4] + 1  # of equal scores the first row comes first


def test_a_run_file(quickly, ranked, tmp_path):
    z = scores(quickly, ranked)
    done_well(quickly("predict", "m", ranked, "--trec", "base", "-o", "base.run"))
    lines = [line.split(" ") for line in (tmp_path / "base.run").read_text().splitlines()]
    assert all(line[1] == "Q0" and line[5] == "base" for line in lines)
    assert [line[3] for line in lines] == [str(rank) for _ in range(3) for rank in range(1, 7)]
    assert [float(line[4]) for line in lines] == [z[int(line[2])] for line in lines]
    for begin in (0, 6, 12):
        found = [float(line[4]) for line in lines[begin : begin + 6]]
        assert found == sorted(found, reverse=True)
        assert {int(line[2]) for line in lines[begin : begin + 6]} == set(range(begin, begin + 6))


def test_queries_of_a_table(quickly, ranked, tmp_path):
    (tmp_path / "t.csv").write_text("q,a,y\nred,1,0\nred,2,1\nblue,3,1\nblue,1,0\n")
    quickly("train", "t.csv", "-o", "t", "--label", "y", "--qid", "q", "--loss", "squared")
    (tmp_path / "n.csv").write_text("q,a\nred,1\nred,2\nblue,3\n")
    lines = done_well(quickly("predict", "t", "n.csv", "--rank")).splitlines()
    assert [line.rpartition(",")[0] for line in lines[1:]] == ["red,2", "red,1", "blue,1"]
    done_well(quickly("evaluate", "t", "t.csv", "--per-query", "q.csv"))
    assert [line.partition(",")[0] for line in (tmp_path / "q.csv").read_text().splitlines()] == [
        "query",
        "red",
        "blue",
    ]
    (tmp_path / "n.csv").write_text('q,a\n"red, and blue",1\n')
    assert '"red, and blue",1,' in done_well(quickly("predict", "t", "n.csv", "--rank"))
    told = one_line(quickly("predict", "t", "n.csv", "--trec", "a"), 1)
    assert "the query 'red, and blue' is not a single word, as run files need" in told


def test_what_cannot_be_ranked(quickly, ranked, rows, tmp_path):
    done_well(quickly("train", rows, "-o", "c"))
    told = one_line(quickly("predict", "c", rows, "--rank"), 1)
    assert "the rows have no query ids, which ranks need; name the column that holds them by --qid" in told
    assert "the name of a run must be one word" in one_line(quickly("predict", "m", ranked, "--trec", "a b"), 2)
    assert "give one of --probabilities, --scores, --rank and --trec" in one_line(
        quickly("predict", "m", ranked, "--rank", "--trec", "a"), 2
    )
    text = (tmp_path / ranked).read_text()
    (tmp_path / "twice.svm").write_text(text + text.splitlines()[0] + "\n")
    done = quickly("predict", "m", "twice.svm", "--rank", "-o", "ranks.csv")
    assert "row 18 goes on with the query 7, which had ended before; sort the rows by query" in one_line(done, 1)
    assert not (tmp_path / "ranks.csv").exists()
    (tmp_path / "three.svm").write_text("0 qid:1 1:1\n1 qid:1 2:1\n2 qid:1 3:1\n")
    quickly("train", "three.svm", "-o", "three")
    assert "the model gives 3 scores a row" in one_line(quickly("predict", "three", "three.svm", "--rank"), 2)


def test_a_page_of_rankings(quickly, ranked, tmp_path):
    quickly("train", ranked, "-o", "n", "--loss", "squared", "--C", "1e-3")
    done_well(quickly("evaluate", "m", ranked, "--report", "page.html", "--against", "n"))
    page = (tmp_path / "page.html").read_text()
    for words in ("Every query", "Against another model", "NDCG@10", "On 18 rows of 3 queries"):
        assert words in page
