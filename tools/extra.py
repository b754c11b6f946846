"""Print the requirements of an extra of this package, so that they can be installed without building it anew."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
print("\n".join(requirement.replace(" ", "") for requirement in project["optional-dependencies"][sys.argv[1]]))
