"""Tools as a server lists them: names, schemas, hints, and which of them are of no use here. Pure.

Descriptions and schemas are a stranger's text in a model's prompt: they are cut, cleaned of control characters, and
bounded in number. A tool that cannot be called is left out with a reason; the others are not affected.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from smg_node.mcp.failures import plain_text
from smg_node.mcp.limits import (
    DESCRIPTION_BYTES_MAX,
    LIST_TTL_MAX_S,
    SCHEMA_BYTES_MAX,
)
from smg_node.mcp.tools.mirrored_arguments import MirroredArgument, MirrorError, mirrored_in
from smg_node.mcp.wire.messages import WireError, json_value

_NAME_CHARACTERS_MAX: Final = 256


class Tool(msgspec.Struct, frozen=True):
    """One tool. `input_schema` is a JSON Schema as it came; `annotations` are the server's hints."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = {}
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = {}
    mirrored: tuple[MirroredArgument, ...] = ()


class LeftOut(NamedTuple):
    """A tool that is not offered, and why."""

    name: str
    why: str


class ToolPage(NamedTuple):
    """One page of a list. `ttl_s` is None where the server does not say how long it holds."""

    tools: tuple[Tool, ...]
    left_out: tuple[LeftOut, ...]
    cursor: str
    ttl_s: float | None
    is_public: bool


class ToolList(NamedTuple):
    """All tools of a server, by name, and until when that is good (seconds of the caller's clock)."""

    tools: Mapping[str, Tool]
    left_out: tuple[LeftOut, ...]
    good_until_s: float
    is_public: bool = False


class _Page(msgspec.Struct, rename="camel"):
    tools: list[Raw]
    next_cursor: str | None = None
    ttl_ms: int | float | None = None
    cache_scope: Any = None


class _Listed(msgspec.Struct, rename="camel"):
    name: str
    description: str | None = None
    input_schema: Raw = Raw(b"{}")
    output_schema: Raw = Raw(b"null")
    annotations: dict[str, Any] | None = None
    execution: Any = None


_decode_page: Final = msgspec.json.Decoder(_Page).decode
_decode_tool: Final = msgspec.json.Decoder(_Listed).decode


def read_page(result: Raw, *, modern: bool, by_http: bool) -> ToolPage:
    """Return a page of `tools/list`; WireError for what is none."""
    try:
        page = _decode_page(result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"no list of tools: {error}") from error
    tools: list[Tool] = []
    left_out: list[LeftOut] = []
    for place, listed in enumerate(page.tools):
        read = _read_tool(listed, place, modern=modern, by_http=by_http)
        if isinstance(read, Tool):
            tools.append(read)
        else:
            left_out.append(read)
    ttl_s = None if page.ttl_ms is None else min(max(page.ttl_ms / 1000, 0.0), LIST_TTL_MAX_S)
    is_public = page.cache_scope == "public"
    return ToolPage(tuple(tools), tuple(left_out), page.next_cursor or "", ttl_s, is_public)


def _read_tool(listed: Raw, place: int, *, modern: bool, by_http: bool) -> Tool | LeftOut:
    try:
        read = _decode_tool(listed)
        if len(read.input_schema) > SCHEMA_BYTES_MAX:
            return LeftOut(_shown(read), f"its schema has more than {SCHEMA_BYTES_MAX} bytes")
        schema = json_value(read.input_schema)
        fits = len(read.output_schema) <= SCHEMA_BYTES_MAX
        output = json_value(read.output_schema) if fits else None
    except (WireError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return LeftOut(
            f"#{place + 1}", "it is no tool: name and schema are missing or of another type"
        )
    if not read.name or len(read.name) > _NAME_CHARACTERS_MAX or not read.name.isprintable():
        return LeftOut(_shown(read), "its name cannot be used")
    if not isinstance(schema, dict):
        return LeftOut(read.name, "its schema is no object")
    if not modern and _needs_a_task(read.execution):
        return LeftOut(read.name, "it runs as a task only, of the experiment of 2025-11-25")
    try:
        mirrored = mirrored_in(schema) if modern and by_http else ()
    except MirrorError as error:
        return LeftOut(read.name, str(error))
    return Tool(
        read.name,
        _cut(read.description or ""),
        schema,
        output if isinstance(output, dict) else None,
        read.annotations or {},
        mirrored,
    )


def _shown(read: _Listed) -> str:
    return plain_text(read.name, _NAME_CHARACTERS_MAX)


def _needs_a_task(execution: Any) -> bool:
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def _cut(description: str) -> str:
    """Return at most so many bytes of a description, whole characters, no control characters."""
    plain = plain_text(description, DESCRIPTION_BYTES_MAX)
    return plain.encode("utf-8", "replace")[:DESCRIPTION_BYTES_MAX].decode("utf-8", "ignore")
