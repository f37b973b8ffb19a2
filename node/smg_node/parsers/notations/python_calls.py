"""Python calls: `name(key=value, …)`, alone or in a list, and lists of dicts that are calls.

A call is one as soon as `name(` stands there. If it breaks off inside, its arguments stay unreadable and
what follows is text.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from smg_node.parsers.notations.json_calls import (
    EMPTY,
    OPEN,
    Shape,
    call_array,
    call_object,
    is_name,
)
from smg_node.parsers.notations.python_literals import (
    PYTHON,
    Dropped,
    EmittedJson,
    Kept,
    Notation,
    Place,
    key,
    separated,
    value,
)
from smg_node.parsers.notations.tagged_arguments import Parameters
from smg_node.parsers.reading.format import FormatRequest
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, Machine, Reader

NOTHING: Final = Markers(())
_SHAPE: Final = Shape()
_KEYWORD: Final = re.compile(r"[\w.-]*")
_CLOSES: Final = {"(": ")", "{": "}"}

Found: TypeAlias = Literal["nothing", "whole", "broken"]
"""What a look for a call found; of nothing, nothing was said."""


def any_calls(reader: Reader, asked: FormatRequest, ends: Markers) -> Machine[bool]:
    """Read the calls behind an opener, in Python or as objects of either notation; return whether there are any.

    `ends` close what the opener began.
    """
    size = reader.at - reader.base
    quote = yield from _first_key(reader)
    reader.at = reader.base + size
    first = yield from reader.space()
    if quote == '"':
        return (yield from (call_array if first == "[" else call_object)(reader, _SHAPE))
    if quote == "'":
        return (yield from objects(reader))
    return (yield from calls(reader, asked, ends=ends))


def _first_key(reader: Reader) -> Machine[str]:
    """Return what stands where an object's first key would, "" if there is no object."""
    if (yield from reader.space()) == "[":
        reader.at += 1
        yield from reader.space()
    if not (yield from reader.have("{")):
        return ""
    return (yield from reader.space())


def calls(
    reader: Reader, asked: FormatRequest, *, declared: bool = False, ends: Markers = NOTHING
) -> Machine[bool]:
    """Read calls at the cursor, between brackets or not; return whether there are any.

    `declared`: the first is one only if its function is.
    """
    bracket = yield from reader.have("[")
    yield from reader.space()
    found = yield from call(reader, asked, PYTHON, declared=declared, ends=ends)
    any_call = found != "nothing"
    while found == "whole":
        character = yield from reader.space()
        if bracket and character == "]":
            reader.at += 1
            reader.drop()
            return True
        if character in (",", ";"):
            reader.at += 1
            if (yield from reader.space()) == "]":
                continue
        found = yield from call(reader, asked, PYTHON, ends=ends)
    if any_call:
        reader.back()
    return any_call


def call(
    reader: Reader,
    asked: FormatRequest,
    notation: Notation,
    *,
    declared: bool = False,
    method: str = "",
    ends: Markers = NOTHING,
) -> Machine[Found]:
    """Read the call at the cursor; if it is one, nothing is held behind it.

    `method` may stand behind the name and is no part of it. Where one of `ends` stands behind a value, or the
    text is over, the call was complete but for its last bracket.
    """
    name = (yield from reader.name()).removesuffix(method)
    opener = yield from reader.peek()
    closer = _CLOSES.get(opener)
    if not name or closer is None or (declared and name not in asked.tools):
        return "nothing"
    if (opener == "{" and not notation.named) or reader.out.calls >= CALLS_MAX:
        return "nothing"
    reader.at += 1
    reader.out.call(name)
    reader.drop()
    parameters = Parameters(reader.out, asked.schema(name))
    places = _places(asked.schema(name))
    if (yield from _arguments(reader, notation, parameters, places, closer, ends)):
        parameters.end()
        return "whole"
    parameters.broken()
    return _broken(reader)


def _places(schema: Mapping[str, Any] | None) -> list[str]:
    properties = schema.get("properties") if schema else None
    return list(properties) if isinstance(properties, dict) else []


def _arguments(
    reader: Reader,
    notation: Notation,
    parameters: Parameters,
    places: list[str],
    closer: str,
    ends: Markers,
) -> Machine[bool]:
    """Write the arguments behind the opening bracket; return whether there is nothing but layout missing."""
    first = True
    while (character := (yield from separated(reader, closer, first=first))) != closer:
        if not character:
            return (yield from _ended(reader, ends))
        reader.drop()
        said, place = yield from _parameter(reader, notation, places)
        if not said:
            return False
        reader.drop()
        fresh = parameters.open(said)
        if not fresh:
            reader.note("parameter_repeated")
        write = EmittedJson(reader) if fresh else Dropped(reader)
        if not (yield from value(reader, notation, write, place)):
            return False
        first = False
    reader.drop()
    return True


def _ended(reader: Reader, ends: Markers) -> Machine[bool]:
    """Whether the text is over, or one of `ends` stands, where its last bracket should stand, and no comma announced more."""
    if reader.held().strip():
        return False
    if _over(reader):
        reader.drop()
        return True
    found = yield from reader.one_of(ends)
    reader.back()
    return bool(found)


def _broken(reader: Reader) -> Found:
    """Give back what was read last, unless the answer ends with it: then it was a part of the call."""
    if _over(reader):
        reader.drop()
    reader.back()
    return "broken"


def _over(reader: Reader) -> bool:
    return reader.ended and reader.at == len(reader.buffer)


def _parameter(reader: Reader, notation: Notation, places: list[str]) -> Machine[tuple[str, Place]]:
    """Move to a value; return its parameter: the one named before it, or the next one by its place.

    "" if it is no parameter's.
    """
    name = yield from (key(reader, notation) if notation.named else reader.pattern(_KEYWORD))
    behind = yield from reader.space()
    if name and behind and behind in notation.assign:
        reader.at += 1
        yield from reader.space()
        if name in places:
            places.remove(name)
        return name, "argument"
    if notation.named or not places or not behind or behind == "<":
        return "", "argument"
    reader.back()
    return places.pop(0), "position"


def objects(reader: Reader) -> Machine[bool]:
    """Read the calls that dicts in Python's notation are, one or a list of them; return whether the first is."""
    bracket = yield from reader.have("[")
    found = yield from _object(reader)
    any_call = found != "nothing"
    while found == "whole" and bracket:
        character = yield from separated(reader, "]", first=False)
        if character == "]":
            reader.drop()
            return True
        found = yield from _object(reader)
    if any_call:
        reader.back()
    return any_call


class _Body:
    """Fields of one dict known so far."""

    __slots__ = ("arguments", "name", "said")

    def __init__(self) -> None:
        self.name = ""
        self.said = False
        self.arguments: str | None = None


def _object(reader: Reader) -> Machine[Found]:
    yield from reader.space()
    if not (yield from reader.have("{")) or reader.out.calls >= CALLS_MAX:
        return "nothing"
    body = _Body()
    first = True
    whole = False
    while (character := (yield from separated(reader, "}", first=first))) != "}":
        said = (yield from key(reader, PYTHON)) if character else None
        if said is None or (yield from reader.space()) != ":":
            break
        reader.at += 1
        yield from reader.space()
        if not (yield from _member(reader, body, said)):
            break
        first = False
    else:
        whole = True
    if not body.name:
        return "nothing"
    if whole:
        reader.drop()
    if not body.said:
        reader.out.arguments(EMPTY if whole else OPEN)
    if not whole:
        return _broken(reader)
    reader.out.end_call()
    return "whole"


def _member(reader: Reader, body: _Body, said: str) -> Machine[bool]:
    if said == "name" and not body.name:
        return (yield from _name(reader, body))
    if said in ("arguments", "parameters") and not body.said and body.arguments is None:
        first = yield from reader.peek()
        if body.name and first == "{":
            reader.drop()
            body.said = True
            return (yield from value(reader, PYTHON, EmittedJson(reader), "element"))
        kept = Kept()
        whole = yield from value(reader, PYTHON, kept, "element")
        if whole:
            body.arguments = _normal(kept.json())
            _say_arguments(reader, body)
        return whole
    write = Dropped(reader) if body.name else Kept()
    return (yield from value(reader, PYTHON, write, "element"))


def _name(reader: Reader, body: _Body) -> Machine[bool]:
    kept = Kept()
    if not (yield from value(reader, PYTHON, kept, "element")):
        return False
    name = kept.json().strip('"')
    if not is_name(name):
        return False
    body.name = name
    reader.out.call(name)
    reader.drop()
    _say_arguments(reader, body)
    return True


def _say_arguments(reader: Reader, body: _Body) -> None:
    if body.name and body.arguments is not None:
        reader.drop()
        reader.out.arguments(body.arguments)
        body.said = True


def _normal(given: str) -> str:
    """Return arguments that are no dict as a client wants them: a string's content, nothing as
    `{}`.
    """
    if given.startswith('"'):
        return msgspec.json.decode(given, type=str) or EMPTY
    return EMPTY if given == "null" else given
