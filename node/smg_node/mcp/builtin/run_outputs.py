"""Outputs of a run: what code printed and drew, and pictures that were made, as Responses has them. Pure.

{"type": "logs", "logs": TEXT}    {"type": "image", "url": "data:image/png;base64,…" or an https address}
"""

import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from smg_node.mcp.builtin.domains import web_address
from smg_node.mcp.builtin.found_sources import json_in
from smg_node.mcp.tools.content import cut_text
from smg_node.mcp.tools.tool_result import CallResult

PICTURES_MAX: Final = 20
Output: TypeAlias = Mapping[str, Any]
_PRINTED: Final = ("stdout", "output", "logs", "text", "result", "return_value", "stderr", "error")
_PICTURES: Final = ("images", "image", "plots", "figures", "files", "data", "outputs")
_ENCODED: Final = ("b64_json", "base64", "image_base64", "data")
_MIME: Final = ("mimeType", "mime_type", "media_type")
_MAGIC: Final = (
    ("iVBORw0KGg", "image/png"),
    ("/9j/", "image/jpeg"),
    ("UklGR", "image/webp"),
    ("R0lGOD", "image/gif"),
    ("PHN2Zy", "image/svg+xml"),
)
_DEPTH_MAX: Final = 3
_JSON_BYTES_MAX: Final = 16 << 20
"""A picture is one long string, which is read in a moment."""


def code_outputs(result: CallResult, *, bytes_max: int) -> tuple[Output, ...]:
    """Return what a run of code printed and drew: of a result in known fields those, else its content."""
    value = json_in(result.structured) if result.structured else None
    printed = list(_printed(value)) if isinstance(value, dict) else []
    if not printed:
        printed = list(_texts_of(result))
    if not printed and result.structured:
        printed = [result.structured.decode("utf-8", "replace")]
    logs = cut_text("\n".join(filter(None, printed)), bytes_max)
    shown: list[Output] = [{"type": "logs", "logs": logs}] if logs else []
    return (*shown, *pictures_in(result))


def pictures_in(result: CallResult) -> Sequence[Output]:
    """Return the pictures of a result: those of its content, else those in its JSON; at most `PICTURES_MAX`."""
    urls = [url for block in result.content if (url := _block_url(block))]
    if not urls:
        texts = [text.encode("utf-8", "replace") for text in _texts_of(result)]
        for text in (result.structured, *texts):
            urls += _urls_in(json_in(text, _JSON_BYTES_MAX), _DEPTH_MAX)
            if urls:
                break
    unique = list(dict.fromkeys(urls))[:PICTURES_MAX]
    return [{"type": "image", "url": url} for url in unique]


def size_of(output: Output) -> str:
    """Return what a picture is in words: `image/png, 12 kB`, or its address."""
    url = str(output.get("url", ""))
    head, _, encoded = url.partition(";base64,")
    if not encoded:
        return url
    size = max(0, len(encoded) * 3 // 4 - encoded[-2:].count("="))
    shown = f"{size} B" if size < 1000 else f"{round(size / 1000)} kB"
    return f"{head.removeprefix('data:')}, {shown}"


def _texts_of(result: CallResult) -> Iterator[str]:
    for block in result.content:
        resource = block.get("resource")
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            yield block["text"]
        elif isinstance(resource, dict) and isinstance(resource.get("text"), str):
            yield resource["text"]


def _printed(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is in the fields that servers of code have, in the order of `_PRINTED`."""
    outputs = value.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict):
            yield from (text for name in _PRINTED if isinstance(text := output.get(name), str))
        elif isinstance(output, str):
            yield output
    for name in _PRINTED:
        text = value.get(name)
        if isinstance(text, str):
            yield text
        elif isinstance(text, list) and text and all(isinstance(line, str) for line in text):
            yield "\n".join(text)
        elif name in ("result", "return_value") and isinstance(text, int | float):
            yield str(text)


def _block_url(block: Mapping[str, Any]) -> str:
    if block.get("type") == "image":
        return _data_url(block.get("data"), block)
    resource = block.get("resource")
    if block.get("type") == "resource" and isinstance(resource, dict):
        return _data_url(resource.get("blob"), resource)
    if block.get("type") == "resource_link" and str(block.get("mimeType")).startswith("image/"):
        return web_address(str(block.get("uri")))
    return ""


def _urls_in(value: Any, depth: int) -> list[str]:
    """Return pictures in JSON: addresses and base64 under the names that APIs of pictures have."""
    if isinstance(value, str):
        return [url] if (url := _picture_url(value)) else []
    if isinstance(value, list) and depth:
        return [url for each in value[:PICTURES_MAX] for url in _urls_in(each, depth - 1)]
    if not isinstance(value, dict) or not depth:
        return []
    for name in _ENCODED:
        if url := _data_url(value.get(name), value):
            return [url]
    if isinstance(value.get("url"), str) and (url := _picture_url(value["url"])):
        return [url]
    return [url for name in _PICTURES for url in _urls_in(value.get(name), depth - 1)]


def _picture_url(text: str) -> str:
    if text.startswith("data:image/") and ";base64," in text[:100]:
        head, _, encoded = text.partition(";base64,")
        return _data_url(encoded, {"mime_type": head.removeprefix("data:")})
    return web_address(text)


def _data_url(encoded: Any, described: Mapping[str, Any]) -> str:
    """Return a picture as an address that holds it, "" where it is none: not in base64, or of another kind."""
    if not isinstance(encoded, str) or not encoded:
        return ""
    named = next((kind for key in _MIME if isinstance(kind := described.get(key), str)), "")
    kind = named or next((kind for magic, kind in _MAGIC if encoded.startswith(magic)), "")
    if not kind.startswith("image/") or len(kind) > 40 or not kind.isprintable() or '"' in kind:
        return ""
    try:
        binascii.a2b_base64(encoded, strict_mode=True)
    except ValueError:
        return ""
    return f"data:{kind};base64,{encoded}"
