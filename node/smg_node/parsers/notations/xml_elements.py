"""XML-like elements: calls with attributes, several in one wrapper, their values raw.

    <tool_calls><invoke name="find_museum"><parameter name="city">Ghent</parameter></invoke></tool_calls>

It looks like XML and is none: nothing is escaped, a value may hold any of the tags, quotes may be single or
missing. So a value's closer counts only where the next parameter or the end of the call follows, and what
stands between the calls of a wrapper means nothing.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from smg_node.parsers.notations import json_text
from smg_node.parsers.notations.json_calls import is_name
from smg_node.parsers.notations.schema_types import Types
from smg_node.parsers.notations.tagged_arguments import (
    ESCAPED,
    Followed,
    Parameters,
    breaks_off,
    closed,
    followers,
    parameter,
    skip,
)
from smg_node.parsers.reading.format import FormatRequest
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import CALLS_MAX, Machine, Reader

Attributes: TypeAlias = Mapping[str, str]
TypesOf: TypeAlias = Callable[[Attributes, Types], Types]
"""Returns what a value may be, by its tag's attributes and by what its schema allows."""

ATTRIBUTES_MAX: Final = 16
"""Attributes of one tag; one with more is none."""
_VALUE_MAX: Final = 1024
_KEY: Final = re.compile(r"[^\s=<>\"'/]*")
_BARE: Final = re.compile(r"[^\s<>\"'/]*")
_QUOTED: Final = {'"': re.compile(r'[^"\n]*'), "'": re.compile(r"[^'\n]*")}


@dataclass(frozen=True)
class Elements:
    """The tags of one family. `call` and `parameter` are openers up to the first attribute, blank included.

    `wrappers` open a list of calls and `wrapper_ends` close it; a call's opener may also stand alone. `lead` is
    what a wrapper prints before its first call and means nothing. `trim`: a newline on each side of a value is
    layout, the one behind it only with one before it. `types` reads what attributes say of a value. `cdata` opens and closes a value within its tags.
    `bodies`: JSON may stand in the place of parameters, or as a parameter of one of the names `whole`.
    """

    call: tuple[str, ...]
    call_ends: tuple[str, ...]
    parameter: tuple[str, ...]
    parameter_ends: tuple[str, ...]
    wrappers: tuple[str, ...] = ()
    wrapper_ends: tuple[str, ...] = ()
    lead: tuple[str, ...] = ()
    trim: bool = False
    types: TypesOf | None = None
    cdata: tuple[str, str] | None = None
    bodies: bool = False
    whole: tuple[str, ...] = ()
    _calls: Markers = field(init=False)
    _lead: Markers = field(init=False)
    _inside: Markers = field(init=False)
    _between: Markers = field(init=False)
    _closers: Markers = field(init=False)
    _trimmed: Markers = field(init=False)
    _sections: Markers = field(init=False)
    _ends: Markers = field(init=False)
    _outer: Markers = field(init=False)
    _followed: Followed = field(init=False)

    def __post_init__(self) -> None:
        line = [f"\n{end}" for end in self.parameter_ends]
        after = (*self.parameter, *self.call_ends, *self.wrapper_ends)
        section = self.cdata[1] if self.cdata else ""
        compiled = {
            "_calls": Markers(self.call),
            "_lead": Markers(self.lead),
            "_inside": Markers((*after, *self.call, *self.wrappers)),
            "_between": Markers((*self.call, *self.wrappers, *self.wrapper_ends)),
            "_closers": Markers(self.parameter_ends, also=ESCAPED),
            "_trimmed": Markers((*self.parameter_ends, *line), also=ESCAPED),
            "_sections": Markers([section + end for end in self.parameter_ends], also=ESCAPED),
            "_ends": Markers(
                [*self.parameter_ends, *(section + end for end in self.parameter_ends)]
            ),
            "_outer": Markers(self.wrapper_ends),
            "_followed": followers(*after),
        }
        for name, value in compiled.items():
            object.__setattr__(self, name, value)

    def read(self, reader: Reader, asked: FormatRequest, opener: str) -> Machine[bool]:
        """Read one wrapper's calls, or the one that stands alone; see `ReadCall`."""
        reader.at += len(opener)
        alone = opener in self.call
        if not alone:
            yield from reader.space()
            while self.lead and (yield from reader.one_of(self._lead)):
                yield from reader.space()
            if not (yield from reader.one_of(self._calls)):
                return False
        if not (yield from self._call(reader, asked, alone=alone)):
            return False
        if alone:
            yield from closed(reader, self._outer)
        while not alone and (yield from self._another(reader, asked)):
            pass
        return True

    def _another(self, reader: Reader, asked: FormatRequest) -> Machine[bool]:
        """Read on in a wrapper up to behind the next call; return whether there may be more."""
        word = yield from skip(reader, self._between)
        if word in self.call:
            if reader.out.calls >= CALLS_MAX:
                return False
            reader.at += len(word)
            if not (yield from self._call(reader, asked, alone=False)):
                reader.note("tool_markup_unparsed")
                reader.drop()
            return True
        reader.at += len(word)
        reader.drop()
        return word in self.wrappers

    def _call(self, reader: Reader, asked: FormatRequest, *, alone: bool) -> Machine[bool]:
        """Read the call whose opener was moved over; return whether it is one."""
        tag = yield from attributes(reader)
        name = tag.get("name", "") if tag is not None else ""
        if tag is None or not is_name(name):
            return False
        reader.out.call(name)
        reader.drop()
        parameters = self.written_by(reader, asked.schema(name))
        if "/" in tag:
            parameters.end()
            return True
        if self.bodies and (yield from reader.space()) == "{":
            yield from self._body(reader)
            return True
        while (yield from self._step(reader, parameters, alone=alone)):
            pass
        return True

    def written_by(self, reader: Reader, schema: Mapping[str, Any] | None) -> Parameters:
        """Return what writes the arguments of a call."""
        return Parameters(reader.out, schema)

    def _body(self, reader: Reader) -> Machine[None]:
        """Emit the JSON at the cursor as the call's arguments, and drop the call's closer."""
        reader.drop()
        if not (yield from json_text.value(reader, say=True)):
            return
        reader.out.end_call()
        yield from reader.space()
        if (yield from reader.one_of(self._inside)) in self.call_ends:
            reader.drop()
        else:
            reader.back()

    def _step(self, reader: Reader, parameters: Parameters, *, alone: bool) -> Machine[bool]:
        """Read one parameter, or the call's end; return whether it may go on."""
        yield from reader.space()
        word = yield from reader.one_of(self._inside)
        if word in self.parameter:
            return (yield from self.value(reader, parameters))
        if not word:
            if breaks_off(reader, parameters, self._inside, *self.parameter):
                return False
            if not alone and (yield from reader.peek()):
                reader.drop()
                yield from skip(reader, self._inside)
                return True
        parameters.end()
        if word in self.call_ends:
            reader.drop()
        else:
            reader.back()
        return False

    def value(self, reader: Reader, parameters: Parameters) -> Machine[bool]:
        """Read the parameter whose opener was moved over; return whether it ended."""
        tag = yield from attributes(reader)
        key = tag.get("name", "") if tag is not None else ""
        if tag is None or not key:
            parameters.broken()
            reader.drop()
            return False
        types = parameters.types(key)
        body = key in self.whole and not parameters.declares(key)
        if self.types is not None:
            types = self.types(tag, types)
        if "/" in tag:
            parameters.value(key, "", types)
            reader.drop()
            return True
        closers = self._closers
        if self.cdata is not None and (yield from self._section(reader)):
            closers = self._sections
        elif self.trim and (yield from reader.have("\n")):
            closers = self._trimmed
        reader.drop()
        ended = yield from parameter(
            reader, parameters, key, closers, self._followed, types=types, body=body
        )
        if ended:
            yield from reader.space()
            yield from reader.one_of(self._ends)
            reader.drop()
        return bool(ended)

    def _section(self, reader: Reader) -> Machine[bool]:
        """Move over the opener of a section that is a whole value, and white space before it."""
        assert self.cdata is not None
        distance = reader.at - reader.base
        yield from reader.space()
        if (yield from reader.have(self.cdata[0])):
            return True
        reader.at = reader.base + distance
        return False


def attributes(reader: Reader) -> Machine[dict[str, str] | None]:
    """Move over the attributes at the cursor and the bracket behind them; return them, None if they are none.

    `/` is among them if the tag closes itself. Of two with one name the first counts.
    """
    found: dict[str, str] = {}
    for _ in range(ATTRIBUTES_MAX + 1):
        character = yield from reader.space()
        if character == ">":
            reader.at += 1
            return found
        if character == "/":
            reader.at += 1
            found["/"] = ""
            continue
        key = yield from reader.pattern(_KEY)
        if not key or (yield from reader.space()) != "=":
            return None
        reader.at += 1
        value = yield from _attribute(reader, (yield from reader.space()))
        if value is None:
            return None
        found.setdefault(key, value)
    return None


def _attribute(reader: Reader, first: str) -> Machine[str | None]:
    """Move over the value of an attribute, quoted or not; return it."""
    quoted = _QUOTED.get(first)
    if quoted is None:
        return (yield from reader.pattern(_BARE, _VALUE_MAX)) or None
    reader.at += 1
    value = yield from reader.pattern(quoted, _VALUE_MAX)
    return value if (yield from reader.have(first)) else None
