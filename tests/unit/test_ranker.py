"""LinearRanker: queries however they are told, data sets, searches, weights, the model file, the command line."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from scipy.optimize import minimize

import beeline
from beeline import LinearModel, LinearRanker, Model
from beeline.cli.app import app
from beeline.engines import Threads
from beeline.exceptions import DataError, LabelError, ModelWarning, ParameterError
from beeline.losses import get_loss
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import Status

LOSSES = ("ndcg", "ndcg@3", "map", "mrr", "rank_utility", "pairwise_hinge", "pairwise_logistic", "listnet")
RANDOM = np.random.default_rng(3)
SIZES = RANDOM.integers(1, 12, 40)
QID = np.repeat(np.arange(100, 140), SIZES)
X = RANDOM.normal(size=(len(QID), 6))
TRUTH = RANDOM.normal(size=6)
Y = np.digitize(X @ TRUTH + 0.5 * RANDOM.normal(size=len(X)), [0.0, 1.5, 3.0]).astype(float)


@pytest.fixture
def letor(tmp_path):
    """A file as LETOR has it, with ends of lines as on Windows, and a remark behind each row."""
    lines = (
        f"{int(y)} qid:{q} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row)) + f" #docid = {i}\r\n"
        for i, (row, y, q) in enumerate(zip(X, Y, QID, strict=True))
    )
    (tmp_path / "train.txt").write_text("".join(lines), newline="")
    return tmp_path / "train.txt"


@pytest.mark.parametrize("loss", LOSSES)
def test_queries_are_told_in_many_ways(loss, letor, tmp_path):
    def objective(*args, **more):
        return LinearRanker(loss).fit(*args, **more).report_.objective

    wanted = pytest.approx(objective(X, Y, qid=QID), rel=3e-4)
    assert objective(X, Y, group=SIZES) == wanted
    assert objective(X, Y, groups=QID.astype(str)) == wanted
    assert objective(sp.csr_matrix(X), Y, qid=QID) == wanted
    data = beeline.read(letor)
    assert objective(data) == wanted
    assert objective(data, Y, qid=QID) == wanted
    store = beeline.convert(letor, tmp_path / "store")
    assert objective(store) == wanted
    assert objective(X.astype(np.float32), Y, qid=QID) == wanted


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_queries_are_repetitions(loss):
    weights = RANDOM.integers(0, 3, len(SIZES)).astype(float)
    again = np.concatenate([np.tile(np.flatnonzero(g == QID - 100), int(w)) for g, w in enumerate(weights)])
    sizes = np.repeat(SIZES, weights.astype(int))
    one = LinearRanker(loss).fit(X, Y, group=SIZES, query_weight=weights)
    other = LinearRanker(loss).fit(X[again], Y[again], group=sizes)
    assert one.report_.objective == pytest.approx(other.report_.objective, rel=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_certified_optimum(loss):
    starts = np.append(0, np.cumsum(SIZES))
    rows = Threads(n_shards=3).open(beeline.from_arrays(X), starts)
    y, c = rows.scatter(Y), rows.scatter(np.full(len(Y), 2.0))
    o = Objective(rows, y, c, get_loss(loss), L2(), 1.0, "none")
    result = SOLVERS["lbfgs" if o.loss.smooth else "bundle"](tol=1e-6).run(o)
    assert result.status is Status.CONVERGED
    for start in (result.theta, np.zeros(o.size)):
        found = minimize(lambda t: (o.at(t).value, o.at(t).gradient), start, jac=True, method="L-BFGS-B")
        assert result.bound <= found.fun * (1 + 1e-10)
        assert result.objective <= found.fun * (1 + 2e-6)


def test_it_ranks():
    ranker = LinearRanker("ndcg@10", C=1.0).fit(X, Y, qid=QID)
    truth = X @ TRUTH
    assert np.corrcoef(ranker.predict(X), truth)[0, 1] > 0.9
    np.testing.assert_array_equal(ranker.decision_function(X), ranker.predict(X))
    assert ranker.intercept_ == 0
    data = beeline.from_arrays(X, Y, queries=QID)
    assert ranker.score(data) == ranker.score(X, Y, qid=QID) == ranker.score(X, Y, group=SIZES) > 0.5


@pytest.mark.parametrize(
    "loss", ["ndcg@3", "pairwise_logistic", *(pytest.param(k, marks=pytest.mark.slow) for k in ("map", "rank_utility"))]
)
def test_a_search_keeps_queries_whole_and_asks_for_the_measure(loss):
    ranker = LinearRanker(loss, C="auto", cv=3).fit(X, Y, qid=QID)
    metrics = {"rank_utility": "loss", "pairwise_logistic": "ndcg@10"}
    assert ranker.selection_.metric == metrics.get(loss, loss)
    assert ranker.C_ > 0
    again = LinearRanker(loss, C="auto", cv=3).fit(beeline.from_arrays(X, Y, queries=QID))
    assert again.C_ == ranker.C_
    assert LinearRanker("map", C="auto", cv=3, scoring="mrr").fit(X, Y, qid=QID).selection_.metric == "mrr"


def test_the_model_file_has_the_places(tmp_path):
    model = LinearModel("ndcg@7", fit_intercept=False).fit(X, Y, groups=QID).model_
    model.save(tmp_path / "m.beeline")
    again = Model.load(tmp_path / "m.beeline")
    assert (again.loss, again.loss_settings) == ("ndcg", {"k": 7})
    assert get_loss(again.loss, **again.loss_settings).settings == {"k": 7}
    other = LinearModel(get_loss("ndcg", k=7), fit_intercept=False).fit(X, Y, groups=QID).model_
    np.testing.assert_array_equal(other.weights, model.weights)


def test_the_command_line_ranks_letor_files(letor, tmp_path):
    def run(*arguments):
        ran = CliRunner().invoke(app, [*map(str, arguments)])
        assert ran.exit_code in (0, 3), ran.output
        return ran.output

    run("train", letor, "-o", tmp_path / "m", "--loss", "ndcg@5", "--intercept", "none")
    model = Model.load(tmp_path / "m")
    assert (model.loss, model.loss_settings) == ("ndcg", {"k": 5})
    wanted = LinearRanker("ndcg@5").fit(beeline.read(letor)).report_.objective
    assert model.report.objective == pytest.approx(wanted, rel=2e-4)
    run("train", letor, "-o", tmp_path / "b", "--loss", "ndcg@5", "--intercept", "none", "--memory", "32M")
    assert Model.load(tmp_path / "b").report.objective == pytest.approx(wanted, rel=2e-4)
    run("train", letor, "-o", tmp_path / "c", "--loss", "ndcg@5", "--intercept", "none", "--memory", "1")
    assert Model.load(tmp_path / "c").report.objective == pytest.approx(wanted, rel=2e-4)
    assert "ndcg@5" in run("select", letor, "--loss", "ndcg@5", "--intercept", "none", "--folds", "3")


def test_what_is_wrong_is_said():
    with pytest.warns(ModelWarning, match="the rows have no queries, so that all of them are one; give qid="):
        LinearRanker().fit(X[:5], Y[:5])
    with pytest.raises(
        DataError, match=r"row 2 goes on with the query 7, which had ended before; sort the rows by query"
    ):
        LinearRanker().fit(X[:4], Y[:4], qid=[7, 8, 7, 7])
    with pytest.raises(ParameterError, match="qid and group both say the queries; leave one of them out"):
        LinearRanker().fit(X, Y, qid=QID, group=SIZES)
    with pytest.raises(ParameterError, match="group must be how many documents each query has"):
        LinearRanker().fit(X, Y, group=[0.5])
    with pytest.raises(DataError, match="the queries have 3 rows by group, but there are"):
        LinearRanker().fit(X, Y, group=[1, 2])
    with pytest.raises(DataError, match="fit takes rows and not names of files; read them first"):
        LinearRanker().fit("train.txt")
    with pytest.raises(ParameterError, match="query_weight must have one weight a query, 40 in all"):
        LinearRanker().fit(X, Y, qid=QID, query_weight=np.ones(3))
    with pytest.raises(ParameterError, match="the loss 'hinge' does not look at queries; take one of queries"):
        LinearRanker("hinge").fit(X, Y, qid=QID)
    with pytest.raises(LabelError, match=r"row 0 has the label -1; .* relevances"):
        LinearRanker().fit(X, np.where(np.arange(len(Y)) == 0, -1.0, Y), qid=QID)
    with pytest.raises(DataError, match="no groups"):
        LinearRanker().fit(beeline.from_arrays(X, Y))
    with pytest.raises(ParameterError, match="sample_weight must be the same for all rows of a query"):
        LinearRanker("map").fit(beeline.from_arrays(X, Y, queries=QID, weights=np.arange(1.0, len(Y) + 1)))


@pytest.mark.parametrize(
    ("qid", "said"),
    [
        (QID[:-1], f"qid must be one a row, {len(QID)} in all, not of shape"),
        (5, "qid must be one a row"),
        (np.column_stack([QID, QID]), "qid must be one a row"),
        ([None] * len(QID), "qid of row 0 is None; give one that is known, or remove the row"),
        (np.where(np.arange(len(QID)) < 3, QID, np.nan), "qid of row 3 is nan"),
        ([int(q) if q == 100 else str(q) for q in QID.tolist()], None),
        (
            np.array([q if q == 100 else str(q) for q in QID.tolist()], object),
            "qid of different types cannot be told apart",
        ),
    ],
)
def test_what_is_wrong_with_qid_is_said(qid, said):
    if said is None:  # NumPy makes texts of all of them
        assert LinearRanker().fit(X, Y, qid=qid).score(X, Y, qid=qid) > 0.5
        return
    ranker = LinearRanker().fit(X, Y, qid=QID)
    for asked in (ranker.fit, ranker.score):
        with pytest.raises(ParameterError, match=said):
            asked(X, Y, qid=qid)
    with pytest.raises(ParameterError, match=said.replace("qid", "groups").partition(" in all")[0]):
        LinearModel("ndcg@10", fit_intercept=False).fit(X, Y, groups=qid)


def test_score_reads_files_as_predict_does(letor, tmp_path):
    """With their queries and labels; also where the name has as many letters as the file has rows."""
    short = tmp_path / "t.txt"
    short.write_text("".join(letor.read_text().splitlines(keepends=True)[: len(str(short))]))
    for path in (letor, short):
        data = beeline.read(path)
        ranker = LinearRanker().fit(data)
        wanted = ranker.score(data)
        assert ranker.score(path) == ranker.score(str(path)) == wanted
        assert ranker.score(path, data.labels) == ranker.score(path, qid=data.queries) == wanted

    names = [f"f{j}" for j in range(X.shape[1])]
    table = tmp_path / "t.csv"
    rows = (",".join(map(str, [y, f"q{q}", *row])) for row, y, q in zip(X, Y, QID, strict=True))
    table.write_text("\n".join([",".join(["rel", "q", *names]), *rows]) + "\n")
    data = beeline.read(table, label="rel", query="q")
    ranker = LinearRanker().fit(data)
    assert ranker.score(table) == ranker.score(data) == ranker.score(data, Y, qid=QID)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (Y[:-1], f"y must have one relevance a row, {len(Y)} in all, not shape"),
        (np.append(Y, 1.0), "y must have one relevance a row"),
        (np.column_stack([Y, Y]), "y must have one relevance a row"),
        (1.0, "y must have one relevance a row"),
        (["good"] * len(Y), "y must have numbers for relevances, from 0"),
        (np.where(np.arange(len(Y)) == 4, np.nan, Y), "row 4 has the label nan; give it one that is known"),
    ],
)
def test_what_is_wrong_with_relevances_to_score_by_is_said(y, said):
    ranker = LinearRanker().fit(X, Y, qid=QID)
    with pytest.raises(LabelError, match=said):
        ranker.score(X, y, qid=QID)


def test_queries_that_say_nothing_cost_nothing():
    """And a model of such queries alone is none, which is said."""
    for loss, y in (("ndcg@10", np.zeros(6)), ("map", np.repeat([1.0, 0.0], 3)), ("listnet", np.repeat([1.0, 0.0], 3))):
        with pytest.warns(ModelWarning, match="no query has both more and less relevant rows, so that nothing is left"):
            ranker = LinearRanker(loss).fit(X[:6], y, group=[3, 3])
        assert ranker.report_.objective == 0
        assert not ranker.coef_.any()
    some = LinearRanker().fit(X[:9], [0, 0, 0, 1, 1, 1, 0, 1, 2], group=[3, 3, 3])
    alone = LinearRanker().fit(X[6:9], [0, 1, 2], group=[3])
    assert some.report_.objective == pytest.approx(alone.report_.objective, rel=2e-4)


def test_a_search_within_a_budget_finds_what_one_in_memory_does(letor, tmp_path):
    store = beeline.convert(letor, tmp_path / "store")
    here = LinearRanker("ndcg@3", C="auto", cv=3).fit(beeline.read(letor))
    there = LinearRanker("ndcg@3", C="auto", cv=3, memory="32M").fit(store)
    assert there.C_ == here.C_
    assert there.selection_.best_score == pytest.approx(here.selection_.best_score, rel=1e-3)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=2e-2 * np.abs(here.coef_).max())
