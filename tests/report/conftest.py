"""A browser that opens pages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pages import LIGHT


@pytest.fixture
def visit(browser, tmp_path):
    """Open a file in a browser without a window, network or history; gives what it printed and what it logged."""

    def run(path: Path, *options: str, scheme: int = LIGHT, query: str = "") -> tuple[str, str]:
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        command += ["--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND"]
        command += ["--enable-logging=stderr", f"--blink-settings=preferredColorScheme={scheme}", *options]
        done = subprocess.run(
            [*command, path.as_uri() + query], capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return run
