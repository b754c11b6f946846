"""What a test needs and does not find: skipped by default, failed where BEELINE_REQUIRE asks for it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture
def conftest(monkeypatch):
    """The shared set-up, loaded anew where BEELINE_REQUIRE has a value."""

    def load(required: str):
        monkeypatch.setenv("BEELINE_REQUIRE", required)
        spec = importlib.util.spec_from_file_location("shared_conftest", Path(__file__).parents[1] / "conftest.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def missing(conftest):
    return lambda required: conftest(required)._missing


@pytest.mark.parametrize("required", ["", "tools", "tools,other"])
def test_missing_data_skip_the_test(missing, required):
    with pytest.raises(pytest.skip.Exception, match="no rows here"):
        missing(required)("data", "no rows here")


@pytest.mark.parametrize("required", ["data", "tools,data"])
def test_required_data_fail_the_test(missing, required):
    with pytest.raises(pytest.fail.Exception, match="asks for data, but no rows here"):
        missing(required)("data", "no rows here")


def test_the_fixtures_use_it(shared_data, tool):
    assert Path(tool("sh")).exists()
    for find in (shared_data, tool):
        with pytest.raises((pytest.skip.Exception, pytest.fail.Exception), match="no-such-thing"):
            find("no-such-thing")


def test_any_chromium_will_do_but_one_there_must_be(conftest, monkeypatch):
    found = {"google-chrome": "/opt/google-chrome"}
    monkeypatch.setattr("shutil.which", found.get)
    assert conftest("browser").find_browser() == "/opt/google-chrome"
    found.clear()
    with pytest.raises(pytest.skip.Exception, match="no Chromium is installed"):
        conftest("tools").find_browser()
    with pytest.raises(pytest.fail.Exception, match="asks for browser, but no Chromium is installed"):
        conftest("tools,browser").find_browser()
