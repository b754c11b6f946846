"""The same terms for everybody who is timed in this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from beeline.kernels import set_num_threads

__all__ = ["share_alike"]


def share_alike() -> None:
    """Two threads for everybody, and no confusion between benchmarks/liblinear.py and the package of its name."""
    os.environ |= {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    set_num_threads(2)
    sys.path.remove(str(Path(__file__).resolve().parents[1]))
