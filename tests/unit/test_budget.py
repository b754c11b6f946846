"""A memory budget in training: the same models, each byte read once a pass, vectors on disk, clear refusals."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import beeline
from beeline import LinearModel, from_arrays, select_C
from beeline.data.store import StoreWriter
from beeline.data.store.chunks import PartChunks
from beeline.data.store.store import Store
from beeline.engines import Resources, Threads
from beeline.engines.scratch import Scratch
from beeline.engines.verbs import columns, products, values
from beeline.exceptions import ParameterError, StoreError
from beeline.kernels import num_threads
from beeline.losses import Logistic, Softmax
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.auto import SOLVERS, Relay, choose_solver
from beeline.training.calibration import fit_platt

RNG = np.random.default_rng(3)
X = RNG.normal(size=(900, 12)) * (RNG.random((900, 12)) < 0.5)
Y = np.where(X @ RNG.normal(size=12) + RNG.normal(size=900) > 0, 1.0, -1.0)
CLASSES = (X[:, :3] + RNG.normal(size=(900, 3))).argmax(axis=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with StoreWriter(tmp_path_factory.mktemp("budget") / "s", chunk_bytes=4000) as writer:
        writer.write(from_arrays(X, Y).block)
        return writer.finish()


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("memory", ["100K", 20_000])
def test_a_budget_changes_no_model(store, loss, memory):
    free = LinearModel(loss=loss, tol=1e-8).fit(from_arrays(X), Y)
    held = LinearModel(loss=loss, tol=1e-8, memory=memory).fit(store)
    assert held.report_.objective == pytest.approx(free.report_.objective, rel=3e-8)
    assert_allclose(held.coef_, free.coef_, atol=3e-3)
    assert_array_equal(held.predict(store), free.predict(X))


def test_without_a_budget_the_bits_are_those_of_one_shard(store):
    rows, held = Threads().open(store), Threads(20_000).open(store)
    assert (rows.n_shards, rows.memory) == (1, None)
    assert held.n_shards > 10
    assert held.memory == 20_000


@pytest.mark.parametrize("loss", [Logistic(), Softmax()])
def test_the_same_shards_give_the_same_bits_wherever_vectors_lie(store, loss):
    """What is kept in files is what is kept in memory."""
    outputs = 3 if isinstance(loss, Softmax) else 1
    labels = CLASSES.astype(float) if outputs > 1 else Y
    held = Threads(20_000).open(store)
    free = Threads(n_shards=held.n_shards).open(store)
    for one, other in zip(held.shards, free.shards, strict=True):
        object.__setattr__(other, "start", one.start)
        object.__setattr__(other, "stop", one.stop)
    points = []
    for rows in (held, free):
        o = Objective(rows, rows.scatter(labels), rows.scatter(np.ones(900)), loss, L2(), n_outputs=outputs)
        theta = np.linspace(-1, 1, o.size)
        point = o.at(theta).line(theta[::-1].copy()).move(0.3)
        points.append((point.value, point.gradient, point.hessian_product(theta), rows.gather(point.slopes)))
    for one, other in zip(*points, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("memory", [None, 20_000])
@pytest.mark.parametrize("verb", ["scores", "gradient", "hessian_product", "hessian", "feature_moments"])
def test_a_pass_reads_every_chunk_once(store, monkeypatch, memory, verb):
    """Counted where chunks are read; also for losses whose products take two steps."""
    read = []
    block = PartChunks.rows_of
    monkeypatch.setattr(PartChunks, "rows_of", lambda part, k, *rest: read.append(k) or block(part, k, *rest))
    rows = Threads(memory).open(store.within(10**9) if memory is None else store)
    h, w = rows.scatter(np.ones((900, 2))), np.ones((12, 2))
    flat, one = rows.scatter(np.ones(900)), np.ones(12)
    loss = beeline.losses.get_loss("softmax_margin") if verb == "hessian_product" else Logistic()
    calls = {
        "scores": lambda: rows.map(products.scores, w=one, b=None),
        "gradient": lambda: rows.sum(products.gradient, flat, intercept=True).value,
        "hessian": lambda: rows.sum(products.hessian, flat, intercept=True).value,
        "feature_moments": lambda: rows.sum(products.feature_moments).value,
        "hessian_product": lambda: rows.sum(products.batched_hessian_products, h, w=w, b=np.zeros(2), loss=loss).value,
    }
    read.clear()
    calls[verb]()
    assert sorted(read) == list(range(store.n_chunks))


def test_verbs_on_columns_read_no_rows(store, monkeypatch):
    rows = Threads(20_000).open(store)
    y, c = rows.scatter(Y), rows.scatter(np.ones(900))
    monkeypatch.setattr(Store, "rows", lambda *_: pytest.fail("rows were read"))
    assert rows.sum(columns.total, y).value[0] == pytest.approx(Y.sum())
    assert rows.sum(values.loss_sum, y, y, c, loss=Logistic()).value[0] > 0


def test_labels_are_no_part_of_what_rows_are_read_for(store, monkeypatch):
    monkeypatch.setattr(PartChunks, "rows_of", lambda *_: pytest.fail("rows were read"))
    assert_array_equal(store.labels, Y)


class TestScratch:
    def test_arrays_keep_what_is_written_to_them(self):
        scratch = Scratch(1)
        arrays = [scratch.array((1000, k + 1), np.float64) for k in range(40)]
        for k, array in enumerate(arrays):
            array[:] = k
            scratch.touched(array.nbytes)
        assert all((array == k).all() for k, array in enumerate(arrays))

    def test_pages_are_given_back(self):
        scratch = Scratch(1 << 20)
        array = scratch.array((1 << 20,), np.float64)
        array[:] = 1.0
        assert resident(array) > 7 << 20
        scratch.touched(array.nbytes)
        assert resident(array) < 1 << 20
        assert array.sum() == 1 << 20

    def test_room_is_used_again(self):
        scratch = Scratch(1 << 20)
        for _ in range(100):
            scratch.array((100_000,), np.float64)
        assert len(scratch._files) == 1

    def test_views_are_known(self):
        scratch = Scratch(1 << 20)
        array = scratch.array((10, 2), np.float64)
        assert scratch.holds(array)
        assert scratch.holds(array[3:5])
        assert not scratch.holds(array.copy())

    def test_a_forked_child_has_files_of_its_own(self):
        scratch = Scratch(1 << 20)
        mine = scratch.array((10,), np.float64)
        mine[:] = 1.0
        del mine
        child = os.fork()
        if not child:
            scratch.array((10,), np.float64)[:] = 2.0
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert (scratch.array((10,), np.float64) == 1.0).all()

    def test_a_full_disk_is_said(self, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", full)
        with pytest.raises(StoreError, match=r"the disk is full, and 1,048,576 bytes are needed .*; free some space"):
            Scratch(1 << 20).array((10,), np.float64)


def resident(array):
    """Bytes of the mapping in which an array lies that are in memory."""
    address, inside = array.__array_interface__["data"][0], False
    with open("/proc/self/smaps") as file:  # noqa: PTH123
        for line in file:
            first = line.split(" ", 1)[0]
            if "-" in first:
                begin, end = (int(part, 16) for part in first.split("-"))
                inside = begin <= address < end
            elif inside and line.startswith("Rss:"):
                return int(line.split()[1]) << 10
    raise AssertionError


def parts_of(solver):
    return [*parts_of(solver.first), *parts_of(solver.second)] if isinstance(solver, Relay) else [solver]


class TestRefusals:
    def objective(self, store, memory, loss="hinge"):
        rows = Threads(memory).open(store)
        return Objective(rows, rows.scatter(Y), rows.scatter(np.ones(900)), beeline.losses.get_loss(loss), L2())

    def test_names_those_that_stream(self, store):
        match = (
            r"'dual_cd' needs about 1\d\d KB to hold all rows, more than the memory of 19\.5 KB; "
            r"for Hinge\(\) with L2\(\) take smoothed_newton or bundle"
        )
        with pytest.raises(ParameterError, match=match):
            choose_solver(self.objective(store, 20_000), "dual_cd")
        with pytest.raises(ParameterError, match=r"'dual_cd' needs about .*, more than the memory"):
            SOLVERS["dual_cd"]().run(self.objective(store, 20_000))

    @pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "quantile"])
    def test_auto_takes_what_fits(self, store, loss):
        o = self.objective(store, 20_000, loss)
        chosen = choose_solver(o)
        assert all(kind.needs.rows in ("passes", "blocks") for kind in parts_of(chosen))
        assert chosen.name in ("newton", "smoothed_newton")  # there are twelve features
        plenty, unsaid = (choose_solver(self.objective(store, memory, loss)).name for memory in (10**9, None))
        assert plenty == unsaid

    def test_auto_goes_by_blocks_where_there_are_more_features(self, tmp_path):
        wide = np.random.default_rng(0).normal(size=(900, 80))
        store = beeline.convert(iter([(wide, Y)]), tmp_path / "wide")
        assert choose_solver(self.objective(store, 20_000)).name == "block_cd"
        assert choose_solver(self.objective(store, None)).name == "dual_cd"

    def test_arrays_need_no_room_for_themselves(self):
        rows = Threads(10**5).open(from_arrays(X))
        o = Objective(rows, rows.scatter(Y), rows.scatter(np.ones(900)), beeline.losses.get_loss("hinge"), L2())
        assert choose_solver(o, "dual_cd").name == "dual_cd"

    def test_a_matrix_of_features_must_fit(self, tmp_path):
        wide = RNG.normal(size=(3000, 400))
        store = beeline.convert(from_arrays(wide, np.sign(wide[:, 0])), tmp_path / "s")
        newton, hinge = SOLVERS["smoothed_newton"](), beeline.losses.get_loss("hinge")
        objectives = [
            Objective(rows, rows.scatter(store.labels), rows.scatter(np.ones(3000)), hinge, L2())
            for rows in (Threads(memory).open(store) for memory in (None, 10**6, 10**9))
        ]
        assert [newton._by_cholesky(o) for o in objectives] == [True, False, True]


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_classes_side_by_side_give_the_same_bits_whatever_the_threads(store, loss):
    """They take turns at the rows, and share the files that their vectors lie in."""
    found = []
    for threads in (1, 4):
        with Resources(threads=threads).in_use():
            model = LinearModel(loss=loss, multi_class="ovr", memory=20_000, tol=1e-3).fit(store, CLASSES)
            found.append((model.coef_, model.intercept_))
    assert_array_equal(found[0][0], found[1][0])
    assert_array_equal(found[0][1], found[1][1])
    free = LinearModel(loss=loss, multi_class="ovr", tol=1e-3).fit(from_arrays(X), CLASSES)
    assert model.report_.objective == pytest.approx(free.report_.objective, rel=2e-3)


def test_a_search_within_a_budget_finds_the_same(store):
    how = {"folds": 3, "C_min": 0.01, "C_max": 0.1}
    free, held = (select_C(store, "logistic", **how, **more) for more in ({}, {"memory": 20_000}))
    assert held.best_C == free.best_C
    for one, other in zip(held.curve, free.curve, strict=True):
        assert_allclose(one.fold_scores, other.fold_scores, rtol=1e-4)


@pytest.mark.parametrize("memory", [None, 20_000])
def test_probabilities_are_calibrated_within_a_budget(store, memory):
    free = LinearModel(loss="squared_hinge", probability=True, tol=1e-8).fit(from_arrays(X), Y)
    held = LinearModel(loss="squared_hinge", probability=True, tol=1e-8, memory=memory).fit(store)
    assert_allclose(held.predict_proba(store), free.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("weights", [None, RNG.random(900)])
def test_platts_method_takes_rows_in_pieces(weights):
    z = X[:, 0] + 0.1
    whole, pieces = (fit_platt(z, Y > 0, weights, most) for most in (None, 70))
    assert_allclose(pieces, whole, rtol=1e-6)


class TestResources:
    def test_are_parsed_as_everywhere(self):
        assert Resources("1.5M").budget == 3 << 19
        assert Resources(1000).rows_in_memory == 500
        with pytest.raises(ParameterError, match="'lots' is not a size; write it as 512M or 4G"):
            LinearModel(memory="lots").fit(X, Y)

    def test_say_who_opens(self):
        assert Resources(1000).opener().memory == 1000
        engine = Threads(n_shards=2)
        assert Resources(engine=engine).opener() is engine

    def test_threads_are_set_for_a_while(self):
        before = num_threads()
        with Resources(threads=before + 1).in_use():
            assert num_threads() == before + 1
        assert num_threads() == before
