"""Tagged arguments: values printed between tags, written as one JSON object while they come.

The object is opened with its first parameter, each value is written by its type (`schema_types`),
and the object is closed when the call is. A value that can only be a string leaves while it
arrives; any other waits for its end. A parameter that was printed twice keeps its first value: what
was emitted cannot be taken back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from smg_node.parsers.notations.schema_types import (
    STRING,
    Types,
    as_json,
    escaped,
    is_json,
    quoted,
    schema_of,
    types_of,
)
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.piece_writer import Outlet
from smg_node.parsers.reading.text_reader import HELD_MAX, Machine, Reader

Say = Callable[[str], None]
Followed = Callable[[Reader], Machine[bool]]
"""Looks at what stands at the cursor, behind white space: does it show that the value was over?"""

ESCAPED: Final = '"\\' + "".join(map(chr, range(32)))
"""Characters that cannot stand as they are in a JSON string; for `Markers(also=…)`."""


class Parameters:
    """Writes the arguments of the last call, a parameter at a time."""

    __slots__ = ("_keys", "_out", "_schema", "_whole")

    def __init__(self, out: Outlet, schema: Mapping[str, Any] | None) -> None:
        """Write to `out`; `schema` is the JSON Schema of the function's parameters."""
        self._out = out
        self._schema = schema
        self._keys: set[str] = set()
        self._whole = False

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The schema of the function's parameters."""
        return self._schema

    def types(self, key: str) -> Types:
        """Return what types the parameter may have by its schema."""
        return types_of(self._schema, key)

    @property
    def empty(self) -> bool:
        """Whether nothing was written."""
        return not self._keys and not self._whole

    def open(self, key: str) -> bool:
        """Begin a parameter; False if there was one of that name: its value is to be dropped."""
        if key in self._keys or self._whole:
            return False
        self._out.arguments(f"{',' if self._keys else '{'}{quoted(key)}:")
        self._keys.add(key)
        return True

    def declares(self, key: str) -> bool:
        """Whether the schema has a parameter of that name."""
        return schema_of(self._schema, self._schema, key) is not None

    def value(self, key: str, text: str, types: Types) -> None:
        """Write a complete value of a parameter."""
        if self.open(key):
            self.json(as_json(text, types))

    def json(self, text: str) -> None:
        """Write the value of the parameter that is open, or a part of it, as JSON."""
        self._out.arguments(text)

    def end(self) -> None:
        """Close the object: the call is complete."""
        if not self._whole:
            self._out.arguments("}" if self._keys else "{}")
        self._out.end_call()

    def broken(self) -> None:
        """Leave the arguments unreadable: the call breaks off inside a value or a tag."""
        if not self._keys and not self._whole:
            self._out.arguments("{")

    def body(self, text: str) -> None:
        """Take `text`, a JSON object in the place of parameters, as all of the arguments."""
        assert not self._keys, "there are parameters already"
        self._out.arguments(text)
        self._whole = True


def parameter(
    reader: Reader,
    parameters: Parameters,
    key: str,
    closers: Markers,
    followed: Followed | None = None,
    *,
    sure: frozenset[str] = frozenset(),
    types: Types | None = None,
    body: bool = False,
) -> Machine[str]:
    """Read the value at the cursor as parameter `key`; return the closer that ended it, not moved over.

    `closers` should be made with `also=ESCAPED`. A closer ends the value only if `followed` says so of what
    stands behind it and white space; at the end of the answer, and where it is one of `sure`, it always does.
    `types` stand for those of the schema. With `body` a JSON object in the first parameter is taken as all
    of the arguments. Returns "" where the answer ends inside the value, whose text has left by then.
    """
    ends = _Ends(closers, followed, sure)
    types = parameters.types(key) if types is None else types
    late = body and parameters.empty
    fresh = late or parameters.open(key)
    if not fresh:
        reader.note("parameter_repeated")
    if types == STRING and not late:
        if fresh:
            parameters.json('"')
        say: Say = (lambda text: parameters.json(escaped(text))) if fresh else _nothing
        closer = yield from _raw(reader, ends, say, calm=fresh)
        if closer and fresh:
            parameters.json('"')
        return closer
    value = _Value(parameters, types, key if late else None) if fresh else None
    closer = yield from _raw(reader, ends, value.add if value else _nothing, calm=False)
    if value is not None:
        if value.large:
            reader.note("value_too_large")
        value.end(whole=bool(closer))
    return closer


@dataclass(frozen=True, slots=True)
class _Ends:
    """Closers that may end a value."""

    closers: Markers
    followed: Followed | None
    sure: frozenset[str]


class _Value:
    """A value that waits for its end, unless it grows too large to wait.

    With a `key` the parameter is opened only when it is clear that the value is not the whole of the arguments.
    """

    __slots__ = ("_key", "_parameters", "_parts", "_size", "_types")

    def __init__(self, parameters: Parameters, types: Types, key: str | None) -> None:
        self._parameters = parameters
        self._types = types
        self._key = key
        self._parts: list[str] = []
        self._size = 0

    @property
    def large(self) -> bool:
        """Whether it leaves as a string, whatever it is."""
        return self._size > HELD_MAX

    def add(self, text: str) -> None:
        if self.large:
            self._parameters.json(escaped(text))
            return
        self._parts.append(text)
        self._size += len(text)
        if self.large:
            self._open()
            self._parameters.json('"' + escaped("".join(self._parts)))
            self._parts = []

    def end(self, *, whole: bool) -> None:
        if self.large:
            self._parameters.json('"' if whole else "")
            return
        text = "".join(self._parts)
        if whole and self._key is not None and text.lstrip().startswith("{") and is_json(text):
            self._parameters.body(text.strip())
            return
        self._open()
        if whole:
            self._parameters.json(as_json(text, self._types))
        elif text:
            # Its text leaves and nothing is closed: what a client gets cannot be taken for a whole call.
            self._parameters.json('"' + escaped(text))

    def _open(self) -> None:
        if self._key is not None:
            self._parameters.open(self._key)


def _raw(reader: Reader, ends: _Ends, say: Say, *, calm: bool) -> Machine[str]:
    """Say what comes before the closer; see `parameter`."""
    assert reader.at == reader.base, "what is held belongs to something"
    closers = ends.closers
    while True:
        buffer, at = reader.buffer, reader.at
        found = closers.find(buffer, at, ended=reader.ended)
        if found is not None:
            end, word = found
            if end > at:
                say(buffer[at:end])
            reader.at = reader.base = end
            # While a second name holds the text, it is copied with every feed.
            del buffer
            if (yield from _ended(reader, word, ends)):
                return word
            # The closer was data: its first character is, and the rest is looked at again.
            say(reader.buffer[reader.base])
            reader.at = reader.base = reader.base + 1
            continue
        cut = len(buffer) - (0 if reader.ended else closers.held(buffer, at))
        if cut > at:
            say(buffer[at:cut])
            reader.at = reader.base = cut
        if reader.ended:
            return ""
        if calm and cut == len(buffer):
            reader.calm = ("call", closers.triggered)
        yield
        reader.calm = None


def _ended(reader: Reader, word: str, ends: _Ends) -> Machine[bool]:
    """Whether the closer at the cursor ends the value; the cursor stays."""
    if ends.followed is None or word in ends.sure:
        return True
    reader.at += len(word)
    ended = not (yield from reader.space()) or (yield from ends.followed(reader))
    reader.back()
    return ended


def closed(reader: Reader, closers: Markers) -> Machine[None]:
    """Drop a closer behind a call, and the white space before it, if it stands there."""
    yield from reader.space()
    if (yield from reader.one_of(closers)):
        reader.drop()
    else:
        reader.back()


def breaks_off(reader: Reader, parameters: Parameters, tags: Markers, *openers: str) -> bool:
    """Whether the answer ends with a part of one of `tags`; then that is dropped and the call is over.

    Where it may be the part of a parameter's opener, one of `openers`, the call's arguments stay unreadable.
    """
    if not begun(reader, tags):
        return False
    if any(opener.startswith(reader.buffer[reader.at :]) for opener in openers):
        parameters.broken()
    else:
        parameters.end()
    reader.at = len(reader.buffer)
    reader.drop()
    return True


def skip(reader: Reader, markers: Markers) -> Machine[str]:
    """Drop what comes before the next marker; return it, not moved over, "" at the end of the answer."""
    return (yield from taken(reader, markers, _nothing))


def taken(
    reader: Reader, closers: Markers, say: Say, followed: Followed | None = None
) -> Machine[str]:
    """Give what comes before the next closer to `say`; return that closer, not moved over.

    As `parameter` has it: a closer counts only if `followed` says so; "" at the end of the answer.
    """
    return (yield from _raw(reader, _Ends(closers, followed, frozenset()), say, calm=False))


def _nothing(_: str) -> None:
    """Drop text that means nothing here."""


def followers(*words: str) -> Followed:
    """Return a look for any of `words`, or for the part of one with which the answer ends."""
    markers = Markers(words)

    def look(reader: Reader) -> Machine[bool]:
        return bool((yield from reader.one_of(markers))) or begun(reader, markers)

    return look


def begun(reader: Reader, tags: Markers) -> bool:
    """Whether the answer ends with a part of one of `tags`, which stands at the cursor."""
    rest = len(reader.buffer) - reader.at
    return reader.ended and rest > 0 and tags.held(reader.buffer, reader.at) == rest
