"""Train, keep and use a model by beeline as it is installed: `python tools/try_wheel.py examples/data`.

What a wheel is tried with, in an environment that has nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import beeline


def main(data: Path) -> None:
    """Do it in Python, and by the command that was installed beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = beeline.read(data / "covtype-train.csv.gz", label="Cover_Type", scale="minmax")
        model = beeline.LogisticRegression(C=10).fit(train)
        model.model_.save(folder / "forest.model")
        accuracy = model.score(beeline.read(data / "covtype-test.csv.gz", recipe=train.recipe))
        command = [str(Path(sys.executable).with_name("beeline")), "evaluate", str(folder / "forest.model"), "--json"]
        said = subprocess.run([*command, str(data / "covtype-test.csv.gz")], check=True, stdout=subprocess.PIPE).stdout
    print(f"beeline {beeline.__version__}, {Path(beeline.__file__).parent}")
    print(f"accuracy {accuracy:.4f}; {model.report_.sentence}")
    found = json.loads(said)["measures"]["accuracy"]
    if abs(found - accuracy) > 1e-9:
        sys.exit(f"the command found an accuracy of {found}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
