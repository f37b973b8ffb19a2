"""Kimi K2 to K2.7 calls: in sections, each under an id that holds the function's name.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_tide:0<|tool_call_argument_begin|>{"port":"Brest"}
    <|tool_call_end|><|tool_calls_section_end|>

The number counts the calls of a whole conversation; the id is the call's. Models also print an id of another
server's, with the name inside the JSON, or a number alone: then it is the one function that has such
parameters, if there is only one. The section's markers may be missing, or spelled in the singular.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from smg_node.parsers.notations.call_sections import Section
from smg_node.parsers.notations.json_calls import Shape, behind_name, call_object, is_id
from smg_node.parsers.notations.json_text import value
from smg_node.parsers.reading.format import FormatRequest, Tag
from smg_node.parsers.reading.text_reader import Machine, Reader

_BEGINS: Final = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_ENDS: Final = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
_CALL: Final = "<|tool_call_begin|>"
_CALL_END: Final = "<|tool_call_end|>"
_ARGUMENTS: Final = "<|tool_call_argument_begin|>"
_FUNCTIONS: Final = "functions."
_FOREIGN: Final = "call_"
_SHAPE: Final = Shape()


def _read_one(reader: Reader, asked: FormatRequest) -> Machine[bool]:
    yield from reader.space()
    printed = yield from reader.name()
    yield from reader.space()
    marked = yield from reader.have(_ARGUMENTS)
    first = yield from reader.space()
    if not (marked or (printed and first == "{")):
        return False
    name, index = _named(printed, asked)
    if not name:
        return (yield from _unnamed(reader, asked, printed))
    reader.out.call(name, printed if index and is_id(printed) else "")
    yield from behind_name(reader)
    return True


def _named(printed: str, asked: FormatRequest) -> tuple[str, str]:
    """Return the name and the number in what was printed as an id; "" for what is not there."""
    head, _, index = printed.rpartition(":")
    if not head or not index.isdigit():
        head, index = printed, ""
    name = head.removeprefix(_FUNCTIONS)
    foreign = not index and (name.isdigit() or name.startswith(_FOREIGN))
    return ("" if foreign and name not in asked.tools else name), index


def _unnamed(reader: Reader, asked: FormatRequest, printed: str) -> Machine[bool]:
    """Read a call whose id does not hold its name: from the object at the cursor, or by its keys."""
    start = reader.at - reader.base
    foreign = printed if is_id(printed) and not printed.isdigit() else ""
    if (yield from call_object(reader, _SHAPE, foreign)):
        return True
    reader.at = reader.base + start
    if not (yield from value(reader, say=False)):
        return False
    said = reader.held()[start:]
    fits = list(_fitting(asked, said))
    if len(fits) != 1:
        return False
    reader.out.call(fits[0], foreign or (f"{_FUNCTIONS}{fits[0]}:{printed}" if printed else ""))
    reader.drop()
    reader.out.arguments(said)
    reader.out.end_call()
    return True


def _fitting(asked: FormatRequest, said: str) -> Iterator[str]:
    """Yield the functions whose parameters these arguments could be."""
    try:
        keys = msgspec.json.decode(said, type=dict[str, Any]).keys()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    for name in asked.tools:
        schema = asked.schema(name) or {}
        properties = schema.get("properties")
        required = schema.get("required")
        declared = properties.keys() if isinstance(properties, Mapping) else ()
        if (
            (keys or not declared)
            and set(keys) <= set(declared)
            and set(required or ()) <= set(keys)
        ):
            yield name


_SECTION: Final = Section(_BEGINS, _ENDS, _CALL, _CALL_END, _read_one)

FORMATS: Final = (
    _SECTION.form(
        "kimi_k2",
        Tag(f"{_BEGINS[0]}{_CALL}{_FUNCTIONS}NAME:INDEX{_ARGUMENTS}", _CALL_END, (_BEGINS[0],)),
        Tag(f"{_CALL}{_FUNCTIONS}NAME:INDEX{_ARGUMENTS}", _CALL_END, (_CALL,)),
    ),
)
