"""JSON calls without markers, where the answer begins with them: the fallback, and what fine-tunes
print.

    {"name": "get_tide", "parameters": {"port": "Brest"}}
    [{"name": "get_tide", "parameters": {…}}, {"type": "function", "function": {…}}]

Answers in JSON are common. So it is a call only if a declared function is named, and nothing but a name, a
type or an id stands before the arguments; anything else is text at once.
"""

from typing import Final

from smg_node.parsers.notations.json_calls import Shape, calls
from smg_node.parsers.reading.format import FormatRequest, ToolFormat
from smg_node.parsers.reading.text_reader import Machine, Reader

STARTS: Final = ("{", "[")
NAMES: Final = ("name", "function")


def read(reader: Reader, asked: FormatRequest, _opener: str) -> Machine[bool]:
    """Read the calls an answer begins with; see `ReadCall`."""
    return (yield from calls(reader, Shape(names=NAMES, declared=asked.tools)))


FORMATS: Final = (ToolFormat("json", read, starts=STARTS),)
