"""Token tags: brackets are tokens, names and attributes ordinary text: `<|open|>call
tool="x"<|sep|>`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import Machine, Reader

OPEN: Final = "<|open|>"
CLOSE: Final = "<|close|>"
SEP: Final = "<|sep|>"
END: Final = "<|end_of_msg|>"
TOKENS: Final = Markers((OPEN, CLOSE, SEP, END))
"""Every token of the notation."""
_BRACKETS: Final = Markers((OPEN, CLOSE))

NAMES: Final = ("think", "response", "tools", "call", "argument", "json", "message")
"""The elements there are."""
VALUE_MAX: Final = 1024
"""Characters of an attribute's value."""
ATTRIBUTES_MAX: Final = 16
"""Attributes of one tag."""
_NAME: Final = re.compile(r"[a-z]*")
_KEY: Final = re.compile(r"[A-Za-z_]*")
_VALUE: Final = re.compile(r'[^"\n]*')

Kind: TypeAlias = Literal["open", "close", "cut", "torn", "none"]


@dataclass(frozen=True, slots=True)
class Found:
    """A tag that was looked for.

    `cut`: the answer ends with it, before it has attributes. `torn`: the answer ends inside its attributes.
    `none`: it is no tag, and the cursor stands behind its bracket at most.
    """

    kind: Kind
    bracket: str = ""
    name: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)


def found(reader: Reader) -> Machine[Found]:
    """Move over the tag at the cursor, if there is one, and return it."""
    bracket = yield from reader.one_of(_BRACKETS)
    if not bracket:
        return Found("none")
    name = yield from reader.pattern(_NAME)
    over = not (yield from reader.peek()) and (bracket == OPEN or name not in NAMES)
    if over and any(known.startswith(name) for known in NAMES):
        return Found("cut", bracket, name)
    if name not in NAMES:
        return Found("none", bracket)
    if bracket == CLOSE:
        yield from _separator(reader)
        return Found("close", bracket, name)
    attributes = yield from _attributes(reader)
    if attributes is None:
        return Found("torn", bracket, name)
    return Found("open", bracket, name, attributes)


def _separator(reader: Reader) -> Machine[bool]:
    """Move over the separator at the cursor, behind white space or cut off by the end of the answer."""
    distance = reader.at - reader.base
    yield from reader.space()
    if (yield from reader.have(SEP)):
        return True
    rest = reader.buffer[reader.at :] if reader.ended else ""
    if rest and SEP.startswith(rest):
        reader.at += len(rest)
        return True
    reader.at = reader.base + distance
    return False


def _attributes(reader: Reader) -> Machine[dict[str, str] | None]:
    """Move over attributes and the separator; return them, None where the answer ends among them.

    Where something else stands, the tag has none, and its separator was left out.
    """
    distance = reader.at - reader.base
    attributes: dict[str, str] = {}
    for _ in range(ATTRIBUTES_MAX):
        if (yield from _separator(reader)):
            return attributes
        if (yield from reader.space()) == "<" and attributes:
            return attributes
        key = yield from reader.pattern(_KEY)
        if key and (yield from reader.have('="')):
            value = yield from reader.pattern(_VALUE, VALUE_MAX)
            if (yield from reader.have('"')):
                attributes.setdefault(key, value.replace("&quot;", '"').replace("&amp;", "&"))
                continue
        if key and not (yield from reader.peek()):
            return None
        break
    reader.at = reader.base + distance
    return {}
