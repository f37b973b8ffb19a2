"""Olmo 3 (olmo3) calls: Python calls between two tags, one on each line.

<function_calls>⏎find_museum(city="Ghent", open=true, note=null)⏎list_rooms()⏎</function_calls>
"""

from typing import Final

from smg_node.parsers.notations.python_calls import any_calls
from smg_node.parsers.reading.format import FormatRequest, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import Machine, Reader

_OPENER: Final = "<function_calls>"
_CLOSER: Final = "</function_calls>"
_ENDS: Final = Markers((_CLOSER,))


def read(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read one wrapper's calls; see `ReadCall`."""
    reader.at += len(opener)
    return (yield from any_calls(reader, asked, _ENDS))


FORMATS: Final = (ToolFormat("olmo3", read, openers=(_OPENER,), noise=(_CLOSER,)),)
