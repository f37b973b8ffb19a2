"""Python literals, written as JSON while they come.

What stands between quotes leaves as it arrives; a number or a name waits for what ends it. Families that print
strings between marks of their own are read by the same rules, with other quotes.

A string in single quotes may hold quotes that are not escaped, for some models' own templates print
it so:

    f(t='it's ok, go', n=1)

There a quote ends the string only where the literal goes on behind it as it must; else it is an apostrophe.
"""

import re
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from smg_node.parsers.notations.json_text import escape
from smg_node.parsers.notations.schema_types import (
    UNKNOWN,
    as_json,
    escaped,
    is_number,
    python_literal,
    quoted,
)
from smg_node.parsers.notations.tagged_arguments import ESCAPED
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import HELD_MAX, Machine, Reader

NESTING_MAX: Final = 128
"""Lists and dicts inside each other; a deeper literal breaks off."""

Place: TypeAlias = Literal["argument", "position", "element", "key"]
"""Where a literal stands: behind a parameter's name, in its place, in a list or a dict, before a dict's colon."""

_CLOSES: Final = {"[": "]", "(": ")", "{": "}"}
_ENDS: Final = ("", ")", "]", "}")
_BARE: Final = re.compile(r"[^,()\[\]{}<]*")
_BARE_KEY: Final = re.compile(r"[^:=,()\[\]{}<\"']*")
_WORD: Final = re.compile(r"\w*")
_CONSTANTS: Final = ("True", "False", "None", "true", "false", "null")
_NUMERIC: Final = re.compile(r"[+.\-0-9]")
_ESCAPES: Final = {"'": "'", "a": "\a", "v": "\v", "\n": ""}
_OCTAL: Final = "01234567"
_HEX: Final = "0123456789abcdefABCDEF"
_CODE_SIZES: Final = {"x": 2, "U": 8}


@dataclass(frozen=True, slots=True)
class Quote:
    """One way to mark where a string begins and ends.

    `escapes`: a backslash is not itself. `loose`: the mark may stand inside without one.
    """

    mark: str
    escapes: bool = True
    loose: bool = False
    stop: re.Pattern[str] = field(init=False)
    """Finds what may be more than a character of the string."""
    calm: re.Pattern[str] = field(init=False)
    """Finds what does not leave as it came."""

    def __post_init__(self) -> None:
        mark = re.escape(self.mark[0])
        backslash = re.escape("\\") if self.escapes else ""
        object.__setattr__(self, "stop", re.compile(f"[{mark}{backslash}]"))
        object.__setattr__(self, "calm", re.compile(f"[{mark}{re.escape(ESCAPED)}]"))


class Notation:
    """Rules of a family's literals: its quotes, and the signs between a parameter's name and its
    value.

    `named`: every value has its parameter's name before it, which may stand in quotes.
    """

    __slots__ = ("assign", "marks", "named", "quotes")

    def __init__(self, *quotes: Quote, assign: str = "=", named: bool = False) -> None:
        self.quotes = {quote.mark: quote for quote in quotes}
        self.marks = Markers(self.quotes)
        self.assign = assign
        self.named = named


PYTHON: Final = Notation(Quote('"""'), Quote("'''"), Quote('"'), Quote("'", loose=True))


class Write(Protocol):
    """Takes the JSON of what was read."""

    live: bool
    """Whether it leaves at once, so that nothing is held."""

    def __call__(self, text: str) -> None:
        """Take the JSON of what was read up to the cursor."""


class EmittedJson:
    """Emits the JSON as arguments of the last call."""

    __slots__ = ("_reader",)
    live = True

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __call__(self, text: str) -> None:
        """See `Write`."""
        self._reader.drop()
        self._reader.out.arguments(text)


class Kept:
    """Keeps the JSON; the text stays held."""

    __slots__ = ("_parts",)
    live = False

    def __init__(self) -> None:
        self._parts: list[str] = []

    def __call__(self, text: str) -> None:
        """See `Write`."""
        self._parts.append(text)

    def json(self) -> str:
        """Return what was written."""
        return "".join(self._parts)


class Dropped:
    """Drops the text: a value that is not handed on."""

    __slots__ = ("_reader",)
    live = False

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __call__(self, text: str) -> None:
        """See `Write`."""
        self._reader.drop()


def value(
    reader: Reader, notation: Notation, write: Write, place: Place, depth: int = 0
) -> Machine[bool]:
    """Move over the literal at the cursor and write it as JSON; return whether it ended."""
    if reader.at - reader.base > HELD_MAX:
        return False
    mark = yield from reader.one_of(notation.marks)
    if mark:
        return (yield from _string(reader, notation.quotes[mark], write, place))
    opener = yield from reader.peek()
    closer = _CLOSES.get(opener)
    if closer is None:
        return (yield from _bare(reader, write))
    if depth >= NESTING_MAX:
        reader.note("nested_too_deep")
        return False
    reader.at += 1
    if opener == "{":
        return (yield from _members(reader, notation, write, depth))
    return (yield from _elements(reader, notation, write, closer, depth))


def key(reader: Reader, notation: Notation) -> Machine[str | None]:
    """Move over the key at the cursor, in quotes or bare; return it, None if there is none."""
    mark = yield from reader.one_of(notation.marks)
    if mark:
        kept = Kept()
        whole = yield from _string(reader, notation.quotes[mark], kept, "key")
        return msgspec.json.decode(kept.json(), type=str) if whole else None
    return (yield from reader.pattern(_BARE_KEY)).strip() or None


def separated(reader: Reader, closer: str, *, first: bool) -> Machine[str]:
    """Move to the next of some things between commas, or behind what closes them.

    Returns `closer` if they are over, the character at the cursor if there is one more, "" if neither.
    """
    character = yield from reader.space()
    if character == closer:
        reader.at += 1
        return closer
    if first:
        return character
    if character != ",":
        return ""
    reader.at += 1
    character = yield from reader.space()
    if character == closer:
        reader.at += 1
    return character


def _elements(
    reader: Reader, notation: Notation, write: Write, closer: str, depth: int
) -> Machine[bool]:
    write("[")
    first = True
    while (character := (yield from separated(reader, closer, first=first))) != closer:
        if not first and character:
            write(",")
        if not character or not (yield from value(reader, notation, write, "element", depth + 1)):
            return False
        first = False
    write("]")
    return True


def _members(reader: Reader, notation: Notation, write: Write, depth: int) -> Machine[bool]:
    write("{")
    first = True
    while (character := (yield from separated(reader, "}", first=first))) != "}":
        name = (yield from key(reader, notation)) if character else None
        if name is None or (yield from reader.space()) not in (":", "="):
            return False
        reader.at += 1
        write(f"{'' if first else ','}{quoted(name)}:")
        yield from reader.space()
        if not (yield from value(reader, notation, write, "element", depth + 1)):
            return False
        first = False
    write("}")
    return True


def _bare(reader: Reader, write: Write) -> Machine[bool]:
    """Move over what stands in no quotes, up to a comma or a bracket that is not its own."""
    start = reader.at - reader.base
    depth = 0
    while True:
        yield from reader.pattern(_BARE, HELD_MAX)
        character = yield from reader.peek()
        if character in _CLOSES:
            depth += 1
        elif not character or not depth or character == "<":
            break
        elif character != ",":
            depth -= 1
        reader.at += 1
    text = reader.buffer[reader.base + start : reader.at].strip()
    if not character:
        # What ended it has not come: its text leaves, and nothing is closed.
        write('"' + escaped(text) if text else "")
        return False
    if not text:
        return False
    write(_literal(text))
    return True


def _literal(text: str) -> str:
    if _NUMERIC.match(text):
        return text if is_number(text) else (python_literal(text) or quoted(text))
    return as_json(text, UNKNOWN)


def _string(reader: Reader, quote: Quote, write: Write, place: Place) -> Machine[bool]:
    """Move over a string behind its first mark; return whether it ended."""
    write('"')
    while True:
        buffer, at = reader.buffer, reader.at
        match = quote.stop.search(buffer, at)
        end = len(buffer) if match is None else match.start()
        if end > at:
            reader.at = end
            write(escaped(buffer[at:end]))
        found = "" if match is None else match.group()
        # Held text grows in place only while nothing else refers to it, not over a `yield` either.
        del buffer, match
        if not found:
            if reader.ended or reader.at - reader.base > HELD_MAX:
                return False
            if write.live:
                reader.calm = ("call", quote.calm.search)
            yield
            reader.calm = None
        elif found == "\\":
            write(escaped((yield from _escaped(reader))))
        elif not (yield from reader.have(quote.mark)):
            reader.at += 1
            write(escaped(found))
        elif not quote.loose or (yield from _goes_on(reader, place)):
            write('"')
            return True
        else:
            write(escaped(quote.mark))


def _goes_on(reader: Reader, place: Place) -> Machine[bool]:
    """Whether the literal goes on at the cursor as it must behind a string in this place; the cursor stays."""
    size = reader.at - reader.base
    found = yield from _look(reader, place)
    reader.at = reader.base + size
    return found


def _look(reader: Reader, place: Place) -> Machine[bool]:
    character = yield from reader.space()
    if place == "key":
        return character in ("", ":")
    if character in _ENDS:
        return True
    if character != ",":
        return False
    reader.at += 1
    character = yield from reader.space()
    if character in _ENDS:
        return True
    if place != "argument" and character in "'\"[({-.0123456789":
        return True
    word = yield from reader.pattern(_WORD)
    if place != "argument" and word in _CONSTANTS:
        return True
    return place != "element" and bool(word) and (yield from reader.space()) in ("", "=")


def _escaped(reader: Reader) -> Machine[str]:
    """Move over the escape at the cursor; return what it stands for, a backslash if it stands for nothing."""
    size = reader.at - reader.base
    reader.at += 1
    kind = yield from reader.peek()
    if kind and kind in '"\\bfnrtu':
        reader.at -= 1
        found = yield from escape(reader)
    elif kind in _ESCAPES:
        reader.at += 1
        found = _ESCAPES[kind]
    elif kind and kind in _OCTAL:
        found = chr(int((yield from _digits(reader, _OCTAL, 3)), 8))
    elif kind in _CODE_SIZES:
        reader.at += 1
        digits = yield from _digits(reader, _HEX, _CODE_SIZES[kind])
        found = _character(digits, _CODE_SIZES[kind])
    else:
        found = None
    if found is None:
        reader.at = reader.base + size + 1
        return "\\"
    return found


def _digits(reader: Reader, among: str, most: int) -> Machine[str]:
    digits: list[str] = []
    while len(digits) < most and (digit := (yield from reader.peek())) and digit in among:
        digits.append(digit)
        reader.at += 1
    return "".join(digits)


def _character(digits: str, size: int) -> str | None:
    code = int(digits, 16) if len(digits) == size else -1
    return chr(code) if 0 <= code < 0xD800 or 0xE000 <= code < 0x110000 else None
