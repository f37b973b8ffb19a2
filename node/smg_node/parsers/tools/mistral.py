"""Mistral calls behind one token, in the two forms that Mistral's tokenizers have had.

    [TOOL_CALLS] [{"name": "convert", "arguments": {"amount": 20, "to": "CHF"}}]
    [TOOL_CALLS]convert[ARGS]{"amount": 20}[TOOL_CALLS]get_tide[CALL_ID]a1B2c3D4e[ARGS]{"port": "Brest"}
    [TOOL_CALLS]convert{"amount": 20}

What stands first behind the token tells them apart. Templates refuse an id that is not nine letters and
digits, so new ones are.
"""

import hashlib
from typing import Final

from smg_node.parsers.notations.json_calls import Shape, behind_name, calls, is_id
from smg_node.parsers.reading.format import FormatRequest, Tag, ToolFormat
from smg_node.parsers.reading.piece_writer import NewId
from smg_node.parsers.reading.text_reader import Machine, Reader

_OPENER: Final = "[TOOL_CALLS]"
_ARGUMENTS: Final = "[ARGS]"
_ID: Final = "[CALL_ID]"
_SHAPE: Final = Shape(ids=("id",))
_ID_LENGTH: Final = 9
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def read(reader: Reader, _asked: FormatRequest, opener: str) -> Machine[bool]:
    """Read what one opener begins; see `ReadCall`."""
    reader.at += len(opener)
    if (yield from reader.space()) in ("[", "{"):
        return (yield from calls(reader, _SHAPE))
    name = yield from reader.name()
    yield from reader.space()
    printed = ""
    if (yield from reader.have(_ID)):
        printed = yield from reader.name()
    marked = yield from reader.have(_ARGUMENTS)
    first = yield from reader.space()
    if not name or not (marked or first == "{"):
        return False
    reader.out.call(name, printed if is_id(printed) else "")
    yield from behind_name(reader)
    return True


def nine(new_id: NewId) -> NewId:
    """Return a maker of ids of nine letters and digits, each made of one of `new_id`'s."""

    def short(name: str, ordinal: int) -> str:
        digest = hashlib.sha256(new_id(name, ordinal).encode()).digest()
        return "".join(_DIGITS[byte % len(_DIGITS)] for byte in digest[:_ID_LENGTH])

    return short


FORMATS: Final = (
    ToolFormat(
        "mistral",
        read,
        openers=(_OPENER,),
        ids=nine,
        tags=(Tag(f"{_OPENER}NAME{_ARGUMENTS}", "", (_OPENER,), form="v11"),),
    ),
)
