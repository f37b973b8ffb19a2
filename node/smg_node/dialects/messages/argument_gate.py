"""Argument gate: lets JSON that a model prints for a call pass, and marks what is none.

Clients parse every beginning of a call's arguments: text that is cut is whole to them, and text that is no
JSON is an exception in the middle of their stream. So a member of the object passes when its value is
complete, or, for a tool that asks to be told early, character by character inside of strings. The last
brace passes at the end only. Where the text turns out to be no JSON, what is complete stays, and the rest
is one more member, as it was printed: nobody runs half a command, and the model is told what it wrote.

Raw control characters in strings are escaped; nothing else is mended. Half a surrogate pair, a number of
more than `NUMBER_MAX` characters and nesting beyond `DEPTH_MAX` are no JSON here, because they are none to
clients. Pure.
"""

import re
from typing import Final, Literal, TypeAlias

import msgspec

from smg_node.core.generation.call_arguments import UNREADABLE_KEY, without_halves

DEPTH_MAX: Final = 100
"""The official client takes 200 levels, a node 128 of a whole body, which has some around the arguments."""
NUMBER_MAX: Final = 4096
"""The official client takes integers of 4,300 digits."""

_State: TypeAlias = Literal[
    "start",  # nothing but blanks so far
    "key or end",  # behind the brace that opens an object
    "key",  # behind a comma in an object
    "colon",
    "value or end",  # behind the bracket that opens an array
    "value",
    "next",  # behind a value: a comma, or the end of what it is in
    "string",
    "escape",  # behind a backslash
    "atom",  # in a number or a word
    "end",  # behind the last brace
    "wrong",
]

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*')
_ATOM: Final = re.compile(r"[-+.0-9A-Za-z]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS: Final = ("true", "false", "null")
_HEX: Final = re.compile(r"[0-9A-Fa-f]*")
_SHORT: Final = '"\\/bfnrt'
_CLOSERS: Final = {"{": "}", "[": "]"}
_encode: Final = msgspec.json.Encoder().encode


class ArgumentGate:
    """Gate of one call. `feed` and `finish` return what may go out, in order."""

    def __init__(self, *, eager: bool = False) -> None:
        self._eager = eager
        self._state: _State = "start"
        self._stack: list[str] = []
        self._keyed = False
        """Whether the string that is open is a key."""
        self._atom = ""
        """Of a number, a word or an escape: what is there of it."""
        self._high = False
        """Whether that escape is the second half of a pair."""
        self._held: list[str] = []
        """What has not gone out, as it would."""
        self._rest: list[str] = []
        """What came behind the last complete member, as it was printed."""
        self._size = 0
        self._fit = (0, "")
        """So much of the text is whole once these brackets close it."""
        self._said = ""
        self._valued = False
        """Whether the value of a member has begun and is not complete."""
        self._ahead = False
        """Whether a part of an incomplete member is out."""
        self._members = 0
        self.broken = False
        """Whether no end makes valid JSON of what is out."""

    def feed(self, text: str) -> str:
        """Take more of what was printed; return what may go out now."""
        start = at = 0
        while at < len(text) and self._state != "wrong":
            members = self._members
            at = self._step(text, at)
            if self._members != members:
                self._rest.clear()
                start = at
                self._out()
        self._rest.append(text[start:])
        if self._eager and self._valued and self._state != "wrong" and self._held:
            self._ahead = True
            self._out()
        said, self._said = self._said, ""
        return said

    def finish(self, *, cut: bool = False) -> str:
        """Return the last of it, "" where nothing was printed; where the answer was `cut` off here, the object stays open."""
        if self._state == "end":
            self._held.append("}")
            self._out()
            said, self._said = self._said, ""
            return said
        if self._state == "start" or (cut and self._state != "wrong"):
            return ""
        if self._ahead:
            self.broken = True
            return ""
        before = "," if self._members else "{"
        rest = _encode(without_halves("".join(self._rest))).decode()
        return f'{before}"{UNREADABLE_KEY}":{rest}}}'

    def closing(self, said: str) -> str:
        """Return `said`, all that went out of a call that was cut off, as the object that clients read in it."""
        if self._state in ("end", "wrong"):
            return said
        size, closers = self._fit
        return said[:size] + closers if 0 < size <= len(said) else "{}"

    # ── Step by step ─────────────────────────────────────────────────────────

    def _step(self, text: str, at: int) -> int:
        """Take what follows at this place, and return the place behind it."""
        state = self._state
        if state == "string":
            return self._string(text, at)
        if state == "escape":
            return self._escape(text, at)
        if state == "atom":
            return self._more_of_atom(text, at)
        match = _BLANKS.match(text, at)
        assert match is not None
        if match.end() > at:
            if state not in ("start", "end"):
                self._push(match.group())
            return match.end()
        return self._mark(text, at)

    def _mark(self, text: str, at: int) -> int:
        """Take one character that is neither blank nor inside of anything."""
        mark, state = text[at], self._state
        if state == "start":
            if mark == "{":
                self._open(mark)
                return at + 1
        elif state == "next":
            return self._behind_value(mark, at)
        elif state == "colon":
            if mark == ":":
                self._push(mark)
                self._state = "value"
                return at + 1
        elif state in ("key", "key or end"):
            if mark == '"':
                self._keyed = True
                self._push(mark)
                self._state = "string"
                return at + 1
            if mark == "}" and state == "key or end":
                return self._close(at)
        elif state in ("value", "value or end"):
            if mark == "]" and state == "value or end":
                return self._close(at)
            return self._value(text, at)
        return self._fail(at)

    def _value(self, text: str, at: int) -> int:
        mark = text[at]
        if mark in "{[":
            if len(self._stack) >= DEPTH_MAX:
                return self._fail(at)
            self._valued = True
            self._open(mark)
            return at + 1
        if mark == '"':
            self._keyed, self._valued = False, True
            self._push(mark)
            self._state = "string"
            return at + 1
        self._state, self._atom = "atom", ""
        return self._more_of_atom(text, at)

    def _open(self, mark: str) -> None:
        self._stack.append(mark)
        self._push(mark)
        self._fits()
        self._state = "key or end" if mark == "{" else "value or end"

    def _behind_value(self, mark: str, at: int) -> int:
        inside = self._stack[-1]
        if mark == ",":
            self._push(mark)
            self._state = "key" if inside == "{" else "value"
            return at + 1
        return self._close(at) if mark == _CLOSERS[inside] else self._fail(at)

    def _close(self, at: int) -> int:
        if len(self._stack) == 1:
            # It goes out when nothing but blanks has followed.
            self._state = "end"
            return at + 1
        self._push(_CLOSERS[self._stack.pop()])
        self._complete()
        return at + 1

    def _complete(self) -> None:
        """A value is over."""
        self._state = "next"
        self._fits()
        if len(self._stack) == 1:
            self._members += 1
            self._valued = self._ahead = False

    def _string(self, text: str, at: int) -> int:
        match = _PLAIN.match(text, at)
        assert match is not None
        if match.end() > at:
            self._push(match.group())
            return match.end()
        mark = text[at]
        if mark == "\\":
            self._state, self._atom, self._high = "escape", mark, False
        elif mark == '"':
            self._push(mark)
            if self._keyed:
                self._state = "colon"
            else:
                self._complete()
        elif mark < " ":
            self._push(_encode(mark).decode()[1:-1])
        else:
            return self._fail(at)
        return at + 1

    def _escape(self, text: str, at: int) -> int:
        """Take more of an escape; it goes on when it is whole, a pair of halves in one piece."""
        had = len(self._atom) - (6 if self._high else 0)
        if had < 2:
            expected = "u" if self._high else _SHORT + "u"
            if had == 0:
                expected = "\\"
            if text[at] not in expected:
                return self._fail(at)
            self._atom += text[at]
            if had == 1 and text[at] != "u":
                self._unescaped()
            return at + 1
        match = _HEX.match(text, at, at + 6 - had)
        assert match is not None
        self._atom += match.group()
        if len(self._atom) < (12 if self._high else 6):
            return match.end() if match.end() > at else self._fail(at)
        return self._unit(match.end(), int(self._atom[-4:], 16))

    def _unit(self, at: int, unit: int) -> int:
        low = 0xDC00 <= unit < 0xE000
        if low != self._high:
            return self._fail(at)
        if 0xD800 <= unit < 0xDC00:
            self._high = True
        else:
            self._unescaped()
        return at

    def _unescaped(self) -> None:
        self._push(self._atom)
        self._state = "string"

    def _more_of_atom(self, text: str, at: int) -> int:
        """Take more of a number or a word; it goes on when something else follows."""
        match = _ATOM.match(text, at)
        assert match is not None
        self._atom += match.group()
        if len(self._atom) > NUMBER_MAX:
            return self._fail(at)
        if match.end() == len(text):
            return match.end()
        atom = self._atom
        if atom not in _WORDS and not _NUMBER.fullmatch(atom):
            return self._fail(at)
        self._push(atom)
        self._complete()
        return match.end()

    def _push(self, text: str) -> None:
        self._held.append(text)
        self._size += len(text)

    def _fits(self) -> None:
        if self._eager or len(self._stack) == 1:
            closers = "".join([_CLOSERS[mark] for mark in reversed(self._stack)])
            self._fit = (self._size, closers)

    def _out(self) -> None:
        self._said += "".join(self._held)
        self._held.clear()

    def _fail(self, at: int) -> int:
        self._state = "wrong"
        return at
