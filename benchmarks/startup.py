"""Start-up: `import beeline` and `beeline --help` against `import numpy`, each as a new process.

Claims: `import beeline` takes at most 1.5 times, `beeline --help` at most 2.5 times as long as `import numpy`.
Runs are interleaved and medians are compared, because the speed of a machine drifts.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

PEER = "import numpy"
CLAIMS = {"import beeline": 1.5, "beeline --help": 2.5}


def runs(python: str) -> dict[str, list[str]]:
    """What is run, by an interpreter and the command beside it."""
    command = str(Path(python).parent / "beeline")
    return {
        PEER: [python, "-c", "import numpy"],
        "import beeline": [python, "-c", "import beeline"],
        "beeline.Block": [python, "-c", "import beeline; beeline.Block"],
        "beeline --version": [command, "--version"],
        "beeline --help": [command, "--help"],
        "beeline convert --help": [command, "convert", "--help"],
    }


def measure(repeats: int, python: str = sys.executable) -> dict[str, float]:
    """Median seconds of each."""
    commands = runs(python)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken[1:]) for name, taken in times.items()}  # the first fills the caches


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    medians = measure(arguments.repeats)
    broken = 0
    print(f"{'':24} {'ms':>6} {'ratio':>6}  claim")
    for name, seconds in medians.items():
        ratio = seconds / medians[PEER]
        claim = CLAIMS.get(name)
        verdict = "" if claim is None else f"≤ {claim}  {'holds' if ratio <= claim else 'BROKEN'}"
        broken += claim is not None and ratio > claim
        print(f"{name:24} {seconds * 1e3:6.0f} {ratio:6.2f}  {verdict}")
    return int(arguments.check and broken > 0)


if __name__ == "__main__":
    sys.exit(main())
