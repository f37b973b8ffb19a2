"""Content of a tool's result as models and people are shown it: one text, or a list of parts. Pure."""

import binascii
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from smg_node.mcp.tools.tool_result import CallResult

_BINARY: Final = ("image", "audio")
_ESCAPE: Final = re.compile(
    r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|\\u([0-9a-f]{4})|\\.", re.IGNORECASE | re.DOTALL
)


class ContentPart(NamedTuple):
    """One part: a text, or an image or audio whose data are in base64."""

    kind: str
    text: str = ""
    mime_type: str = ""
    base64_data: str = ""


def parts_of(
    result: CallResult, *, takes: Collection[str] = (), bytes_max: int
) -> list[ContentPart]:
    """Return a result in parts: images and audio only where `takes` names them, else a text that says what was there.

    Texts that follow each other are one, joined by line feeds, and all texts together have at most `bytes_max` bytes.
    """
    parts: list[ContentPart] = []
    for part in _parts(result, takes):
        if part.kind == "text" and parts and parts[-1].kind == "text":
            parts[-1] = ContentPart("text", f"{parts[-1].text}\n{part.text}")
        else:
            parts.append(part)
    left = bytes_max
    for place, part in enumerate(parts):
        if part.kind == "text":
            parts[place] = ContentPart("text", cut_text(part.text, left))
            left = max(0, left - len(part.text.encode("utf-8", "replace")))
    return parts


def text_of(result: CallResult, *, bytes_max: int) -> str:
    """Return a result as one text of at most `bytes_max` bytes, besides the remark on what is missing."""
    return cut_text("\n".join(part.text for part in _parts(result, ())), bytes_max)


def cut_text(text: str, bytes_max: int) -> str:
    """Return a text, or its beginning up to a line's end with a remark on how much is left out."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= bytes_max:
        return text
    kept = encoded[:bytes_max]
    line = kept.rfind(b"\n")
    # A text of one long line is cut inside it: half of the room is worth more than a whole line.
    kept = kept[:line] if line >= bytes_max // 2 else kept
    shown = kept.decode("utf-8", "ignore")
    return f"{shown}\n[… {len(encoded) - len(kept)} of {len(encoded)} bytes left out]"


def unescaped(text: str) -> str:
    """Return JSON text of the same meaning whose characters stand for themselves where they may.

    One server spells what is not ASCII as escapes in one era and not in the other, and a model reads escapes badly.
    """
    return _ESCAPE.sub(_character, text) if "\\u" in text else text


def _character(escape: re.Match[str]) -> str:
    high, low, code = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    stands = chr(int(code, 16)) if code else ""
    return stands if stands.isprintable() and stands not in ('"', "\\", "") else escape[0]


def _parts(result: CallResult, takes: Collection[str]) -> Iterator[ContentPart]:
    if not result.content and result.structured:
        yield ContentPart("text", unescaped(result.structured.decode("utf-8", "replace")))
    for block in result.content:
        yield _part(block, takes)


def _part(block: Mapping[str, Any], takes: Collection[str]) -> ContentPart:
    kind = _text(block, "type")
    if kind in _BINARY:
        return _binary(kind, block, takes)
    if kind == "text":
        return ContentPart("text", _text(block, "text"))
    if kind == "resource_link":
        return ContentPart("text", f"[{_text(block, 'name') or 'resource'}: {_text(block, 'uri')}]")
    if kind == "resource" and isinstance(inner := block.get("resource"), dict):
        if isinstance(inner.get("text"), str):
            return ContentPart("text", inner["text"])
        size = _size(_text(inner, "blob"))
        return ContentPart("text", f"[{_text(inner, 'uri')}: {_mime(inner)}, {size}]")
    return ContentPart("text", f"[content of the unknown kind {kind[:40]!r}]")


def _binary(kind: str, block: Mapping[str, Any], takes: Collection[str]) -> ContentPart:
    encoded = _text(block, "data")
    if kind in takes and _is_base64(encoded):
        return ContentPart(kind, "", _mime(block), encoded)
    return ContentPart("text", f"[{_mime(block)}, {_size(encoded)}]")


def _text(block: Mapping[str, Any], name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""


def _mime(block: Mapping[str, Any]) -> str:
    return _text(block, "mimeType")[:100] or "application/octet-stream"


def _is_base64(encoded: str) -> bool:
    try:
        binascii.a2b_base64(encoded, strict_mode=True)
    except ValueError:
        return False
    return True


def _size(encoded: str) -> str:
    """Return the size of what is in base64, as `12 kB`."""
    size = max(0, len(encoded) * 3 // 4 - encoded[-2:].count("="))
    return f"{size} B" if size < 1000 else f"{round(size / 1000)} kB"
