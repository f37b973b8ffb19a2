"""Hosted tools: types of tools that providers execute themselves, and that no engine here can.

Such a tool has a type and options, but no definition that a model could be shown. Clients send them with
every request, whoever answers it. So they are left out of the prompt and named in the answer's headers;
only a tool choice that insists on one is refused.
"""

import re
from typing import TYPE_CHECKING, Final

from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.request_draft import Draft

if TYPE_CHECKING:
    from smg_node.core.generation.tool_serving import BuiltinKind

HOSTED: Final = frozenset(
    {
        "apply_patch", "code_interpreter", "computer", "computer_use", "computer_use_preview",
        "file_search", "image_generation", "local_shell", "mcp", "programmatic_tool_calling", "shell",
        "tool_search", "web_search", "web_search_preview",
    }
)  # fmt: skip
"""The types of OpenAI's APIs, without the date that some spellings end with."""
_BUILTINS: Final[dict[str, "BuiltinKind"]] = {
    "web_search": "web_search",
    "web_search_preview": "web_search",
    "file_search": "file_search",
    "code_interpreter": "code_interpreter",
    "image_generation": "image_generation",
    "tool_search": "tool_search",
}
_DATE: Final = re.compile(r"_\d{4}_\d{2}_\d{2}\Z")
_DEFINITIONS: Final = ("function", "parameters", "input_schema", "tools")
"""Whatever has one of these is not a hosted tool, but one whose type is misspelled."""


def is_hosted(kind: str) -> bool:
    """Whether this is the type of a hosted tool."""
    return _DATE.sub("", kind) in HOSTED


def builtin_named(kind: str) -> "BuiltinKind | None":
    """Return the built-in tool of this type, whatever its spelling; None where this node has no such tool."""
    return _BUILTINS.get(_DATE.sub("", kind))


def leave_out(draft: Draft, tool: Cursor, kind: str, served: str) -> None:
    """Leave out a tool of this type, and remember it; noted as `unsupported_tool` is one with a definition.

    A type that nobody knows is treated as an unknown parameter. `served` names the types that are served.
    """
    defined = any(tool.has(key) for key in _DEFINITIONS)
    known = is_hosted(kind)
    if not known and (defined or draft.options.unknown_parameters == "reject"):
        why = f"tools of type {quoted(kind)} are not supported; {served}"
        tool.problem("type", why, "unsupported_tool")
        return
    draft.left_out.append(kind)
    draft.ignore(f"{tool.path()}.{kind}")


def refuse_choice(choice: Cursor, key: str, kind: str) -> None:
    """Note that a tool of this type cannot be chosen, because nothing here executes it."""
    why = f"no tool of type {quoted(kind)} can be called: the engines here have none; leave it to 'auto'"
    choice.problem(key, why, "unsupported_tool")
