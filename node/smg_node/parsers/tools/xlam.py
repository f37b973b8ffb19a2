"""xLAM JSON calls: bare, in a fence, or behind the markers of other families.

    [{"name": "get_tide", "arguments": {"port": "Brest"}}]
    ```json⏎[{"name": …}]⏎```
    [TOOL_CALLS][{"name": …}]
    <tool_call>[{"name": …}]</tool_call>

Without a marker it is a call only if a declared function is named, as in `json`; a fence is no marker, for
answers have code in fences too.
"""

from typing import Final

from smg_node.parsers.notations.json_calls import Shape, calls
from smg_node.parsers.notations.json_wrapped import Wrapped
from smg_node.parsers.reading.format import FormatRequest, ToolFormat
from smg_node.parsers.reading.text_reader import Machine, Reader
from smg_node.parsers.tools import json

_FENCE: Final = "```"
_MARKED: Final = Wrapped(("[TOOL_CALLS]", "<tool_call>"), ("</tool_call>",))
_FENCED: Final = Wrapped((f"{_FENCE}json", _FENCE), (_FENCE,))


def read(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read calls in any of these forms; see `ReadCall`."""
    if opener in _MARKED.openers:
        return (yield from _MARKED.read(reader, asked, opener))
    if opener in json.STARTS:
        return (yield from json.read(reader, asked, opener))
    reader.at += len(opener)
    if not (yield from calls(reader, Shape(declared=asked.tools))):
        return False
    yield from _FENCED.end(reader)
    return True


FORMATS: Final = (
    ToolFormat(
        "xlam",
        read,
        openers=(*_MARKED.openers, f"{_FENCE}json"),
        starts=(*json.STARTS, _FENCE),
        noise=_MARKED.closers,
    ),
)
