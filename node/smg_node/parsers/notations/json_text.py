"""JSON text as a model prints it: finds the end of a value and unescapes strings, never rebuilds
it.

What stands in a body leaves as it was printed: spacing, order of keys, escapes and the spelling of numbers
are the model's. Only strings are watched, because brackets inside them do not count.
"""

import re
from typing import Final, Literal

from smg_node.parsers.reading.text_reader import HELD_MAX, Machine, Reader

_OUTSIDE: Final = re.compile(r'["{}\[\]<]')
_INSIDE: Final = re.compile(r'["\\]')
_SCALAR: Final = re.compile(r"[^\s,{}\[\]\"';<]*")
_ESCAPES: Final = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
KEY_MAX: Final = 256
"""Characters of a key or a name."""


def value(reader: Reader, *, say: bool) -> Machine[bool]:
    """Move over the JSON value at the cursor; return whether it ended.

    With `say` it leaves as arguments while it is read, so that nothing before it may be held; otherwise
    all of it stays held, as far as `HELD_MAX` goes. A value that is neither object, array nor string ends at
    a delimiter. Where a tag begins that no JSON can hold, outside of strings, the value breaks off.
    """
    if (yield from reader.peek()) not in ('"', "{", "["):
        yield from reader.pattern(_SCALAR, HELD_MAX)
        if say:
            reader.arguments()
        return True
    nested = _Nested()
    while True:
        found = nested.follow(reader)
        if say:
            reader.arguments()
        elif reader.at - reader.base > HELD_MAX:
            reader.at = reader.base + HELD_MAX
            return False
        if found != "more":
            return found == "whole"
        if say and reader.at == len(reader.buffer):
            reader.calm = ("call", nested.triggered)
        yield
        reader.calm = None


class _Nested:
    """Depth of the cursor in an object or array, and whether it is inside a string."""

    __slots__ = ("_depth", "_quoted")

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False

    def triggered(self, text: str) -> re.Match[str] | None:
        """Find a character of `text` that may change any of that."""
        return (_INSIDE if self._quoted else _OUTSIDE).search(text)

    def follow(self, reader: Reader) -> Literal["more", "whole", "broken"]:
        """Move the cursor as far as the value is there; return what is known of its end."""
        buffer, at = reader.buffer, reader.at
        while (match := (_INSIDE if self._quoted else _OUTSIDE).search(buffer, at)) is not None:
            at = match.end()
            match match.group():
                case "\\":
                    if at == len(buffer) and not reader.ended:
                        reader.at = at - 1
                        return "more"
                    at += 1
                case '"':
                    self._quoted = not self._quoted
                case "<":
                    reader.at = at - 1
                    return "broken"
                case bracket:
                    self._depth += 1 if bracket in "{[" else -1
            if not self._quoted and self._depth <= 0:
                reader.at = at
                return "whole"
        reader.at = len(buffer)
        return "broken" if reader.ended else "more"


def string(reader: Reader, most: int = KEY_MAX) -> Machine[str | None]:
    """Move over the JSON string at the cursor; return its content, None if it is none or longer
    than `most`.
    """
    if not (yield from reader.have('"')):
        return None
    parts: list[str] = []
    size = 0
    while True:
        character = yield from reader.peek()
        if character == "" or size > most:
            return None
        if character == '"':
            reader.at += 1
            return "".join(parts)
        if character == "\\":
            piece = yield from escape(reader)
            if piece is None:
                return None
        else:
            match = _INSIDE.search(reader.buffer, reader.at)
            end = len(reader.buffer) if match is None else match.start()
            # As far as it takes to be too long: where that is known must not depend on what has arrived.
            end = min(end, reader.at + most + 1 - size)
            piece = reader.buffer[reader.at : end]
            reader.at = end
        parts.append(piece)
        size += len(piece)


def string_of_json(reader: Reader) -> Machine[bool]:
    """Emit the content of the JSON string at the cursor as arguments, while it is read; return
    whether it ended.
    """
    if not (yield from reader.have('"')):
        return False
    reader.drop()
    while True:
        character = yield from reader.peek()
        if character == "":
            return False
        if character == '"':
            reader.at += 1
            reader.drop()
            return True
        if character == "\\":
            piece = yield from escape(reader)
            if piece is None:
                # No escape of JSON: what was printed is passed on, as unreadable as it is.
                reader.arguments()
                continue
            reader.out.arguments(piece)
            reader.drop()
        else:
            match = _INSIDE.search(reader.buffer, reader.at)
            reader.at = len(reader.buffer) if match is None else match.start()
            reader.arguments()


def escape(reader: Reader) -> Machine[str | None]:
    """Move over the escape at the cursor; return what it stands for, None if it stands for nothing.

    Two escapes that are the halves of one character are read as one; a half alone is U+FFFD.
    """
    reader.at += 1
    kind = yield from reader.peek()
    if kind in _ESCAPES:
        reader.at += 1
        return _ESCAPES[kind]
    if kind != "u":
        return None
    high = yield from _code_unit(reader)
    if high is None:
        return None
    if not 0xD800 <= high < 0xE000:
        return chr(high)
    if high >= 0xDC00:
        return "\ufffd"
    distance = reader.at - reader.base
    if (yield from reader.peek()) != "\\":
        return "\ufffd"
    reader.at += 1
    low = None
    if (yield from reader.peek()) == "u":
        low = yield from _code_unit(reader)
    if low is None or not 0xDC00 <= low < 0xE000:
        reader.at = reader.base + distance
        return "\ufffd"
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _code_unit(reader: Reader) -> Machine[int | None]:
    """Move over `u` and four hexadecimal digits at the cursor; return their value."""
    while len(reader.buffer) < reader.at + 5 and not reader.ended:
        yield
    match = _HEX.match(reader.buffer, reader.at + 1)
    if match is None:
        return None
    reader.at += 5
    return int(match.group(), 16)
