"""Past answers of an assistant: one of every kind that a chat template has to show, and the
functions they call.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.request import Tool, ToolCall, Turn

_MORE: Final[Mapping[str, Mapping[str, Any]]] = {
    "array": {"items": {"type": "string"}},
    "object": {"additionalProperties": {"type": "string"}},
}
"""What some templates cannot do without."""


def _tool(name: str, **properties: str) -> Tool:
    types = {
        key: {"type": kind, "description": key, **_MORE.get(kind, {})}
        for key, kind in properties.items()
    }
    return Tool(name, f"Do {name}.", {"type": "object", "properties": types})


TOOLS: Final = (
    _tool("find_museum", city="string", max="integer", open="boolean", tags="array", more="object"),
    _tool("get_tide", port="string"),
    _tool("list_rooms"),
    _tool("write_file", path="string", text="string"),
)
"""Declared as plainly as can be: several templates fail on a list of types, or on none."""


def _call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"call_{name}", name, json.dumps(arguments, ensure_ascii=False))


_ROOMS: Final = _call("list_rooms")
_BREST: Final = _call("get_tide", port="Brest")
_CODE: Final = 'def f(a):\n    return {"x": a < 3, \'y\': "é 🎉 \\\\n"}  # it\'s, or not'
_ALIKE: Final = (
    'see </parameter> or </tool_call> or [TOOL_CALLS] "}] then </think> <arg_value> &lt; end'
)

ANSWERS: Final[Mapping[str, Turn]] = {
    "text": Turn("assistant", "Go at five."),
    "thought, text": Turn("assistant", "Go at five.", reasoning="Low tide is at six.\nSo earlier."),
    "text, call": Turn("assistant", "Let me look.", calls=(_BREST,)),
    "call": Turn("assistant", None, calls=(_BREST,)),
    "two calls": Turn("assistant", None, calls=(_BREST, _ROOMS)),
    "no arguments": Turn("assistant", None, calls=(_ROOMS,)),
    "code": Turn("assistant", None, calls=(_call("write_file", path="a b.py", text=_CODE),)),
    "lookalikes": Turn("assistant", None, calls=(_call("write_file", path="001", text=_ALIKE),)),
    "types": Turn(
        "assistant",
        None,
        calls=(
            _call(
                "find_museum",
                city="true",
                max=42,
                open=False,
                tags=["it's", "art, old"],
                more={"a": [1, 0.5, None, {"b": "Ο Πειραιάς"}]},
            ),
        ),
    ),
    "thought, call": Turn("assistant", None, reasoning="I need the tides.", calls=(_BREST,)),
}
"""What is said, by the name of its kind."""
