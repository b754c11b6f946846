"""The wheel: its size, and start-up from it, in an environment that has nothing else.

Claims: at most 4 MB, 12 MB installed; `import beeline` takes at most 1.5 times, `beeline --help` at most 2.5 times as
long as `import numpy`. `--write` puts the table into docs/benchmarks.md.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from startup import CLAIMS, PEER, measure

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
LARGEST = {"the wheel, MB": 4.0, "installed, MB": 12.0}
_TABLE = re.compile(r"(?<=\n)## The wheel\n.*?(?=\n## )", re.DOTALL)


def build(folder: Path) -> Path:
    """Build a wheel by what this environment has; kernels that were built before are taken again."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def install(wheel: Path, folder: Path) -> str:
    """Install it into a new environment, with what it depends on; gives the interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "-qq", "install", "--only-binary", ":all:", str(wheel)], check=True)
    return python


def figures(wheel: Path, folder: Path, repeats: int) -> dict[str, tuple[float, float]]:
    """What was measured and what is claimed, by name."""
    python = install(wheel, folder)
    where = subprocess.run(
        [python, "-c", "import beeline; print(beeline.__path__[0])"], check=True, capture_output=True, text=True
    ).stdout.strip()
    files = [path for path in Path(where).rglob("*") if path.is_file() and path.suffix != ".pyc"]
    sizes = {
        "the wheel, MB": wheel.stat().st_size / 1e6,
        "installed, MB": sum(path.stat().st_size for path in files) / 1e6,
    }
    medians = measure(repeats, python)
    found = {name: (size, LARGEST[name]) for name, size in sizes.items()}
    ratios = {name: (medians[name] / medians[PEER], most) for name, most in CLAIMS.items()}
    return found | {f"`{name}`, against `{PEER}`": pair for name, pair in ratios.items()}


def section(found: dict[str, tuple[float, float]], tag: str) -> str:
    """The part of docs/benchmarks.md."""
    rows = [f"| {name} | {value:.2f} | at most {most:g} |" for name, (value, most) in found.items()]
    about = f"`benchmarks/wheel.py --write`: `{tag}`, in a new environment."
    return "\n".join(["## The wheel", "", about, "", "| | measured | claim |", "|---|---|---|", *rows]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks.md")
    parser.add_argument("--wheel", type=Path, help="a wheel that was built; otherwise one is built")
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        wheel = arguments.wheel or build(Path(name))
        found = figures(wheel, Path(name) / "environment", arguments.repeats)
    text = section(found, wheel.stem.split("-", 2)[2])
    print(text)
    if arguments.write:
        PAGE.write_text(_TABLE.sub(lambda _: text, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    broken = [name for name, (value, most) in found.items() if value > most]
    print(*(f"BROKEN: {name}" for name in broken), sep="\n")
    return int(arguments.check and bool(broken))


if __name__ == "__main__":
    sys.exit(main())
