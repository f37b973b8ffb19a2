"""Tool calls in JSON between two tags: an array (Hunyuan-A13B, Jamba, Apriel), or an object a line
(MiniMax M1).

    <tool_calls>[{"name": "get_tide", "arguments": {"port": "Brest"}}]</tool_calls>

Each object is a call as soon as it comes; the end of the array is not waited for.
"""

from typing import Final

from smg_node.parsers.notations.json_wrapped import Wrapped

_CALLS: Final = Wrapped(("<tool_calls>",), ("</tool_calls>",), lines=True)

FORMATS: Final = (_CALLS.form("tool_calls_json"), _CALLS.form("hunyuan_a13b"))
