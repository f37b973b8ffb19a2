"""JSON calls: `{"name": …, "arguments": …}`, its keys in any order and under any family's names.

The arguments leave verbatim as soon as the name is known. Arguments before the name are held; the order of
the keys never changes what comes out.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

import msgspec

from smg_node.parsers.notations.json_text import string, string_of_json, value
from smg_node.parsers.reading.text_reader import CALLS_MAX, NAME_MAX, Machine, Reader

EMPTY: Final = "{}"
"""What a call without arguments has."""
OPEN: Final = "{"
"""What a call has whose body broke off before its arguments: nothing that anybody would carry out."""
_ID: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,64}")
_NOTHING: Final = ("", "null", "None")
_ASIDE: Final = ("type", "id")
"""What may stand beside a call's name where nothing but declared names shows one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Keys by which a family spells a call as an object.

    `inner` is a key whose object is the call itself. `ids` are keys whose string becomes the call's id.
    `declared`: only these names are calls, and only in an object that has nothing else before its arguments.
    """

    names: tuple[str, ...] = ("name",)
    arguments: tuple[str, ...] = ("arguments", "parameters")
    inner: tuple[str, ...] = ("function",)
    ids: tuple[str, ...] = ()
    declared: Container[str] | None = None

    def allows(self, key: str) -> bool:
        """Whether `key` may stand in a call before its arguments."""
        known = (*self.names, *self.arguments, *self.inner, *_ASIDE)
        return self.declared is None or key in known


@dataclass(slots=True)
class _Body:
    """Fields of one object known so far.

    `held` are arguments that came before the name. `inside`: the call is an object in this one. `over`: the
    arguments were all there.
    """

    printed_id: str = ""
    name: str = ""
    said: bool = False
    said_arguments: bool = False
    over: bool = False
    inside: bool = False
    held: str | None = None


def call_object(reader: Reader, shape: Shape, printed_id: str = "") -> Machine[bool]:
    """Read the call that the object at the cursor is; return whether it is one.

    If it is none, nothing was said of it. If it is one, what was read of it is dropped, also where it
    breaks off; what stands behind it is at the cursor.
    """
    if reader.out.calls >= CALLS_MAX:
        reader.note("too_many_calls")
        return False
    body = _Body(printed_id)
    whole = yield from _members(reader, shape, body)
    if not body.said:
        if not body.name or (shape.declared is not None and not whole):
            return False
        _say(reader, body)
    reader.drop()
    if not body.said_arguments:
        reader.out.arguments(EMPTY if whole else OPEN)
    if whole or body.over:
        reader.out.end_call()
    return True


def call_array(reader: Reader, shape: Shape) -> Machine[bool]:
    """Read the calls in the array at the cursor, each as it comes; return whether the first is one."""
    if not (yield from reader.have("[")):
        return False
    any_call = False
    while True:
        character = yield from reader.space()
        if character == "{" and (yield from call_object(reader, shape)):
            any_call = True
        elif character == "," and any_call:
            reader.at += 1
        else:
            if any_call and character == "]":
                reader.at += 1
                reader.drop()
            elif any_call and not character:
                reader.drop()
            elif any_call:
                reader.back()
            return any_call


def calls(reader: Reader, shape: Shape) -> Machine[bool]:
    """Read the calls at the cursor, an array of them or objects one behind the other; return whether the first is one.

    Between objects there may be a comma or a semicolon.
    """
    if (yield from reader.space()) == "[":
        return (yield from call_array(reader, shape))
    any_call = False
    while (yield from reader.peek()) == "{" and (yield from call_object(reader, shape)):
        any_call = True
        if (yield from reader.space()) in (",", ";"):
            reader.at += 1
            if not (yield from reader.space()):
                reader.drop()
    if any_call:
        reader.back()
    return any_call


def arguments(reader: Reader) -> Machine[bool]:
    """Emit the arguments at the cursor: an object as it is, a string's content, nothing as `{}`.

    Nothing before them may be held. Returns whether they ended.
    """
    first = yield from reader.peek()
    if first == '"':
        reader.at += 1
        inside = yield from reader.peek()
        if not inside:
            reader.drop()
            reader.out.arguments(OPEN)
            return False
        if inside == '"':
            reader.at += 1
            reader.drop()
            reader.out.arguments(EMPTY)
            return True
        reader.at -= 1
        return (yield from string_of_json(reader))
    if first in ("{", "["):
        return (yield from value(reader, say=True))
    yield from value(reader, say=False)
    said = reader.held()
    reader.drop()
    reader.out.arguments(EMPTY if said in _NOTHING else said)
    return True


def behind_name(reader: Reader) -> Machine[None]:
    """Emit the text behind a call's name as its arguments; nothing at all is `{}`, unless the
    answer ends.

    What was read before is dropped. The call is complete if its arguments are.
    """
    first = yield from reader.space()
    reader.drop()
    if not first:
        reader.out.arguments(OPEN)
    elif first == "[":
        # No function's arguments are an array: what begins here is another marker.
        reader.out.arguments(EMPTY)
        reader.out.end_call()
    elif (yield from arguments(reader)):
        reader.out.end_call()


def is_name(text: str) -> bool:
    """Whether `text` can be the name of a function."""
    return 0 < len(text) <= NAME_MAX and all(
        character.isascii() and (character.isalnum() or character in "_.:/-") for character in text
    )


def is_id(text: str) -> bool:
    """Whether `text`, which the model printed, can be a call's id."""
    return _ID.fullmatch(text) is not None


def _members(reader: Reader, shape: Shape, body: _Body) -> Machine[bool]:
    """Read an object's members; return whether it was read to its end."""
    if not (yield from reader.have("{")):
        return False
    while True:
        character = yield from reader.space()
        if character == "}":
            reader.at += 1
            return True
        if character == ",":
            reader.at += 1
            continue
        key = yield from string(reader)
        if key is None or (not body.said and not shape.allows(key)):
            return False
        if (yield from reader.space()) != ":":
            return False
        reader.at += 1
        first = yield from reader.space()
        if not first or not (yield from _member(reader, shape, body, key, first)):
            return False


def _member(reader: Reader, shape: Shape, body: _Body, key: str, first: str) -> Machine[bool]:
    """Read the value of `key`; return whether it was read to its end, and a call is still possible."""
    if key in shape.names and not body.name and first == '"':
        return (yield from _name(reader, shape, body))
    if key in shape.inner and first == "{" and not (body.name or body.inside):
        body.inside = True
        return (yield from _members(reader, shape, body))
    if key in shape.arguments and not body.said_arguments and body.held is None:
        return (yield from _arguments(reader, shape, body, first))
    if shape.declared is not None and not body.said and key not in _ASIDE:
        return False
    start = reader.at - reader.base
    whole = yield from value(reader, say=False)
    if body.said:
        reader.drop()
    elif whole and key in shape.ids:
        printed = _decoded(reader.held()[start:])
        body.printed_id = printed if is_id(printed) else ""
    return whole


def _name(reader: Reader, shape: Shape, body: _Body) -> Machine[bool]:
    name = yield from string(reader, NAME_MAX)
    if name is None or not is_name(name):
        return False
    if shape.declared is not None and name not in shape.declared:
        return False
    body.name = name
    if shape.declared is None or body.held is not None:
        _say(reader, body)
    return True


def _arguments(reader: Reader, shape: Shape, body: _Body, first: str) -> Machine[bool]:
    if shape.declared is not None and first not in '{"n':
        return False
    if not body.name:
        start = reader.at - reader.base
        whole = yield from value(reader, say=False)
        body.held = reader.held()[start:]
        return whole
    if not body.said:
        _say(reader, body)
    reader.drop()
    body.said_arguments = True
    body.over = yield from arguments(reader)
    return body.over


def _say(reader: Reader, body: _Body) -> None:
    reader.out.call(body.name, body.printed_id)
    reader.drop()
    body.said = True
    if body.held is not None:
        reader.out.arguments(_normal(body.held))
        body.said_arguments = body.over = True


def _normal(held: str) -> str:
    """Return held arguments as `arguments` says those that come after the name."""
    if held.startswith('"'):
        return _decoded(held) or EMPTY
    return EMPTY if held in _NOTHING else held


def _decoded(held: str) -> str:
    """Return the content of a JSON string; any other text as it is."""
    try:
        return msgspec.json.decode(held, type=str)
    except (msgspec.DecodeError, UnicodeError):
        return held
