"""Item types: required fields of each, the prefix of its ids, and whether prompts render it.

An item that is not rendered is still accepted, stored and given back as it came, so that a client
may bring the history of another server.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

TYPE_CHARACTERS_MAX: Final = 64
"""Stores keep the type of an item beside its document, in a column of so many characters."""
_SLUG: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}:[A-Za-z0-9_.:-]{1,64}\Z")
_TYPES: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "an array",
    bool: "a boolean",
}


@dataclass(frozen=True, slots=True)
class ItemKind:
    """One type of item. `required` maps a key to the JSON type of its value.

    `has_status`: an item that came without a status is a completed one. `rendered`: a prompt can show it.
    """

    prefix: str
    required: Mapping[str, type] = field(default_factory=dict)
    has_status: bool = True
    rendered: bool = False


def _call(prefix: str, *, rendered: bool = True, **required: type) -> ItemKind:
    return ItemKind(prefix, {"call_id": str, **required}, rendered=rendered)


ITEM_REFERENCE: Final = "item_reference"
ADDITIONAL_TOOLS: Final = "additional_tools"
"""Declares tools from its place on; a prompt shows them with the others."""
APPROVAL_REQUEST: Final = "mcp_approval_request"
APPROVAL_RESPONSE: Final = "mcp_approval_response"

KINDS: Final[Mapping[str, ItemKind]] = {
    "message": ItemKind("msg", rendered=True),
    "reasoning": ItemKind("rs", has_status=False, rendered=True),
    "function_call": _call("fc", name=str, arguments=str),
    "function_call_output": _call("fco"),
    "custom_tool_call": _call("ctc", name=str, input=str),
    "custom_tool_call_output": _call("ctco"),
    "compaction": ItemKind("cmp", {"encrypted_content": str}, has_status=False, rendered=True),
    ITEM_REFERENCE: ItemKind("", {"id": str}, has_status=False),
    "mcp_list_tools": ItemKind("mcpl", {"server_label": str, "tools": list}, has_status=False),
    "mcp_call": ItemKind(
        "mcp", {"server_label": str, "name": str, "arguments": str}, rendered=True
    ),
    APPROVAL_REQUEST: ItemKind(
        "mcpr", {"server_label": str, "name": str, "arguments": str}, has_status=False
    ),
    APPROVAL_RESPONSE: ItemKind(
        "mcpa", {"approval_request_id": str, "approve": bool}, has_status=False
    ),
    "web_search_call": ItemKind("ws", rendered=True),
    "file_search_call": ItemKind("fs", {"queries": list}, rendered=True),
    "code_interpreter_call": ItemKind("ci", rendered=True),
    "image_generation_call": ItemKind("ig"),
    "computer_call": _call("cu"),
    "computer_call_output": _call("cuo", output=dict),
    "local_shell_call": _call("lsh", action=dict),
    "local_shell_call_output": ItemKind("lsho", {"output": str}, rendered=True),
    "shell_call": _call("sh", action=dict),
    "shell_call_output": _call("sho", output=list),
    "apply_patch_call": _call("apc", operation=dict),
    "apply_patch_call_output": _call("apco"),
    "tool_search_call": ItemKind("tsc", rendered=True),
    "tool_search_output": ItemKind("tso", {"tools": list}, rendered=True),
    ADDITIONAL_TOOLS: ItemKind("adt", {"tools": list}, has_status=False, rendered=True),
    "configuration_update": ItemKind("cfg", has_status=False),
    "program": ItemKind("prg", {"call_id": str, "code": str}, has_status=False),
    "program_output": ItemKind("prgo", {"call_id": str, "result": str}),
}
"""Every type with a name of its own. `compaction_trigger` is none of them: nothing here would compact."""

CALL_OUTPUTS: Final[Mapping[str, str]] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
}
"""What the model asked the client to do, and what the client says came of it."""

OUTPUTS: Final = frozenset(CALL_OUTPUTS.values())

SERVED_CALLS: Final = frozenset(
    {"mcp_call", "web_search_call", "file_search_call", "code_interpreter_call"}
)
"""Calls of tools that a server runs; an item has both the call and what came of it."""
SERVED: Final = SERVED_CALLS | {"image_generation_call", "tool_search_call", "mcp_list_tools"}
"""What has events of its own between its first and its last, and may be open beside later items."""
MADE: Final = frozenset(
    {
        *CALL_OUTPUTS, *SERVED_CALLS, "reasoning", "image_generation_call", "tool_search_call",
        "tool_search_output", APPROVAL_REQUEST,
    }
)  # fmt: skip
"""What a model says, beside messages, and what its calls of tools here come to."""

_SLUGGED: Final = ItemKind("ext", has_status=False)


def kind_named(name: str) -> ItemKind | None:
    """Return the type of that name; None if there is none. `vendor:anything` is opaque, and kept."""
    known = KINDS.get(name)
    if known is None and len(name) <= TYPE_CHARACTERS_MAX and _SLUG.match(name):
        return _SLUGGED
    return known


def json_type(kind: type) -> str:
    """Return the JSON type name of that kind of value, not a string, for error messages."""
    return _TYPES[kind]
