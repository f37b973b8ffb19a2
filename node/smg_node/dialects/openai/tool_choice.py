"""Which tools must, may or must not be called.

Until this release has parsers for what models print when they call a tool, nothing can promise that a
call happens, or that only one does. So `none` and `auto` are honoured and every stronger wish is
refused; the model still reads the declared tools in its prompt.
"""

from smg_node.core.cursor import Cursor, kind_of, quoted
from smg_node.dialects.openai.draft import Draft

_FORCED = (
    "is not supported yet: tool calls cannot be enforced, only 'none' and 'auto' can be honoured"
)


def take_tool_choice(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tool_choice`; anything but `none` needs tools."""
    _take_choice(draft, cursor, key, "tools", ("required",))


def take_function_call(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the legacy `function_call`; anything but `none` needs functions."""
    _take_choice(draft, cursor, key, "functions", ())


def _take_choice(
    draft: Draft, cursor: Cursor, key: str, tools_key: str, forced: tuple[str, ...]
) -> None:
    choice = cursor.values[key]
    if choice == "none":
        draft.prompt["tools_hidden"] = True
    elif choice == "auto":
        if not cursor.values.get(tools_key):
            cursor.problem(key, f"is only allowed when {tools_key} are given")
    else:
        refuse_forced(cursor, key, forced)


def refuse_forced(cursor: Cursor, key: str, forced: tuple[str, ...] = ("required",)) -> None:
    """Note that a choice other than `none` and `auto` cannot be honoured, or is none at all."""
    choice = cursor.values[key]
    if type(choice) is dict or choice in forced:
        cursor.unsupported(key, _FORCED)
    elif type(choice) is str:
        cursor.problem(
            key, f"must be one of 'none', 'auto', 'required' or an object; got {quoted(choice)}"
        )
    else:
        cursor.problem(key, f"must be a string or an object, not {kind_of(choice)}", "invalid_type")


def take_parallel(_draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `parallel_tool_calls`; false is only harmless where no call can happen at all."""
    if (
        cursor.flag(key) is False
        and (cursor.values.get("tools") or cursor.values.get("functions"))
        and cursor.values.get("tool_choice") != "none"
    ):
        cursor.unsupported(key, "false is not supported yet: the number of calls cannot be limited")
