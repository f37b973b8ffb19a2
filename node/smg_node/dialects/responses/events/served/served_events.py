"""Served events: which events of items of tools that this node runs come between the first and the last. Pure.

item                    texts                          steps
mcp_call                mcp_call_arguments             in_progress · completed or failed
mcp_list_tools                                         in_progress · completed or failed
web_search_call                                        in_progress, searching, completed
file_search_call                                       in_progress, searching, completed
code_interpreter_call   code_interpreter_call_code     in_progress · interpreting, completed
image_generation_call                                  in_progress, generating, completed
all others                                             none
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script

INTERRUPTED: Final = "the node that ran it died: it may have run, and was not repeated"
"""What is said of a call whose node died before its result was known."""


class _Shape(NamedTuple):
    """Events of one type of item: the middle of those of its text, and its key; what says that a run is under way.

    `late` are keys that are known only when it is done, with what they hold before.
    """

    word: str = ""
    key: str = ""
    step: str = ""
    late: Mapping[str, Any] = {}
    fails: bool = False


_SHAPES: Final[Mapping[str, _Shape]] = {
    "mcp_call": _Shape(
        "mcp_call_arguments", "arguments", late={"output": None, "error": None}, fails=True
    ),
    "mcp_list_tools": _Shape(late={"tools": []}, fails=True),
    "web_search_call": _Shape(step="searching"),
    "file_search_call": _Shape(step="searching", late={"results": None}),
    "code_interpreter_call": _Shape(
        "code_interpreter_call_code", "code", "interpreting", {"outputs": None}
    ),
    "image_generation_call": _Shape(step="generating", late={"result": None}),
    "tool_search_call": _Shape(),
}
_LATE_ONLY: Final = ("results", "output_format", "revised_prompt", "error")
"""Keys that are not there at all before an item is done, unless they are among the `late` ones."""


def as_added(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item as it was when it was added."""
    shape = _SHAPES[values["type"]]
    kept = {
        key: shape.late.get(key, value)
        for key, value in values.items()
        if key in shape.late or key not in _LATE_ONLY
    }
    if values["type"] == "mcp_list_tools":
        return {key: value for key, value in kept.items() if key != "error"}
    action = kept.get("action")
    if type(action) is dict and "sources" in action:
        kept["action"] = {**action, "sources": []}
    if shape.key:
        kept[shape.key] = ""
    return {**kept, "status": "in_progress"}


def between(
    script: Script, place: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[NumberedEvent]:
    """Yield the events of a finished item between its first and its last; a text is one delta."""
    kind = values["type"]
    shape = _SHAPES[kind]
    if kind == "tool_search_call":
        return
    status = values.get("status")
    yield script.say(f"response.{kind}.in_progress", place)
    if shape.word:
        text = str(values.get(shape.key) or "")
        yield script.say(f"response.{shape.word}.delta", {**place, "delta": text})
        yield script.say(f"response.{shape.word}.done", {**place, shape.key: text})
    if shape.step and status in ("completed", "failed"):
        yield script.say(f"response.{kind}.{shape.step}", place)
    failed = bool(values.get("error")) if kind == "mcp_list_tools" else status == "failed"
    if failed and shape.fails:
        yield script.say(f"response.{kind}.failed", place)
    elif not failed and status in (None, "completed"):
        yield script.say(f"response.{kind}.completed", place)


def interrupted(values: dict[str, Any]) -> str:
    """End an item whose node died: return the word of its last step, "" for none, and put into it what is known.

    A call whose arguments are whole may have been sent: it has failed, and says so.
    """
    kind = values["type"]
    if kind == "mcp_call":
        values["status"] = "failed"
        values["error"] = {"type": "http_error", "code": 502, "message": INTERRUPTED}
        return "failed"
    if kind == "image_generation_call":
        values["status"] = "failed"
    elif kind == "mcp_list_tools":
        values["error"] = "the node that asked died before the server had answered"
        return "failed"
    elif "status" in values:
        values["status"] = "incomplete"
    return ""
