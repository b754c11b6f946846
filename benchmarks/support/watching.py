"""A command watched from outside: the memory that it takes, under a hard limit where one can be set."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outcome", "mb", "parse_size", "watch"]

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def parse_size(text: str) -> int:
    """Bytes from a text such as 64M; beeline itself is not loaded here, where memory is measured."""
    return int(text.rstrip("KMG")) * UNITS.get(text[-1], 1)


def mb(size: float) -> str:
    return f"{size / 2**20:,.0f} MB"


class ControlGroup:
    """A group of processes whose memory is limited, by either version of the kernel's control groups."""

    def __init__(self, limit: int) -> None:
        name = f"beeline-{os.getpid()}"
        old = Path("/sys/fs/cgroup/memory")
        self.old = old.is_dir()
        self.folder = (old if self.old else Path("/sys/fs/cgroup")) / name
        self.folder.mkdir()
        try:
            self._write("memory.limit_in_bytes" if self.old else "memory.max", limit)
            if not self.old:
                self._write("memory.swap.max", 0)
        except OSError:
            self.folder.rmdir()
            raise

    def _write(self, name: str, value: int) -> None:
        (self.folder / name).write_text(str(value))

    def held(self) -> int:
        """Bytes that cannot be given back: not backed by a file."""
        fields = dict(line.split() for line in (self.folder / "memory.stat").read_text().splitlines())
        return int(fields["total_rss" if self.old else "anon"])

    def peak(self) -> int | None:
        """The most that was counted at any time, page cache included."""
        file = self.folder / ("memory.max_usage_in_bytes" if self.old else "memory.peak")
        return int(file.read_text()) if file.exists() else None

    def remove(self) -> None:
        """Remove the group once the kernel has noticed that it is empty."""
        for _ in range(50):
            try:
                self.folder.rmdir()
            except OSError:
                time.sleep(0.1)
            else:
                return


@contextmanager
def control_group(limit: int) -> Iterator[ControlGroup | None]:
    """A group with that limit, or None where none can be made."""
    try:
        group = ControlGroup(limit)
    except OSError as error:
        print(f"   no limit is set, since no control group can be made here ({error})")
        yield None
        return
    try:
        yield group
    finally:
        group.remove()


@dataclass
class Outcome:
    """What was seen of a command."""

    code: int
    seconds: float
    resident: int
    held: int
    counted: int | None


def watch(command: list[str], limit: int | None, given: str = "") -> Outcome:
    """Run a command under a memory limit, or none, and measure it from outside; `given` is its standard input."""
    with nullcontext() if limit is None else control_group(limit) as group:
        if group is not None:
            enter = 'echo $$ > "$0" && exec "$@"'
            command = ["sh", "-c", enter, str(group.folder / "cgroup.procs"), *command]
        start = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert child.stdin is not None
        child.stdin.write(given)
        child.stdin.close()
        held = resident = 0
        while True:
            resident = max(resident, _peak(child.pid))
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                break
            held = max(held, group.held() if group is not None else 0)
            time.sleep(0.01)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        return Outcome(child.returncode, seconds, resident, held, group.peak() if group else None)


def _peak(pid: int) -> int:
    """The peak of a process so far. What the system says of one that has ended counts its parent, before `exec`."""
    try:
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    except OSError:
        return 0
    return int(fields.get("VmHWM", "0 kB").split()[0]) << 10
