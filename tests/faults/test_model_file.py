"""Model files that were cut, altered, killed while being written, or never were model files."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from beeline.data.files.atomic import replacing
from beeline.data.recipe.recipe import Recipe
from beeline.exceptions import CorruptModelError, ModelError, ModelVersionError, SourceError
from beeline.model import Model
from beeline.model import file as model_file

MODEL = Model(
    weights=np.random.default_rng(0).standard_normal((5, 3)),
    intercepts=np.zeros(3),
    classes=np.array(["a", "b", "c"]),
    loss="logistic",
    link="softmax",
    feature_names=list("vwxyz"),
    recipe=Recipe(5),
)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    MODEL.save(path)
    return path.read_bytes()


def load_bytes(folder, content):
    path = folder / "altered"
    path.write_bytes(content)
    return Model.load(path)


def test_every_truncation_is_noticed(tmp_path, content):
    for length in range(0, len(content), 3):
        with pytest.raises(ModelError) as caught:
            load_bytes(tmp_path, content[:length])
        assert "\n" not in str(caught.value)


def test_every_flipped_bit_is_noticed(tmp_path, content):
    for bit in range(8 * len(content)):
        altered = bytearray(content)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ModelError):
            load_bytes(tmp_path, bytes(altered))


@given(data=st.data())
def test_garbage_within_is_noticed(tmp_path_factory, content, data):
    start = data.draw(st.integers(0, len(content) - 1))
    garbage = data.draw(st.binary(min_size=1, max_size=40))
    altered = content[:start] + garbage + content[start + len(garbage) :]
    if altered[: len(content)] != content:
        with pytest.raises(ModelError):
            load_bytes(tmp_path_factory.getbasetemp(), altered)


def test_altered_weights_are_called_so(tmp_path, content):
    altered = bytearray(content)
    altered[-1] ^= 1
    with pytest.raises(CorruptModelError, match="truncated or altered"):
        load_bytes(tmp_path, bytes(altered))


@pytest.mark.parametrize(
    "content",
    [b"", b"1 1:0.5\n", b"\x00" * 100, pickle.dumps({"a": 1}), b"\xff" * 9, b"PK\x03\x04" + bytes(50)],
)
def test_a_foreign_file(tmp_path, content):
    with pytest.raises(ModelError, match=r"is not a beeline model$"):
        load_bytes(tmp_path, content)


def test_a_model_of_liblinear_s(tmp_path):
    with pytest.raises(ModelError, match=r"read it by Model\.from_liblinear"):
        load_bytes(tmp_path, b"solver_type L2R_LR\n")


def test_another_safetensors_file(tmp_path):
    save_file({"weights": np.zeros(3)}, tmp_path / "other", {"format": "pt"})
    with pytest.raises(ModelError, match="safetensors file but not a beeline model"):
        Model.load(tmp_path / "other")


def test_a_newer_version(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "VERSION", 2)
    MODEL.save(tmp_path / "m")
    monkeypatch.undo()
    with pytest.raises(ModelVersionError, match=r"version 2 .* update beeline"):
        Model.load(tmp_path / "m")


@pytest.mark.parametrize("change", [{"n_features": 10**15}, {"classes": None}, {"n_outputs": -1}, {"settings": 3}])
def test_a_file_that_contradicts_itself(tmp_path, monkeypatch, change):
    describe = model_file._describe
    monkeypatch.setattr(model_file, "_describe", lambda model: describe(model) | change)
    MODEL.save(tmp_path / "m")
    with pytest.raises(ModelError, match=r"m (is not a valid model|needs more memory)"):
        Model.load(tmp_path / "m")


def test_a_missing_file(tmp_path):
    with pytest.raises(SourceError, match="nothing cannot be read: no such file"):
        Model.load(tmp_path / "nothing")


def test_a_folder(tmp_path):
    with pytest.raises(SourceError, match="is a directory"):
        Model.load(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(SourceError, match="cannot be written"):
        MODEL.save(tmp_path / "no" / "m")


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    MODEL.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(SourceError, match="no space left"):
        MODEL.save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_an_error_of_another_file_is_not_blamed_on_this_one(tmp_path):
    with pytest.raises(FileNotFoundError, match="rows"), replacing(tmp_path / "m"):
        (tmp_path / "rows").read_bytes()
    assert list(tmp_path.iterdir()) == []


_SAVING = """
import sys, numpy as np
from beeline.model import Model
rng = np.random.default_rng(0)
model = Model(weights=rng.standard_normal((400_000, 5)), intercepts=np.zeros(5), classes=np.arange(5), loss="hinge")
print("ready", flush=True)
while True:
    model.save(sys.argv[1])
"""


def test_a_kill_while_saving_leaves_a_whole_file(tmp_path):
    MODEL.save(tmp_path / "m")
    for delay in (0.0, 0.05, 0.13):
        process = subprocess.Popen([sys.executable, "-c", _SAVING, str(tmp_path / "m")], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert Model.load(tmp_path / "m").n_features in (5, 400_000)
