"""Plain JSON with a checksum over itself.

The file has one line for every top-level field, in a fixed order and without spaces, so that there is one way to
write a given document and any altered byte shows.
"""

from __future__ import annotations

import json
from typing import Any

import xxhash

__all__ = ["checksum_text", "seal", "unseal"]


def seal(document: dict[str, Any]) -> bytes:
    """One line a field, the last with the checksum over the lines before it."""
    lines = [f"{_compact(key)}:{_compact(value)},\n" for key, value in document.items()]
    body = ("{\n" + "".join(lines)).encode(errors="surrogatepass")
    digest = checksum_text(xxhash.xxh3_64_intdigest(body))
    return body + f'"checksum":"{digest}"\n}}\n'.encode()


def unseal(raw: bytes) -> tuple[dict[str, Any] | None, bool]:
    """(the document without its checksum, whether it is as it was written); None where it is no such document."""
    try:
        document = json.loads(raw)
    except ValueError:
        return None, False
    if not isinstance(document, dict):
        return None, False
    document.pop("checksum", None)
    return document, seal(document) == raw


def checksum_text(checksum: int) -> str:
    """A checksum as 16 hexadecimal digits."""
    return f"{checksum:016x}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
