"""Message bodies that a token ends: reasoning, and arguments that are JSON most of the time."""

import json
from dataclasses import dataclass, field
from typing import Final

from smg_node.parsers.notations.json_calls import EMPTY, OPEN
from smg_node.parsers.notations.json_text import string_of_json
from smg_node.parsers.reading.markers import Markers
from smg_node.parsers.reading.text_reader import Machine, Reader

_BRACKETS: Final = '"{}[]'


@dataclass(frozen=True)
class Bodies:
    """`ends` are the tokens that end a body; those of `stray` mean nothing in a thought and are dropped."""

    ends: tuple[str, ...]
    stray: tuple[str, ...] = ()
    _ends: Markers = field(init=False)
    _thought: Markers = field(init=False)
    _outside: Markers = field(init=False)
    _inside: Markers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ends", Markers(self.ends))
        object.__setattr__(self, "_thought", Markers((*self.ends, *self.stray)))
        object.__setattr__(self, "_outside", Markers((*_BRACKETS, *self.ends)))
        object.__setattr__(self, "_inside", Markers(('"', "\\", *self.ends)))

    def thought(self, reader: Reader) -> Machine[str]:
        """Emit reasoning up to the token that ends it, which stays at the cursor; "" at the
        answer's end.
        """
        while True:
            word = yield from reader.until(self._thought, "reasoning")
            if not word or word in self.ends:
                return word
            reader.at += len(word)
            reader.drop()

    def arguments(self, reader: Reader) -> Machine[None]:
        """Emit the body at the cursor as the last call's arguments; the token that ends it stays
        there.

        Inside a string of JSON such a token is data, unless the answer ends with it. A body that is no JSON,
        or goes on behind it, leaves as it is. Nothing before the body may be held.
        """
        first = yield from reader.space()
        reader.drop()
        if first in ("{", "["):
            whole = yield from self._json(reader)
        elif first == '"':
            whole = yield from string_of_json(reader)
        else:
            whole = yield from self._nothing(reader)
        if whole:
            reader.out.end_call()
            yield from reader.space()
            if (yield from self._over(reader)):
                reader.drop()
                return
            reader.back()
        if (yield from reader.until(self._ends, "call")) and first not in ("{", "[", '"'):
            reader.out.end_call()

    def string(self, reader: Reader, name: str) -> Machine[None]:
        """Emit the body at the cursor, any text, as the string `name` of the last call's arguments.

        The token that ends it stays at the cursor. A body that breaks off leaves an object that is not whole.
        Nothing before the body may be held.
        """
        out, ends = reader.out, self._ends
        out.arguments(f'{{"{name}":"')
        while True:
            buffer, at = reader.buffer, reader.at
            found = ends.find(buffer, at, ended=reader.ended)
            held = 0 if found is not None or reader.ended else ends.held(buffer, at)
            end = len(buffer) - held if found is None else found[0]
            if end > at:
                out.arguments(json.dumps(buffer[at:end], ensure_ascii=False)[1:-1])
                reader.at = reader.base = end
            if found is not None:
                out.arguments('"}')
                out.end_call()
                return
            if reader.ended:
                return
            yield

    def _nothing(self, reader: Reader) -> Machine[bool]:
        """Emit the arguments of an empty body; return whether it is one."""
        null = yield from reader.have("null")
        if null:
            yield from reader.space()
        elif not (yield from reader.peek()):
            # It breaks off before it begins: no call to carry out.
            reader.out.arguments(OPEN)
            return False
        if not (yield from self._over(reader)):
            reader.back()
            return False
        reader.drop()
        reader.out.arguments(EMPTY)
        return True

    def _over(self, reader: Reader) -> Machine[bool]:
        """Whether the body ends at the cursor, which stays."""
        if not (yield from reader.peek()):
            return True
        word = yield from reader.one_of(self._ends)
        reader.at -= len(word)
        return bool(word)

    def _json(self, reader: Reader) -> Machine[bool]:
        """Emit the JSON at the cursor; return whether it ended before the body did."""
        depth = 0
        quoted = False
        while True:
            word = yield from reader.until(self._inside if quoted else self._outside, "call")
            if not word:
                return False
            reader.at += len(word)
            if word in self.ends:
                if not quoted or not (yield from reader.peek()):
                    reader.back()
                    return False
            elif word == '"':
                quoted = not quoted
            elif word == "\\":
                if (yield from reader.peek()):
                    reader.at += 1
            else:
                depth += 1 if word in "{[" else -1
            reader.arguments()
            if depth <= 0:
                return True
