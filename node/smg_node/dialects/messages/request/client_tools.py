"""Client tools: tools of Anthropic's own that the client executes, as the functions that a model is shown.

A client names such a tool by type and version, and brings no schema: Anthropic's models have learnt them.
Other models are told here what they are for. Each version keeps its name, and the arguments that clients
of this version execute.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class ClientTool(NamedTuple):
    """A function that clients know how to execute."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str) -> dict[str, Any]:
    return {"type": "integer", "description": description}


_RANGE: Final = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "For view: first and last line to show, counted from 1; -1 as the last one is the end.",
}
_BASH: Final = ClientTool(
    "bash",
    "Run a command in a bash shell. The shell stays open between calls, with its folder and variables.",
    {
        "type": "object",
        "properties": {
            "command": _text("The command to run. Needed unless the shell is restarted."),
            "restart": {"type": "boolean", "description": "True to start the shell anew."},
        },
    },
)
_EDIT_FIELDS: Final[Mapping[str, Any]] = {
    "path": _text("Absolute path of a file or folder."),
    "view_range": _RANGE,
    "file_text": _text("For create: all of the text of the new file."),
    "old_str": _text("For str_replace: the text to replace; it must occur exactly once."),
    "new_str": _text("For str_replace: the text that takes its place; nothing if it is left out."),
    "insert_line": _number("For insert: the line behind which to insert; 0 is the beginning."),
}


def _editor(name: str, insert: str, *more: str) -> ClientTool:
    commands = ("view", "create", "str_replace", "insert", *more)
    fields = {
        "command": {"type": "string", "enum": list(commands), "description": "What to do."},
        **_EDIT_FIELDS,
        insert: _text("For insert: the text to insert."),
    }
    return ClientTool(
        name,
        "View, create and edit text files.",
        {"type": "object", "properties": fields, "required": ["command", "path"]},
    )


_OLD_EDITOR: Final = _editor("str_replace_editor", "new_str", "undo_edit")
_EDITOR: Final = _editor("str_replace_based_edit_tool", "insert_text")
_MEMORY: Final = ClientTool(
    "memory",
    "Keep notes in files under /memories, which later conversations can read. Look there first.",
    {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
                "description": "What to do.",
            },
            **_EDIT_FIELDS,
            "path": _text("Path of a file or folder, beginning with /memories."),
            "insert_text": _text("For insert: the text to insert."),
            "old_path": _text("For rename: the path as it is."),
            "new_path": _text("For rename: the path as it shall be."),
        },
        "required": ["command"],
    },
)

CLIENT_TOOLS: Final[Mapping[str, ClientTool]] = {
    "bash_20241022": _BASH,
    "bash_20250124": _BASH,
    "text_editor_20241022": _OLD_EDITOR,
    "text_editor_20250124": _OLD_EDITOR,
    "text_editor_20250429": _EDITOR,
    "text_editor_20250728": _EDITOR,
    "memory_20250818": _MEMORY,
}
"""Functions by the type that clients declare."""

SEEING_TOOLS: Final = ("computer_", "browser_")
"""Beginnings of the types of tools whose results are pictures."""

SERVER_TOOLS: Final = (
    "web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "mcp_toolset", "advisor_",
)  # fmt: skip
"""Beginnings of the types of tools that Anthropic's servers execute."""
