"""Pythonic calls: a list alone or between two tokens: Llama 4, Llama 3.2, ToolACE and prompts that
ask for it.

    [find_museum(city="Ghent", max=3), list_rooms()]
    <|python_start|>[list_rooms()]<|python_end|>

Without the tokens it is one only where the answer begins with it and the first function is declared: answers
begin with `[1] see` and `[link](…)` too.
"""

from typing import Final

from smg_node.parsers.notations.python_calls import any_calls, calls
from smg_node.parsers.reading.format import FormatRequest, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import Machine, Reader

_OPENER: Final = "<|python_start|>"
_CLOSER: Final = "<|python_end|>"
_ENDS: Final = Markers((_CLOSER,))
_BARE: Final = "["


def read(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read one list of calls; see `ReadCall`."""
    if opener == _BARE:
        return (yield from calls(reader, asked, declared=True))
    reader.at += len(opener)
    return (yield from any_calls(reader, asked, _ENDS))


FORMATS: Final = (
    ToolFormat("pythonic", read, openers=(_OPENER,), starts=(_BARE,), noise=(_CLOSER,)),
)
