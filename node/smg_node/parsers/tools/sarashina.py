"""Sarashina calls: a list of dicts as Python prints them, behind a token.

<|tool_calls|>[{'name': 'find_museum', 'arguments': {'city': 'Ghent', 'open': True}}]
"""

from typing import Final

from smg_node.parsers.notations.python_calls import NOTHING, any_calls
from smg_node.parsers.reading.format import FormatRequest, ToolFormat
from smg_node.parsers.reading.text_reader import Machine, Reader

_OPENER: Final = "<|tool_calls|>"


def read(reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read one list of calls; see `ReadCall`."""
    reader.at += len(opener)
    return (yield from any_calls(reader, asked, NOTHING))


FORMATS: Final = (ToolFormat("sarashina", read, openers=(_OPENER,)),)
