"""What is said about the memory that is left."""

import pytest

from beeline.data.core import memory

GIGABYTE = 1 << 30


@pytest.fixture
def system(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
    return tmp_path


def limit(system, most, used, of_files=0):
    (system / "memory.max").write_text(f"{most}\n")
    (system / "memory.current").write_text(f"{used}\n")
    (system / "memory.stat").write_text(f"anon 5\ninactive_anon 7\ninactive_file {of_files}\n")


def test_of_the_system(system):
    assert memory.available_memory() == 8 * GIGABYTE
    limit(system, "max", GIGABYTE)
    assert memory.available_memory() == 8 * GIGABYTE


def test_of_a_container(system):
    limit(system, 4 * GIGABYTE, 3 * GIGABYTE)
    assert memory.available_memory() == GIGABYTE
    limit(system, 4 * GIGABYTE, 3 * GIGABYTE, of_files=2 * GIGABYTE)
    assert memory.available_memory() == 3 * GIGABYTE
    limit(system, 64 * GIGABYTE, 3 * GIGABYTE)
    assert memory.available_memory() == 8 * GIGABYTE


def test_is_never_nothing(system):
    limit(system, GIGABYTE, GIGABYTE)
    assert memory.available_memory() == 64 << 20


def test_where_nothing_is_said(system):
    (system / "meminfo").unlink()
    assert memory.available_memory() >= 64 << 20
