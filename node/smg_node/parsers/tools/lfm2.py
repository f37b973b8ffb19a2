"""LFM2 and LFM2.5 (lfm2) calls: a Python list of calls between two tokens.

    <|tool_call_start|>[find_museum(city='Ghent', max=3)]<|tool_call_end|>

Its templates print strings in single quotes and escape nothing in them, so its models do the same.
"""

from typing import Final

from smg_node.parsers.notations.python_calls import any_calls
from smg_node.parsers.reading.format import FormatRequest, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import Machine, Reader

_OPENER: Final = "<|tool_call_start|>"
_CLOSER: Final = "<|tool_call_end|>"
_ENDS: Final = Markers((_CLOSER,))


def read(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read one list of calls; see `ReadCall`."""
    reader.at += len(opener)
    return (yield from any_calls(reader, asked, _ENDS))


FORMATS: Final = (ToolFormat("lfm2", read, openers=(_OPENER,), noise=(_CLOSER,)),)
