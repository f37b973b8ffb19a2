"""MiniMax M3 calls: elements that nest, every tag behind a prefix of its own; a parameter's tag is
its name.

    ]<]minimax[>[<tool_call>⏎]<]minimax[>[<invoke name="plan">]<]minimax[>[<city>Ghent]<]minimax[>[</city>]<]minimax[>[<days>]<]minimax[>[<item>Mon]<]minimax[>[</item>]<]minimax[>[</days>]<]minimax[>[</invoke>⏎]<]minimax[>[</tool_call>

Elements within elements are converted by `nested_elements`. Elements of one name beside each other
are a list, so a value that may be one waits for the tag behind it; a value that can only be text
leaves while it arrives.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from smg_node.parsers.notations.nested_elements import Nesting
from smg_node.parsers.notations.schema_types import STRING, escaped, schema_of
from smg_node.parsers.notations.tagged_arguments import (
    ESCAPED,
    Followed,
    Parameters,
    begun,
    parameter,
    taken,
)
from smg_node.parsers.notations.xml_elements import Elements
from smg_node.parsers.reading.format import Tag, ToolFormat
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import HELD_MAX, Machine, Reader

_PREFIX: Final = "]<]minimax[>["
_OPENER: Final = f"{_PREFIX}<tool_call>"
_CLOSER: Final = f"{_PREFIX}</tool_call>"
_CALL: Final = f"{_PREFIX}<invoke "
_CALL_END: Final = f"{_PREFIX}</invoke>"
_ELEMENT: Final = f"{_PREFIX}<"
_ELEMENT_END: Final = f"{_PREFIX}</"
_KEY: Final = re.compile(r"[^<>\n]*")
_NESTING: Final = Nesting(_PREFIX)
_BEHIND: Final = Markers((_ELEMENT, _ELEMENT_END, _CALL_END, _CLOSER))
_LAST: Final = Markers((_CALL_END, _CLOSER))


class _Nested(Parameters):
    """Writes arguments whose values may be lists of elements of one name.

    The last of them that could go on is kept until something else comes.
    """

    __slots__ = ("_key", "_reader", "_say", "_size", "_values")

    def __init__(self, reader: Reader, schema: Mapping[str, Any] | None) -> None:
        super().__init__(reader.out, schema)
        self._reader = reader
        self._key = ""
        self._values: list[list[str]] = []
        self._size = 0
        self._say: Callable[[str], None] | None = None
        """What takes a value that grew too large to be kept."""

    def begin(self, key: str) -> None:
        """Begin another value of `key`."""
        if key != self._key:
            self.flush()
        self._key = key
        self._values.append([])

    def add(self, text: str) -> None:
        """Take a part of the value; one that grows too large leaves as a string."""
        if self._say is not None:
            self._say(text)
            return
        self._values[-1].append(text)
        self._size += len(text)
        if self._size > HELD_MAX:
            self._reader.note("value_too_large")
            self._say = self._break()

    def close(self) -> None:
        """The value has ended."""
        if self._say is None:
            return
        if self._say is not _nothing:
            self.json('"' if len(self._values) == 1 else '"]')
        self._say = None
        self._forget()

    def flush(self) -> None:
        """Write what is kept."""
        if self._values and self._opened():
            texts = ["".join(parts) for parts in self._values]
            self.json(_NESTING.json(texts, self._declared(), self.schema))
        self._forget()

    def end(self) -> None:
        """Write what is kept and close the object: the call is complete."""
        self.flush()
        super().end()

    def broken(self) -> None:
        """Write what is kept, and close nothing: the call breaks off inside a tag."""
        self.flush()
        super().broken()

    def cut(self) -> None:
        """Emit the last value's text, and close nothing: the call breaks off inside it."""
        if self._say is None:
            self._break()

    def _break(self) -> Callable[[str], None]:
        """Write what is kept, the last value as a string that goes on; return what takes the rest."""
        if not self._opened():
            return _nothing
        *before, last = ["".join(parts) for parts in self._values]
        if before:
            items = _NESTING.items(before, self._declared(), self.schema)
            self.json("[" + "".join(f"{item}," for item in items))
        if last:
            self.json('"' + escaped(last))
        return lambda text: self.json(escaped(text))

    def _opened(self) -> bool:
        if self.open(self._key):
            return True
        self._reader.note("parameter_repeated")
        return False

    def _forget(self) -> None:
        self._key, self._values, self._size = "", [], 0

    def _declared(self) -> Any:
        return schema_of(self.schema, self.schema, self._key)


def _nothing(_: str) -> None:
    """Drop a value that was printed twice."""


class _M3(Elements):
    """The elements of this family: a parameter is one of its own name."""

    def written_by(self, reader: Reader, schema: Mapping[str, Any] | None) -> Parameters:
        """Return what writes the arguments of a call."""
        return _Nested(reader, schema)

    def value(self, reader: Reader, parameters: Parameters) -> Machine[bool]:
        """Read the element whose tag was begun; return whether it ended."""
        assert isinstance(parameters, _Nested)
        key = yield from reader.pattern(_KEY)
        if not key or not (yield from reader.have(">")):
            parameters.broken()
            reader.drop()
            return False
        reader.drop()
        if key.startswith("/"):
            # A closer that closes nothing.
            return True
        tags = _tags(key)
        if parameters.types(key) == STRING:
            parameters.flush()
            closer = yield from parameter(reader, parameters, key, tags.closer, _followed)
        else:
            parameters.begin(key)
            closer = yield from _inside(reader, parameters, tags)
        reader.at += len(closer)
        reader.drop()
        return bool(closer)


@dataclass(frozen=True, slots=True)
class _Tags:
    """The tags of one parameter."""

    opens: str
    closer: Markers
    both: Markers


@lru_cache(maxsize=256)
def _tags(key: str) -> _Tags:
    opens, closes = f"{_ELEMENT}{key}>", f"{_ELEMENT_END}{key}>"
    return _Tags(opens, Markers((closes,), also=ESCAPED), Markers((opens, closes)))


def _inside(reader: Reader, parameters: _Nested, tags: _Tags) -> Machine[str]:
    """Keep the inside of an element, elements of its own name in it included; return its closer."""
    depth = 0
    while True:
        word = yield from taken(reader, tags.both, parameters.add)
        if not word:
            parameters.cut()
            return ""
        if word == tags.opens:
            depth += 1
        elif (yield from _closes(reader, word, _followed if depth == 0 else _ends)):
            parameters.close()
            return word
        else:
            depth = max(0, depth - 1)
        parameters.add(word)
        reader.at += len(word)
        reader.drop()


def _closes(reader: Reader, word: str, followed: Followed) -> Machine[bool]:
    """Whether the closer at the cursor is one, by what stands behind it; the cursor stays."""
    reader.at += len(word)
    closes = not (yield from reader.space()) or (yield from followed(reader))
    reader.back()
    return closes


def _followed(reader: Reader) -> Machine[bool]:
    word = yield from reader.one_of(_BEHIND)
    reader.at -= len(word)
    return word not in ("", _ELEMENT_END) or begun(reader, _LAST)


def _ends(reader: Reader) -> Machine[bool]:
    return (yield from reader.one_of(_LAST)) != "" or begun(reader, _LAST)


_M3_ELEMENTS: Final = _M3(
    call=(_CALL,),
    call_ends=(_CALL_END,),
    parameter=(_ELEMENT,),
    parameter_ends=(_ELEMENT_END,),
    wrappers=(_OPENER,),
    wrapper_ends=(_CLOSER,),
)

FORMATS: Final = (
    ToolFormat(
        "minimax_m3",
        _M3_ELEMENTS.read,
        openers=(_OPENER, _CALL),
        tags=(
            Tag(
                f'{_OPENER}\n{_CALL}name="NAME">',
                f"{_CALL_END}\n{_CLOSER}",
                (_OPENER,),
                "minimax_m3_xml",
            ),
        ),
    ),
)
