"""Granite 3 calls: an array behind a marker that nothing closes; also of its models for function
calling.

    <|tool_call|>[{"name": "get_tide", "arguments": {"port": "Brest"}}]
    <tool_call>[{"name": …}]
    <function_call> {"name": …}

The array's last bracket is the end.
"""

from typing import Final

from smg_node.parsers.notations.json_wrapped import Wrapped

_CALLS: Final = Wrapped(
    ("<|tool_call|>", "<tool_call>", "<function_call>"),
    ("</tool_call>", "</function_call>"),
)

FORMATS: Final = (_CALLS.form("granite"),)
