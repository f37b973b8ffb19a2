"""Thought details: OpenRouter's `reasoning_details`, put together from the pieces of a stream, and as opaque state. Pure.

    {"type": "reasoning.text", "text": …, "signature": …, "index": 0}
    {"type": "reasoning.summary", "summary": …, "index": 0}
    {"type": "reasoning.encrypted", "data": …, "id": …, "index": 0}

Texts of a row come in pieces, a signature with the last of them. Each row is kept as it is, because whoever gave it wants
it back unchanged; rows without a signature or data prove nothing, and are kept beside others only.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.core.generation.opaque import Opaque

ISSUER: Final = "openrouter"
DETAIL: Final = "detail"
_TEXTS: Final = ("text", "summary", "data")
"""Members that come in pieces."""
_PROOFS: Final = ("signature", "data")
_DETAILS_MAX: Final = 1_024
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def shown_text(detail: Mapping[str, Any]) -> str:
    """Return the text of a row that a reader may see; "" for none."""
    for name in ("text", "summary"):
        value = detail.get(name)
        if isinstance(value, str):
            return value
    return ""


class ThoughtDetails:
    """Rows of one thought."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, details: Iterable[Mapping[str, Any]]) -> None:
        """Take the rows of a chunk; pieces of one row have its index and type."""
        for detail in details:
            key = (repr(detail.get("index")), repr(detail.get("type")))
            row = self._rows.get(key)
            if row is not None:
                _join(row, detail)
            elif len(self._rows) < _DETAILS_MAX:
                self._rows[key] = dict(detail)

    def take(self) -> list[Opaque]:
        """Return the rows as opaque state, and forget them; nothing if none of them proves anything."""
        rows, self._rows = list(self._rows.values()), {}
        if not any(row.get(name) for row in rows for name in _PROOFS):
            return []
        return [Opaque(ISSUER, DETAIL, _encode(row).decode(), _id(row)) for row in rows]


def detail_rows(opaque: Sequence[Opaque]) -> list[dict[str, Any]]:
    """Return the rows that are in opaque state, as they came."""
    rows = [_decode(one.data) for one in opaque if one.issuer == ISSUER and one.kind == DETAIL]
    return [row for row in rows if isinstance(row, dict)]


def as_opaque(row: Mapping[str, Any]) -> Opaque:
    """Return a row that came back, as opaque state."""
    return Opaque(ISSUER, DETAIL, _encode(row).decode(), _id(row))


def _join(row: dict[str, Any], detail: Mapping[str, Any]) -> None:
    for name, value in detail.items():
        known = row.get(name)
        if name in _TEXTS and isinstance(known, str) and isinstance(value, str):
            row[name] = known + value
        elif value is not None:
            row[name] = value


def _id(row: Mapping[str, Any]) -> str:
    found = row.get("id")
    return found if isinstance(found, str) else ""
