"""The page of an evaluation: complete, harmless, by itself, and the same for the same evaluation."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from pages import Page

from beeline import LinearModel, LogisticRegression, evaluate
from beeline.losses import get_loss
from beeline.report import evaluation_page, write_evaluation_page

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3))
TWO = np.where(X[:, 0] + RNG.standard_normal(300) > 0, "<b>yes", "no")
THREE = np.digitize(X[:, 0] + 0.7 * RNG.standard_normal(300), [-0.6, 0.6])
NUMBERS = X[:, 0] + RNG.standard_normal(300)
FACTS = {"model": "a.model", "data": "<script>.csv"}


def of_two(**more):
    return evaluate(LogisticRegression().fit(X, TWO), X, TWO, **more)


def of_three():
    return evaluate(LogisticRegression().fit(X, THREE), X, THREE)


def of_numbers(loss="squared", **settings):
    return evaluate(LinearModel(get_loss(loss, **settings)).fit(X, NUMBERS), X, NUMBERS)


def of_sets():
    sets = X > 0.3
    return evaluate(LinearModel("multilabel_logistic").fit(X, sets), X, sets)


@pytest.fixture(scope="module")
def html() -> str:
    return evaluation_page(of_three(), FACTS)


def pictures(page: Page) -> list[str]:
    return [found["aria-label"] for tag, found in page.elements if tag == "svg"]


def test_two_classes():
    found = of_two(sample_weight=np.full(300, 0.5), positive="<b>yes")
    page = Page(evaluation_page(found, FACTS))
    assert f"Accuracy {found.measures['accuracy']:.4g}" in page.text
    assert "On 300 rows of weight 150; the positive class is <b>yes" in page.text
    assert [words.partition(".")[0] for words in pictures(page)] == [
        *["ROC and precision–recall curves"] * 2,
        *["Predicted probabilities and what came true"] * 2,
    ]
    (head,) = [i for i, (_, cells) in enumerate(page.rows) if cells[0] == "label"]
    assert page.rows[head][1] == ["label", "as <b>yes", "as no"]
    cells = [float(cell) for _, row in page.rows[head + 1 : head + 3] for cell in row[1:]]
    assert cells == found.confusion.ravel().tolist()


def test_several_classes_have_a_table_and_a_legend(html):
    page, found = Page(html), of_three()
    (head,) = [i for i, (_, cells) in enumerate(page.rows) if cells[0] == "class"]
    assert page.rows[head][1][1:] == ["rows", "predicted", "precision", "recall", "F1", "ROC area", "average precision"]
    for (_, cells), one in zip(page.rows[head + 1 :], found.per_class, strict=False):
        expected = [one.precision, one.recall, one.f1, one.auc, one.average_precision]
        assert cells[0] == one.name
        assert [float(cell) for cell in cells[3:]] == pytest.approx(expected, abs=5e-5)
    assert ["model", "a.model"] in [cells for _, cells in page.rows]
    assert "0: ROC area" in pictures(page)[0]


def test_many_classes_show_the_most_frequent_confusions():
    y = np.arange(300) % 25
    rows = np.eye(25)[(y + (RNG.random(300) < 0.3)) % 25]
    found = evaluate(LogisticRegression().fit(rows, y), rows, y)
    page = Page(evaluation_page(found, {}))
    (head,) = [i for i, (_, cells) in enumerate(page.rows) if cells[0] == "label"]
    assert page.rows[head][1] == ["label", "taken for", "rows", "part of the class"]
    first = found.top_confusions(1)[0]
    assert page.rows[head + 1][1][:3] == [first.label, first.predicted, f"{first.rows:g}"]
    assert "Drawn are 10 of 25 classes." in page.text


def test_a_regression_shows_residuals_and_a_quantile_its_coverage():
    page = Page(evaluation_page(of_numbers(), {}))
    assert page.text.startswith("R² 0.")
    assert [words[:29] for words in pictures(page)] == ["Residuals against predictions"] * 2
    page = Page(evaluation_page(of_numbers("quantile", tau=0.75), {}))
    assert ", wanted 0.75" in page.text
    assert [words[:22] for words in pictures(page)] == ["Coverage of a quantile"] * 2


def test_sets_of_labels_have_a_line_for_each():
    page = Page(evaluation_page(of_sets(), {}))
    assert "Each label by itself, present or not." in page.text
    assert pictures(page) == []


def test_what_was_left_out_is_said():
    found = replace(of_three(), notes=("areas are left out",), curves={})
    page = Page(evaluation_page(found, {}))
    assert "Areas are left out." in page.text
    assert len(pictures(page)) == 2


@pytest.mark.parametrize("make", [of_two, of_three, of_numbers, of_sets], ids=lambda make: make.__name__)
def test_it_needs_nothing_from_elsewhere_and_any_name_is_text(make):
    html = evaluation_page(make(), FACTS)
    page = Page(html)
    assert not re.search(r"https?:|//|@import|src=", html)
    tags = {tag for tag, _ in page.elements}
    assert tags & {"script", "img", "iframe", "object", "embed", "base", "form", "b"} == set()
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        assert re.findall(r"#[0-9a-f]{6}\b", picture.replace('href="#', "")) == []


def test_the_same_evaluation_gives_the_same_bytes(html, tmp_path):
    write_evaluation_page(tmp_path / "e.html", of_three(), FACTS)
    assert (tmp_path / "e.html").read_text(encoding="utf-8") == html


def test_predictions_beyond_all_numbers_and_a_single_row_are_drawn():
    found = of_numbers()
    wild = found.residuals._replace(predicted=np.where(np.arange(300) % 2, np.inf, found.residuals.predicted))
    evaluation_page(replace(found, residuals=wild), {})  # warnings are errors
    model = LinearModel("squared").fit(X, NUMBERS)
    assert "On 1 row" in Page(evaluation_page(evaluate(model, X[:1], NUMBERS[:1]), {})).text
    evaluation_page(evaluate(LogisticRegression().fit(X, TWO), X[:1], TWO[:1]), {})


def of_queries(**more):
    relevance = np.clip(np.round(NUMBERS), 0, 3)
    return evaluate(LinearModel("squared").fit(X, relevance), X, relevance, groups=np.repeat(np.arange(60), 5), **more)


def test_rankings():
    found = of_queries(against=LinearModel("squared").fit(X[:, ::-1], NUMBERS))
    page = Page(evaluation_page(found, FACTS))
    table = found.by_query
    assert "On 300 rows of 60 queries" in page.text
    assert "NDCG@10 by query. The mean is" in "".join(pictures(page))
    without = int(np.sum(table.relevant == 0))
    assert f"Queries without a relevant row, {without} of 60, are in neither picture" in page.text
    drawn = table.measures["ndcg@10"][table.relevant > 0].mean()
    assert f"{found.measures['ndcg@10']:.4g}; without them it is {drawn:.4g}." in page.text
    head = next(i for i, (_, cells) in enumerate(page.rows) if cells[0] == "query")
    assert page.rows[head][1] == ["query", "rows", "relevant", "NDCG@10", "NDCG@1", "NDCG@5", "MAP", "MRR"]
    some = table.relevant > 0
    worst = np.argmin(np.where(some, table.measures["ndcg@10"], 2))
    told = page.rows[head + 1][1]
    assert told[:4] == [str(worst), "5", f"{table.relevant[worst]:.0f}", f"{table.measures['ndcg@10'][worst]:.4f}"]
    against = next(i for i, (_, cells) in enumerate(page.rows) if cells[0] == "measure")
    one = found.against.differences[0]
    assert page.rows[against + 1][1][:4] == ["NDCG@1", f"{one.model:.4g}", f"{one.other:.4g}", f"{one.difference:+.4g}"]
    assert "randomisation test that swaps the models within each query" in page.text


def test_rankings_alone_are_the_headline():
    found = replace(of_queries(measures=["map", "ndcg@3"]), residuals=None)
    found = replace(found, measures={name: found.measures[name] for name in ("map", "ndcg@3")})
    assert f"MAP {found.measures['map']:.4g}" in Page(evaluation_page(found, FACTS)).text


def test_no_query_has_relevant_rows():
    found = evaluate(LinearModel("squared").fit(X, NUMBERS), X, np.zeros(300), groups=np.repeat(np.arange(60), 5))
    assert "Queries without a relevant row, 60 of 60" in Page(evaluation_page(found, FACTS)).text
