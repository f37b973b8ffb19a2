"""Tool server texts: servers of tools, what they offer and what came of a call, as rows and facts for people."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from smg_node.admin.views.output import draw_facts, draw_table, plain_lines
from smg_node.admin.views.value_text import format_time, format_value

SERVER_COLUMNS: Final = ("NAME", "WHERE", "AUTH", "FOR", "DEFINED BY", "TROUBLE")
_TOOL_COLUMNS: Final = ("SERVER", "TOOL", "ARGUMENTS", "HINTS", "DESCRIPTION")
_DESCRIPTION_MAX: Final = 100
_HINTS: Final = (
    ("readOnlyHint", "read-only"),
    ("idempotentHint", "idempotent"),
    ("destructiveHint", "destructive"),
)


def server_row(view: Mapping[str, Any]) -> Sequence[object]:
    """Return one server as a row of `SERVER_COLUMNS`."""
    spec = view["spec"]
    seen_by = [*spec.get("tenants", ()), *(f"key {key}" for key in spec.get("keys", ()))]
    return (
        view["name"],
        spec.get("url") or " ".join([spec.get("command", ""), *spec.get("args", ())]),
        _auth(spec),
        ", ".join(seen_by) or "all",
        _source(view),
        view["trouble"],
    )


def draw_server(view: Mapping[str, Any]) -> str:
    """Return one server as facts."""
    facts: list[tuple[str, object]] = [("name", view["name"])]
    for key, value in view["spec"].items():
        if key == "pinned":
            facts.append((key, f"{len(value)} tools"))
            continue
        plain = value if isinstance(value, dict) else format_value(value)
        facts.append((key, ", ".join(map(str, value)) if _is_words(value) else plain))
    facts += [(f"secret {name}", where) for name, where in view["secrets"].items()]
    facts += [("defined by", _source(view)), ("version", view["version"])]
    if view["time_ms"]:
        facts.append(("since", format_time(view["time_ms"])))
    if view["trouble"]:
        facts.append(("trouble", view["trouble"]))
    return draw_facts(facts)


def draw_tools(listings: Sequence[Mapping[str, Any]]) -> str:
    """Return what servers offer as one table, and below it what is left out, and what is not as it was pinned."""
    rows = [_tool_row(one["server"], tool) for one in listings for tool in one["tools"]]
    left_out = [
        plain_lines(f"left out: {one['server']}/{tool['name']}: {tool['why']}")
        for one in listings
        for tool in one["left_out"]
    ]
    changed = [
        plain_lines(
            f"{one['server']}/{tool['name']} is not as it was pinned: a run must be allowed"
        )
        for one in listings
        for tool in one["tools"]
        if tool.get("changed")
    ]
    table = draw_table(_TOOL_COLUMNS, rows, empty="There are no tools.")
    return "\n\n".join(filter(None, (table, "\n".join(left_out), "\n".join(changed))))


def outcome_text(outcome: Mapping[str, Any]) -> str:
    """Return what a tool answered, as text: a server's words must not steer the terminal."""
    parts = [_block(block) for block in outcome["content"]]
    if not parts and outcome["structured"] is not None:
        parts = [json.dumps(outcome["structured"], ensure_ascii=False)]
    return plain_lines("\n".join(parts))


def _block(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource_link":
        return f"{block.get('name', '')} {block.get('uri', '')}".strip()
    resource = block.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return str(resource["text"])
    size = len(str(block.get("data", ""))) * 3 // 4
    return f"[{block.get('mimeType', kind)}, {size} bytes]"


def _tool_row(server: str, tool: Mapping[str, Any]) -> Sequence[object]:
    described = plain_lines(tool["description"].split("\n")[0])
    if len(described) > _DESCRIPTION_MAX:
        described = described[: _DESCRIPTION_MAX - 1] + "…"
    arguments = " ".join(_arguments(tool["input_schema"]))
    words = [word for hint, word in _HINTS if tool["annotations"].get(hint) is True]
    hints = " ".join([*(["CHANGED"] if tool.get("changed") else []), *words])
    return server, plain_lines(tool["name"]), arguments, hints, described


def _arguments(schema: Mapping[str, Any]) -> Iterator[str]:
    properties, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list) else []
    for name in properties if isinstance(properties, dict) else ():
        yield plain_lines(name if name in needed else f"[{name}]")


def _auth(spec: Mapping[str, Any]) -> str:
    auth = spec.get("auth", "none")
    return str(auth["kind"] if isinstance(auth, dict) else auth)


def _source(view: Mapping[str, Any]) -> str:
    return f"the cluster, on {view['owner']}" if view["source"] == "cluster" else "its own file"


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
