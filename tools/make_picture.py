"""Draw the picture of the README, docs/figures/against-peers.svg, from a table of docs/benchmarks.md; `make docs`.

No library draws it: the same table gives the same bytes everywhere, and one file serves light and dark.
"""

from __future__ import annotations

import statistics
import sys
from html import escape
from pathlib import Path

from site_parts.charts import Chart, bars

from beeline.plotting import COLOURS
from beeline.report.rendering import DARK_COLOURS

DOCS = Path(__file__).parent.parent / "docs"
_TITLE = "Time to train to 1e-4 above the optimum"
_ABOUT = "beeline's share of the time of others, geometric means over seven data sets"
LIBLINEAR = Chart("Training in memory", _TITLE, row="geometric mean")  # a column for each of its solvers
OTHERS = Chart("Training in memory", _TITLE, column="to 1e-4", table=1)
_WIDTH, _ROW, _TOP, _LEFT = 720, 30, 62, 240


def main(target: Path = DOCS / "figures" / "against-peers.svg") -> None:
    """Write the picture."""
    target.write_text(picture((DOCS / "benchmarks.md").read_text(encoding="utf-8")), encoding="utf-8")


def shares(benchmarks: str) -> list[tuple[str, float]]:
    """What beeline takes of each peer's time."""
    liblinear = statistics.geometric_mean(value for _, value in bars(benchmarks, LIBLINEAR))
    others = [(name.split(",")[0].split(" -")[0], value) for name, value in bars(benchmarks, OTHERS)]
    return [("LIBLINEAR", round(liblinear, 2)), *others]


def picture(benchmarks: str) -> str:
    """A bar for what each peer takes, on top of which a bar for what beeline takes."""
    shown = shares(benchmarks)
    height, full = _TOP + _ROW * len(shown) + 8, _WIDTH - _LEFT - 60
    label = f"{_TITLE}, as a share of the time of others: " + ", ".join(f"{n} {v:.2f}" for n, v in shown)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(label)}</title>",
        f"<style>{_style(COLOURS)} @media (prefers-color-scheme: dark) {{ {_style(DARK_COLOURS)} }}</style>",
        f'<rect class="sheet" width="{_WIDTH}" height="{height}" rx="12"/>',
        f'<text class="ink" x="20" y="30" style="font-size: 17px; font-weight: 600">{escape(_TITLE)}</text>',
        f'<text class="muted" x="20" y="49">{escape(_ABOUT)}</text>',
    ]
    for k, (name, value) in enumerate(shown):
        y = _TOP + _ROW * k
        lines += [
            f'<text class="ink" x="{_LEFT - 12}" y="{y + 17}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="grid" x="{_LEFT}" y="{y + 3}" width="{full}" height="20" rx="4"/>',
            f'<rect class="score" x="{_LEFT}" y="{y + 3}" width="{full * min(value, 1.0):.1f}" height="20" rx="4"/>',
            f'<text class="ink" x="{_LEFT + full + 10}" y="{y + 17}">{value:.2f}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _style(colours: dict[str, str]) -> str:
    rules = [f".{role} {{ fill: {colours[role]} }}" for role in ("sheet", "ink", "muted", "grid", "score")]
    return " ".join(["text { font: 13px system-ui, sans-serif }", *rules])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
