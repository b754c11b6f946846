"""`beeline index`, and what `info` and `train` say of indexes."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from outcomes import done_well, done_with_note, one_line

import beeline as library
from beeline.model import Model


def tight(random):
    """Small clusters, most of them far from where classes meet: boxes know what does not matter."""
    centres = random.normal(size=(40, 4))
    which = random.integers(40, size=2000)
    return centres[which] + 0.01 * random.normal(size=(2000, 4)), np.where(centres[which].sum(axis=1) > 0, 1.0, -1.0)


def wide(random):
    """Two clouds that hardly touch: few rows matter, and no box is small."""
    y = np.where(random.random(2000) < 0.5, 1.0, -1.0)
    X = random.normal(size=(2000, 30))
    X[:, 0] += 2 * y
    return X, y


def hopeless(random):
    """Classes that overlap: most rows matter."""
    X = random.normal(size=(2000, 5))
    return X, np.where(X[:, 0] + random.normal(size=2000) > 0, 1.0, -1.0)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The stores, of which tests get copies; that of tight clusters has an index."""
    folder, random = tmp_path_factory.mktemp("made"), np.random.default_rng(4)
    for rows in (tight, wide, hopeless):
        library.convert(iter([rows(random)]), folder / f"{rows.__name__}.store")
    library.build_index(folder / "tight.store", "boxes")
    return folder


@pytest.fixture
def stores(made, tmp_path):
    for store in made.iterdir():
        shutil.copytree(store, tmp_path / store.name)
    return tmp_path


@pytest.fixture
def bare(stores):
    shutil.rmtree(stores / "tight.store" / "index-boxes")
    return "tight.store"


@pytest.fixture
def large(monkeypatch):
    """Stores count as large whatever their size."""
    monkeypatch.setattr("beeline.training.indexing.SMALL", 0)
    monkeypatch.setattr("beeline.cli.input.learning._WORTH_A_WORD", 0)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestIndex:
    @pytest.mark.parametrize("kind", ["boxes", "chunks"])
    def test_of_a_kind(self, quickly, bare, stores, kind):
        said = done_well(quickly("index", bare, "--kind", kind))
        assert re.fullmatch(
            rf"tight\.store: {kind}: \d+ leaves, [\d.]+ kB \(\d\.\d\d of the rows\), built in \d\.\d s\n", said
        )
        assert names(stores / bare) == [f"index-{kind}", "manifest.json", "part-00000.arrow"]

    def test_auto_takes_what_should_pay_and_says_why(self, quickly, bare):
        said = done_well(quickly("index", bare))
        assert "tight.store: boxes: " in said
        assert re.search(r"; chosen because of a sample of the rows \d+ % surely do not matter by boxes", said)
        said = done_well(quickly("index", "wide.store"))
        assert "wide.store: chunks: " in said

    def test_auto_builds_none_that_would_not_pay(self, quickly, stores):
        said = done_well(quickly("index", "hopeless.store"))
        assert said.startswith("hopeless.store: no index would pay, since of a sample of the rows ")
        assert said.endswith("; name a --kind to build one nevertheless\n")
        facts = json.loads(done_well(quickly("index", "hopeless.store", "--json")))
        assert facts["kind"] is None
        assert names(stores / "hopeless.store") == ["manifest.json", "part-00000.arrow"]
        assert "hopeless.store: chunks: " in done_well(quickly("index", "hopeless.store", "--kind", "chunks"))

    def test_as_json(self, quickly, bare, stores):
        options = ("--kind", "boxes", "--leaf-rows", "9", "--seed", "3", "--json")
        facts = json.loads(done_well(quickly("index", bare, *options)))
        assert (facts["path"], facts["kind"], facts["chosen_because"]) == (bare, "boxes", None)
        assert (facts["settings"]["leaf_rows"], facts["settings"]["seed"]) == (9, 3)
        assert facts["leaves"] >= 2000 / 9
        assert facts["seconds"] > 0
        index = library.index.open_index(library.open_store(stores / bare), "boxes")
        assert (facts["bytes"], facts["leaves"]) == (index.nbytes, index.n_leaves)

    def test_in_little_memory(self, quickly, bare, stores):
        """Rows are spread over files on the way, of which nothing is left."""
        done_well(quickly("index", bare, "--kind", "boxes", "--memory", "20K"))
        assert not any(path.is_dir() for path in (stores / bare / "index-boxes").iterdir())
        index = library.index.open_index(library.open_store(stores / bare), "boxes")
        index.verify()
        assert sorted(index.order()) == list(range(2000))

    def test_replaces_one_of_its_kind(self, quickly, stores):
        before = json.loads(done_well(quickly("info", "tight.store", "--json")))["indexes"]
        done_well(quickly("index", "tight.store", "--kind", "chunks"))
        done_well(quickly("index", "tight.store", "--kind", "boxes", "--leaf-rows", "5"))
        after = json.loads(done_well(quickly("info", "tight.store", "--json")))["indexes"]
        assert [found["kind"] for found in after] == ["boxes", "chunks"]
        assert after[0]["leaves"] > before[0]["leaves"]
        assert not [name for name in names(stores / "tight.store") if name.startswith(".")]

    def test_a_bar_on_a_terminal_only(self, terminal, beeline, bare):
        seen = terminal("index", bare, "--kind", "boxes")
        assert seen.returncode == 0
        assert re.search(r"ordering.*━.*100 %\s+2\.0k rows", seen.screen, re.DOTALL)
        done = beeline("index", bare, "--kind", "boxes")
        assert "━" not in done_well(done)
        assert "\x1b" not in done.stdout

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["nowhere.store"], 1, "nowhere.store does not exist; there is no store to open"),
            (["."], 1, ". is not a beeline store: it has no manifest.json"),
            (["tight.store", "--memory", "lots"], 2, "'lots' is not a size"),
            (["hopeless.store", "--memory", "0"], 2, "a size must be positive"),
        ],
    )
    def test_given_wrongly(self, quickly, stores, arguments, code, words):
        assert words in one_line(quickly("index", *arguments), code)

    @pytest.mark.parametrize(
        ("option", "words"),
        [(("--kind", "trees"), "'trees' is not one of 'auto', 'boxes', 'chunks'"), (("--leaf-rows", "0"), "x>=1")],
    )
    def test_bad_options(self, quickly, stores, option, words):
        done = quickly("index", "tight.store", *option)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr

    def test_a_folder_that_cannot_be_written(self, quickly, bare, stores, monkeypatch):
        def refuse(*_, **__):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(Path, "mkdir", refuse)  # a real one does not stop the superuser
        error = one_line(quickly("index", bare, "--kind", "boxes"), 1)
        assert "index-boxes cannot be written: Permission denied; choose a folder you may write to" in error
        assert names(stores / bare) == ["manifest.json", "part-00000.arrow"]


class TestInfo:
    def test_shows_what_an_index_is(self, quickly, stores):
        (line,) = (line for line in done_well(quickly("info", "tight.store")).splitlines() if line.startswith("index"))
        assert re.fullmatch(
            r"index +boxes: \d+ leaves, [\d.]+ kB \(\d\.\d\d of the rows\), built in \d\.\d s", line.rstrip()
        )
        facts = json.loads(done_well(quickly("info", "tight.store", "--json")))
        assert {"kind", "bytes", "leaves", "chunks", "seconds", "settings"} <= set(facts["indexes"][0])
        assert json.loads(done_well(quickly("info", "wide.store", "--json")))["indexes"] == []

    def test_says_why_one_cannot_be_used(self, quickly, stores):
        (stores / "tight.store" / "index-boxes").rename(stores / "wide.store" / "index-boxes")
        assert "is the index of other rows than wide.store holds now" in " ".join(
            done_well(quickly("info", "wide.store")).split()
        )
        (found,) = json.loads(done_well(quickly("info", "wide.store", "--json")))["indexes"]
        assert found["problem"].endswith("build it again by `beeline index`")


class TestTraining:
    def test_by_name(self, quickly, stores):
        facts = json.loads(
            done_well(quickly("train", "tight.store", "-o", "a", "--loss", "hinge", "--solver", "indexed", "--json"))
        )
        assert facts["report"]["solver"] == "indexed"
        assert facts["report"]["passes"] < 1
        done_well(quickly("train", "tight.store", "-o", "b", "--loss", "hinge", "--tol", "1e-6"))
        a, b = (Model.load(stores / name) for name in "ab")
        assert a.report.objective == pytest.approx(b.report.objective, rel=1.1e-4)

    def test_a_loss_that_is_cut_off_in_given_memory(self, quickly, stores, large):
        done = quickly("train", "tight.store", "-o", "m", "--loss", "ramp", "--solver", "indexed", "--memory", "400M")
        assert re.fullmatch(r"[\d.]+ kB at [\d.]+ [kMG]B/s: \d\.\d s a pass\n", done_with_note(done))
        assert "indexed: ended without a certificate" in done.stdout
        assert "Ramp(s=1.0) is not convex" in done.stdout

    @pytest.mark.parametrize(
        ("pays", "solver", "words"),
        [
            (1.0, "indexed", "of the rows have to be read, which is what is done"),
            (0.0, "dual_cd", "of the rows have to be read, so that all rows are read instead"),
        ],
    )
    def test_auto_says_what_it_does_with_an_index(self, quickly, stores, large, monkeypatch, pays, solver, words):
        monkeypatch.setattr("beeline.training.indexing._PAYS", pays)
        done = quickly("train", "tight.store", "-o", "m", "--loss", "hinge")
        assert done.returncode == 0
        a_pass, index = done.stderr.splitlines()
        assert a_pass.endswith(" s a pass")
        assert re.fullmatch(rf"beeline: note: by the index of boxes some [\d.]+ % {words}", index)
        assert done.stdout.splitlines()[1].startswith(f"{solver}: ")

    def test_auto_says_nothing_of_small_stores(self, quickly, stores):
        assert "indexed" not in done_well(quickly("train", "tight.store", "-o", "m", "--loss", "hinge"))

    def test_a_search_for_the_best_strength(self, quickly, stores, large, monkeypatch):
        """Through the index too, which is said once."""
        monkeypatch.setattr("beeline.training.indexing._PAYS", 1.0)
        options = ("--C-min", "0.1", "--C-max", "0.4", "--folds", "2", "--json")
        done = quickly("select", "tight.store", "-o", "m", "--loss", "hinge", *options)
        assert done.returncode == 0, done.stderr
        assert [line.endswith("which is what is done") for line in done.stderr.splitlines()] == [False, True]
        assert min(point["score"] for point in json.loads(done.stdout)["curve"]) > 0.9
        assert Model.load(stores / "m").report.solver == "indexed"

    def test_sets_of_labels(self, quickly, tmp_path):
        X = np.random.default_rng(0).normal(size=(300, 3))
        lines = (
            ",".join(str(k) for k in range(3) if x[k] > 0) + "".join(f" {j}:{v:.3f}" for j, v in enumerate(x, 1))
            for x in X
        )
        (tmp_path / "sets.svm").write_text("\n".join(lines) + "\n")
        done_well(quickly("convert", "sets.svm", "sets.store", "--multilabel"))
        done_well(quickly("index", "sets.store"))
        said = done_well(quickly("train", "sets.store", "-o", "m", "--loss", "multilabel_hinge", "--solver", "indexed"))
        assert "indexed: of 3 problems" in said


class TestRefusals:
    TRAIN = ("-o", "m", "--loss", "hinge", "--solver", "indexed")

    def test_no_index(self, quickly, stores):
        error = one_line(quickly("train", "wide.store", *self.TRAIN), 1)
        assert "wide.store has no index, which the solver 'indexed' needs; build one by `beeline index`" in error

    def test_a_loss_to_which_all_rows_matter(self, quickly, stores):
        error = one_line(quickly("train", "tight.store", "-o", "m", "--solver", "indexed"), 2)
        assert "the solver 'indexed' needs a hinge or an ε-insensitive loss" in error

    @pytest.mark.parametrize("solver", ["indexed", "auto"])
    def test_an_index_of_other_rows(self, quickly, stores, large, solver):
        (stores / "tight.store" / "index-boxes").rename(stores / "wide.store" / "index-boxes")
        done = quickly("train", "wide.store", "-o", "m", "--loss", "hinge", "--solver", solver)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            "beeline: error: wide.store/index-boxes is the index of other rows than wide.store holds now; build it "
            "again by `beeline index`"
        )
        assert not (stores / "m").exists()

    @pytest.mark.parametrize("file", ["index.json", "manifest.json", "leaf_rows.npy", "part-00000.arrow"])
    @pytest.mark.parametrize("damage", ["shorter", "flipped", "missing"])
    def test_a_damaged_index(self, quickly, stores, file, damage):
        path = stores / "tight.store" / "index-boxes" / file
        content = path.read_bytes()
        path.unlink()
        if damage != "missing":
            path.write_bytes(content[:-9] if damage == "shorter" else bytes(b ^ 1 for b in content))
        error = one_line(quickly("train", "tight.store", *self.TRAIN), 1)
        if (file, damage) == ("index.json", "missing"):
            assert "tight.store has no index" in error
        else:
            assert file in error
        done_well(quickly("index", "tight.store", "--kind", "boxes"))
        done_well(quickly("train", "tight.store", *self.TRAIN))

    def test_folds_that_scale_the_features_anew(self, quickly, stores):
        X, y = tight(np.random.default_rng(0))
        np.savetxt(stores / "rows.csv", np.column_stack([y, X]), delimiter=",", header="y,a,b,c,d", comments="")
        done_well(quickly("convert", "rows.csv", "scaled.store", "--label", "y", "--scale", "standard"))
        done_well(quickly("index", "scaled.store", "--kind", "boxes"))
        done_well(quickly("train", "scaled.store", *self.TRAIN))
        error = one_line(quickly("train", "scaled.store", *self.TRAIN, "--C", "auto"), 2)
        assert "each fold scales the features by its own rows" in error
        assert "convert the source without --scale, or take another solver" in error
