"""Pages as a browser reads them."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br"}
LIGHT, DARK = 1, 0  # Blink's numbers of the colour schemes


def complaints(log: str) -> list[str]:
    """What a page wrote to the console: scripts' errors, and what its policy has kept from loading."""
    return [line for line in log.splitlines() if ":CONSOLE" in line]


class Page(HTMLParser):
    """What a page has, as a browser would read it; every element has to be closed where it should be."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.elements, self.rows, self.words = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append((dict(attrs).get("class"), []))
        if tag in ("td", "th"):
            self.rows[-1][1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][1][-1] += data

    def attributes(self, name: str) -> list[str]:
        return [found[name] for _, found in self.elements if name in found]

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())
